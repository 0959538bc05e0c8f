"""Bounds for all pairs of two stretches, with and without perspective, against every pair of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.engine import covariance as module
from smalti.geometry.homographies import AFFINE, PROJECTIVE, SIMILARITY, TRANSLATION
from tests.engine.test_covariance import OUTLINE, random_maps, straight_chain, world

ROUNDING = 1e-9

WORLDS = {
    "chain": (PROJECTIVE, 40, 0),
    "few loops": (PROJECTIVE, 40, 4),
    "many loops": (PROJECTIVE, 30, 50),
    "affine": (AFFINE, 60, 5),
    "similarity": (SIMILARITY, 40, 3),
    "translation": (TRANSLATION, 40, 3),
    "two parts": (PROJECTIVE, 40, 4, 2),
    "a stretch in two parts": (AFFINE, 22, 0, 4),
    "two frames": (PROJECTIVE, 2, 0),
    "seven frames": (PROJECTIVE, 7, 1),
}
each_world = pytest.mark.parametrize("name", WORLDS)


@cache
def covariance_of(name):
    return world(*WORLDS[name]).covariance


def of_frames(covariance, bounds):
    """Bounds (M, M, 2) as the frames' (N, N, 2)."""
    at = covariance.stretches.of_frames(np.arange(covariance.frames))
    return bounds[at[:, None], at[None]]


def assert_no_pair_deviates_more(covariance):
    exact = np.sqrt(covariance.centres.cov[..., ::2])
    assert (of_frames(covariance, covariance.stretches.deviation) * (1 + ROUNDING) + ROUNDING >= exact).all()


def assert_no_pair_is_nearer(covariance):
    exact = np.abs(covariance.centres.mean - OUTLINE.centre)
    assert (of_frames(covariance, covariance.stretches.distance) <= exact + ROUNDING * (OUTLINE.unit + exact)).all()


@each_world
def test_no_pair_deviates_more_than_its_stretches_say(name):
    assert_no_pair_deviates_more(covariance_of(name))


@each_world
def test_no_pair_is_nearer_than_its_stretches_say(name):
    assert_no_pair_is_nearer(covariance_of(name))


def bent(seed, perspective):
    """A world about maps of more or less perspective, so that some frames may lie behind others."""
    maps = random_maps(np.random.default_rng(seed), 30, PROJECTIVE, perspective)
    return replace(world(PROJECTIVE, 30, 50), maps=maps).covariance


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.003, 0.03, 0.1, 0.5]))
def test_with_any_perspective_no_pair_deviates_more(seed, perspective):
    assert_no_pair_deviates_more(bent(seed, perspective))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.003, 0.03, 0.1, 0.5]))
def test_with_any_perspective_no_pair_is_nearer(seed, perspective):
    assert_no_pair_is_nearer(bent(seed, perspective))


@pytest.mark.parametrize("name", ["straight", "affine", "translation"])
def test_without_perspective_the_bounds_are_of_use(name):
    # A bound of infinity would be one, too: in the median they are within a factor of a few.
    covariance = straight_chain(100).covariance if name == "straight" else covariance_of(name)
    far = np.abs(np.subtract.outer(*2 * [np.arange(covariance.frames)])) > 15
    deviation = of_frames(covariance, covariance.stretches.deviation)[far]
    distance = of_frames(covariance, covariance.stretches.distance)[far]
    exact = np.abs(covariance.centres.mean - OUTLINE.centre)[far]
    assert np.median(deviation / np.sqrt(covariance.centres.cov[..., ::2])[far]) < 4
    assert np.median(distance) > 0.25 * np.median(exact)


def test_with_little_perspective_most_bounds_say_something():
    covariance = covariance_of("few loops")
    assert np.isfinite(covariance.stretches.deviation).mean() > 0.9


@pytest.mark.parametrize("family", [TRANSLATION, SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
def test_with_a_frame_a_stretch_the_bounds_are_the_pairs_themselves(family, monkeypatch):
    # Nothing lies between a frame and the one that stands for it: what is left is the pair.
    monkeypatch.setattr(module, "cut_into_stretches", lambda frames: np.arange(frames + 1))
    covariance = world(family).covariance
    exact = np.sqrt(covariance.centres.cov[..., ::2])
    np.testing.assert_allclose(covariance.stretches.deviation, exact, rtol=1e-8, atol=1e-9 * exact.max())
    apart = np.abs(covariance.centres.mean - OUTLINE.centre)
    np.testing.assert_allclose(covariance.stretches.distance, apart, rtol=1e-9, atol=1e-9 * apart.max())


def test_stretches_of_different_parts_are_not_ruled_out():
    covariance = covariance_of("two parts")
    apart = covariance.part[:, None] != covariance.part[None]
    assert np.isinf(of_frames(covariance, covariance.stretches.deviation)[apart]).all()
    assert (of_frames(covariance, covariance.stretches.distance)[apart] == 0.0).all()


def test_stretches_behind_a_camera_are_not_ruled_out():
    given_world = world(PROJECTIVE, 40, 4)
    signs = np.where(np.arange(40) < 20, 1.0, -1.0)[:, None, None]
    covariance = replace(given_world, maps=given_world.maps * signs).covariance
    deviation = of_frames(covariance, covariance.stretches.deviation)
    assert np.isinf(deviation[:16, 24:]).all()
    assert np.isfinite(deviation[:10, :10]).all()


@pytest.mark.parametrize("at_once", [1, 7])
def test_stretches_in_portions_are_the_same_bit_for_bit(at_once, monkeypatch):
    given_world = world(PROJECTIVE, 40, 4)
    expected = given_world.covariance.stretches
    monkeypatch.setattr(module, "MOST_BYTES_OF_PATHS", 0)
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", at_once)
    found = given_world.covariance.stretches
    for name in ("starts", "deviation", "distance"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
