"""The agent that knows the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.geometry.linear_maps import apply, compose, invert
from smalti.records import Answer, Landmarks, Pair, Verdict
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, raster
from smalti_lab.simulated_agents import OracleAgent

RASTER = raster(12)


def on_raster(seed: int = 0, sigma: float = 1.0) -> OracleAgent:
    return OracleAgent(RASTER.mosaic_from_frame, OUTLINE, CONTROL_POINTS, sigma=sigma, seed=seed)


def of_two_frames(dx: float, dy: float) -> OracleAgent:
    """Frame 1 lies (dx, dy) from frame 0."""
    maps = np.array([np.eye(2, 3), [[1.0, 0.0, dx], [0.0, 1.0, dy]]])
    return OracleAgent(maps, OUTLINE, CONTROL_POINTS)


def yes(answer: Answer) -> Landmarks:
    assert answer.landmarks is not None
    return answer.landmarks


def test_the_same_seed_and_pair_give_the_same_landmarks() -> None:
    one, other = yes(on_raster(7).answer(Pair(2, 3))), yes(on_raster(7).answer(Pair(2, 3)))
    np.testing.assert_array_equal(one.points_i, other.points_i)


def test_what_was_asked_before_does_not_change_an_answer() -> None:
    agent = on_raster(7)
    agent.answer(Pair(0, 1))
    agent.answer(Pair(4, 5))
    fresh = yes(on_raster(7).answer(Pair(2, 3)))
    np.testing.assert_array_equal(yes(agent.answer(Pair(2, 3))).points_i, fresh.points_i)


def test_another_seed_gives_other_noise() -> None:
    one, other = yes(on_raster(7).answer(Pair(2, 3))), yes(on_raster(8).answer(Pair(2, 3)))
    assert not np.isclose(one.points_i, other.points_i).any()


def test_another_pair_of_the_same_displacement_gets_other_noise() -> None:
    agent = on_raster(7)
    one, other = yes(agent.answer(Pair(1, 2))), yes(agent.answer(Pair(2, 3)))
    assert not np.isclose(one.points_i, other.points_i).any()


@pytest.mark.parametrize("n", [0, 4])
def test_neighbours_on_the_raster_overlap(n: int) -> None:
    assert on_raster().answer(Pair(n, n + 1)).verdict is Verdict.YES


@pytest.mark.parametrize("n", [0, 3])
def test_frames_two_apart_on_the_raster_do_not_overlap(n: int) -> None:
    # Two thirds of a frame away only one column of control points is shared: points on a line.
    assert on_raster().answer(Pair(n, n + 2)).verdict is Verdict.NO


@pytest.mark.parametrize("n", [0, 5])
def test_the_way_back_overlaps_the_way_out_where_x_is_the_same(n: int) -> None:
    assert on_raster().answer(Pair(n, 11 - n)).verdict is Verdict.YES


@pytest.mark.parametrize(
    ("dx", "dy", "verdict"),
    [
        (50.0, 50.0, Verdict.YES),
        (50.001, 0.0, Verdict.NO),
        (0.0, -50.001, Verdict.NO),
        (100.0, 0.0, Verdict.NO),
        (50.0, -100.0, Verdict.NO),
        (101.0, 0.0, Verdict.NO),
    ],
)
def test_points_on_the_border_count_and_points_beyond_do_not(dx: float, dy: float, verdict: Verdict) -> None:
    assert of_two_frames(dx, dy).answer(Pair(0, 1)).verdict is verdict


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.floats(-130.0, 130.0), st.floats(-130.0, 130.0))
def test_frames_overlap_exactly_when_three_shared_points_span_a_triangle(dx: float, dy: float) -> None:
    shared = [
        (x, y)
        for x, y in itertools.product((0.0, 50.0, 100.0), repeat=2)
        if -1e-9 <= x + dx <= 100.0 + 1e-9 and -1e-9 <= y + dy <= 100.0 + 1e-9
    ]
    spans = any(
        abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])) > 1.0
        for a, b, c in itertools.combinations(shared, 3)
    )
    assert (of_two_frames(dx, dy).answer(Pair(0, 1)).verdict is Verdict.YES) == spans


def test_points_of_the_later_frame_are_exact_control_points() -> None:
    landmarks = yes(on_raster().answer(Pair(2, 3)))
    assert all((point == CONTROL_POINTS).all(axis=1).any() for point in landmarks.points_j)


def test_landmarks_without_noise_are_mapped_onto_each_other_by_the_truth() -> None:
    first, second = [[0.9, -0.3, 12.0], [0.25, 1.1, -8.0]], [[1.05, 0.2, 30.0], [-0.1, 0.95, 20.0]]
    maps = np.array([np.eye(2, 3), first, second])
    agent = OracleAgent(maps, OUTLINE, CONTROL_POINTS)
    exact = agent.exact_landmarks(Pair(1, 2))
    assert exact is not None
    i_from_j = compose(invert(maps[1]), maps[2])
    np.testing.assert_allclose(exact.points_i, apply(i_from_j, exact.points_j), rtol=0, atol=1e-10)


def test_noise_has_the_asked_deviation_and_no_bias() -> None:
    sigma, frames = 2.5, 40
    still = np.tile(np.eye(2, 3), (frames, 1, 1))
    agent = OracleAgent(still, OUTLINE, CONTROL_POINTS, sigma=sigma, seed=11)
    noise = np.concatenate(
        [
            (landmarks.points_i - landmarks.points_j).ravel()
            for i in range(frames)
            for j in range(i + 1, frames)
            for landmarks in [yes(agent.answer(Pair(i, j)))]
        ]
    )
    # Four standard errors: a deviation estimated from n numbers has the relative error 1/√(2n), a mean σ/√n.
    assert noise.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * len(noise)))
    assert abs(noise.mean()) < 4 * sigma / math.sqrt(len(noise))


def test_landmarks_carry_the_deviation_of_their_noise() -> None:
    assert yes(on_raster(sigma=2.5).answer(Pair(0, 1))).sigma == 2.5
