"""The lens that the pairs of a chain agree on: found where there is one, straight where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.engine.lens_estimation import FEWEST_LANDMARKS, FEWEST_PAIRS, find_lens
from smalti.geometry.lens import Lens
from smalti.records import Landmarks
from tests.worlds import OUTLINE, flight


def chain_through(k1, seed=1, frames=30, count=60, noise=0.15):
    rng = np.random.default_rng(seed)
    world = flight(rng, frames, lens=Lens(OUTLINE, k1) if k1 else None)
    return [world.see(pair, rng, count=count, noise=noise) for pair in world.chain]


def lens_of(chain):
    lens, root = find_lens(chain, OUTLINE)
    assert (root is None) == lens.is_undistorted
    return lens


@pytest.mark.parametrize("k1", [0.2, 0.05, -0.1])
def test_a_lens_is_found_within_a_tenth(k1):
    # By how far it stretches the corners, whatever each of its coefficients has of that.
    assert lens_of(chain_through(k1, 1)).stretch == pytest.approx(Lens(OUTLINE, k1).stretch, rel=0.1)


def test_of_exact_landmarks_it_is_found_exactly():
    assert lens_of(chain_through(0.08, noise=0.0)).k1 == pytest.approx(0.08, rel=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_where_there_is_none_the_lens_is_straight(seed):
    assert lens_of(chain_through(0.0, seed)).is_undistorted


def test_landmarks_that_are_wrong_do_not_hide_it():
    rng = np.random.default_rng(5)
    spoiled = []
    for record in chain_through(0.1):
        points_i = record.points_i.copy()
        some = rng.choice(len(record), 6, replace=False)
        points_i[some] += rng.normal(0.0, 20.0, (6, 2))
        spoiled.append(Landmarks(record.pair, points_i, record.points_j, record.sigma))
    assert lens_of(spoiled).stretch > 0.5 * Lens(OUTLINE, 0.1).stretch


def test_it_is_not_looked_for_where_pairs_are_few():
    assert lens_of(chain_through(0.2)[: FEWEST_PAIRS - 1]).is_undistorted


def test_it_is_not_looked_for_where_landmarks_are_few():
    assert lens_of(chain_through(0.2, count=FEWEST_LANDMARKS - 1)).is_undistorted


def test_a_distortion_that_pairs_do_not_share_is_no_lens():
    # Every pair bends by itself, now one way and now the other: as relief does.
    one, other = chain_through(0.1), chain_through(-0.1)
    chain = [(one, other)[n % 2][n] for n in range(29)]
    assert abs(lens_of(chain).stretch) < 0.02


def test_without_any_pair_it_is_straight():
    assert lens_of([]).is_undistorted


def test_it_is_as_sure_as_pairs_scatter_and_more_modest():
    found = [find_lens(chain_through(0.1, seed, noise=0.5), OUTLINE) for seed in range(12)]
    ones = [(lens, root) for lens, root in found if root is not None and lens.k2 == 0.0]
    assert len(ones) >= 6
    off = np.std([lens.k1 for lens, _ in ones])
    stated = np.mean([1.0 / root[0, 0] for _, root in ones])
    assert off < stated < 15.0 * off
