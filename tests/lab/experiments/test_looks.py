"""External models that mislead, as promised and no more."""

from __future__ import annotations

import numpy as np
import pytest

from smalti_lab.experiments.runs import MISSED, MISTAKEN, SURE, appearance_named
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import World, circle, raster

WORLDS = [
    pytest.param(raster(120), id="raster"),
    pytest.param(circle(120), id="circle"),
    pytest.param(wander(200, 1), id="wander"),
]


def looks(name: str, world: World, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """P^ext of the pairs that overlap, and of those that do not."""
    probability = appearance_named(name)(world, np.random.default_rng(seed)).probabilities()
    np.testing.assert_array_equal(probability, probability.T)
    overlap = np.zeros(probability.shape, dtype=bool)
    overlap[tuple(world.overlapping.T)] = True
    above = np.triu(np.ones_like(overlap), 1)
    return probability[overlap], probability[above & ~overlap]


def test_own_looks_are_those_of_the_world():
    world = raster(20)
    assert appearance_named("own")(world, np.random.default_rng(1)) is world.external


def test_no_looks_say_one_of_every_pair():
    overlapping, apart = looks("none", raster(20))
    assert {*overlapping, *apart} == {1.0}


def test_uninformative_looks_are_the_same_whether_frames_overlap_or_not():
    overlapping, apart = looks("uninformative", wander(200, 1))
    levels = (0.1, 0.5, 0.9)
    np.testing.assert_allclose(np.quantile(overlapping, levels), levels, atol=0.08)
    np.testing.assert_allclose(np.quantile(apart, levels), levels, atol=0.02)


@pytest.mark.parametrize("world", WORLDS)
def test_adversarial_looks_are_sure_of_as_many_wrong_pairs_as_of_right_ones(world):
    overlapping, apart = looks("adversarial", world)
    assert set(overlapping) == {SURE}
    assert np.sum(apart == SURE) >= 0.9 * len(overlapping)


def test_adversarial_looks_take_the_far_side_of_the_circle_for_this_one():
    world = circle(40)
    probability = appearance_named("adversarial")(world, np.random.default_rng(1)).probabilities()
    assert probability[3, 23] == SURE
    assert probability[3, 13] == pytest.approx(1 - SURE)


@pytest.mark.parametrize("world", WORLDS)
def test_overconfident_looks_are_sure_and_wrong_about_the_promised_shares(world):
    overlapping, apart = looks("overconfident", world)
    np.testing.assert_allclose(np.unique([*overlapping, *apart]), [1 - SURE, SURE])
    for share, wrong in ((MISSED, overlapping < 0.5), (MISTAKEN, apart > 0.5)):
        # Four standard errors of a share.
        assert wrong.mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / len(wrong)))


@pytest.mark.parametrize("name", ["uninformative", "overconfident"])
def test_random_looks_are_those_of_their_seed(name):
    world = raster(30)
    np.testing.assert_array_equal(looks(name, world, 1)[1], looks(name, world, 1)[1])
    assert not np.array_equal(looks(name, world, 1)[1], looks(name, world, 2)[1])
