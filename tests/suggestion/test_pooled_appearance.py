"""What is seen around frames: their neighbours' looks added up, and what that is worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from smalti.active_loop import ActiveLoop
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.records import Landmarks, Pair
from smalti.suggestion.appearance_evidence import MOST_NEIGHBOURS, frames_in_reach, neighbours, pooled
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, circle, raster


def chain_of(frames, without=()):
    pairs = np.column_stack([np.arange(frames - 1), np.arange(1, frames)])
    return pairs[~np.isin(pairs[:, 0], without)]


def started(world):
    return ActiveLoop.start(world.frames, OUTLINE, world.chain(world.agent(1)), external=world.external)


def test_neighbours_lie_on_both_sides_alike():
    matrix = neighbours(20, chain_of(20), 3).toarray()
    np.testing.assert_array_equal(np.flatnonzero(matrix[10]), np.arange(7, 14))
    np.testing.assert_array_equal(np.flatnonzero(matrix[1]), [0, 1, 2])
    np.testing.assert_array_equal(np.flatnonzero(matrix[19]), [19])
    assert set(matrix[matrix > 0.0]) == {1.0}


def test_frames_that_the_chain_does_not_join_are_no_neighbours():
    matrix = neighbours(20, chain_of(20, without=[9]), 3).toarray()  # no link from 9 to 10
    np.testing.assert_array_equal(np.flatnonzero(matrix[8]), [7, 8, 9])
    np.testing.assert_array_equal(np.flatnonzero(matrix[10]), [10])


def test_of_many_neighbours_some_are_taken_evenly_spread():
    found = np.flatnonzero(neighbours(200, chain_of(200), 40).toarray()[100])
    assert len(found) == 2 * MOST_NEIGHBOURS + 1
    np.testing.assert_array_equal(np.diff(found), 10)


def test_neighbours_are_in_reach_until_the_camera_has_moved_by_half_a_frame():
    assert frames_in_reach(started(raster(40)).setup.first) == 2  # a third of a frame a step, and turns are shorter
    # A circle of 1571 px in 200 steps; along the larger of x and y it moves by 0.9 of each step on average.
    assert frames_in_reach(started(circle(200)).setup.first) == pytest.approx(50.0 / (0.9 * 1571.0 / 200.0), abs=1.0)


def test_tiles_that_hardly_overlap_are_no_neighbours():
    """As under a microscope: the next frame shows another place."""
    shift = np.array([85.0, 0.0])
    tiles = [Landmarks(Pair(n, n + 1), CONTROL_POINTS + shift, CONTROL_POINTS, 1.0) for n in range(9)]
    looks = WeightedSignatures(np.eye(10))
    state = ActiveLoop.start(10, OUTLINE, tiles, external=looks)
    assert frames_in_reach(state.setup.first) == 0
    assert state.setup.pooled is looks


def test_sparse_and_dense_signatures_are_added_up_alike():
    signatures = np.random.default_rng(1).random((12, 30)) * (np.random.default_rng(2).random((12, 30)) < 0.3)
    signatures[:, 0] = 1.0
    signatures /= np.linalg.norm(signatures, axis=1, keepdims=True)
    around = neighbours(12, chain_of(12), 2)
    dense, sparse = (WeightedSignatures(form(signatures)).pooled(around) for form in (np.array, csr_array))
    np.testing.assert_allclose(dense.probabilities(), sparse.probabilities(), atol=1e-12)
    expected = signatures[3:8].sum(axis=0)
    np.testing.assert_allclose(dense.signatures[5], expected / np.linalg.norm(expected))


def test_a_model_that_has_no_signatures_stays_as_it_is():
    state = started(raster(30))
    setup = state.setup
    assert pooled(setup.untrained, setup.first, setup.chain_pairs) is setup.untrained


def test_overlapping_frames_are_told_better_by_what_is_seen_around_them():
    """By how often, of a pair that overlaps and one that does not, the first looks more alike; far apart in time."""
    world = wander(300, 1)
    state = started(world)
    i, j = np.triu_indices(world.frames, 15)
    overlap = np.zeros((world.frames, world.frames), dtype=bool)
    overlap[tuple(world.overlapping.T)] = True
    together = overlap[i, j]

    def ranked(model):
        rank = np.argsort(np.argsort(model.probabilities()[i, j]))
        count = together.sum()
        return (rank[together].sum() - count * (count - 1) / 2) / (count * (~together).sum())

    alone, around = ranked(state.setup.untrained), ranked(state.setup.pooled)
    assert around > 0.94
    assert 1.0 - around < 0.7 * (1.0 - alone)
