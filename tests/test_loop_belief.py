"""The active loop with guesses, noise and links that are held."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment.link import fit_link
from smalti.belief import FIRST_SURPRISES, LARGEST_CHI2
from smalti.experiments.worlds import CONTROL_POINTS, OUTLINE, raster
from smalti.loop import (
    CHAIN,
    FEWEST_BETWEEN_JUDGEMENTS,
    FEWEST_REFUSALS,
    MATCHER,
    MOST_REFUSALS,
    ActiveLoop,
    StopReason,
    StopRule,
)
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from smalti.suggestion.strategies.paper import Paper

FRAMES = 20
WORLD = raster(FRAMES)
SIGMA = 0.2
GAP = Pair(9, 10)
ACROSS = [Pair(i, FRAMES - 1 - i) for i in range(9)]
SKEW = [Pair(i, FRAMES - 2 - i) for i in range(8)]
WILD = 140.0
FAR = (30.0, -40.0)


@cache
def told(pair, by=0.0):
    """Landmarks of a pair, off by so much; the same whenever asked, whether the frames overlap or not."""
    noise = np.random.default_rng((pair.i, pair.j)).normal(0.0, SIGMA, CONTROL_POINTS.shape)
    shift = WORLD.positions[pair.j] - WORLD.positions[pair.i]
    return Landmarks(pair, CONTROL_POINTS + shift + noise + by, CONTROL_POINTS, SIGMA)


def chain(without=(), lies=None):
    pairs = [Pair(n, n + 1) for n in range(FRAMES - 1) if Pair(n, n + 1) not in without]
    return [told(pair, (lies or {}).get(pair, 0.0)) for pair in pairs]


def guess(pair, sigma=WILD):
    return Landmarks(pair, OUTLINE.corners, OUTLINE.corners, sigma)


def started(*, without=(), lies=None, guesses=(), largest_chi2=LARGEST_CHI2, **more):
    more["priors"] = [guess(pair) for pair in guesses]
    more.setdefault("strategy", Paper())
    return ActiveLoop.start(FRAMES, OUTLINE, chain(without, lies), largest_chi2=largest_chi2, **more)


def yes(pair, by=0.0):
    return Answer.yes(told(pair, by))


def parted(**more):
    """Two parts of the sequence that only a guess joins."""
    return started(without=[GAP], guesses=[GAP], **more)


@cache
def calm():
    """After nine honest answers: a mosaic that knows itself."""
    return started().replay([yes(pair) for pair in ACROSS])


WRONG = SKEW[3]


@cache
def deceived():
    return calm().record(yes(WRONG, FAR))


@pytest.mark.parametrize("largest_chi2", [None, LARGEST_CHI2])
def test_a_guess_goes_when_an_answer_joins_the_parts(largest_chi2):
    state = parted(largest_chi2=largest_chi2).record(yes(ACROSS[3]))
    assert state.priors == frozenset()
    assert GAP not in state.adjustment.links
    assert ACROSS[3] in state.adjustment.links


@pytest.mark.parametrize("answer", [yes(Pair(0, 2)), Answer.no(ACROSS[3]), Answer.unsure(ACROSS[3])])
def test_a_guess_stays_while_no_answer_joins_the_parts(answer):
    state = parted().record(answer)
    assert state.priors == {GAP}
    assert GAP in state.adjustment.links


def test_without_its_guess_the_mosaic_is_that_of_the_answers_alone():
    state = parted().record(yes(ACROSS[3]))
    links = [*chain([GAP]), told(ACROSS[3])]
    alone = ActiveLoop.start(FRAMES, OUTLINE, links, strategy=Paper())
    np.testing.assert_allclose(
        state.adjustment.mosaic_from_frame, alone.adjustment.mosaic_from_frame, rtol=0, atol=1e-8
    )


def test_only_the_guesses_go_whose_parts_are_joined():
    gaps = [Pair(4, 5), Pair(9, 10)]
    state = started(without=gaps, guesses=gaps)
    first = state.record(yes(Pair(4, 6)))
    assert first.priors == {Pair(9, 10)}
    assert first.record(yes(ACROSS[3])).priors == frozenset()


@pytest.mark.parametrize("largest_chi2", [None, LARGEST_CHI2])
def test_the_pair_of_a_guess_may_be_answered(largest_chi2):
    state = parted(largest_chi2=largest_chi2).record(yes(GAP))
    assert state.priors == frozenset()
    assert state.adjustment.links[GAP].landmarks > 4


def test_forgetting_the_answer_that_joined_the_parts_brings_the_guess_back():
    state = parted().record(yes(ACROSS[3])).forget(ACROSS[3])
    assert state.priors == {GAP}


@cache
def in_parts(seed):
    """Parts of random sizes that only guesses join, after refusals of some, most or all pairs between them."""
    rng = np.random.default_rng(seed)
    after = np.sort(rng.choice(FRAMES - 1, size=int(rng.integers(1, 6)), replace=False))
    gaps = [Pair(int(n), int(n) + 1) for n in after]
    start = started(without=gaps, guesses=gaps, largest_chi2=None)
    part = start.adjustment.parts_without(start.priors)
    across = [(i, j) for i in range(FRAMES) for j in range(i + 1, FRAMES) if part[i] != part[j]]
    share = (0.2, 0.6, 0.9, 1.0)[seed % 4]
    chosen = [pair for pair in across if rng.random() < share]
    # Those of some frame are all refused, so that parts are given up at different times.
    refused = [Answer.no(Pair(i, j)) for i, j in chosen if rng.random() < 0.5 or part[i] <= 1]
    unsure = [Answer.unsure(Pair(i, j)) for i, j in chosen if Pair(i, j) not in {answer.pair for answer in refused}]
    return start.replay([*refused, *unsure])


def by_matrices(state):
    """Which pairs (N, N) may be asked, and which of these lie in two parts: by looking at every pair."""
    part = state.adjustment.parts_without(state.priors)
    sizes, refused = np.bincount(part), np.zeros(part.max() + 1, dtype=int)
    for answer in state.answers:
        i, j = answer.pair.i, answer.pair.j
        if answer.verdict is Verdict.NO and part[i] != part[j]:
            refused[part[i]] += 1
            refused[part[j]] += 1
    given_up = refused >= np.minimum(FEWEST_REFUSALS + 2 * sizes, MOST_REFUSALS)
    given_up[np.argmax(sizes)] = False
    across = part[:, None] != part[None]
    hopeless = across & (given_up[part][:, None] | given_up[part][None])
    allowed = np.triu(np.ones((FRAMES, FRAMES), dtype=bool), 2)
    for pair in (*state.adjustment.links, *state.chain, *(answer.pair for answer in state.answers)):
        allowed[pair.i, pair.j] = False
    return allowed & ~hopeless, allowed & ~hopeless & across, given_up


each_partition = pytest.mark.parametrize("seed", range(24))


@each_partition
def test_what_may_be_asked_of_parts_is_what_every_pair_says(seed):
    np.testing.assert_array_equal(in_parts(seed).view.candidates, by_matrices(in_parts(seed))[0])


@each_partition
def test_parts_are_joinable_while_a_pair_between_them_may_be_asked(seed):
    assert in_parts(seed)._joinable() == by_matrices(in_parts(seed))[1].any()


def test_the_random_parts_are_of_every_kind():
    found = [by_matrices(in_parts(seed)) for seed in range(24)]
    assert {bool(joinable.any()) for _, joinable, _ in found} == {True, False}
    assert {bool(given_up.any()) for _, _, given_up in found} == {True, False}
    assert any(joinable.any() and given_up.any() for _, joinable, given_up in found)
    assert any(not joinable.any() and not given_up.all() and len(given_up) > 2 for _, joinable, given_up in found)


def test_parts_are_joinable_until_the_last_pair_between_them_was_answered():
    gaps = [GAP, Pair(14, 15)]
    state = started(without=gaps, guesses=gaps, largest_chi2=None)
    part = state.adjustment.parts_without(state.priors)
    between = [Pair(i, j) for i in range(FRAMES) for j in range(i + 2, FRAMES) if part[i] != part[j]]
    # The pairs of the guesses themselves may be answered, too: that leaves the others as they are.
    all_but_one = state.replay([Answer.unsure(pair) for pair in [*gaps, *between[:-1]]])
    assert all_but_one._joinable()
    assert not all_but_one.record(Answer.unsure(between[-1]))._joinable()


def test_nothing_is_given_up_or_joinable_where_nothing_is_guessed():
    assert started()._given_up is None
    assert not started()._joinable()


@cache
def guess_disputed():
    """The parts are joined, the guess is gone, and then its pair is answered wrongly."""
    return parted().replay([*(yes(pair) for pair in (*ACROSS, *SKEW[:3])), yes(GAP, FAR)])


def test_forgetting_a_held_answer_about_a_guess_forgets_it():
    assert list(guess_disputed().held) == [GAP]
    assert not guess_disputed().forget(GAP).held


def test_forgetting_another_answer_does_not_believe_a_guess_whose_pair_is_held():
    state = guess_disputed().forget(ACROSS[4])
    assert list(state.held) == [GAP]
    assert GAP not in state.adjustment.links
    assert len(state.settle().held) == 1  # of the loop at the turn, whichever link


@pytest.mark.parametrize("noise", [0.5, 3.0])
def test_noise_scales_every_deviation_linearly(noise):
    answers = [yes(ACROSS[2]), yes(ACROSS[6])]
    plain = started(largest_chi2=None).replay(answers).covariance.centres.spread_squared
    noisy = started(largest_chi2=None, noise=noise).replay(answers).covariance.centres.spread_squared
    np.testing.assert_allclose(noisy, noise**2 * plain, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_noise_scales_the_predicted_error_linearly(noise):
    # Small beside the frames, so that which pairs overlap is known as well either way.
    plain, noisy = (started(noise=factor).predicted_error_px for factor in (1.0, noise))
    assert noisy == pytest.approx(noise * plain, rel=0.1)


def test_noise_does_not_make_a_guess_wilder():
    found = parted(noise=10.0).adjustment.links[GAP].root
    np.testing.assert_array_equal(found, fit_link(guess(GAP)).root)


def test_a_link_passes_where_noise_explains_it():
    off = yes(WRONG, (5.0, 0.0))
    assert WRONG in calm().record(off).held
    noisy = started(noise=20.0).replay([yes(pair) for pair in ACROSS])
    assert not noisy.record(off).held


def test_a_wrong_answer_is_held_recorded_and_not_asked_again():
    state = deceived()
    assert list(state.held) == [WRONG]
    assert state.answers[-1].pair == WRONG
    assert WRONG not in [suggestion.pair for suggestion in state.suggest(10**6)]
    np.testing.assert_array_equal(state.adjustment.mosaic_from_frame, calm().adjustment.mosaic_from_frame)


def test_without_a_limit_every_answer_is_believed():
    state = started(largest_chi2=None).replay([yes(pair) for pair in ACROSS]).record(yes(WRONG, FAR))
    assert not state.held
    assert WRONG in state.adjustment.links
    assert state.settle() is state


class Pupil:
    """Remembers the pairs that it was told overlap."""

    def probabilities(self):
        return np.ones((FRAMES, FRAMES))

    def learn(self, overlapping, apart):
        self.told = {(int(i), int(j)) for i, j in overlapping}
        return self


def test_a_held_pair_teaches_the_external_model_nothing():
    state = started(external=Pupil()).replay([*(yes(pair) for pair in ACROSS), yes(WRONG, FAR)])
    assert WRONG in state.held
    assert state.external.told == {(pair.i, pair.j) for pair in state.landmarks if pair != WRONG}


def test_landmarks_are_those_of_the_chain_and_of_every_yes():
    state = deceived().record(Answer.no(Pair(0, 7)))
    assert GAP not in parted().landmarks
    assert state.landmarks.keys() == {record.pair for record in chain()} | {*ACROSS, WRONG}
    np.testing.assert_array_equal(state.landmarks[WRONG].points_i, yes(WRONG, FAR).landmarks.points_i)


def test_forgetting_a_held_answer():
    state = deceived().forget(WRONG)
    assert not state.held
    assert state.answers == calm().answers
    np.testing.assert_array_equal(state.adjustment.mosaic_from_frame, calm().adjustment.mosaic_from_frame)


def test_forgetting_an_answer_does_not_forget_how_surprising_links_are():
    assert deceived().forget(WRONG).surprises != FIRST_SURPRISES


LIE = {Pair(5, 6): (0.0, 40.0)}
TELLING = [*ACROSS[3:8], *SKEW[3:7]]


def test_all_links_are_judged_anew_after_some_yes_answers():
    state = started(lies=LIE)
    for number, pair in enumerate(TELLING[:FEWEST_BETWEEN_JUDGEMENTS], start=1):
        assert Pair(5, 6) not in state.held
        state = state.record(yes(pair)).record(Answer.no(Pair(0, 5 + number)))
    assert list(state.held) == [Pair(5, 6)]
    assert set(TELLING[:FEWEST_BETWEEN_JUDGEMENTS]) <= set(state.adjustment.links)


def test_settling_holds_the_wrong_link_of_the_chain():
    state = started(lies=LIE).replay([yes(pair) for pair in TELLING[:6]])
    assert Pair(5, 6) not in state.held
    settled = state.settle()
    assert list(settled.held) == [Pair(5, 6)]
    assert Pair(5, 6) not in [suggestion.pair for suggestion in settled.suggest(10**6)]


def test_equal_answers_give_equal_states_to_the_last_bit():
    log = [yes(WRONG, FAR), *(yes(pair) for pair in ACROSS), Answer.no(Pair(0, 7)), yes(SKEW[5], FAR)]
    first, again = (parted(stop_rule=StopRule(budget=20)).replay(log) for _ in range(2))
    assert list(first.held) == list(again.held)
    assert first.surprises == again.surprises
    np.testing.assert_array_equal(first.adjustment.mosaic_from_frame, again.adjustment.mosaic_from_frame)
    assert first.suggest(5) == again.suggest(5)


def test_the_order_of_honest_answers_does_not_change_what_is_believed():
    answers = [yes(pair) for pair in (*ACROSS, *SKEW)]
    forth, back = parted().replay(answers), parted().replay(reversed(answers))
    assert not forth.held
    assert not back.held
    assert forth.priors == back.priors == frozenset()
    np.testing.assert_array_equal(forth.adjustment.mosaic_from_frame, back.adjustment.mosaic_from_frame)


def by_person(pair, by=0.0):
    return Answer.yes(told(pair, by), author=Author.PERSON)


def test_what_a_person_says_is_believed_though_it_contradicts_the_rest():
    state = calm().record(by_person(SKEW[0], FAR))
    assert SKEW[0] in state.adjustment.links
    assert not state.held


def test_what_a_person_says_stays_believed_when_all_links_are_judged_anew():
    state = calm().record(by_person(SKEW[0], FAR)).settle()
    assert SKEW[0] in state.adjustment.links


def test_the_same_from_a_matcher_is_held():
    state = calm().record(yes(SKEW[0], FAR))
    assert SKEW[0] in state.held


def test_the_noise_of_the_matcher_is_not_that_of_a_person():
    state = started(noise=7.0)
    theirs = state.record(yes(ACROSS[0])).adjustment.links[ACROSS[0]]
    own = state.record(by_person(ACROSS[0])).adjustment.links[ACROSS[0]]
    np.testing.assert_allclose(own.root, 7.0 * theirs.root)


def test_a_surprise_is_chi2_against_the_state_before():
    state = calm()
    assert state.surprise(told(SKEW[0]), Author.PERSON) < 30
    assert state.surprise(told(SKEW[0], FAR), Author.PERSON) > 1e4


def test_the_error_of_parts_that_nothing_joins_is_that_within_the_parts():
    apart = parted()
    assert apart.predicted_error_px < started().predicted_error_px < WILD


def test_a_target_is_not_reached_while_parts_may_still_be_joined():
    assert parted(stop_rule=StopRule(target_px=1e6)).stop_reason() is None
    assert started(stop_rule=StopRule(target_px=1e6)).stop_reason() is StopReason.TARGET


def test_any_pair_can_be_asked_for_its_reasons():
    state = calm()
    best = state.best
    assert state.likely(best.pair).reasons == best.reasons


def hanging(frame, **more):
    """One frame that only guesses join to the rest, which holds together around it."""
    around = [Pair(frame - 1, frame), Pair(frame, frame + 1)]
    across = told(Pair(frame - 1, frame + 1))
    links = [*chain(without=around), across]
    return ActiveLoop.start(FRAMES, OUTLINE, links, priors=[guess(around[0])], **more)


def asked_about(state):
    return {frame for suggestion in state.suggest(20) for frame in (suggestion.pair.i, suggestion.pair.j)}


def test_small_parts_that_hang_on_a_guess_are_asked_about_unless_told_otherwise():
    assert 9 in asked_about(hanging(9))
    assert 9 not in asked_about(hanging(9, least_part=2))
    assert asked_about(hanging(9, least_part=2))


def test_where_most_frames_hang_on_guesses_all_of_them_are_asked_about():
    gaps = [Pair(n, n + 1) for n in range(FRAMES - 1)]
    state = started(without=gaps, guesses=gaps, least_part=3)
    assert state.suggest(1)


def test_a_person_who_contradicts_a_chain_makes_it_count_less_and_one_who_agrees_does_not():
    start = started(learns=True)
    agreed, contradicted = start.record(by_person(ACROSS[0])), start.record(by_person(ACROSS[0], FAR))
    assert agreed.factors[CHAIN] < 1.5
    assert contradicted.factors[CHAIN] > 1.5
    chain_link, before = (state.adjustment.links[Pair(3, 4)].root for state in (contradicted, start))
    np.testing.assert_allclose(chain_link, before / contradicted.factors[CHAIN])


def test_links_of_a_matcher_that_come_later_are_as_noisy_as_was_learned_before():
    state = started(learns=True).record(yes(ACROSS[0], 5.0)).record(yes(ACROSS[1], -5.0))
    assert state.factors[MATCHER] != 1.0
    link = state._link(told(ACROSS[2]), Author.MATCHER)
    np.testing.assert_allclose(link.root, fit_link(told(ACROSS[2])).root / state.factors[MATCHER])


def test_a_loop_that_does_not_learn_takes_noise_as_it_is_stated():
    assert started().record(by_person(ACROSS[0], FAR)).factors == (1.0, 1.0, 1.0, 1.0)
