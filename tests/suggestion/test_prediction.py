"""The predicted error against its formula, and whether it falls where it should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.experiments.worlds import OUTLINE, circle, raster
from smalti.loop import ActiveLoop
from smalti.overlap.bounds import quick_probability
from smalti.overlap.external import NoExternalModel
from smalti.records import Answer, Pair
from smalti.suggestion import prediction
from smalti.suggestion.prediction import Overlap, predicted_error
from smalti.suggestion.strategies.paper import Paper
from smalti.suggestion.view import View


def on_raster(frames, answers, seed=2, external=None):
    world = raster(frames)
    agent = world.agent(seed)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(agent), external=external or world.external, strategy=Paper())
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


def error_by_matrices(state: ActiveLoop, part: np.ndarray | None = None) -> float:
    """The same formula on matrices of all pairs."""
    centres, external = state.covariance.centres, state.external.probabilities()
    directed = quick_probability(centres.mean, centres.cov, OUTLINE)
    position = (directed + directed.T) / 2
    upper = np.triu_indices(len(position), 1)
    base_rate = np.mean(position[upper])
    together, apart = position * external * (1 - base_rate), (1 - position) * (1 - external) * base_rate
    weight = np.divide(together, together + apart, out=np.zeros_like(together), where=together > 0)
    for pairs, certain in ((state.view.settled, 0.0), (state.adjustment.ends, 1.0)):
        weight[tuple(pairs.T)] = certain
    if part is not None:
        weight = weight * (part[:, None] == part)
    spread = (centres.spread_squared + centres.spread_squared.T) / 2
    return math.sqrt(np.sum((weight * spread)[upper]) / np.sum(weight[upper]))


@pytest.fixture(scope="module")
def small() -> ActiveLoop:
    state = on_raster(10, [(2, 7), (0, 5)])
    return state.record(Answer.unsure(Pair(1, 7)))


STATES = {
    "open raster": lambda: on_raster(300, []),
    "raster with loops": lambda: on_raster(300, [(n, 299 - n) for n in range(5, 145, 20)]),
    "circle": lambda: start_on_circle(300),
}


def start_on_circle(frames):
    world = circle(frames)
    agent = world.agent(2)
    state = ActiveLoop.start(frames, OUTLINE, world.chain(agent), external=world.external)
    return state.record(agent.answer(Pair(0, frames - 1))).record(Answer.no(Pair(10, 10 + frames // 2)))


@pytest.fixture(scope="module", params=STATES)
def long(request) -> ActiveLoop:
    return STATES[request.param]()


@pytest.fixture
def sampled(monkeypatch):
    """Sample as long sequences are sampled: about one pair in three."""
    monkeypatch.setattr(prediction, "ALL_WITHIN", 0.0)
    monkeypatch.setattr(prediction, "SAMPLED_PAIRS", 15_000)


def test_overlap_equals_the_formula(small: ActiveLoop) -> None:
    upper = np.triu_indices(10, 1)
    found = Overlap.of(small.view).of_pairs(np.column_stack(upper))
    np.testing.assert_allclose(found, probability_by_loops(small)[upper], rtol=1e-6, atol=1e-9)


def test_linked_pairs_are_certain_to_overlap(small: ActiveLoop) -> None:
    assert (Overlap.of(small.view).of_pairs(small.adjustment.ends) == 1.0).all()


def test_pairs_answered_without_landmarks_count_for_nothing(small: ActiveLoop) -> None:
    assert (Overlap.of(small.view).of_pairs(np.array([[0, 5], [1, 7]])) == 0.0).all()


def test_a_frame_overlaps_itself(small: ActiveLoop) -> None:
    assert (Overlap.of(small.view).of_pairs(np.array([[0, 0], [7, 7]])) == 1.0).all()


def test_predicted_error_equals_the_formula(small: ActiveLoop) -> None:
    probability = probability_by_loops(small)
    total, weights = 0.0, 0.0
    for i in range(10):
        for j in range(i + 1, 10):
            spread = sum(np.trace(small.covariance.centre(a, b)[1]) for a, b in ((i, j), (j, i))) / 2
            total += probability[i, j] * spread
            weights += probability[i, j]
    assert predicted_error(small.view) == pytest.approx(math.sqrt(total / weights), rel=1e-6)


def test_predicted_error_is_that_of_all_pairs(long: ActiveLoop) -> None:
    assert predicted_error(long.view) == pytest.approx(error_by_matrices(long), rel=1e-9)


def test_where_looks_are_certain_pairs_far_apart_count_as_long_as_they_may_overlap_at_all() -> None:
    state = on_raster(60, [(n, 59 - n) for n in range(0, 28, 3)], external=NoExternalModel(60))
    assert predicted_error(state.view) == pytest.approx(error_by_matrices(state), rel=1e-9)


def test_pairs_of_two_mosaics_do_not_count(small: ActiveLoop) -> None:
    part = np.repeat([0, 1], [4, 6])
    assert predicted_error(small.view, part) == pytest.approx(error_by_matrices(small, part), rel=1e-9)


def test_there_is_no_error_where_every_frame_is_a_mosaic_of_its_own(small: ActiveLoop) -> None:
    assert predicted_error(small.view, np.arange(10)) == 0.0


def test_a_small_sample_predicts_the_error_within_two_hundredths(long: ActiveLoop, sampled: None) -> None:
    assert predicted_error(long.view) == pytest.approx(error_by_matrices(long), rel=0.02)


def test_a_sample_as_large_as_all_pairs_is_all_pairs(long: ActiveLoop, sampled: None, monkeypatch) -> None:
    monkeypatch.setattr(prediction, "SAMPLED_PAIRS", 10**6)
    sample = prediction.Sample.of(long.view, long.view.looks, prediction.SAMPLED_PAIRS)
    assert sorted(map(tuple, sample.pairs)) == sorted(zip(*np.triu_indices(300, 1), strict=True))
    assert (sample.stands_for == 1.0).all()


def test_a_sample_has_each_pair_once_and_stands_for_all(long: ActiveLoop, sampled: None) -> None:
    sample = prediction.Sample.of(long.view, long.view.looks, prediction.SAMPLED_PAIRS)
    assert len(np.unique(sample.pairs, axis=0)) == len(sample.pairs) < 20_000
    assert np.sum(sample.stands_for) == pytest.approx(300 * 299 / 2, rel=0.01)


def test_every_answered_pair_is_in_a_sample_and_stands_for_itself(long: ActiveLoop, sampled: None) -> None:
    sample = prediction.Sample.of(long.view, long.view.looks, prediction.SAMPLED_PAIRS)
    stands_for = {tuple(pair): weight for pair, weight in zip(sample.pairs.tolist(), sample.stands_for, strict=True)}
    answered = np.concatenate([long.adjustment.ends, long.view.settled]).tolist()
    assert all(stands_for[tuple(pair)] == 1.0 for pair in answered)


def test_nobody_looks_at_matrices_of_all_pairs(small: ActiveLoop, monkeypatch) -> None:
    for name in ("centres", "external_probabilities", "candidates"):
        monkeypatch.setattr(View, name, property(lambda _: pytest.fail("all pairs were looked at")))
    predicted_error(small.view)
    Overlap.of(small.view).of_pairs(np.array([[0, 9]]))


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
