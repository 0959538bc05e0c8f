"""Pairs that surely overlap: which are chosen to be matched near their expected place."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from smalti.active_loop import ActiveLoop
from smalti.records import Answer, Pair, as_numbers
from smalti.suggestion.sure_pairs import MOST_PER_FRAME, unmatched_pairs
from smalti_lab.experiments.worlds import OUTLINE, raster

FRAMES = 60


@cache
def closed() -> tuple[ActiveLoop, frozenset[Pair]]:
    """A raster whose drift three loops have removed, and its pairs that truly overlap."""
    world = raster(FRAMES)
    agent = world.agent(1)
    loop = ActiveLoop.start(FRAMES, OUTLINE, world.chain(agent), external=world.external)
    for i in (2, 15, 28):
        loop = loop.record(agent.answer(Pair(i, FRAMES - 1 - i)))
    overlapping = {
        Pair(i, j) for i in range(FRAMES) for j in range(i + 1, FRAMES) if agent.answer(Pair(i, j)).landmarks
    }
    return loop, frozenset(overlapping)


def test_all_of_them_overlap_and_none_was_answered():
    loop, overlapping = closed()
    pairs = loop.sure_pairs(1000)
    assert len(pairs) > FRAMES
    assert set(pairs) <= overlapping
    assert not any(loop.is_settled(pair) for pair in pairs)


def test_every_frame_has_some_and_none_has_many():
    loop, _ = closed()
    count = Counter(frame for pair in loop.sure_pairs(1000) for frame in (pair.i, pair.j))
    assert set(count) == set(range(FRAMES))
    assert max(count.values()) <= MOST_PER_FRAME


@pytest.mark.parametrize("most", [0, 1, 17])
def test_there_are_at_most_as_many_as_wanted(most):
    assert len(closed()[0].sure_pairs(most)) == most


def test_the_least_certain_come_first():
    loop, _ = closed()
    assert loop.sure_pairs(5) == loop.sure_pairs(1000)[:5]


def test_frames_of_other_parts_are_not_among_them():
    world = raster(FRAMES)
    agent = world.agent(1)
    chain = [landmarks for landmarks in world.chain(agent) if landmarks.pair.i != 20]
    loop = ActiveLoop.start(FRAMES, OUTLINE, chain, external=world.external)
    assert loop.part.max() == 1
    assert all(loop.part[pair.i] == loop.part[pair.j] for pair in loop.sure_pairs(1000))


def test_a_drifting_chain_is_sure_of_fewer_pairs():
    world = raster(FRAMES)
    agent = world.agent(1)
    drifting = ActiveLoop.start(FRAMES, OUTLINE, world.chain(agent))  # without appearance, the position alone counts
    known = drifting.replay([agent.answer(Pair(i, FRAMES - 1 - i)) for i in (2, 15, 28)])
    far = [sum(pair.j - pair.i > FRAMES // 2 for pair in loop.sure_pairs(1000)) for loop in (drifting, known)]
    assert far[0] < 0.7 * far[1]


def test_they_are_not_asked_twice():
    loop, _ = closed()
    pairs = loop.sure_pairs(10)
    after = loop.replay([Answer.unsure(pair) for pair in pairs])
    assert not set(pairs) & set(after.sure_pairs(1000))


def unmatched(loop, *failed, most=1000):
    return unmatched_pairs(loop.view, as_numbers(failed), most)


def test_a_pair_that_failed_is_tried_again_where_its_place_is_known():
    loop, _ = closed()
    pair = loop.sure_pairs(1)[0]
    after = loop.record(Answer.unsure(pair))
    assert pair in unmatched(after, pair)
    assert pair not in unmatched(after)


def test_consecutive_frames_that_failed_are_tried_again_too():
    world = raster(FRAMES)
    agent = world.agent(1)
    chain = [landmarks for landmarks in world.chain(agent) if landmarks.pair.i != 15]
    loop = ActiveLoop.start(FRAMES, OUTLINE, chain, external=world.external)
    loop = loop.replay([agent.answer(Pair(i, FRAMES - 1 - i)) for i in (2, 8, 14, 20, 28)])
    assert Pair(15, 16) in unmatched(loop, Pair(15, 16))


def test_what_has_a_link_or_was_refused_or_lies_elsewhere_is_not_tried_again():
    loop, _ = closed()
    linked, refused = Pair(2, FRAMES - 3), loop.sure_pairs(1)[0]
    after = loop.record(Answer.no(refused))
    found = unmatched(after, linked, Pair(0, FRAMES // 2))
    assert not {linked, refused, Pair(0, FRAMES // 2)} & set(found)


def test_at_most_as_many_are_tried_again_as_wanted():
    loop, _ = closed()
    pairs = loop.sure_pairs(9)
    assert len(unmatched(loop, *pairs, most=4)) == 4
