"""The paper's loop: what is recorded, what is asked, when it stops, and that a state never changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from smalti.errors import LandmarkError, ModelError, UsageError
from smalti.geometry.linear_maps import square
from smalti.loop_setup import StopReason, StopRule
from smalti.overlap.external_model import NoExternalModel
from smalti.overlap.position_bounds import quick_probability
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.paper.haralick import Haralick
from smalti.paper.paper_loop import PaperLoop
from smalti.records import Answer, Author, Landmarks, Pair
from smalti_lab.comparison_strategies import Xia
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, World, circle, raster

SEED = 4
ASKED = [(0, 39), (5, 28), (1, 39), (3, 23), (10, 32)]
UNSURE = Pair(7, 27)


def started(world: World, stop_rule: StopRule | None = None) -> PaperLoop:
    chain = world.chain(world.agent(SEED))
    return PaperLoop.start(world.frames, OUTLINE, chain, external=world.external, stop_rule=stop_rule)


def log_of(world: World) -> list[Answer]:
    """A yes, several refusals, and one that could not be told."""
    agent = world.agent(SEED)
    answers = [agent.answer(Pair(i, j)) for i, j in ASKED]
    return [*answers[:3], Answer.unsure(UNSURE), *answers[3:]]


@pytest.fixture(scope="module")
def world() -> World:
    return circle(40)


@pytest.fixture(scope="module")
def start(world: World) -> PaperLoop:
    return started(world)


@pytest.fixture(scope="module")
def log(world: World) -> list[Answer]:
    return log_of(world)


def numbers_of(state: PaperLoop) -> dict[str, np.ndarray]:
    """Everything that a state computes, as arrays."""
    external = state.external
    assert isinstance(external, WeightedSignatures)
    suggestions = [(s.pair.i, s.pair.j, s.expected_reward, *s.reasons.values()) for s in state.suggest(5)]
    return {
        "linear mosaic": state.linear_mosaic,
        "refined mosaic": state.mosaic_from_frame,
        "means of the centres": state.haralick.centres.mean,
        "covariances of the centres": state.haralick.centres.cov,
        "external weights": external.weights,
        "external probabilities": external.probabilities(),
        "suggestions": np.array(suggestions),
        "predicted error": np.array(state.predicted_error_px),
    }


def assert_same_bits(state: PaperLoop, expected: PaperLoop) -> None:
    for (name, found), wanted in zip(numbers_of(state).items(), numbers_of(expected).values(), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def a_yes(pair: Pair) -> Answer:
    return Answer.yes(Landmarks(pair, CONTROL_POINTS + np.array([5.0, -3.0]), CONTROL_POINTS))


def test_a_yes_becomes_a_link(start: PaperLoop) -> None:
    assert Pair(0, 39) in start.record(a_yes(Pair(0, 39))).adjustment.links


@pytest.mark.parametrize("answer", [Answer.no(Pair(0, 39)), Answer.unsure(Pair(0, 39))])
def test_no_and_unsure_leave_the_adjustment_as_it_is(start: PaperLoop, answer: Answer) -> None:
    assert start.adjustment is start.record(answer).adjustment


def test_a_no_is_trained_on(start: PaperLoop) -> None:
    external = start.record(Answer.no(Pair(5, 28))).external
    assert isinstance(external, WeightedSignatures)
    assert (external.weights > 1.0).any()


def test_an_unsure_is_not_trained_on_where_nothing_else_is(start: PaperLoop) -> None:
    external = start.record(Answer.unsure(Pair(5, 28))).external
    assert isinstance(external, WeightedSignatures)
    np.testing.assert_array_equal(external.weights, np.ones(2))


def test_an_unsure_does_not_change_what_was_trained(start: PaperLoop) -> None:
    refused = start.record(Answer.no(Pair(5, 28)))
    later = refused.record(Answer.unsure(Pair(2, 30)))
    np.testing.assert_array_equal(later.external.probabilities(), refused.external.probabilities())


def test_the_chain_counts_among_the_overlapping_pairs(world: World, start: PaperLoop) -> None:
    chain = np.column_stack([np.arange(39), np.arange(1, 40)])
    expected = world.external.learn(chain, np.array([[5, 28]])).probabilities()
    found = start.record(Answer.no(Pair(5, 28))).external.probabilities()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_yes_is_trained_on_once_there_is_a_no(start: PaperLoop) -> None:
    refused = start.record(Answer.no(Pair(5, 28)))
    # Frames a quarter of the circle apart, which look as different as any: their yes pulls the weights down.
    agreed = refused.record(a_yes(Pair(0, 10)))
    assert not np.array_equal(agreed.external.probabilities(), refused.external.probabilities())


def test_a_chain_that_leaves_a_frame_out_is_refused() -> None:
    world = raster(10)
    chain = [landmarks for landmarks in world.chain(world.agent(1)) if landmarks.pair.j != 9]
    with pytest.raises(UsageError, match=r"frame 9: .* a chain that joins all frames"):
        PaperLoop.start(10, OUTLINE, chain)


def test_recording_leaves_the_old_state_unchanged(world: World, log: list[Answer]) -> None:
    old = started(world)
    before = {name: array.copy() for name, array in numbers_of(old).items()}
    old.replay(log).suggest(3)
    # A second look at the same links, so that nothing kept from the first look hides a change.
    fresh = replace(old, first=Haralick(old.first.adjustment))
    assert old.answers == ()
    for state in (old, fresh):
        for name, array in numbers_of(state).items():
            np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_replaying_a_log_reproduces_the_state_to_the_last_bit(world: World, log: list[Answer]) -> None:
    step_by_step = started(world)
    for answer in log:
        step_by_step = step_by_step.record(answer)
        step_by_step.suggest(2)
    assert_same_bits(started(world).replay(log_of(world)), step_by_step)


def test_the_order_of_the_answers_does_not_change_the_state_by_a_bit(start: PaperLoop, log: list[Answer]) -> None:
    assert_same_bits(start.replay(reversed(log)), start.replay(log))


@pytest.mark.parametrize("number", [0, 5])
def test_forgetting_an_answer_equals_never_having_got_it(
    start: PaperLoop,
    log: list[Answer],
    number: int,
) -> None:
    forgotten = start.replay(log).forget(log[number].pair)
    assert_same_bits(forgotten, start.replay(log[:number] + log[number + 1 :]))


def test_forgetting_every_answer_equals_the_start(start: PaperLoop, log: list[Answer]) -> None:
    state = start.replay(log)
    for answer in log:
        state = state.forget(answer.pair)
    assert_same_bits(state, start)


@pytest.mark.parametrize(
    "points",
    [np.array([[0.0, 0.0], [30.0, 30.0], [60.0, 60.0], [90.0, 90.0]]), CONTROL_POINTS[:2]],
    ids=["collinear", "two"],
)
def test_a_record_that_fails_leaves_the_state_as_it_was(world: World, points: np.ndarray) -> None:
    state = started(world).record(Answer.no(Pair(5, 28)))
    with pytest.raises(LandmarkError, match=r"\(0, 39\)"):
        state.record(Answer.yes(Landmarks(Pair(0, 39), points, points)))
    assert [answer.pair for answer in state.answers] == [Pair(5, 28)]
    assert_same_bits(state, started(world).record(Answer.no(Pair(5, 28))))


class PlainAgent:
    """Not derived from anything of Smalti: only has `answer`."""

    def __init__(self, make: Callable[[Pair], Answer]) -> None:
        self.make = make
        self.asked: list[Pair] = []

    def answer(self, pair: Pair) -> Answer:
        self.asked.append(pair)
        return self.make(pair)


def test_run_asks_a_plain_object_what_each_state_suggests() -> None:
    world = raster(16)
    start = started(world, StopRule(budget=4))
    agent = PlainAgent(world.agent(SEED).answer)
    states = list(start.run(agent))
    suggested = [state.suggest(1)[0].pair for state in [start, *states[:-1]]]
    assert agent.asked == suggested
    assert [answer.pair for answer in states[-1].answers] == suggested
    assert [len(state.answers) for state in states] == [1, 2, 3, 4]


@pytest.mark.parametrize("budget", [0, 3])
def test_budget_stops_the_loop(budget: int) -> None:
    world = raster(16)
    start = started(world, StopRule(budget=budget))
    states = [start, *start.run(world.agent(SEED))]
    assert len(states[-1].answers) == budget
    assert states[-1].stop_reason() is StopReason.BUDGET


def test_no_and_unsure_count_against_the_budget() -> None:
    start = started(raster(16), StopRule(budget=3))
    states = list(start.run(PlainAgent(Answer.unsure)))
    assert len(states) == 3
    assert states[-1].stop_reason() is StopReason.BUDGET


def test_target_stops_the_loop_at_the_first_state_that_reaches_it() -> None:
    world = raster(30)
    agent = world.agent(SEED)
    free = [started(world), *started(world, StopRule(budget=6)).run(agent)]
    target = (free[3].predicted_error_px + min(state.predicted_error_px for state in free[:3])) / 2
    assert free[3].predicted_error_px < target
    start = started(world, StopRule(target_px=target))
    states = [start, *start.run(agent)]
    assert all(state.predicted_error_px > target for state in states[:-1])
    assert len(states) == 4
    assert states[-1].stop_reason() is StopReason.TARGET


def test_a_target_that_is_reached_already_asks_nothing() -> None:
    start = started(raster(16), StopRule(target_px=1e6))
    agent = PlainAgent(Answer.no)
    assert list(start.run(agent)) == []
    assert agent.asked == []
    assert start.stop_reason() is StopReason.TARGET


@pytest.mark.parametrize("make", [Answer.no, Answer.unsure], ids=["no", "unsure"])
def test_loop_stops_when_every_candidate_was_asked_once(make: Callable[[Pair], Answer]) -> None:
    start = started(raster(8))
    candidates = {suggestion.pair for suggestion in start.suggest(10**6)}
    agent = PlainAgent(make)
    states = list(start.run(agent))
    assert len(agent.asked) == len(set(agent.asked))
    assert set(agent.asked) == candidates
    assert states[-1].stop_reason() is StopReason.NO_CANDIDATE
    assert states[-1].suggest(5) == []


def test_a_loop_without_candidate_stops_before_it_asks() -> None:
    moved = CONTROL_POINTS + np.array([49.0, 0.0])
    chain = [Landmarks(Pair(n, n + 1), moved, CONTROL_POINTS) for n in range(4)]
    start = PaperLoop.start(5, OUTLINE, chain, strategy=Xia())
    assert start.stop_reason() is StopReason.NO_CANDIDATE
    assert list(start.run(PlainAgent(Answer.no))) == []


def test_the_view_s_settled_pairs_are_those_that_are_settled(start: PaperLoop, log: list[Answer]) -> None:
    state = start.replay(log)
    settled = {(int(i), int(j)) for i, j in state.view.settled}
    pairs = [(i, j) for i in range(40) for j in range(i + 1, 40)]
    assert settled == {pair for pair in pairs if state.is_settled(Pair(*pair))}


def test_closing_the_loop_on_the_raster_brings_the_last_frame_near_its_place() -> None:
    world = raster(60)
    agent = world.agent(SEED)
    # The last frame is next to the first, which is thus the reference to see it from.
    start = PaperLoop.start(
        60, OUTLINE, world.chain(agent), external=world.external, reference=0, stop_rule=StopRule(budget=10)
    )
    *_, last = start.run(agent)

    def off(state: PaperLoop) -> float:
        moved = state.mosaic_from_frame[-1, :2] - world.mosaic_from_frame[-1]
        return float(np.linalg.norm(moved @ np.append(OUTLINE.centre, 1.0)))

    assert off(last) < 0.2 * off(start)


def test_what_is_expected_of_a_pair_is_the_mosaics_map_and_the_larger_deviation_of_the_centre(start):
    pair = Pair(3, 30)
    expected = start.expect(pair)
    mosaic = square(start.linear_mosaic)
    np.testing.assert_allclose(mosaic[pair.i] @ expected.i_from_j, mosaic[pair.j], atol=1e-9)
    # γ_ji: the centre of j seen in i.
    _, covariance = start.haralick.centre(pair.j, pair.i)
    assert expected.sigma_px == pytest.approx(np.sqrt(np.linalg.eigvalsh(covariance)[-1]), rel=1e-6)


def test_an_agent_that_wants_to_know_is_told_what_the_state_expects(start, world):
    told = {}

    class Listening:
        def answer(self, pair):
            raise AssertionError(f"{pair} was asked without a word")

        def answer_expecting(self, pair, expected):
            told[pair] = expected
            return world.agent(SEED).answer(pair)

    first = next(replace(start, stop_rule=StopRule(budget=1)).run(Listening()))
    ((pair, expected),) = told.items()
    assert first.answers[0].pair == pair
    np.testing.assert_array_equal(expected.i_from_j, start.expect(pair).i_from_j)
    assert expected.sigma_px == start.expect(pair).sigma_px


def test_what_is_likely_of_a_pair_is_the_product_of_both_models(start: PaperLoop) -> None:
    reasons = start.likely(Pair(3, 38)).reasons
    assert reasons.keys() == {"overlap", "position", "external", "spread_px"}
    assert reasons["overlap"] == reasons["position"] * reasons["external"]
    assert reasons["external"] == start.external.probabilities()[3, 38]
    determinants = [np.linalg.det(start.haralick.centre(*ends)[1]) for ends in ((3, 38), (38, 3))]
    assert reasons["spread_px"] == pytest.approx(np.sqrt(np.mean(np.sqrt(determinants))), rel=1e-6)


def test_a_batch_is_asked_one_by_one(world: World) -> None:
    start = started(world, StopRule(budget=4))
    alone, together = (list(start.run(world.agent(SEED), batch)) for batch in (1, 4))
    assert [answer.pair for answer in together[-1].answers] == [answer.pair for answer in alone[-1].answers]


def test_only_some_pairs_are_asked_where_only_they_can_be_answered() -> None:
    world = raster(16)
    only = np.array([[0, 15], [2, 13], [4, 5]])
    chain = world.chain(world.agent(SEED))
    state = PaperLoop.start(16, OUTLINE, chain, external=world.external, only=only)
    assert {(s.pair.i, s.pair.j) for s in state.suggest(10**6)} <= {(0, 15), (2, 13)}


def test_everything_is_on_one_mosaic_and_believed(start: PaperLoop, log: list[Answer]) -> None:
    state = start.replay(log)
    assert not state.part.any()
    assert not state.rejected
    assert state.lens.is_undistorted
    assert state.mosaic_from_frame.shape == (40, 3, 3)
    assert state.landmarks.keys() == set(state.adjustment.links)


@pytest.mark.parametrize("reference", [0, 39])
def test_a_given_reference_is_the_origin_of_the_mosaic(world: World, reference: int) -> None:
    state = PaperLoop.start(40, OUTLINE, world.chain(world.agent(SEED)), reference=reference)
    np.testing.assert_allclose(state.mosaic_from_frame[reference], np.eye(3), atol=1e-13)


def test_an_external_model_of_another_sequence_is_refused(world: World) -> None:
    with pytest.raises(ModelError, match="39 frames, the sequence has 40"):
        PaperLoop.start(40, OUTLINE, world.chain(world.agent(SEED)), external=NoExternalModel(39))


def test_a_wrong_yes_surprises_and_an_honest_one_does_not(start: PaperLoop, world: World) -> None:
    honest = world.agent(SEED).landmarks(Pair(0, 39))
    assert honest is not None
    wrong = Landmarks(Pair(0, 39), 1.5 * honest.points_i, honest.points_j)
    assert start.surprise(honest, Author.MATCHER) < 16.8  # 99 % of χ² with 6 degrees
    assert start.surprise(wrong, Author.PERSON) > 30.0


# The predicted error


def error_by_loops(state: PaperLoop) -> float:
    """P^pos as prior, P^ext as evidence against the mean of P^pos, answered pairs certain."""
    frames, external = state.frames, state.external.probabilities()
    pairs = [(i, j) for i in range(frames) for j in range(i + 1, frames)]
    position, spread = {}, {}
    for pair in pairs:
        directed = [state.haralick.centre(*ends) for ends in (pair, pair[::-1])]
        flat = [np.array([cov[0, 0], cov[0, 1], cov[1, 1]]) for _, cov in directed]
        inside = [quick_probability(mean, cov, OUTLINE) for (mean, _), cov in zip(directed, flat, strict=True)]
        position[pair] = float(np.mean(inside))
        spread[pair] = float(np.mean([np.trace(cov) for _, cov in directed]))
    base_rate = sum(position.values()) / len(pairs)
    total = weights = 0.0
    for pair in pairs:
        together = position[pair] * external[pair] / base_rate
        apart = (1 - position[pair]) * (1 - external[pair]) / (1 - base_rate)
        weight = together / (together + apart) if together > 0.0 else 0.0
        if Pair(*pair) in state.adjustment.links:
            weight = 1.0
        elif state.is_settled(Pair(*pair)):
            weight = 0.0
        total, weights = total + weight * spread[pair], weights + weight
    return float(np.sqrt(total / weights))


def test_the_predicted_error_equals_its_formula() -> None:
    world = raster(12)
    agent = world.agent(SEED)
    state = started(world).replay(agent.answer(Pair(*pair)) for pair in [(2, 9), (0, 5)])
    state = state.record(Answer.unsure(Pair(1, 9)))
    assert state.predicted_error_px == pytest.approx(error_by_loops(state), rel=1e-6)


def test_the_predicted_error_is_near_the_real_one_on_a_raster() -> None:
    world = raster(80)
    agent = world.agent(1)
    chain = world.chain(agent)
    start = PaperLoop.start(80, OUTLINE, chain, external=world.external, stop_rule=StopRule(budget=12))
    *_, last = start.run(agent)
    real = world.relative_rmsd(last)
    assert 0.5 < real / last.predicted_error_px < 2.0
