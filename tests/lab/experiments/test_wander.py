"""The free path: smooth, full of loops, and with looks that are neither useless nor an oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from smalti.errors import UsageError
from smalti_lab.experiments.wander import LARGEST_TURN, RADIUS, STEP, wander
from smalti_lab.experiments.worlds import OUTLINE, World

FAR = 20
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    return [wander(600, seed) for seed in SEEDS]


def test_steps_are_at_most_a_third_of_a_frame(worlds):
    for world in worlds:
        steps = np.linalg.norm(np.diff(world.positions, axis=0), axis=1)
        np.testing.assert_allclose(steps, STEP, rtol=1e-9)
    assert OUTLINE.width / 3 >= STEP


def test_the_path_is_smooth(worlds):
    for world in worlds:
        step = np.diff(world.positions, axis=0) @ [1.0, 1.0j]
        turns = np.angle(step[1:] / step[:-1])
        assert np.abs(turns).max() <= 2 * LARGEST_TURN
        assert np.abs(np.diff(turns)).mean() <= 0.1


def test_the_path_stays_about_its_region(worlds):
    for world in worlds:
        assert np.linalg.norm(world.positions, axis=1).max() <= 1.6 * RADIUS


def later_visits(world: World) -> np.ndarray:
    """How often each frame's place is seen again: stretches of overlapping frames that lie apart in the sequence."""
    overlap = np.zeros((world.frames, world.frames), dtype=bool)
    overlap[tuple(world.overlapping.T)] = True
    overlap |= overlap.T
    numbers = np.arange(world.frames)
    again = [numbers[overlap[n] & (np.abs(numbers - n) > FAR)] for n in numbers]
    return np.array([1 + np.sum(np.diff(frames) > FAR / 2) if len(frames) else 0 for frames in again])


def test_places_are_seen_again_a_handful_of_times(worlds):
    visits = np.concatenate([later_visits(world) for world in worlds])
    assert 2 <= visits.mean() <= 6
    assert np.mean(visits == 0) <= 0.25


def seen_again(world: World) -> tuple[np.ndarray, np.ndarray]:
    """P^ext of all pairs (N, N), and which ones overlap although they are far apart in the sequence."""
    again = np.zeros((world.frames, world.frames), dtype=bool)
    again[tuple(world.overlapping.T)] = True
    return world.external.probabilities(), np.triu(again, FAR + 1)


def test_looks_tell_most_overlapping_pairs_from_others(worlds):
    for world in worlds:
        probability, again = seen_again(world)
        apart = np.triu(np.ones_like(again), 1)
        apart[tuple(world.overlapping.T)] = False
        ranks = rankdata(np.concatenate([probability[again], probability[apart]]))[: again.sum()]
        right = ranks.sum() - again.sum() * (again.sum() + 1) / 2
        assert 0.85 <= right / (again.sum() * apart.sum()) <= 0.95


def test_some_places_that_lie_far_apart_look_as_alike_as_the_same_place(worlds):
    for world in worlds:
        probability, again = seen_again(world)
        distance = np.linalg.norm(world.positions[:, None] - world.positions, axis=2)
        elsewhere = np.triu(distance > 3 * OUTLINE.width)
        alike = probability[elsewhere] >= np.median(probability[again])
        assert 0.012 <= alike.mean() <= 0.07


def test_a_seed_is_a_path_of_its_own():
    first, again, other = wander(40, 1), wander(40, 1), wander(40, 2)
    np.testing.assert_array_equal(first.positions, again.positions)
    np.testing.assert_array_equal(first.external.probabilities(), again.external.probabilities())
    assert not np.allclose(first.positions, other.positions)


@pytest.mark.parametrize("frames", [3, 10])
def test_a_short_path_is_made_too(frames):
    assert wander(frames, 1).frames == frames


def test_fewer_than_three_frames_are_refused():
    with pytest.raises(UsageError, match="wander: 2 frames are too few"):
        wander(2, 1)
