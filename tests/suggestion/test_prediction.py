"""The predicted error against its formula, and whether it falls where it should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.experiments.worlds import OUTLINE, raster
from smalti.loop import ActiveLoop
from smalti.overlap.bounds import quick_probability
from smalti.records import Answer, Pair
from smalti.suggestion.prediction import overlap_probability, predicted_error


def on_raster(frames: int, answers: list[tuple[int, int]], seed: int = 2) -> ActiveLoop:
    world = raster(frames)
    agent = world.agent(seed)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(agent), external=world.external)
    return state.replay(agent.answer(Pair(i, j)) for i, j in answers)


def position_by_loops(state: ActiveLoop) -> np.ndarray:
    """P^pos, mean of both directions, with the square that the prediction uses."""
    frames = state.adjustment.frames
    directed = np.ones((frames, frames))
    for i in range(frames):
        for j in range(frames):
            if i != j:
                mean, cov = state.covariance.centre(i, j)
                directed[i, j] = quick_probability(mean, np.array([cov[0, 0], cov[0, 1], cov[1, 1]]), OUTLINE)
    return (directed + directed.T) / 2


def probability_by_loops(state: ActiveLoop) -> np.ndarray:
    """P^pos as prior, P^ext as evidence against the mean of P^pos, answered pairs certain."""
    frames = state.adjustment.frames
    position, external = position_by_loops(state), state.external.probabilities()
    others = [position[i, j] for i in range(frames) for j in range(frames) if i != j]
    base_rate = sum(others) / len(others)
    probability = np.zeros((frames, frames))
    settled = {answer.pair for answer in state.answers}
    for i in range(frames):
        for j in range(i + 1, frames):
            together = position[i, j] * external[i, j] / base_rate
            apart = (1 - position[i, j]) * (1 - external[i, j]) / (1 - base_rate)
            if Pair(i, j) in state.adjustment.links:
                probability[i, j] = 1.0
            elif Pair(i, j) in settled or together == 0.0:
                probability[i, j] = 0.0
            else:
                probability[i, j] = together / (together + apart)
    return probability


@pytest.fixture(scope="module")
def small() -> ActiveLoop:
    state = on_raster(10, [(2, 7), (0, 5)])
    return state.record(Answer.unsure(Pair(1, 7)))


def test_overlap_probability_equals_the_formula(small: ActiveLoop) -> None:
    upper = np.triu_indices(10, 1)
    found = overlap_probability(small.view)
    np.testing.assert_allclose(found[upper], probability_by_loops(small)[upper], rtol=1e-6, atol=1e-9)


def test_overlap_probability_is_symmetric(small: ActiveLoop) -> None:
    found = overlap_probability(small.view)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-15)


def test_linked_pairs_are_certain_to_overlap(small: ActiveLoop) -> None:
    found = overlap_probability(small.view)
    assert all(found[pair.i, pair.j] == found[pair.j, pair.i] == 1.0 for pair in small.adjustment.links)


@pytest.mark.parametrize("pair", [(0, 5), (1, 7)])
def test_pairs_answered_without_landmarks_count_for_nothing(small: ActiveLoop, pair: tuple[int, int]) -> None:
    found = overlap_probability(small.view)
    assert found[pair] == found[pair[::-1]] == 0.0


def test_predicted_error_equals_the_formula(small: ActiveLoop) -> None:
    probability = probability_by_loops(small)
    total, weights = 0.0, 0.0
    for i in range(10):
        for j in range(i + 1, 10):
            spread = sum(np.trace(small.covariance.centre(a, b)[1]) for a, b in ((i, j), (j, i))) / 2
            total += probability[i, j] * spread
            weights += probability[i, j]
    assert predicted_error(small.view) == pytest.approx(math.sqrt(total / weights), rel=1e-6)


def test_the_loop_gives_the_predicted_error_of_its_view(small: ActiveLoop) -> None:
    assert small.predicted_error_px == predicted_error(small.view)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_predicted_error_is_positive_and_finite(seed: int) -> None:
    error = on_raster(30, [], seed).predicted_error_px
    assert math.isfinite(error)
    assert error > 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_predicted_error_falls_when_a_loop_is_closed(seed: int) -> None:
    open_loop, closed = on_raster(30, [], seed), on_raster(30, [(0, 29)], seed)
    assert closed.predicted_error_px < 0.5 * open_loop.predicted_error_px
