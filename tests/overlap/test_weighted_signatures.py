"""Weighted visual words: the formula, the loss, and the optimum that training must reach."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_array

from smalti.errors import ModelError
from smalti.overlap.weighted_signatures import WeightedSignatures
from tests.overlap.reference import log_loss

SEEDS = st.integers(0, 10_000)
NO_PAIRS = np.empty((0, 2), dtype=np.int64)


def unit_signatures(rng: np.random.Generator, frames: int, words: int) -> np.ndarray:
    raw = rng.exponential(size=(frames, words))
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def random_problem(seed: int, words: int) -> tuple[WeightedSignatures, np.ndarray, np.ndarray]:
    """Signatures of 20 frames, the consecutive pairs as overlapping, some others as apart."""
    rng = np.random.default_rng(seed)
    model = WeightedSignatures(unit_signatures(rng, 20, words))
    overlapping = np.column_stack([np.arange(19), np.arange(1, 20)])
    upper = np.column_stack(np.triu_indices(20, 2))
    apart = rng.permutation(upper)[: int(rng.integers(1, 30))]
    return model, overlapping, apart


def with_few_words(signatures: np.ndarray, seed: int, share: float = 0.2) -> np.ndarray:
    """The same signatures with most words taken out of every frame, but for the first."""
    kept = signatures * (np.random.default_rng(seed).random(signatures.shape) < share)
    kept[:, 0] = signatures[:, 0]
    return kept / np.linalg.norm(kept, axis=1, keepdims=True)


def training_terms(
    model: WeightedSignatures, overlapping: np.ndarray, apart: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = np.concatenate([overlapping, apart])
    differences = (model.signatures[pairs[:, 0]] - model.signatures[pairs[:, 1]]) ** 2
    labels = np.array([1.0] * len(overlapping) + [-1.0] * len(apart))
    importance = np.array([0.5 / len(overlapping)] * len(overlapping) + [0.5 / len(apart)] * len(apart))
    return differences, labels, importance


def test_matrix_equals_the_formula_pair_by_pair() -> None:
    rng = np.random.default_rng(3)
    signatures, weights = unit_signatures(rng, 7, 5), 1.0 + rng.exponential(size=5)
    found = WeightedSignatures(signatures, sharpness=2.5, weights=weights).probabilities()
    for i in range(7):
        for j in range(7):
            distance = sum(weights[d] * (signatures[i, d] - signatures[j, d]) ** 2 for d in range(5))
            assert found[i, j] == pytest.approx(1 / (1 + math.exp(-2.5 * (1 - distance))), rel=1e-12)


def test_sharpness_is_three_unless_told() -> None:
    same = WeightedSignatures(np.array([[1.0, 0.0], [1.0, 0.0]])).probabilities()
    assert same[0, 1] == pytest.approx(1 / (1 + math.exp(-3.0)), rel=1e-14)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(SEEDS, st.sampled_from([1, 2, 5, 20, 50]))
def test_trained_weights_satisfy_the_conditions_of_the_bounded_optimum(seed: int, words: int) -> None:
    model, overlapping, apart = random_problem(seed, words)
    weights = model.learn(overlapping, apart).weights
    _, gradient = log_loss(weights, *training_terms(model, overlapping, apart), 3.0)
    at_bound = weights <= 1.0
    assert (weights >= 1.0).all()
    assert (gradient[at_bound] >= -1e-7).all()
    np.testing.assert_allclose(gradient[~at_bound], 0.0, atol=1e-7)


def test_training_on_pairs_that_contradict_the_words_moves_the_weights() -> None:
    # Word 0 tells frames 0 and 2 apart, and says nothing of 0 and 1: only its weight has reason to grow.
    signatures = np.array([[0.8, 0.6, 0.0], [0.8, 0.0, 0.6], [0.6, 0.8, 0.0]])
    trained = WeightedSignatures(signatures).learn(np.array([[0, 1]]), np.array([[0, 2]]))
    assert trained.weights[0] > 1.5


def test_without_negative_answers_the_weights_stay_one() -> None:
    model, overlapping, _ = random_problem(1, 10)
    np.testing.assert_array_equal(model.learn(overlapping, NO_PAIRS).weights, np.ones(10))


def test_training_without_negative_answers_forgets_earlier_training() -> None:
    model, overlapping, apart = random_problem(1, 10)
    trained = model.learn(overlapping, apart)
    np.testing.assert_array_equal(trained.learn(overlapping, NO_PAIRS).weights, np.ones(10))


def test_training_leaves_the_untrained_model_as_it_was() -> None:
    model, overlapping, apart = random_problem(2, 10)
    model.learn(overlapping, apart)
    np.testing.assert_array_equal(model.weights, np.ones(10))


@settings(derandomize=True, deadline=None, max_examples=20)
@given(SEEDS, st.integers(1, 50))
def test_learning_never_raises_a_probability_above_the_untrained_one(seed: int, words: int) -> None:
    model, overlapping, apart = random_problem(seed, words)
    trained = model.learn(overlapping, apart)
    assert (trained.probabilities() <= model.probabilities() + 1e-14).all()


@settings(derandomize=True, deadline=None, max_examples=15)
@given(SEEDS, st.sampled_from([2, 10, 50]), st.booleans())
def test_the_order_of_the_answers_does_not_matter_to_the_last_bit(seed: int, words: int, sparse: bool) -> None:
    model, overlapping, apart = random_problem(seed, words)
    if sparse:
        model = WeightedSignatures(with_few_words(model.signatures, seed))
    rng = np.random.default_rng(seed + 1)
    one = model.learn(overlapping, apart).weights
    other = model.learn(rng.permutation(overlapping), rng.permutation(apart)).weights
    np.testing.assert_array_equal(other, one)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(SEEDS)
def test_earlier_training_does_not_matter(seed: int) -> None:
    model, overlapping, apart = random_problem(seed, 8)
    in_one_go = model.learn(overlapping, apart).weights
    step_by_step = model.learn(overlapping, apart[:1]).learn(overlapping, apart).weights
    np.testing.assert_array_equal(step_by_step, in_one_go)


def test_training_on_refusals_alone_lowers_their_probability() -> None:
    model, _, apart = random_problem(5, 10)
    trained = model.learn(NO_PAIRS, apart)
    i, j = apart[:, 0], apart[:, 1]
    assert (trained.probabilities()[i, j] < model.probabilities()[i, j]).all()


@pytest.mark.parametrize("length", [0.0, 1.01])
def test_signatures_that_are_not_of_length_one_are_refused_by_frame(length: float) -> None:
    signatures = np.eye(4)
    signatures[2] *= length
    with pytest.raises(ModelError, match="frame 2"):
        WeightedSignatures(signatures)


@pytest.mark.parametrize("signatures", [np.ones(3), np.array([[1.0, math.nan], [1.0, 0.0]])])
def test_signatures_that_are_not_a_finite_matrix_are_refused(signatures: np.ndarray) -> None:
    with pytest.raises(ModelError, match="finite and of shape"):
        WeightedSignatures(signatures)


def test_sparse_signatures_that_are_not_of_length_one_are_refused_by_frame() -> None:
    with pytest.raises(ModelError, match="frame 1"):
        WeightedSignatures(csr_array(np.diag([1.0, 0.5, 1.0])))


def test_sparse_signatures_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ModelError, match="finite and of shape"):
        WeightedSignatures(csr_array(np.diag([1.0, math.nan, 1.0])))


def test_sparse_signatures_say_the_same_as_dense_ones() -> None:
    signatures = with_few_words(unit_signatures(np.random.default_rng(1), 20, 50), 1)
    overlapping, apart = np.array([[n, n + 1] for n in range(19)]), np.array([[0, 9], [4, 15], [2, 19]])
    dense = WeightedSignatures(signatures).learn(overlapping, apart)
    sparse = WeightedSignatures(csr_array(signatures)).learn(overlapping, apart)
    np.testing.assert_allclose(sparse.probabilities(), dense.probabilities(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_signatures_do_not_follow_later_changes_of_the_array_they_were_made_of(kind: type) -> None:
    signatures = kind(np.eye(3))
    model = WeightedSignatures(signatures)
    before = model.probabilities()
    signatures *= 0.0
    np.testing.assert_array_equal(model.probabilities(), before)
