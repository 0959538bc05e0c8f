"""Rewards and their bounds, against the formulas pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.adjustment.centres import Centres, PairCentres
from smalti.geometry.outline import Outline
from smalti.overlap.bounds import probability_bounds
from smalti.overlap.rectangle import rectangle_probability
from smalti.suggestion.reward import (
    expected_informativeness,
    expected_informativeness_above,
    informativeness,
    position_probability,
    position_probability_bounds,
)

OUTLINE = Outline(-0.5, -0.5, 79.5, 59.5)
FRAMES = 6


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


def of_pairs(centres: Centres, pairs: np.ndarray) -> PairCentres:
    forth, back = (pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])
    mean = np.stack([centres.mean[forth], centres.mean[back]], axis=1)
    return PairCentres(OUTLINE, mean, np.stack([centres.cov[forth], centres.cov[back]], axis=1))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999999, 1.0])
def test_what_reaches_the_least_is_the_expected_informativeness(
    centres: Centres, all_pairs: np.ndarray, share: float
) -> None:
    exact = expected_informativeness(centres, all_pairs)
    found = expected_informativeness_above(of_pairs(centres, all_pairs), share * exact)
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("times", [1.0001, 2.0, 30.0])
def test_what_is_below_the_least_is_the_expected_informativeness_or_nothing(
    centres: Centres, all_pairs: np.ndarray, times: float
) -> None:
    exact = expected_informativeness(centres, all_pairs)
    found = expected_informativeness_above(of_pairs(centres, all_pairs), times * exact)
    assert ((found == exact) | (found == 0.0)).all()


def test_what_is_far_below_the_least_is_not_computed(centres: Centres, all_pairs: np.ndarray) -> None:
    constant = 2 * OUTLINE.outer_half_side**2 / np.pi
    least = np.full(len(all_pairs), 1.001 * constant)
    np.testing.assert_array_equal(expected_informativeness_above(of_pairs(centres, all_pairs), least), 0.0)


def test_no_expected_informativeness_exceeds_the_constant(centres: Centres, all_pairs: np.ndarray) -> None:
    constant = 2 * OUTLINE.outer_half_side**2 / np.pi
    assert constant == pytest.approx(2 * (80.0**2 + 60.0**2) / 4 / math.pi, rel=1e-14)
    assert expected_informativeness(centres, all_pairs).max() <= constant
