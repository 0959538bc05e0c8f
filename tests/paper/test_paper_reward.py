"""Rewards, their bounds, and branch and bound, against the formulas pair by pair."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.engine.relative_position import Centres
from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.position_bounds import probability_bounds
from smalti.paper.paper_strategy import (
    branch_and_bound,
    expected_informativeness,
    expected_informativeness_bound,
    informativeness,
    position_probability,
    position_probability_bounds,
    rank,
)

OUTLINE = Outline(-0.5, -0.5, 79.5, 59.5)
FRAMES = 6
EVERYTHING = 10**6
Ranking = list[tuple[int, int, float]]


@pytest.fixture(scope="module")
def centres() -> Centres:
    """Distributions that differ in the two directions of a pair, from certain to hopeless."""
    rng = np.random.default_rng(6)
    mean = OUTLINE.centre + rng.normal(size=(FRAMES, FRAMES, 2)) * 60.0
    roots = rng.normal(size=(FRAMES, FRAMES, 2, 2)) * 10.0 ** rng.uniform(-1, 3, size=(FRAMES, FRAMES, 1, 1))
    cov = roots @ np.swapaxes(roots, 2, 3)
    return Centres(OUTLINE, mean, np.stack([cov[..., 0, 0], cov[..., 0, 1], cov[..., 1, 1]], axis=-1))


@pytest.fixture(scope="module")
def all_pairs() -> np.ndarray:
    return np.column_stack(np.triu_indices(FRAMES, 1))


def spread(cov: np.ndarray) -> float:
    return math.sqrt(cov[0] * cov[2] - cov[1] ** 2)


def test_informativeness_is_the_mean_root_determinant_of_both_directions(centres: Centres) -> None:
    found = informativeness(centres)
    for i in range(FRAMES):
        for j in range(FRAMES):
            expected = (spread(centres.cov[i, j]) + spread(centres.cov[j, i])) / 2
            assert found[i, j] == pytest.approx(expected, rel=1e-12)


def test_position_probability_is_the_mean_of_both_directions(centres: Centres) -> None:
    found = position_probability(centres)
    for i in range(FRAMES):
        for j in range(FRAMES):
            forth = rectangle_probability(centres.mean[i, j], centres.cov[i, j], OUTLINE)
            back = rectangle_probability(centres.mean[j, i], centres.cov[j, i], OUTLINE)
            assert found[i, j] == pytest.approx((forth + back) / 2, rel=1e-12, abs=1e-300)


def test_position_probability_bounds_are_the_means_of_both_directions(centres: Centres) -> None:
    lower, upper = position_probability_bounds(centres)
    for i in range(FRAMES):
        for j in range(FRAMES):
            forth = probability_bounds(centres.mean[i, j], centres.cov[i, j], OUTLINE)
            back = probability_bounds(centres.mean[j, i], centres.cov[j, i], OUTLINE)
            assert lower[i, j] == pytest.approx((forth[0] + back[0]) / 2, rel=1e-12, abs=1e-300)
            assert upper[i, j] == pytest.approx((forth[1] + back[1]) / 2, rel=1e-12, abs=1e-300)


def test_expected_informativeness_is_the_mean_of_the_products_not_the_product_of_the_means(
    centres: Centres, all_pairs: np.ndarray
) -> None:
    found = expected_informativeness(centres, all_pairs)
    for (i, j), product in zip(all_pairs, found, strict=True):
        forth, back = (
            rectangle_probability(centres.mean[pair], centres.cov[pair], OUTLINE) * spread(centres.cov[pair])
            for pair in ((i, j), (j, i))
        )
        assert product == pytest.approx((forth + back) / 2, rel=1e-12, abs=1e-300)


def test_expected_informativeness_does_not_depend_on_the_order_of_the_frames(
    centres: Centres, all_pairs: np.ndarray
) -> None:
    turned = np.ascontiguousarray(all_pairs[:, ::-1])
    found = expected_informativeness(centres, turned)
    np.testing.assert_array_equal(found, expected_informativeness(centres, all_pairs))


def test_no_expected_informativeness_exceeds_its_bound(centres: Centres, all_pairs: np.ndarray) -> None:
    bound = expected_informativeness_bound(centres)
    np.testing.assert_array_equal(bound, bound.T)
    assert (expected_informativeness(centres, all_pairs) <= bound[tuple(all_pairs.T)]).all()


def test_no_expected_informativeness_exceeds_the_constant(centres: Centres, all_pairs: np.ndarray) -> None:
    constant = 2 * OUTLINE.outer_half_side**2 / np.pi
    assert constant == pytest.approx(2 * (80.0**2 + 60.0**2) / 4 / math.pi, rel=1e-14)
    assert expected_informativeness(centres, all_pairs).max() <= constant


# Branch and bound


def exhaustive(reward: np.ndarray, wanted: np.ndarray, top: int) -> Ranking:
    """Sort all wanted pairs, equal rewards by their numbers."""
    pairs = [(int(i), int(j), float(reward[i, j])) for i, j in np.argwhere(wanted)]
    return sorted(pairs, key=lambda found: (-found[2], found[0], found[1]))[:top]


def searched(reward: np.ndarray, bound: np.ndarray, wanted: np.ndarray, top: int) -> Ranking:
    found = branch_and_bound(bound, wanted, lambda pairs: reward[pairs[:, 0], pairs[:, 1]], top)
    return [(int(i), int(j), float(r)) for (i, j), r in zip(found.pairs, found.rewards, strict=True)]


def random_problem(seed: int, levels: int | None) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Rewards of a few dozen frames; with `levels`, only that many different ones, so that most pairs tie."""
    rng = np.random.default_rng(seed)
    frames = int(rng.integers(3, 60))
    reward = rng.normal(size=(frames, frames))
    if levels is not None:
        reward = rng.integers(0, levels, size=(frames, frames)).astype(float)
    wanted = np.triu(rng.random((frames, frames)) < rng.uniform(0.05, 1.0), 2)
    return reward, wanted, rng


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from([1, 3, 10, EVERYTHING]), st.integers(0, 10_000), st.sampled_from([None, 1, 2, 5]))
def test_loose_bounds_give_what_looking_at_every_pair_gives(top: int, seed: int, levels: int | None) -> None:
    reward, wanted, rng = random_problem(seed, levels)
    bound = reward + rng.exponential(3.0, size=reward.shape)
    assert searched(reward, bound, wanted, top) == exhaustive(reward, wanted, top)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from([1, 3, 10, EVERYTHING]), st.integers(0, 10_000), st.sampled_from([None, 1, 2, 5]))
def test_tight_bounds_give_what_looking_at_every_pair_gives(top: int, seed: int, levels: int | None) -> None:
    reward, wanted, rng = random_problem(seed, levels)
    bound = reward + rng.choice([0.0, 1e-12, 1e-3], size=reward.shape)
    assert searched(reward, bound, wanted, top) == exhaustive(reward, wanted, top)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.sampled_from([1, 3, 10, EVERYTHING]), st.integers(0, 10_000), st.sampled_from([None, 1, 2, 5]))
def test_a_reward_known_for_all_pairs_is_ranked_as_if_sorted(top: int, seed: int, levels: int | None) -> None:
    reward, wanted, _ = random_problem(seed, levels)
    found = rank(reward, wanted, top)
    expected = exhaustive(reward, wanted, top)
    assert [(int(i), int(j)) for i, j in found.pairs] == [(i, j) for i, j, _ in expected]
    assert found.rewards.tolist() == [r for _, _, r in expected]


@pytest.mark.parametrize("top", [1, 10, EVERYTHING])
def test_more_equal_rewards_than_are_evaluated_at_once_come_in_the_order_of_their_pairs(top: int) -> None:
    # 4,851 candidates that all tie, in bound and in reward.
    wanted = np.triu(np.ones((100, 100), dtype=bool), 2)
    reward = np.full((100, 100), 0.5)
    assert searched(reward, reward, wanted, top) == exhaustive(reward, wanted, top)


def test_many_ties_at_the_edge_of_the_best_come_in_the_order_of_their_pairs() -> None:
    rng = np.random.default_rng(4)
    reward = rng.integers(0, 3, size=(120, 120)).astype(float)
    wanted = np.triu(np.ones((120, 120), dtype=bool), 1)
    assert searched(reward, reward + 0.5, wanted, 3000) == exhaustive(reward, wanted, 3000)


def test_tight_bounds_leave_most_pairs_unevaluated() -> None:
    rng = np.random.default_rng(1)
    reward = rng.random((300, 300))
    wanted = np.triu(np.ones((300, 300), dtype=bool), 1)
    found = branch_and_bound(reward * (1 + 1e-6), wanted, lambda pairs: reward[pairs[:, 0], pairs[:, 1]], 10)
    assert found.evaluated < 0.03 * wanted.sum()


def test_pairs_are_evaluated_in_decreasing_order_of_their_bound() -> None:
    rng = np.random.default_rng(5)
    bound = rng.random((100, 100))
    wanted = np.triu(np.ones((100, 100), dtype=bool), 1)
    batches: list[np.ndarray] = []

    def evaluate(pairs: np.ndarray) -> np.ndarray:
        batches.append(bound[pairs[:, 0], pairs[:, 1]])
        return np.zeros(len(pairs))

    branch_and_bound(bound, wanted, evaluate, 3)
    assert len(batches) > 1
    assert all(earlier.min() >= later.max() for earlier, later in pairwise(batches))


def test_the_number_of_evaluated_pairs_is_the_number_that_was_asked_for() -> None:
    rng = np.random.default_rng(2)
    reward = rng.random((100, 100))
    wanted = np.triu(np.ones((100, 100), dtype=bool), 1)
    asked: list[np.ndarray] = []

    def evaluate(pairs: np.ndarray) -> np.ndarray:
        asked.append(pairs)
        return reward[pairs[:, 0], pairs[:, 1]]

    found = branch_and_bound(reward + rng.random((100, 100)), wanted, evaluate, 3)
    assert found.evaluated == sum(len(pairs) for pairs in asked)


def test_no_pair_is_evaluated_twice() -> None:
    wanted = np.triu(np.ones((100, 100), dtype=bool), 1)
    asked: list[tuple[int, int]] = []

    def evaluate(pairs: np.ndarray) -> np.ndarray:
        asked.extend((int(i), int(j)) for i, j in pairs)
        return np.zeros(len(pairs))

    branch_and_bound(np.ones((100, 100)), wanted, evaluate, 3)
    assert len(asked) == len(set(asked)) == wanted.sum()


def test_only_wanted_pairs_are_evaluated() -> None:
    rng = np.random.default_rng(3)
    wanted = np.triu(rng.random((80, 80)) < 0.3, 1)

    def evaluate(pairs: np.ndarray) -> np.ndarray:
        assert wanted[pairs[:, 0], pairs[:, 1]].all()
        return np.zeros(len(pairs))

    branch_and_bound(np.ones((80, 80)), wanted, evaluate, 5)


def test_no_wanted_pair_gives_nothing() -> None:
    nothing = np.zeros((10, 10), dtype=bool)
    assert searched(np.ones((10, 10)), np.ones((10, 10)), nothing, 5) == []


def test_asking_for_no_pair_gives_none() -> None:
    wanted = np.triu(np.ones((4, 4), dtype=bool), 1)
    assert searched(np.ones((4, 4)), np.ones((4, 4)), wanted, 0) == []


def test_negative_rewards_are_ranked_like_any_other() -> None:
    reward = -1.0 - np.arange(16.0).reshape(4, 4)
    wanted = np.triu(np.ones((4, 4), dtype=bool), 1)
    bound = np.zeros((4, 4))
    assert searched(reward, bound, wanted, 4) == exhaustive(reward, wanted, 4)
