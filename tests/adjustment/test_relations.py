"""Links that nobody has made yet: their derivatives by finite differences, their covariances by a dense inverse."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import normal_blocks, refine
from smalti.adjustment.relations import Relations
from smalti.geometry.affine import compose, invert, square
from smalti.geometry.family import FAMILIES
from tests.worlds import random_problem

FRAMES = 9
PAIRS = np.array([[0, 1], [0, 8], [2, 5], [3, 7], [1, 8], [4, 6]])

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@cache
def covariance_of(family):
    problem = random_problem(np.random.default_rng(5), frames=FRAMES, loops=3, family=family)
    adjustment = problem.adjustment()
    return LocalCovariance(adjustment, refine(adjustment).mosaic_from_frame)


def roots_of(pairs):
    """Three points a pair, as the columns of R; their last coordinates are not one."""
    return np.random.default_rng(3).normal(size=(len(pairs), 3, 3))


def relations_of(covariance, pairs=PAIRS):
    return covariance.relations(pairs, roots_of(pairs))


def information_of(covariance):
    """JᵀJ (N·f, N·f), which says nothing of a common motion."""
    adjustment = covariance.adjustment
    diagonal, off_diagonal = normal_blocks(adjustment, covariance.maps_in_units[0])
    frames, freedom = diagonal.shape[:2]
    dense = np.zeros((frames, freedom, frames, freedom))
    for frame in range(frames):
        dense[frame, :, frame] = diagonal[frame]
    for (i, j), block in zip(adjustment.ends, off_diagonal, strict=True):
        dense[i, :, j], dense[j, :, i] = block, block.T
    return dense.reshape(frames * freedom, frames * freedom)


def by_all(relations, family, frames=FRAMES):
    """The derivatives (n, rows, N·f) by the parameters of all frames."""
    tangent = family.tangent.reshape(-1, 6)
    jacobian = np.zeros((*relations.by_i.shape[:2], frames, len(tangent)))
    for n, (i, j) in enumerate(relations.pairs):
        jacobian[n, :, i] += relations.by_i[n] @ tangent.T
        jacobian[n, :, j] += relations.by_j[n] @ tangent.T
    return jacobian.reshape(*jacobian.shape[:2], -1)


def dense_covariances(covariance, relations):
    jacobian = by_all(relations, covariance.adjustment.family)
    inverse = np.linalg.pinv(information_of(covariance), rcond=1e-12, hermitian=True)
    return jacobian @ inverse @ np.swapaxes(jacobian, 1, 2)


def test_residuals_change_as_finite_differences_say():
    rng = np.random.default_rng(1)
    maps = np.eye(2, 3) + 0.3 * rng.normal(size=(2, 2, 3))
    root = rng.normal(size=(3, 3))
    relations = Relations.of(np.array([[0, 1]]), compose(invert(maps[0]), maps[1])[None], root[None])

    def residual(increments):
        moved = square(maps) @ (np.eye(3) + np.concatenate([increments, np.zeros((2, 1, 3))], axis=1))
        return ((np.linalg.inv(moved[0]) @ moved[1])[:2] @ root).ravel()

    step = 1e-6
    for side, derivative in enumerate((relations.by_i[0], relations.by_j[0])):
        for entry in range(6):
            increments = np.zeros((2, 6))
            increments[side, entry] = step
            increments = increments.reshape(2, 2, 3)
            found = (residual(increments) - residual(-increments)) / (2.0 * step)
            np.testing.assert_allclose(derivative[:, entry], found, atol=1e-7)


@each_family
def test_covariances_are_those_of_the_dense_inverse(family):
    covariance = covariance_of(family)
    relations = relations_of(covariance)
    expected = dense_covariances(covariance, relations)
    np.testing.assert_allclose(covariance.of_relations(relations), expected, rtol=1e-6, atol=1e-9 * expected.max())


@each_family
def test_they_are_so_where_the_ways_of_all_frames_have_no_room(family, monkeypatch):
    monkeypatch.setattr("smalti.adjustment.local_covariance.MOST_BYTES_OF_WAYS", 0)
    monkeypatch.setattr("smalti.adjustment.local_covariance.PAIRS_AT_ONCE", 4)
    covariance = covariance_of(family).bare()
    relations = relations_of(covariance)
    expected = dense_covariances(covariance, relations)
    np.testing.assert_allclose(covariance.of_relations(relations), expected, rtol=1e-6, atol=1e-9 * expected.max())


@each_family
def test_to_carry_is_to_solve_with_the_information(family):
    covariance = covariance_of(family)
    relations = relations_of(covariance)
    tangent = family.tangent.reshape(-1, 6)
    loads = relations.loads(FRAMES, np.random.default_rng(2).normal(size=(len(PAIRS), 6, 3)))
    carried = covariance.carry(loads)
    # What is carried are entries of maps of the family: its parameters are read off by the pseudo-inverse.
    parameters = np.einsum("ec,nem->ncm", np.linalg.pinv(tangent), carried)
    np.testing.assert_allclose(
        np.einsum("ce,ncm->nem", tangent, parameters), carried, atol=1e-9 * np.abs(carried).max()
    )
    back = information_of(covariance) @ parameters.reshape(-1, 3)
    expected = np.einsum("ce,nem->ncm", tangent, loads).reshape(-1, 3)
    np.testing.assert_allclose(back, expected, atol=1e-7 * np.abs(expected).max())


@each_family
def test_the_residuals_that_loads_of_their_own_move_have_the_covariances(family):
    covariance = covariance_of(family)
    relations = relations_of(covariance)
    for n in range(len(PAIRS)):
        own = relations[n : n + 1]
        moved = own.moved(covariance.carry(own.loads(FRAMES, np.eye(6)[None])))
        expected = covariance.of_relations(own)
        np.testing.assert_allclose(moved, expected, rtol=1e-7, atol=1e-9 * expected.max())


def test_loads_are_the_transpose_of_moved():
    rng = np.random.default_rng(4)
    relations = relations_of(covariance_of(FAMILIES["affine"]))
    moves, factors = rng.normal(size=(FRAMES, 6, 1)), rng.normal(size=(len(PAIRS), 6, 1))
    by_residuals = np.sum(relations.moved(moves) * factors)
    assert by_residuals == pytest.approx(np.sum(moves * relations.loads(FRAMES, factors)), rel=1e-12)


def test_one_point_has_its_two_rows_of_the_residuals():
    relations = relations_of(covariance_of(FAMILIES["affine"]))
    moves = np.random.default_rng(4).normal(size=(FRAMES, 6, 2))
    every = relations.moved(moves).reshape(len(PAIRS), 2, 3, 2)
    for point in range(3):
        np.testing.assert_array_equal(relations.of_point(point).moved(moves), every[:, :, point])


@each_family
def test_weighted_links_are_adjusted_as_if_they_had_been_made_so(family):
    adjustment = covariance_of(family).adjustment
    weights = {pair: 0.2 + 0.3 * n for n, pair in enumerate(adjustment.links)}
    found = adjustment.weighted(weights)
    expected = Adjustment(FRAMES, adjustment.outline, found.links.values(), family=family)
    for pair, link in adjustment.links.items():
        np.testing.assert_allclose(found.links[pair].root, np.sqrt(weights[pair]) * link.root, rtol=1e-12)
    np.testing.assert_allclose(found.mosaic_from_frame, expected.mosaic_from_frame, rtol=1e-9, atol=1e-9)
    for name in ("side_i", "side_j", "ii", "ij", "jj", "right_i", "right_j"):
        np.testing.assert_allclose(getattr(found.terms, name), getattr(expected.terms, name), rtol=1e-9, atol=1e-12)
