"""Which links are believed: lies are held, honest links are believed in any order, and two that agree convince."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.consensus import Consensus
from smalti.adjustment.link import fit_link
from smalti.belief import LARGEST_CHI2, MEDIAN_CHI2, SURPRISES_REMEMBERED, Belief
from smalti.errors import PairError
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, measured, raster

FRAMES = 24
ACROSS = [Pair(i, FRAMES - 1 - i) for i in range(FRAMES // 2 - 1)]
"""From the way out to the way back, a third of a frame beside it."""

SKEW = [Pair(i, FRAMES - 2 - i) for i in range(FRAMES // 2 - 2)]
"""The same a frame further: with them, three links at least tell where the frames after any other lie."""

CALM = 4 * (MEDIAN_CHI2,)
"""What links show where nothing is worse than its noise says."""

each_seed = pytest.mark.parametrize("seed", range(3))


@cache
def landmarks_of(seed):
    """Honest landmarks (σ = 0.5 px) of the chain and of the pairs across, straight and skew."""
    rng = np.random.default_rng(seed)
    problem = raster(rng, FRAMES, 1, noise=0.5)
    points = np.vstack([OUTLINE.corners, OUTLINE.centre])
    given = {record.pair: record for record in problem.landmarks if record.pair.j - record.pair.i == 1}
    return {**given, **{pair: measured(rng, problem.truth, pair, points, 0.5) for pair in ACROSS + SKEW}}


def moved(record, by):
    return Landmarks(record.pair, record.points_i + by, record.points_j, record.sigma)


def link_of(pair, seed=0, by=(0.0, 0.0)):
    return fit_link(moved(landmarks_of(seed)[pair], by))


def chain_alone(seed=0, lies=None, surprises=CALM):
    """The belief in a chain, of which some links are off by what `lies` says."""
    lies = lies or {}
    links = [link_of(pair, seed, lies.get(pair, (0.0, 0.0))) for pair in (Pair(n, n + 1) for n in range(FRAMES - 1))]
    return Belief(Adjustment(FRAMES, OUTLINE, links), surprises=surprises)


def told(belief, pairs, seed=0):
    for pair in pairs:
        belief = belief.receive(link_of(pair, seed))
    return belief


def given_to(lies, seed=0):
    """All landmarks, those of the lies as they were told."""
    return {pair: moved(record, lies.get(pair, (0.0, 0.0))) for pair, record in landmarks_of(seed).items()}


@pytest.fixture(scope="module")
def convinced():
    """The belief after four honest links across."""
    return told(chain_alone(), ACROSS[1:11:3])


@each_seed
def test_honest_links_are_believed(seed):
    belief = told(chain_alone(seed), ACROSS, seed)
    assert set(ACROSS) <= set(belief.adjustment.links)
    assert not belief.held


@each_seed
def test_the_order_of_honest_links_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    forth = told(chain_alone(seed), ACROSS, seed)
    other = told(chain_alone(seed), [ACROSS[n] for n in rng.permutation(len(ACROSS))], seed)
    assert other.adjustment.links.keys() == forth.adjustment.links.keys()
    np.testing.assert_array_equal(other.adjustment.mosaic_from_frame, forth.adjustment.mosaic_from_frame)


@pytest.mark.parametrize("by", [(15.0, 0.0), (0.0, -40.0), (300.0, 100.0)])
def test_a_wrong_link_is_held_and_bends_nothing(convinced, by):
    belief = convinced.receive(link_of(ACROSS[5], by=by))
    assert list(belief.held) == [ACROSS[5]]
    assert belief.adjustment is convinced.adjustment


def test_lies_that_agree_with_nobody_stay_held(convinced):
    belief = convinced.receive(link_of(ACROSS[5], by=(60.0, 0.0)))
    belief = belief.receive(link_of(ACROSS[9], by=(-20.0, 45.0))).receive(link_of(ACROSS[2], by=(0.0, -70.0)))
    assert list(belief.held) == [ACROSS[5], ACROSS[9], ACROSS[2]]
    assert belief.adjustment is convinced.adjustment


def test_honest_links_are_believed_beside_held_lies(convinced):
    belief = told(convinced.receive(link_of(ACROSS[5], by=(60.0, 0.0))), [ACROSS[9], ACROSS[2]])
    assert list(belief.held) == [ACROSS[5]]
    assert {ACROSS[9], ACROSS[2]} <= set(belief.adjustment.links)


WRONG_CHAIN = {Pair(11, 12): (0.0, 40.0)}
CHECKED_CHAIN = {Pair(6, 7): (0.0, 60.0)}
"""With links across on either side, some skew, so that no other link can be the wrong one."""


@each_seed
def test_a_link_against_a_wrong_chain_is_held_until_a_second_one_agrees(seed):
    alone = chain_alone(seed, WRONG_CHAIN).receive(link_of(Pair(9, 14), seed))
    assert list(alone.held) == [Pair(9, 14)]
    both = alone.receive(link_of(Pair(8, 15), seed))
    assert not both.held
    assert {Pair(9, 14), Pair(8, 15)} <= set(both.adjustment.links)


def test_a_held_lie_is_not_what_the_second_link_agrees_with():
    belief = chain_alone(lies=WRONG_CHAIN).receive(link_of(Pair(7, 16), by=(90.0, 0.0)))
    belief = told(belief, [Pair(9, 14), Pair(8, 15)])
    assert list(belief.held) == [Pair(7, 16)]
    assert {Pair(9, 14), Pair(8, 15)} <= set(belief.adjustment.links)


def test_a_held_link_is_believed_as_soon_as_it_agrees():
    # Held against a mosaic that the next link, believed at once, puts right.
    calm = chain_alone(lies=WRONG_CHAIN)
    waiting = Belief(calm.adjustment, {Pair(8, 15): link_of(Pair(8, 15))}, surprises=4 * (1e4,))
    belief = waiting.receive(link_of(Pair(9, 14)))
    assert not belief.held
    assert {Pair(9, 14), Pair(8, 15)} <= set(belief.adjustment.links)


def test_more_is_let_pass_where_links_have_been_surprising():
    link = link_of(Pair(9, 14))
    assert chain_alone(lies=WRONG_CHAIN).receive(link).held
    assert not chain_alone(lies=WRONG_CHAIN, surprises=15 * (1e3,)).receive(link).held


def test_one_lie_does_not_make_the_next_pass(convinced):
    belief = convinced
    for n, pair in enumerate([ACROSS[5], ACROSS[9], ACROSS[2]]):
        belief = belief.receive(link_of(pair, by=(300.0 * (n + 1), 0.0)))
    assert belief.receive(link_of(ACROSS[6], by=(0.0, 20.0))).adjustment is convinced.adjustment


def test_surprises_are_what_links_showed_when_they_came(convinced):
    link = link_of(ACROSS[5])
    assert convinced.receive(link).surprises == (*convinced.surprises, convinced.agreement.of_new(link))


def test_only_the_latest_surprises_are_remembered():
    belief = chain_alone(surprises=tuple(map(float, range(SURPRISES_REMEMBERED))))
    after = belief.receive(link_of(ACROSS[5])).surprises
    assert len(after) == SURPRISES_REMEMBERED
    assert after[:-1] == belief.surprises[1:]


def test_a_smaller_limit_holds_more(convinced):
    strict = Belief(convinced.adjustment, largest_chi2=1.0, surprises=CALM)
    link = link_of(ACROSS[5], by=(1.5, 0.0))
    assert convinced.largest_chi2 == LARGEST_CHI2
    assert not convinced.receive(link).held
    assert strict.receive(link).held


def test_forgetting_a_held_link_leaves_the_adjustment(convinced):
    belief = convinced.receive(link_of(ACROSS[5], by=(60.0, 0.0))).forget(ACROSS[5])
    assert not belief.held
    assert belief.adjustment is convinced.adjustment


def test_forgetting_a_believed_link_leaves_the_held_ones(convinced):
    belief = told(convinced.receive(link_of(ACROSS[5], by=(60.0, 0.0))), [ACROSS[9]]).forget(ACROSS[9])
    assert list(belief.held) == [ACROSS[5]]
    np.testing.assert_array_equal(belief.adjustment.mosaic_from_frame, convinced.adjustment.mosaic_from_frame)


def test_forgetting_a_link_that_is_neither_is_refused(convinced):
    with pytest.raises(PairError, match="no link"):
        convinced.forget(ACROSS[5])


@each_seed
def test_settling_holds_the_wrong_link_of_the_chain_and_believes_what_it_contradicts(seed):
    belief = told(chain_alone(seed, CHECKED_CHAIN), ACROSS + SKEW, seed)
    assert Pair(6, 7) in belief.adjustment.links
    settled = belief.settle(given_to(CHECKED_CHAIN, seed))
    assert list(settled.held) == [Pair(6, 7)]
    assert {*ACROSS, *SKEW} <= set(settled.adjustment.links)


def test_settling_honest_links_holds_none_and_changes_no_bit():
    belief = told(chain_alone(), ACROSS)
    settled = belief.settle(landmarks_of(0))
    assert not settled.held
    np.testing.assert_array_equal(settled.adjustment.mosaic_from_frame, belief.adjustment.mosaic_from_frame)


def test_settling_keeps_a_lie_that_was_believed_too_early_from_bending_the_mosaic():
    lie = {ACROSS[5]: (0.0, 60.0)}
    early = chain_alone(surprises=15 * (1e6,)).receive(link_of(ACROSS[5], by=lie[ACROSS[5]]))
    assert not early.held
    settled = told(early, [pair for pair in ACROSS if pair != ACROSS[5]]).settle(given_to(lie))
    assert list(settled.held) == [ACROSS[5]]


def test_settling_keeps_frames_connected_whatever_is_accused(convinced, monkeypatch):
    links = convinced.adjustment.links
    everyone = Consensus(dict.fromkeys(links, 100.0), tolerance_px=1.0)
    monkeypatch.setattr("smalti.belief.find_consensus", lambda adjustment, landmarks: everyone)
    settled = convinced.settle({})
    assert len(settled.adjustment.links) == FRAMES - 1
    assert settled.adjustment.links.keys() | settled.held.keys() == links.keys()


def test_chi2_speaks_of_believed_and_held_links(convinced):
    belief = convinced.receive(link_of(ACROSS[5], by=(60.0, 0.0)))
    chi2 = belief.chi2()
    assert chi2.keys() == {*belief.adjustment.links, ACROSS[5]}
    assert chi2[ACROSS[5]] > LARGEST_CHI2
    assert max(value for pair, value in chi2.items() if pair != ACROSS[5]) < 40.0
    assert chi2[Pair(0, 1)] < 1e-6  # frame 0 hangs on nothing else


def test_receiving_leaves_the_old_state_as_it_was(convinced):
    before = (dict(convinced.held), convinced.surprises, convinced.adjustment)
    convinced.receive(link_of(ACROSS[5], by=(60.0, 0.0)))
    convinced.receive(link_of(ACROSS[5]))
    assert (dict(convinced.held), convinced.surprises, convinced.adjustment) == before


def test_equal_links_in_equal_order_give_equal_bits():
    given = given_to(CHECKED_CHAIN)
    first, again = (told(chain_alone(lies=CHECKED_CHAIN), ACROSS + SKEW).settle(given) for _ in range(2))
    assert first.surprises == again.surprises
    assert list(first.held) == list(again.held)
    np.testing.assert_array_equal(first.adjustment.mosaic_from_frame, again.adjustment.mosaic_from_frame)
