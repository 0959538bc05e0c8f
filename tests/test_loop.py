"""The active loop: what is recorded, what is asked, when it stops, and that its state is that of its answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.active_loop import FEWEST_NO_ANSWERS, MOST_NO_ANSWERS, ActiveLoop
from smalti.errors import LandmarkError, ModelError, PairError, UsageError
from smalti.geometry.homographies import FAMILIES, SIMILARITY, apply_map
from smalti.geometry.lens import Lens
from smalti.loop_setup import StopReason, StopRule
from smalti.overlap.external_model import FixedProbabilities
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE as SQUARE, circle, raster
from tests.worlds import OUTLINE, across, flight

FRAMES, LANE = 24, 8
BESIDE = across(FRAMES, LANE)
GAP = Pair(LANE - 1, LANE)
UNSURE = Pair(2, 20)
LIE = BESIDE[6]


@cache
def world():
    return flight(np.random.default_rng(1), FRAMES, lane=LANE)


def told(pair, by=(0.0, 0.0)):
    return world().see(pair, np.random.default_rng([pair.i, pair.j]), by=by)


def yes(pair, by=(0.0, 0.0), author=Author.MATCHER):
    return Answer.yes(told(pair, by), author=author)


def looks():
    """Signatures that tell where a frame is, more or less."""
    rng = np.random.default_rng(3)
    places = world().truth[:, :2, 2]
    words = rng.uniform(places.min(axis=0), places.max(axis=0), (60, 2))
    raw = np.exp(-np.sum((places[:, None] - words) ** 2, axis=2) / 2.0) + 0.05
    return WeightedSignatures(raw / np.linalg.norm(raw, axis=1, keepdims=True))


def started(without=(), **more):
    chain = [told(pair) for pair in world().chain if pair not in without]
    return ActiveLoop.start(FRAMES, OUTLINE, chain, external=more.pop("external", looks()), **more)


@cache
def start():
    return started()


@cache
def parted():
    """The first lane, and the other two, which nothing joins."""
    return started(without=[GAP])


LOG = [
    yes(BESIDE[1]),
    Answer.no(Pair(0, 23)),
    yes(BESIDE[4]),
    Answer.unsure(UNSURE),
    yes(BESIDE[8], author=Author.PERSON),
    yes(LIE, by=(0.0, 60.0)),
    yes(BESIDE[10]),
    Answer.no(Pair(3, 22)),
]


def numbers_of(state):
    """Everything that a state computes, as arrays."""
    suggestions = [(s.pair.i, s.pair.j, s.expected_reward, *s.reasons.values()) for s in state.suggest(4)]
    pairs = np.column_stack(np.triu_indices(FRAMES, 1))
    both = state.covariance.of_pairs(pairs)
    return {
        "mosaic": state.mosaic_from_frame,
        "means of the centres": both.mean,
        "covariances of the centres": both.cov,
        "noise": np.array(state.estimate.noise_model.noise),
        "camera": np.array(state.estimate.noise_model.camera.deviations),
        "rejected": np.array([(pair.i, pair.j) for pair in sorted(state.rejected)]),
        "suggestions": np.array(suggestions),
        "probabilities": state.posterior.of_pairs(pairs),
        "predicted error": np.array([state.predicted_error_px, state.error_bound_px]),
    }


def assert_same_bits(state, expected):
    for (name, found), wanted in zip(numbers_of(state).items(), numbers_of(expected).values(), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)


# The state is that of the set of answers


@cache
def after_log():
    return start().replay(LOG)


@settings(derandomize=True, deadline=None, max_examples=4)
@given(st.permutations(LOG))
def test_the_order_of_answers_changes_no_bit(answers):
    assert_same_bits(start().replay(answers), after_log())


def test_looking_after_every_answer_changes_no_bit():
    state = start()
    for answer in LOG:
        state = state.record(answer)
        state.suggest(2)
    assert_same_bits(state, after_log())


@pytest.mark.parametrize("number", [0, 1, 5])
def test_forgetting_an_answer_equals_never_having_got_it(number):
    rest = LOG[:number] + LOG[number + 1 :]
    assert_same_bits(after_log().forget(LOG[number].pair), start().replay(rest))


def test_forgetting_every_answer_equals_the_start():
    state = after_log()
    for answer in LOG:
        state = state.forget(answer.pair)
    assert state.answers == ()
    assert_same_bits(state, start())


def test_what_was_forgotten_and_given_again_changes_no_bit():
    again = after_log().forget(LOG[2].pair).record(LOG[2])
    assert_same_bits(again, after_log())


def test_a_loop_that_is_started_again_has_the_same_bits():
    assert_same_bits(started().replay(LOG), after_log())


@pytest.mark.parametrize("make", [Answer.no, Answer.unsure], ids=["no", "unsure"])
def test_a_refusal_leaves_the_mosaic_as_it_is_to_the_last_bit(make):
    state = start().replay(LOG[:5])
    before = state.mosaic_from_frame.copy()
    np.testing.assert_array_equal(state.record(make(Pair(1, 21))).mosaic_from_frame, before)
    # Nobody has looked before.
    np.testing.assert_array_equal(start().replay([*LOG[:5], make(Pair(1, 21))]).mosaic_from_frame, before)


def test_recording_leaves_the_old_state_unchanged():
    old = started().replay(LOG[:3])
    before = {name: array.copy() for name, array in numbers_of(old).items()}
    old.replay(LOG[3:]).suggest(3)
    assert old.answers == tuple(LOG[:3])
    for name, array in numbers_of(old).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


# What is recorded


def test_a_yes_becomes_a_link():
    assert BESIDE[1] in start().record(yes(BESIDE[1])).estimate.system.place_of


@pytest.mark.parametrize("count", [1, 3])
def test_few_landmarks_are_an_answer(count):
    record = world().see(BESIDE[1], np.random.default_rng(1), count=count)
    state = start().record(Answer.yes(record))
    assert state.links[BESIDE[1]].rank == 2 * count
    assert BESIDE[1] in state.estimate.system.place_of


@pytest.mark.parametrize("answer", [yes(BESIDE[0]), Answer.no(BESIDE[0]), Answer.unsure(BESIDE[0])])
def test_every_answer_is_kept_in_the_log(answer):
    assert start().record(answer).answers == (answer,)


@pytest.mark.parametrize("make", [Answer.no, Answer.unsure], ids=["no", "unsure"])
def test_a_pair_answered_without_landmarks_is_never_suggested_again(make):
    asked = start().best.pair
    later = start().record(make(asked)).suggest(40)
    assert later
    assert asked not in [suggestion.pair for suggestion in later]


@pytest.mark.parametrize("first", [yes(BESIDE[0]), Answer.no(BESIDE[0]), Answer.unsure(BESIDE[0])])
def test_recording_a_pair_twice_is_refused(first):
    once = start().record(first)
    with pytest.raises(PairError, match=r"\(0, 15\) is given twice"):
        once.record(yes(BESIDE[0]))


def test_recording_a_pair_of_the_chain_is_refused():
    with pytest.raises(PairError, match=r"\(3, 4\) is given twice"):
        start().record(Answer.no(Pair(3, 4)))


def test_recording_a_frame_that_does_not_exist_is_refused():
    with pytest.raises(PairError, match="0 to 23"):
        start().record(Answer.no(Pair(3, 24)))


def test_a_record_that_is_refused_leaves_the_state_as_it_was():
    state = start().record(Answer.no(Pair(0, 23)))
    record = told(BESIDE[1])
    mirrored = Landmarks(BESIDE[1], record.points_i * [-1.0, 1.0], record.points_j)
    with pytest.raises(LandmarkError, match="mirrored"):
        state.record(Answer.yes(mirrored))
    assert [answer.pair for answer in state.answers] == [Pair(0, 23)]
    assert_same_bits(state, start().record(Answer.no(Pair(0, 23))))


@pytest.mark.parametrize("pair", [Pair(3, 4), Pair(50, 60)])
def test_forgetting_a_pair_without_answer_is_refused(pair):
    with pytest.raises(PairError, match="no answer to forget"):
        start().forget(pair)


def test_landmarks_are_those_of_the_chain_and_of_every_yes():
    state = after_log()
    assert LIE in state.rejected
    given = {answer.pair for answer in LOG if answer.landmarks is not None}
    assert state.landmarks.keys() == {*state.chain, *given}
    np.testing.assert_array_equal(state.landmarks[LIE].points_i, told(LIE, (0.0, 60.0)).points_i)


@pytest.mark.parametrize("answer", [yes(BESIDE[0]), Answer.no(BESIDE[0]), Answer.unsure(BESIDE[0])])
def test_a_pair_is_settled_once_it_was_answered_however(answer):
    later = start().record(answer)
    assert not start().is_settled(BESIDE[0])
    assert later.is_settled(BESIDE[0])
    assert not later.is_settled(BESIDE[1])
    assert not later.forget(BESIDE[0]).is_settled(BESIDE[0])


def test_the_view_s_settled_pairs_are_those_that_are_settled():
    settled = {(int(i), int(j)) for i, j in after_log().view.settled}
    pairs = [(i, j) for i in range(FRAMES) for j in range(i + 1, FRAMES)]
    assert settled == {pair for pair in pairs if after_log().is_settled(Pair(*pair))}


# How a loop begins


def test_a_pair_that_is_given_twice_is_refused():
    chain = [told(pair) for pair in world().chain]
    with pytest.raises(PairError, match=r"\(3, 4\) is given twice"):
        ActiveLoop.start(FRAMES, OUTLINE, [*chain, chain[3]])


def test_an_external_model_of_other_frames_is_refused():
    with pytest.raises(ModelError, match="7 frames"):
        started(external=FixedProbabilities(np.ones((7, 7))))


def test_a_reference_that_is_no_frame_is_refused():
    with pytest.raises(UsageError, match="0 to 23"):
        started(reference=24)


def test_the_mosaic_is_seen_from_the_reference():
    state = started(reference=5)
    np.testing.assert_allclose(
        apply_map(state.mosaic_from_frame[5], OUTLINE.centre[None])[0], OUTLINE.centre, atol=1e-9
    )


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_is_asked_and_answered(family):
    some = flight(np.random.default_rng(2), FRAMES, family, lane=LANE)
    rng = np.random.default_rng(3)
    state = ActiveLoop.start(FRAMES, OUTLINE, [some.see(pair, rng) for pair in some.chain], family=family)
    before = some.error_px(state.estimate.solution.maps)
    for pair in BESIDE[::3]:
        state = state.record(Answer.yes(some.see(pair, rng)))
    assert state.best is not None
    assert some.error_px(state.estimate.solution.maps) < 0.7 * before


def test_a_lens_that_is_given_is_taken_and_one_that_is_not_is_looked_for():
    lens = Lens(OUTLINE, 0.1)
    some = flight(np.random.default_rng(2), FRAMES, lane=LANE, lens=lens)
    rng = np.random.default_rng(3)
    chain = [some.see(pair, rng, count=40, noise=0.1) for pair in some.chain]
    assert ActiveLoop.start(FRAMES, OUTLINE, chain, lens=lens).lens is lens
    assert ActiveLoop.start(FRAMES, OUTLINE, chain).lens.stretch == pytest.approx(lens.stretch, rel=0.2)
    assert ActiveLoop.start(FRAMES, OUTLINE, chain, family=SIMILARITY).lens.is_undistorted


# What is learned from answers


def test_a_no_is_trained_on():
    assert (start().record(Answer.no(Pair(0, 23))).external.weights != 1.0).any()


def test_an_unsure_is_not_trained_on():
    refused = start().record(Answer.no(Pair(0, 23)))
    later = refused.record(Answer.unsure(UNSURE))
    np.testing.assert_array_equal(later.external.probabilities(), refused.external.probabilities())


class Pupil:
    """Remembers the pairs that it was told overlap."""

    def probabilities(self):
        return np.ones((FRAMES, FRAMES))

    def learn(self, overlapping, apart):
        self.told = {(int(i), int(j)) for i, j in overlapping}
        return self


def test_a_rejected_pair_teaches_the_external_model_nothing():
    state = started(external=Pupil()).replay(LOG)
    assert LIE in state.rejected
    assert state.external.told == {(pair.i, pair.j) for pair in state.landmarks if pair not in state.rejected}


def test_a_lie_is_not_asked_again():
    assert LIE not in [suggestion.pair for suggestion in after_log().suggest(40)]


def test_what_a_person_says_is_believed_though_it_contradicts_the_rest():
    state = start().replay(yes(pair) for pair in BESIDE[:5])
    insisted = state.record(yes(LIE, (0.0, 60.0), Author.PERSON))
    assert LIE not in insisted.rejected
    assert insisted.person_pairs == {LIE}
    assert LIE in state.record(yes(LIE, (0.0, 60.0))).rejected


def test_a_surprise_is_chi2_against_the_state_before():
    state = start().replay(yes(pair) for pair in BESIDE[:5])
    assert state.surprise(told(LIE), Author.PERSON) < 40
    assert state.surprise(told(LIE, (0.0, 60.0)), Author.PERSON) > 1e3


# Parts


def test_an_answer_joins_two_mosaics():
    assert parted().part.tolist() == LANE * [1] + (FRAMES - LANE) * [0]
    assert not parted().record(yes(BESIDE[3])).part.any()


def test_forgetting_the_answer_that_joined_them_parts_them_again():
    assert_same_bits(parted().record(yes(BESIDE[3])).forget(BESIDE[3]), parted())


def test_joining_two_mosaics_is_asked_first():
    # Each knows itself; where they lie to each other nobody knows.
    state = parted()
    pair = state.best.pair
    assert state.part[pair.i] != state.part[pair.j]


def test_a_target_is_not_reached_while_parts_may_still_be_joined():
    rule = StopRule(target_px=1e6)
    assert started(without=[GAP], stop_rule=rule).stop_reason() is None
    assert started(stop_rule=rule).stop_reason() is StopReason.TARGET


def test_between_mosaics_nothing_is_expected():
    expected = parted().expect(BESIDE[2])
    np.testing.assert_array_equal(expected.i_from_j, np.eye(3))
    assert expected.sigma_px == np.inf


def test_what_is_expected_of_a_pair_is_where_the_mosaic_has_it():
    expected = after_log().expect(BESIDE[2])
    record = told(BESIDE[2])
    off = np.linalg.norm(apply_map(expected.i_from_j, record.points_j) - record.points_i, axis=1)
    assert off.max() < 4.0 * expected.sigma_px + 3.0
    assert 0.0 < expected.sigma_px < 5.0


@cache
def in_parts(seed):
    """Parts of random sizes, after refusals of some, most or all pairs between them."""
    rng = np.random.default_rng(seed)
    after = np.sort(rng.choice(FRAMES - 1, size=int(rng.integers(1, 6)), replace=False))
    state = started(without=[Pair(int(n), int(n) + 1) for n in after], external=None)
    part = state.part
    between = [(i, j) for i in range(FRAMES) for j in range(i + 1, FRAMES) if part[i] != part[j]]
    share = (0.05, 0.6, 0.9, 1.0)[seed % 4]
    chosen = [pair for pair in between if rng.random() < share]
    # Those of some parts are all refused, so that parts are given up at different times.
    refused = [Pair(i, j) for i, j in chosen if rng.random() < 0.5 or (seed % 2 and part[i] <= 1)]
    unsure = [Pair(i, j) for i, j in chosen if Pair(i, j) not in set(refused)]
    return state.replay([*map(Answer.no, refused), *(Answer.unsure(pair, author=Author.PERSON) for pair in unsure)])


def by_matrices(state):
    """Which pairs (N, N) may be asked, which of these lie in two parts, what is given up: by looking at every pair."""
    part = state.part
    sizes, refused = np.bincount(part), np.zeros(part.max() + 1, dtype=int)
    for answer in state.answers:
        i, j = answer.pair.i, answer.pair.j
        if answer.verdict is Verdict.NO and part[i] != part[j]:
            refused[part[i]] += 1
            refused[part[j]] += 1
    given_up = refused >= np.minimum(FEWEST_NO_ANSWERS + 2 * sizes, MOST_NO_ANSWERS)
    given_up[np.argmax(sizes)] = False
    apart = part[:, None] != part[None]
    hopeless = apart & (given_up[part][:, None] | given_up[part][None])
    allowed = np.triu(np.ones((FRAMES, FRAMES), dtype=bool), 2)
    for pair in (*state.chain, *(answer.pair for answer in state.answers)):
        allowed[pair.i, pair.j] = False
    return allowed & ~hopeless, allowed & ~hopeless & apart, given_up


each_partition = pytest.mark.parametrize("seed", range(6))


@each_partition
def test_what_may_be_asked_of_parts_is_what_every_pair_says(seed):
    np.testing.assert_array_equal(in_parts(seed).view.candidates, by_matrices(in_parts(seed))[0])


@each_partition
def test_parts_are_joinable_while_a_pair_between_them_may_be_asked(seed):
    assert in_parts(seed)._joinable() == by_matrices(in_parts(seed))[1].any()


def test_a_failure_of_the_matcher_counts_for_giving_up_a_part_as_long_as_it_is_asked():
    refused = in_parts(1)
    fresh = replace(refused, answers=())
    failed = fresh.replay(
        replace(answer, verdict=Verdict.UNSURE) if answer.verdict is Verdict.NO else answer
        for answer in refused.answers
    )
    np.testing.assert_array_equal(failed.view.candidates, refused.view.candidates)
    by_person = replace(failed, setup=replace(failed.setup, asked=Author.PERSON))
    assert np.sum(by_person.view.candidates) > np.sum(failed.view.candidates)


def test_the_random_parts_are_of_every_kind():
    found = [by_matrices(in_parts(seed)) for seed in range(6)]
    assert {bool(joinable.any()) for _, joinable, _ in found} == {True, False}
    assert {bool(given_up.any()) for _, _, given_up in found} == {True, False}
    assert any(joinable.any() and given_up.any() for _, joinable, given_up in found)


def alone(frame, **more):
    """One frame that nothing joins to the rest, which holds together around it."""
    chain = [told(pair) for pair in world().chain if frame not in (pair.i, pair.j)]
    return ActiveLoop.start(FRAMES, OUTLINE, [*chain, told(Pair(frame - 1, frame + 1))], **more)


def asked_about(state):
    return {frame for suggestion in state.suggest(20) for frame in (suggestion.pair.i, suggestion.pair.j)}


def test_small_parts_are_asked_about_unless_told_otherwise():
    assert 9 in asked_about(alone(9))
    assert 9 not in asked_about(alone(9, least_part=2))
    assert asked_about(alone(9, least_part=2))


def test_where_most_frames_are_alone_all_of_them_are_asked_about():
    assert ActiveLoop.start(FRAMES, OUTLINE, [told(Pair(0, 1))], least_part=3).best is not None


# When it stops, and whom it asks


class PlainAgent:
    """Not derived from anything of Smalti: only has `answer`."""

    def __init__(self, make):
        self.make = make
        self.asked = []

    def answer(self, pair):
        self.asked.append(pair)
        return self.make(pair)


def on_raster(frames=16, **more):
    some = raster(frames)
    agent = some.agent(4)
    return ActiveLoop.start(frames, SQUARE, some.chain(agent), external=some.external, **more), agent


def test_run_asks_a_plain_object_what_each_state_suggests():
    begun, honest = on_raster(stop_rule=StopRule(budget=4))
    agent = PlainAgent(honest.answer)
    states = list(begun.run(agent))
    suggested = [state.suggest(1)[0].pair for state in [begun, *states[:-1]]]
    assert agent.asked == suggested
    assert [answer.pair for answer in states[-1].answers] == suggested
    assert [len(state.answers) for state in states] == [1, 2, 3, 4]


@pytest.mark.parametrize("budget", [0, 3])
def test_budget_stops_the_loop(budget):
    begun, agent = on_raster(stop_rule=StopRule(budget=budget))
    *_, last = [begun, *begun.run(agent)]
    assert len(last.answers) == budget
    assert last.stop_reason() is StopReason.BUDGET


def test_no_and_unsure_count_against_the_budget():
    begun, _ = on_raster(stop_rule=StopRule(budget=3))
    *_, last = begun.run(PlainAgent(Answer.unsure))
    assert len(last.answers) == 3
    assert last.stop_reason() is StopReason.BUDGET


def test_it_stops_only_when_the_bound_is_below_the_target():
    target = 2.0
    begun, agent = on_raster(30, stop_rule=StopRule(budget=30, target_px=target))
    *earlier, last = [begun, *begun.run(agent)]
    assert last.stop_reason() is StopReason.TARGET
    assert last.error_bound_px <= target
    assert all(some.error_bound_px > target for some in earlier)


def test_the_error_being_below_the_target_is_not_enough():
    begun, agent = on_raster(30)
    state = begun.record(agent.answer(begun.best.pair))
    between = (state.predicted_error_px + state.error_bound_px) / 2.0
    again, _ = on_raster(30, stop_rule=StopRule(target_px=between))
    again = again.replay(state.answers)
    assert again.predicted_error_px < between
    assert again.stop_reason() is None


def test_a_target_that_is_reached_already_asks_nothing():
    begun, _ = on_raster(stop_rule=StopRule(target_px=1e6))
    agent = PlainAgent(Answer.no)
    assert list(begun.run(agent)) == []
    assert agent.asked == []
    assert begun.stop_reason() is StopReason.TARGET


@pytest.mark.parametrize("make", [Answer.no, Answer.unsure], ids=["no", "unsure"])
def test_it_stops_when_nothing_is_left_to_ask_and_asks_nothing_twice(make):
    begun, _ = on_raster(8)
    agent = PlainAgent(make)
    *_, last = begun.run(agent)
    assert len(agent.asked) == len(set(agent.asked))
    assert last.stop_reason() is StopReason.NO_CANDIDATE
    assert last.suggest(5) == []


def test_it_stops_when_the_next_answers_would_change_little():
    begun, agent = on_raster(30, stop_rule=StopRule(when_enough=True))
    *earlier, last = [begun, *begun.run(agent)]
    assert last.stop_reason() is StopReason.ENOUGH
    assert not last.prediction.worth_going_on
    assert all(some.prediction.worth_going_on for some in earlier)
    assert last.predicted_error_px < 0.2 * begun.predicted_error_px


@pytest.mark.parametrize(("frames", "patience"), [(30, FEWEST_NO_ANSWERS), (80, 10)])
def test_it_stops_when_the_last_questions_found_nothing(frames, patience):
    begun, _ = on_raster(frames, stop_rule=StopRule(when_enough=True))
    agent = PlainAgent(Answer.no)
    *_, last = begun.run(agent)
    assert last.stop_reason() is StopReason.NOTHING_FOUND
    assert len(agent.asked) == patience


def test_a_yes_renews_its_patience():
    begun, honest = on_raster(30, stop_rule=StopRule(when_enough=True))
    state = begun
    for n, suggestion in enumerate(begun.suggest(FEWEST_NO_ANSWERS)):
        state = state.record(honest.answer(suggestion.pair) if n == 2 else Answer.no(suggestion.pair))
    assert state.stop_reason() is not StopReason.NOTHING_FOUND


def test_it_goes_on_as_long_as_parts_are_likely_to_be_joined():
    rule = StopRule(when_enough=True)
    state = started(without=[GAP], stop_rule=rule)
    assert state.part.any()
    assert state.stop_reason() is None


def test_without_a_rule_there_is_no_reason_to_stop():
    assert start().stop_reason() is None


def test_no_other_pairs_than_those_that_can_be_answered_are_asked():
    only = np.array([[3, 12], [4, 11], [2, 13]])
    begun, agent = on_raster(only=only, stop_rule=StopRule(budget=20))
    *_, last = begun.run(agent)
    assert {(answer.pair.i, answer.pair.j) for answer in last.answers} == {tuple(pair) for pair in only.tolist()}
    assert last.stop_reason() is StopReason.NO_CANDIDATE


def test_a_batch_is_what_is_best_together():
    begun, agent = on_raster(40, stop_rule=StopRule(budget=6))
    *_, last = begun.run(agent, batch=6)
    assert [answer.pair for answer in last.answers] == [some.pair for some in begun.suggest(6)]


def test_batches_may_grow_with_the_answers():
    begun, agent = on_raster(40, stop_rule=StopRule(budget=7))
    chosen_by = [begun, *begun.run(agent, batch=lambda answers: 1 + answers)]
    last = chosen_by[-1]
    for first, size in ((0, 1), (1, 2), (3, 4)):
        asked = [answer.pair for answer in last.answers[first : first + size]]
        assert asked == [some.pair for some in chosen_by[first].suggest(size)]


class WorkingAhead:
    """Notes what it is told about in advance."""

    def __init__(self, answer):
        self.answer, self.told = answer, []

    def prefetch(self, pairs, expected=()):
        self.told += [pair for pair in pairs if pair not in self.told]


def test_an_agent_that_works_ahead_is_told_the_whole_batch_first():
    begun, honest = on_raster(40, stop_rule=StopRule(budget=6))
    agent = WorkingAhead(honest.answer)
    states = begun.run(agent, batch=6)
    next(states)
    assert agent.told == [some.pair for some in begun.suggest(6)]


def test_an_agent_that_wants_to_know_is_told_what_is_expected():
    begun, honest = on_raster(stop_rule=StopRule(budget=2))

    class Curious:
        def __init__(self):
            self.told = []

        def answer(self, pair):
            raise AssertionError("ask with what is expected")

        def answer_expecting(self, pair, expected):
            self.told.append(expected.sigma_px)
            return honest.answer(pair)

    agent = Curious()
    list(begun.run(agent))
    assert len(agent.told) == 2
    assert all(0.0 < sigma < np.inf for sigma in agent.told)


def test_any_pair_can_be_asked_for_its_reasons():
    best = start().best
    reasons = start().likely(best.pair).reasons
    assert reasons["overlap"] == pytest.approx(best.reasons["overlap"])
    assert reasons["position"] == pytest.approx(best.reasons["position"])


def test_closing_the_loop_brings_the_last_frame_near_its_place():
    some = circle(40)
    agent = some.agent(4)
    begun = ActiveLoop.start(40, SQUARE, some.chain(agent), external=some.external, stop_rule=StopRule(budget=8))
    *_, last = begun.run(agent)

    def off(state):
        relative = np.linalg.inv(state.mosaic_from_frame[0]) @ state.mosaic_from_frame[-1]
        moved = apply_map(relative, CONTROL_POINTS) - CONTROL_POINTS
        return np.linalg.norm(moved - (some.positions[-1] - some.positions[0]), axis=1).max()

    assert off(last) < 3.0
    assert off(last) < 0.5 * off(begun)


# What a strategy sees


def test_what_is_linked_settled_and_allowed_is_told_apart():
    view = start().replay([yes(BESIDE[1]), Answer.no(Pair(0, 23))]).view
    pairs = np.array([[BESIDE[1].i, BESIDE[1].j], [0, 23], [3, 4], [2, 19]])
    np.testing.assert_array_equal(view.is_linked(pairs), [True, False, True, False])
    np.testing.assert_array_equal(view.is_settled(pairs), [True, True, True, False])
    np.testing.assert_array_equal(view.may_be_asked(pairs), [False, False, False, True])
    np.testing.assert_array_equal(view.answered.refused, [[0, 23]])
