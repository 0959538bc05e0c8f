"""The ways up the elimination tree, against the dense inverse of the information they are square roots of."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment.ascent import ENTRIES, PRODUCTS, Climber
from smalti.adjustment.cholesky import BlockCholesky
from smalti.adjustment.pattern import Pattern
from smalti.adjustment.refinement import normal_blocks
from smalti.geometry.family import FAMILIES
from tests.adjustment.turning_camera import turning

FRAMES = 23
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_number_of_loops = pytest.mark.parametrize("loops", [0, 3, 60])
ORDER_OF_PRODUCTS = [(a, b) for a in range(3) for b in range(a, 3)]


@cache
def held(family, loops):
    """The information of a mosaic with its last column held: its blocks, its pattern, and what climbs it."""
    adjustment = turning(np.random.default_rng([3, loops]), FRAMES, loops, family, angle=0.5)
    pattern = Pattern.of(FRAMES, adjustment.ends)
    diagonal, off_diagonal = normal_blocks(adjustment, adjustment.unit_maps)
    diagonal = diagonal.copy()
    diagonal[pattern.node_at[-1]] *= 2.0
    climber = Climber(BlockCholesky(pattern, diagonal, off_diagonal), family.tangent)
    return adjustment, diagonal, off_diagonal, climber


def dense_covariance(family, loops):
    """(N, 6, N, 6): the covariance of the entries of all maps' increments."""
    adjustment, diagonal, off_diagonal, _ = held(family, loops)
    f = len(family.tangent)
    dense = np.zeros((FRAMES, f, FRAMES, f))
    for frame in range(FRAMES):
        dense[frame, :, frame] = diagonal[frame]
    for (a, b), block in zip(adjustment.ends, off_diagonal, strict=True):
        dense[a, :, b], dense[b, :, a] = block, block.T
    inverse = np.linalg.inv(dense.reshape(FRAMES * f, FRAMES * f)).reshape(FRAMES, f, FRAMES, f)
    entries = family.tangent.reshape(f, ENTRIES)
    return np.einsum("ce,icjd,dg->iejg", entries, inverse, entries)


def way(ways, frame):
    """(6, levels · freedom): one frame's way."""
    column = ways.place[frame]
    length = (ways.depth[column] + 1) * ways.freedom
    return ways.values[ways.start[column] : ways.start[column] + ENTRIES * length].reshape(ENTRIES, length)


def ancestors(parent, column):
    found = []
    while column >= 0:
        found.append(int(column))
        column = parent[column]
    return found[::-1]


@each_family
@each_number_of_loops
def test_the_product_of_two_ways_is_the_dense_inverse(family, loops):
    ways = held(family, loops)[-1].ascend(np.arange(FRAMES))
    expected = dense_covariance(family, loops)
    found = np.zeros_like(expected)
    for i in range(FRAMES):
        for j in range(FRAMES):
            above_i = ancestors(ways.parent, ways.place[i])
            above_j = ancestors(ways.parent, ways.place[j])
            shared = sum(a == b for a, b in zip(above_i, above_j, strict=False)) * ways.freedom
            found[i, :, j] = way(ways, i)[:, :shared] @ way(ways, j)[:, :shared].T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@each_family
@pytest.mark.parametrize("chosen", [[0], [5, 17], [22, 3, 3, 11]], ids=str)
def test_the_ways_of_some_frames_are_those_of_all_bit_for_bit(family, chosen):
    climber = held(family, 3)[-1]
    every, some = climber.ascend(np.arange(FRAMES)), climber.ascend(np.array(chosen))
    for frame in chosen:
        np.testing.assert_array_equal(way(some, frame), way(every, frame))
        tails = [w.tails[w.tail_start[w.place[frame]] :][: w.depth[w.place[frame]] + 2] for w in (every, some)]
        np.testing.assert_array_equal(*tails)


def test_only_the_ways_of_frames_passed_are_found():
    some = held(FAMILIES["affine"], 3)[-1].ascend(np.array([0]))
    passed = ancestors(some.parent, some.place[0])
    assert 1 < len(passed) < FRAMES
    assert np.flatnonzero(some.start >= 0).tolist() == passed[::-1]


@each_family
@each_number_of_loops
def test_tails_are_the_sums_of_products_from_a_level_on(family, loops):
    ways = held(family, loops)[-1].ascend(np.arange(FRAMES))
    for frame in range(FRAMES):
        own, column = way(ways, frame), ways.place[frame]
        for level in range(ways.depth[column] + 2):
            rest = own[:, level * ways.freedom :]
            gram = rest @ rest.T
            within = [gram[a, b] for a, b in ORDER_OF_PRODUCTS] + [gram[3 + a, 3 + b] for a, b in ORDER_OF_PRODUCTS]
            expected = [*within, *gram[:3, 3:].ravel()]
            found = ways.tails[ways.tail_start[column] + level]
            assert len(found) == PRODUCTS
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(np.trace(gram), 1e-300))


def test_the_size_of_all_is_what_all_ways_take():
    climber = held(FAMILIES["similarity"], 3)[-1]
    ways = climber.ascend(np.arange(FRAMES))
    assert climber.size_of_all >= ways.values.nbytes
    assert climber.size_of_all <= ways.values.nbytes + ways.tails.nbytes
