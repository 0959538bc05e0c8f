"""The distributions of single pairs: any pairs, in any portions, as if each had been asked for alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment import local_covariance
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import refine
from smalti.geometry.family import FAMILIES
from tests.adjustment.turning_camera import turning
from tests.worlds import OUTLINE

FRAMES = 60
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_number_of_loops = pytest.mark.parametrize("loops", [0, 4, 90])


@cache
def adjusted(family, loops):
    return turning(np.random.default_rng([8, loops]), FRAMES, loops, family, angle=0.6)


def some_pairs(count):
    """Random pairs in either order, neighbours among them."""
    rng = np.random.default_rng(count)
    pairs = rng.choice(FRAMES, (count, 2))
    pairs[::4, 1] = np.minimum(pairs[::4, 0] + 1, FRAMES - 1)
    return pairs


def packed(cov):
    return np.array([cov[0, 0], cov[0, 1], cov[1, 1]])


@each_family
@each_number_of_loops
def test_pairs_are_those_asked_for_one_by_one_in_both_directions(family, loops):
    covariance = LocalCovariance(adjusted(family, loops))
    pairs = some_pairs(25)
    found = covariance.of_pairs(pairs)
    for n, (i, j) in enumerate(pairs.tolist()):
        for direction, (a, b) in enumerate(((i, j), (j, i))):
            mean, cov = covariance.centre(a, b)
            np.testing.assert_allclose(found.mean[n, direction], mean, rtol=1e-9, atol=1e-7)
            np.testing.assert_allclose(found.cov[n, direction], packed(cov), rtol=1e-6, atol=1e-7 * np.trace(cov))


@each_family
@each_number_of_loops
def test_pairs_are_those_of_all_pairs_at_once(family, loops):
    covariance = LocalCovariance(adjusted(family, loops))
    pairs = some_pairs(300)
    found = covariance.of_pairs(pairs)
    for direction, (i, j) in enumerate((pairs.T, pairs[:, ::-1].T)):
        np.testing.assert_allclose(found.mean[:, direction], covariance.centres.mean[i, j], rtol=1e-13, atol=1e-11)
        spread = covariance.centres.spread_squared[i, j]
        assert (np.abs(found.cov[:, direction] - covariance.centres.cov[i, j]) <= 1e-12 * spread[:, None]).all()


@each_family
@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_pairs_in_portions_are_the_same_bit_for_bit(family, at_once, monkeypatch):
    adjustment, pairs = adjusted(family, 4), some_pairs(50)
    expected = LocalCovariance(adjustment).of_pairs(pairs)
    monkeypatch.setattr(local_covariance, "MOST_BYTES_OF_WAYS", 0)
    monkeypatch.setattr(local_covariance, "PAIRS_AT_ONCE", at_once)
    found = LocalCovariance(adjustment).of_pairs(pairs)
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.cov, expected.cov)


@pytest.mark.parametrize("at_once", [1, 7])
def test_stretches_in_portions_are_the_same_bit_for_bit(at_once, monkeypatch):
    adjustment = adjusted(FAMILIES["affine"], 4)
    expected = LocalCovariance(adjustment).stretches
    monkeypatch.setattr(local_covariance, "MOST_BYTES_OF_WAYS", 0)
    monkeypatch.setattr(local_covariance, "PAIRS_AT_ONCE", at_once)
    found = LocalCovariance(adjustment).stretches
    for name in ("starts", "deviation", "distance"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@each_family
def test_a_frame_lies_in_itself_for_certain(family):
    pairs = np.array([[0, 0], [17, 17], [3, 4]])
    found = LocalCovariance(adjusted(family, 4)).of_pairs(pairs)
    np.testing.assert_array_equal(found.cov[:2], 0.0)
    np.testing.assert_array_equal(found.mean[:2], np.broadcast_to(OUTLINE.centre, (2, 2, 2)))
    assert (found.cov[2, :, [0, 2]] > 0).all()


def test_no_pairs_are_no_distributions():
    found = LocalCovariance(adjusted(FAMILIES["affine"], 4)).of_pairs(np.empty((0, 2), dtype=np.int64))
    assert found.mean.shape == (0, 2, 2)
    assert found.cov.shape == (0, 2, 3)


def test_pairs_about_another_mosaic_are_those_asked_for_one_by_one():
    adjustment = adjusted(FAMILIES["affine"], 4)
    covariance = LocalCovariance(adjustment, refine(adjustment).mosaic_from_frame)
    linear = LocalCovariance(adjustment)
    pairs = some_pairs(12)
    found = covariance.of_pairs(pairs)
    for n, (i, j) in enumerate(pairs.tolist()):
        mean, cov = covariance.centre(i, j)
        np.testing.assert_allclose(found.mean[n, 0], mean, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(found.cov[n, 0], packed(cov), rtol=1e-6, atol=1e-7 * np.trace(cov))
    assert np.abs(found.mean - linear.of_pairs(pairs).mean).max() > 1e-3
