"""Bounds for all pairs of two stretches, against every pair of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import refine
from smalti.adjustment.stretches import SHORTEST, cut_into_stretches, middles
from smalti.experiments.worlds import OUTLINE, circle, raster
from smalti.geometry.affine import compose
from smalti.geometry.family import AFFINE, FAMILIES, SIMILARITY, TRANSLATION
from smalti.records import Pair
from tests.adjustment.turning_camera import turning

ROUNDING = 1e-9


def of_world(world, loops):
    agent = world.agent(5)
    pairs = [Pair(n, n + 1) for n in range(world.frames - 1)] + [Pair(*pair) for pair in loops]
    return Adjustment(world.frames, OUTLINE, [fit_link(agent.landmarks(pair)) for pair in pairs])


def turned(seed, frames, loops, family=AFFINE, **more):
    return LocalCovariance(turning(np.random.default_rng(seed), frames, loops, family, **more))


def about_another_mosaic(adjustment):
    """Linearised about a mosaic that is not the linear one: refined, and then every frame moved a little."""
    rng = np.random.default_rng(1)
    near = np.eye(2, 3) + rng.normal(0.0, 0.1, (adjustment.frames, 2, 3)) * [1.0, 1.0, 30.0]
    return LocalCovariance(adjustment, compose(refine(adjustment).mosaic_from_frame, near))


def with_guesses(sigma):
    """Some links in a row are guesses as wild as this."""
    adjustment = turning(np.random.default_rng(10), 60, 3, angle=0.4)
    wild = {Pair(n, n + 1) for n in (20, 21, 22, 40)}
    links = [replace(link, root=link.root / sigma) if pair in wild else link for pair, link in adjustment.links.items()]
    return LocalCovariance(Adjustment(60, adjustment.outline, links))


PROBLEMS = {
    "chain": lambda: LocalCovariance(of_world(raster(70), [])),
    "raster": lambda: LocalCovariance(of_world(raster(120), [(0, 119), (30, 89), (31, 89), (50, 70)])),
    "circle": lambda: LocalCovariance(of_world(circle(90), [(0, 89), (1, 89), (0, 88)])),
    "turning": lambda: turned(1, 90, 0),
    "turning, few loops": lambda: turned(2, 110, 6),
    "turning, many loops": lambda: turned(3, 80, 160),
    "turning, loops that contradict by far": lambda: turned(4, 100, 25, contradiction=300.0),
    "similarity": lambda: turned(5, 90, 8, SIMILARITY),
    "translation": lambda: turned(6, 90, 8, TRANSLATION),
    "another mosaic": lambda: about_another_mosaic(turning(np.random.default_rng(7), 90, 10, angle=0.4)),
    "another mosaic of a raster": lambda: about_another_mosaic(of_world(raster(100), [(0, 99), (20, 79)])),
    "guesses": lambda: with_guesses(1e2),
    "guesses beyond all digits": lambda: with_guesses(1e8),
    "two frames": lambda: turned(8, 2, 0),
    "seven frames": lambda: turned(9, 7, 1),
}
each_problem = pytest.mark.parametrize("name", PROBLEMS)


@cache
def covariance_of(name):
    return PROBLEMS[name]()


def of_frames(covariance, bounds):
    """Bounds (M, M, 2) as the frames' (N, N, 2)."""
    at = covariance.stretches.of_frames(np.arange(covariance.adjustment.frames))
    return bounds[at[:, None], at[None]]


@each_problem
def test_no_pair_deviates_more_than_its_stretches_say(name):
    covariance = covariance_of(name)
    exact = np.sqrt(covariance.centres.cov[..., ::2])
    assert (of_frames(covariance, covariance.stretches.deviation) * (1 + ROUNDING) >= exact).all()


@each_problem
def test_no_pair_is_nearer_than_its_stretches_say(name):
    covariance = covariance_of(name)
    outline = covariance.adjustment.outline
    exact = np.abs(covariance.centres.mean - outline.centre)
    assert (of_frames(covariance, covariance.stretches.distance) <= exact + ROUNDING * (outline.unit + exact)).all()


@pytest.mark.parametrize("name", ["raster", "circle", "translation"])
def test_the_bounds_are_of_use(name):
    # A bound of infinity would be one, too: in the median they are within a factor of a few.
    covariance = covariance_of(name)
    far = np.abs(np.subtract.outer(*2 * [np.arange(covariance.adjustment.frames)])) > 20
    deviation = of_frames(covariance, covariance.stretches.deviation)[far]
    distance = of_frames(covariance, covariance.stretches.distance)[far]
    exact = np.abs(covariance.centres.mean - covariance.adjustment.outline.centre)[far]
    assert np.median(deviation / np.sqrt(covariance.centres.cov[..., ::2])[far]) < 4
    assert np.median(distance) > 0.25 * np.median(exact)


@pytest.mark.parametrize("frames", [2, 3, 5, 6, 7, 63, 64, 1000, 100_000])
def test_stretches_are_all_frames_cut_once(frames):
    starts = cut_into_stretches(frames)
    assert (starts[0], starts[-1]) == (0, frames)
    lengths = np.diff(starts)
    assert lengths.min() >= min(SHORTEST - 1, frames)
    assert lengths.max() - lengths.min() <= 1
    assert len(lengths) ** 2 <= max(5 * frames, frames**2 / SHORTEST**2 + frames)


@pytest.mark.parametrize("frames", [2, 5, 6, 63, 1000])
def test_the_frame_that_stands_for_a_stretch_is_in_it(frames):
    starts = cut_into_stretches(frames)
    assert (middles(starts) >= starts[:-1]).all()
    assert (middles(starts) < starts[1:]).all()


def test_every_frame_knows_its_stretch():
    stretches = covariance_of("chain").stretches
    expected = np.repeat(np.arange(len(stretches.starts) - 1), np.diff(stretches.starts))
    np.testing.assert_array_equal(stretches.of_frames(np.arange(70)), expected)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_with_a_frame_a_stretch_the_bounds_are_the_pairs_themselves(family, monkeypatch):
    # Nothing lies between a frame and the one that stands for it: what is left is the pair.
    monkeypatch.setattr("smalti.adjustment.local_covariance.cut_into_stretches", lambda frames: np.arange(frames + 1))
    covariance = turned(11, 25, 4, family)
    exact = np.sqrt(covariance.centres.cov[..., ::2])
    np.testing.assert_allclose(covariance.stretches.deviation, exact, rtol=1e-8, atol=1e-9 * exact.max())
    apart = np.abs(covariance.centres.mean - covariance.adjustment.outline.centre)
    np.testing.assert_allclose(covariance.stretches.distance, apart, rtol=1e-9, atol=1e-9 * apart.max())
