"""Training of the word weights: derivatives, and the optimum against a slow, general solver."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.overlap import weight_training as training
from smalti.overlap.weighted_signatures import WeightedSignatures
from tests.overlap.reference import best_weights, log_loss


def wandering_words(frames: int, words: int, seen: int, seed: int) -> np.ndarray:
    """Signatures of frames that move along a row of things, each showing one of the words; some are missed."""
    rng = np.random.default_rng(seed)
    things = rng.integers(0, words, size=4 * frames + seen)
    counts = np.zeros((frames, words))
    for frame in range(frames):
        shown = things[4 * frame : 4 * frame + seen]
        np.add.at(counts[frame], shown[rng.random(seen) < 0.8], 1.0)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def smooth_words(frames: int, words: int, seed: int) -> np.ndarray:
    """Signatures in which every word varies slowly."""
    rng = np.random.default_rng(seed)
    knots = rng.exponential(size=(frames // 8 + 2, words))
    at = np.linspace(0, len(knots) - 1, frames)
    raw = np.column_stack([np.interp(at, np.arange(len(knots)), knots[:, d]) for d in range(words)])
    raw += 0.1 * rng.exponential(size=raw.shape)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def deceptive_pairs(signatures: np.ndarray, count: int) -> np.ndarray:
    """The pairs that look most alike of those that are far apart in time."""
    i, j = np.triu_indices(len(signatures), 20)
    likeness = np.sum(signatures[i] * signatures[j], axis=1)
    chosen = np.argsort(-likeness, kind="stable")[:count]
    return np.column_stack([i, j])[chosen]


@pytest.mark.parametrize("refusals", [1, 30])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_probabilities_of_all_pairs_are_those_of_the_tight_optimum(kind: str, refusals: int) -> None:
    signatures = wandering_words(150, 120, 30, 1) if kind == "sparse" else smooth_words(150, 60, 1)
    overlapping = np.column_stack([np.arange(149), np.arange(1, 150)])
    apart = deceptive_pairs(signatures, refusals)
    trained = WeightedSignatures(signatures).learn(overlapping, apart)
    reference = WeightedSignatures(signatures, weights=best_weights(signatures, overlapping, apart, 3.0))
    assert (trained.weights > 1.0).any()
    np.testing.assert_allclose(trained.probabilities(), reference.probabilities(), rtol=0, atol=1e-6)


def test_more_refusals_than_words_have_an_optimum_too() -> None:
    signatures = smooth_words(60, 4, 2)
    overlapping = np.column_stack([np.arange(59), np.arange(1, 60)])
    apart = deceptive_pairs(signatures, 100)
    trained = WeightedSignatures(signatures).learn(overlapping, apart)
    reference = WeightedSignatures(signatures, weights=best_weights(signatures, overlapping, apart, 3.0))
    np.testing.assert_allclose(trained.probabilities(), reference.probabilities(), rtol=0, atol=1e-6)


def test_refusals_of_frames_that_look_the_same_change_nothing() -> None:
    signatures = np.eye(3)[[0, 1, 0, 2]]
    trained = WeightedSignatures(signatures).learn(np.array([[0, 1]]), np.array([[0, 2]]))
    np.testing.assert_array_equal(trained.weights, np.ones(3))


def test_words_that_only_refused_pairs_differ_in_get_finite_weights_that_refuse_them() -> None:
    # No answer speaks against any weight of words 1 and 2: the loss falls for ever.
    signatures = np.array([[0.8, 0.6, 0.0], [0.8, 0.6, 0.0], [0.8, 0.0, 0.6]])
    trained = WeightedSignatures(signatures).learn(np.array([[0, 1]]), np.array([[0, 2]]))
    assert np.isfinite(trained.weights).all()
    assert trained.of_pairs(np.array([[0, 2]]))[0] < 1e-6


def test_a_word_in_which_no_refused_pair_differs_keeps_weight_one() -> None:
    signatures = wandering_words(150, 120, 30, 3)
    overlapping = np.column_stack([np.arange(149), np.arange(1, 150)])
    apart = deceptive_pairs(signatures, 2)
    untouched = (signatures[apart[:, 0]] == signatures[apart[:, 1]]).all(axis=0)
    assert untouched.any()
    assert (WeightedSignatures(signatures).learn(overlapping, apart).weights[untouched] == 1.0).all()


def test_derivatives_of_the_loss_agree_with_finite_differences() -> None:
    rng = np.random.default_rng(4)
    table = rng.exponential(size=(30, 6)) * (rng.random((30, 6)) < 0.7)
    label, importance = rng.choice([-1.0, 1.0], size=30), rng.uniform(0.1, 1.0, size=30)
    weights = 1.0 + rng.exponential(size=6)
    gradient, hessian = training._derivatives(table, table @ weights, label, importance, 2.5)
    for d in range(6):
        step = np.zeros(6)
        step[d] = 1e-5
        above, slope_above = log_loss(weights + step, table, label, importance, 2.5)
        below, slope_below = log_loss(weights - step, table, label, importance, 2.5)
        assert gradient[d] == pytest.approx((above - below) / 2e-5, rel=1e-7, abs=1e-8)
        np.testing.assert_allclose(hessian[d], (slope_above - slope_below) / 2e-5, rtol=1e-6, atol=1e-8)
    value = training._loss(table @ weights, label, importance, 2.5)
    assert value == pytest.approx(log_loss(weights, table, label, importance, 2.5)[0], rel=1e-13)
