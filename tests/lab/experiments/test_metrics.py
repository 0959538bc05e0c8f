"""Errors that are zero for the truth, and not for anything that only looks like it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import least_squares

from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import compose, square
from smalti.records import Pair
from smalti_lab.experiments.methods import FrameMaps
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, World, circle, raster
from smalti_lab.simulated_agents import OracleAgent
from smalti_lab.synthetic.truth import fit_similarity, smallest_area

WORLDS = [pytest.param(raster(16), id="raster"), pytest.param(circle(32), id="circle")]


def placed(maps: np.ndarray) -> FrameMaps:
    return FrameMaps(square(maps), np.zeros(len(maps), dtype=np.int64), Lens(OUTLINE))


def distorted(world: World, seed: int) -> np.ndarray:
    """The truth with every frame moved and sheared a little."""
    rng = np.random.default_rng(seed)
    maps = world.mosaic_from_frame + 0.02 * rng.normal(size=(world.frames, 2, 3))
    maps[:, :, 2] += 3.0 * rng.normal(size=(world.frames, 2))
    return maps


def shrinking(world: World) -> np.ndarray:
    """Every step smaller than the one before, and every frame with it: what the plain linear cost prefers."""
    scale = np.linspace(1.0, 0.4, world.frames)
    maps = world.mosaic_from_frame.copy()
    maps[:, :, :2] *= scale[:, None, None]
    steps = np.diff(maps[:, :, 2], axis=0) * scale[1:, None]
    maps[1:, :, 2] = np.cumsum(steps, axis=0)
    return maps


@pytest.mark.parametrize("world", WORLDS)
def test_relative_error_of_the_truth_is_zero(world: World) -> None:
    assert world.relative_rmsd(placed(world.mosaic_from_frame)) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("world", WORLDS)
def test_shape_error_of_the_truth_is_zero(world: World) -> None:
    assert world.shape_rmsd(placed(world.mosaic_from_frame)) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("world", WORLDS)
def test_relative_error_does_not_depend_on_affine_coordinates_of_the_mosaic(world: World) -> None:
    change = np.array([[1.3, -0.8, 400.0], [0.5, 0.6, -90.0]])
    maps = distorted(world, 1)
    expected = world.relative_rmsd(placed(maps))
    assert world.relative_rmsd(placed(compose(change, world.mosaic_from_frame))) == pytest.approx(0.0, abs=1e-9)
    assert world.relative_rmsd(placed(compose(change, maps))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("world", WORLDS)
def test_shape_error_does_not_depend_on_similar_coordinates_of_the_mosaic(world: World) -> None:
    change = np.array([[0.6, -1.1, 400.0], [1.1, 0.6, -90.0]])
    maps = distorted(world, 1)
    expected = world.shape_rmsd(placed(maps))
    assert world.shape_rmsd(placed(compose(change, world.mosaic_from_frame))) == pytest.approx(0.0, abs=1e-9)
    assert world.shape_rmsd(placed(compose(change, maps))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("world", WORLDS)
def test_relative_error_equals_a_loop_over_the_oracles_exact_landmarks(world: World) -> None:
    maps = distorted(world, 2)
    oracle = OracleAgent(world.mosaic_from_frame, OUTLINE, CONTROL_POINTS)
    squares = []
    for i in range(world.frames):
        for j in range(i + 1, world.frames):
            exact = oracle.exact_landmarks(Pair(i, j))
            if exact is None:
                continue
            for point_i, point_j in zip(exact.points_i, exact.points_j, strict=True):
                on_mosaic = maps[j][:, :2] @ point_j + maps[j][:, 2]
                in_i = np.linalg.solve(maps[i][:, :2], on_mosaic - maps[i][:, 2])
                squares.append(math.dist(in_i, point_i) ** 2)
    assert world.relative_rmsd(placed(maps)) == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-9)


def test_relative_error_of_a_tilted_frame_is_that_of_its_points() -> None:
    world = raster(3)
    maps = square(world.mosaic_from_frame)
    maps[2] = maps[2] @ np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1e-3, 0.0, 1.0]])
    pairs, point = world.shown_in_both
    x = CONTROL_POINTS[point]
    off = np.where(pairs[:, 1:] == 2, x / (1.0 + 1e-3 * x[:, :1]) - x, 0.0)
    expected = math.sqrt(np.mean(np.sum(off**2, axis=1)))
    found = FrameMaps(maps, np.zeros(3, dtype=np.int64), Lens(OUTLINE))
    assert world.relative_rmsd(found) == pytest.approx(expected, rel=1e-9)


def test_one_displaced_frame_gives_the_root_of_its_share_of_the_squares() -> None:
    world = raster(6)
    maps = world.mosaic_from_frame.copy()
    maps[2, :, 2] += [3.0, 4.0]
    pairs, _ = world.shown_in_both
    touched = np.mean((pairs == 2).any(axis=1))
    assert world.relative_rmsd(placed(maps)) == pytest.approx(5.0 * math.sqrt(touched), rel=1e-9)


def test_shape_error_detects_shrinking() -> None:
    world = raster(40)
    maps = shrinking(world)
    assert world.shape_rmsd(placed(maps)) > 50.0


def test_shape_error_detects_a_mirrored_mosaic() -> None:
    world = raster(16)
    mirrored = compose(np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]), world.mosaic_from_frame)
    assert world.shape_rmsd(placed(mirrored)) > 10.0


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.integers(0, 10_000))
def test_fitted_similarity_is_the_one_of_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, targets = rng.normal(size=(8, 2)) * 30.0, rng.normal(size=(8, 2)) * 30.0

    def residual(similarity: np.ndarray) -> np.ndarray:
        a, b, x, y = similarity
        return (points @ np.array([[a, b], [-b, a]]) + np.array([x, y]) - targets).ravel()

    best = least_squares(residual, np.array([1.0, 0.0, 0.0, 0.0]), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    found = np.sum((fit_similarity(points, targets) - targets) ** 2)
    assert found == pytest.approx(2 * best.cost, rel=1e-9)


def test_smallest_area_is_one_for_the_truth() -> None:
    world = raster(8)
    assert smallest_area(square(world.mosaic_from_frame), OUTLINE) == pytest.approx(1.0, abs=1e-12)


def test_smallest_area_is_that_of_the_most_shrunken_frame() -> None:
    assert smallest_area(square(shrinking(raster(8))), OUTLINE) == pytest.approx(0.4**2, rel=1e-12)
