"""The synthetic worlds, as the paper's section 7.1 and DESIGN's section 9 describe them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.agents.agent import PrecomputedAgent
from smalti.errors import UsageError
from smalti.records import Landmarks, Pair, Verdict
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, World, circle, raster
from smalti_lab.simulated_agents import OracleAgent


@pytest.mark.parametrize("frames", [3, 8, 9])
def test_raster_goes_out_and_comes_back_a_third_of_a_frame_beside(frames: int) -> None:
    expected = []
    for n in range(1, frames + 1):
        if n <= frames / 2:
            expected.append([n * 100 / 3, 0.0])
        else:
            expected.append([(frames - n + 1) * 100 / 3, 100 / 3])
    np.testing.assert_allclose(raster(frames).positions, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("frames", [32, 45])
def test_circle_is_one_revolution_of_radius_250(frames: int) -> None:
    turns = [2 * math.pi * n / frames for n in range(1, frames + 1)]
    expected = [[250 * math.cos(turn), 250 * math.sin(turn)] for turn in turns]
    np.testing.assert_allclose(circle(frames).positions, expected, rtol=0, atol=1e-9)


def test_circle_takes_opposite_frames_for_one_place_before_training() -> None:
    frames = 40
    found = circle(frames).external.probabilities()
    for i in range(frames):
        for j in range(frames):
            # Signatures (cos 4πn/N, sin 4πn/N): squared distance 2 - 2 cos of the angle between them.
            distance = 2 - 2 * math.cos(4 * math.pi * (i - j) / frames)
            assert found[i, j] == pytest.approx(1 / (1 + math.exp(-3 * (1 - distance))), rel=1e-9)


def test_external_probability_of_the_raster_is_the_shared_part_of_the_area() -> None:
    world = raster(15)
    found = world.external.probabilities()
    for i, (x_i, y_i) in enumerate(world.positions):
        for j, (x_j, y_j) in enumerate(world.positions):
            width = max(0.0, min(x_i + 50, x_j + 50) - max(x_i - 50, x_j - 50))
            height = max(0.0, min(y_i + 50, y_j + 50) - max(y_i - 50, y_j - 50))
            assert found[i, j] == pytest.approx(width * height / 100**2, rel=0, abs=1e-12)


@pytest.mark.parametrize("world", [raster(14), circle(33)], ids=["raster", "circle"])
def test_truth_is_a_translation_from_the_first_frame(world: World) -> None:
    maps = world.mosaic_from_frame
    np.testing.assert_array_equal(maps[:, :, :2], np.tile(np.eye(2), (world.frames, 1, 1)))
    np.testing.assert_allclose(maps[:, :, 2], world.positions - world.positions[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("world", [raster(14), raster(15), circle(33)], ids=["even", "odd", "circle"])
def test_overlapping_pairs_are_those_that_the_oracle_says_yes_to(world: World) -> None:
    oracle = OracleAgent(world.mosaic_from_frame, OUTLINE, CONTROL_POINTS)
    every_pair = [Pair(i, j) for i in range(world.frames) for j in range(i + 1, world.frames)]
    expected = [pair for pair in every_pair if oracle.answer(pair).verdict is Verdict.YES]
    assert world.agent(1).pairs() == expected


@pytest.mark.parametrize("make", [raster, circle])
def test_what_is_shown_in_both_does_not_depend_on_how_many_frames_are_looked_at_together(make, monkeypatch) -> None:
    pairs, points = make(40).shown_in_both
    monkeypatch.setattr("smalti_lab.experiments.worlds.FRAMES_AT_ONCE", 7)
    in_blocks = make(40).shown_in_both
    np.testing.assert_array_equal(in_blocks[0], pairs)
    np.testing.assert_array_equal(in_blocks[1], points)


@pytest.mark.parametrize("world", [raster(14), circle(33)], ids=["raster", "circle"])
def test_landmarks_without_noise_are_those_of_the_oracle(world: World) -> None:
    oracle = OracleAgent(world.mosaic_from_frame, OUTLINE, CONTROL_POINTS)
    agent = world.agent(1, sigma=1e-12)
    for pair in agent.pairs():
        found, exact = landmarks_of(agent, pair), oracle.exact_landmarks(pair)
        assert exact is not None
        np.testing.assert_array_equal(found.points_j, exact.points_j)
        np.testing.assert_allclose(found.points_i, exact.points_i, rtol=0, atol=1e-9)


def landmarks_of(agent: PrecomputedAgent, pair: Pair) -> Landmarks:
    landmarks = agent.landmarks(pair)
    assert landmarks is not None
    return landmarks


def all_points(agent: PrecomputedAgent) -> np.ndarray:
    return np.concatenate([landmarks_of(agent, pair).points_i for pair in agent.pairs()])


def test_agents_of_one_seed_give_the_same_landmarks() -> None:
    np.testing.assert_array_equal(all_points(raster(14).agent(5)), all_points(raster(14).agent(5)))


def test_agents_of_two_seeds_give_different_landmarks() -> None:
    assert not np.isclose(all_points(raster(14).agent(5)), all_points(raster(14).agent(6))).all(axis=1).any()


def test_noise_of_the_agent_has_the_asked_deviation() -> None:
    world, sigma = raster(60), 2.0
    noise = all_points(world.agent(3, sigma)) - all_points(world.agent(3, sigma=1e-12))
    # Four standard errors of a deviation that is estimated from so many numbers.
    assert noise.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * noise.size))


def test_landmarks_carry_the_deviation_of_their_noise() -> None:
    assert np.unique(landmarks_of(raster(6).agent(1, sigma=0.25), Pair(0, 1)).sigma).tolist() == [0.25]


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_noise_of_the_chain_alone_is_so_many_times_what_it_says(factor: float) -> None:
    world = raster(60)
    plain, noisy, exact = world.agent(3), world.agent(3, chain_noise=factor), world.agent(3, sigma=1e-12)
    for pair in plain.pairs():
        before, after = (landmarks_of(agent, pair) for agent in (plain, noisy))
        true = landmarks_of(exact, pair).points_i
        expected = factor if pair.j - pair.i == 1 else 1.0
        np.testing.assert_allclose(after.points_i - true, expected * (before.points_i - true), rtol=0, atol=1e-9)
        np.testing.assert_array_equal(after.sigma, before.sigma)


@pytest.mark.parametrize("world", [raster(3), raster(14), circle(32)])
def test_chain_links_all_consecutive_frames(world: World) -> None:
    chain = world.chain(world.agent(1))
    assert [landmarks.pair for landmarks in chain] == [Pair(n, n + 1) for n in range(world.frames - 1)]


def test_partner_on_the_raster_has_the_same_x() -> None:
    positions = raster(20).positions
    np.testing.assert_allclose(positions[:10, 0], positions[:9:-1, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("frames", [-1, 2])
@pytest.mark.parametrize("make", [raster, circle])
def test_fewer_than_three_frames_are_refused(make, frames: int) -> None:
    with pytest.raises(UsageError, match=f"{frames} frames are too few"):
        make(frames)


@pytest.mark.parametrize("frames", [3, 31])
def test_a_circle_whose_consecutive_frames_do_not_overlap_is_refused(frames: int) -> None:
    with pytest.raises(UsageError, match="at least 32"):
        circle(frames)
