"""Links that agree by cycles that close: right ones are found among wrong ones, without a mosaic to begin with."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.engine.estimate import Estimate, begin
from smalti.engine.link_consensus import find_agreeing
from smalti.engine.robust_estimate import estimate, without_contested
from smalti.records import Pair
from tests.worlds import across, flight

FRAMES, LANE = 36, 12
each_seed = pytest.mark.parametrize("seed", range(3))


@cache
def world_of(seed):
    return flight(np.random.default_rng(seed), FRAMES, lane=LANE)


def pairs_of(world):
    """Consecutive frames, triangles over them, and neighbours on the next lane."""
    return [*world.chain, *(Pair(n, n + 2) for n in range(FRAMES - 2)), *across(FRAMES, LANE)]


@cache
def told(seed, share):
    """Links of which a share is wrong by 30 to 60 px, and the pairs of these."""
    world, rng = world_of(seed), np.random.default_rng([seed, 4])
    pairs = sorted(set(pairs_of(world)))
    angle = rng.uniform(0.0, 2.0 * np.pi, len(pairs))
    # The first and the last frames have so few links that nothing may check them.
    checked = np.array([pair.i > 1 and pair.j < FRAMES - 2 for pair in pairs])
    size = np.where(checked & (rng.random(len(pairs)) < share), rng.uniform(30.0, 60.0, len(pairs)), 0.0)
    shifts = zip(size * np.cos(angle), size * np.sin(angle), strict=True)
    links = [world.links([pair], rng, by=by)[0] for pair, by in zip(pairs, shifts, strict=True)]
    return links, {pair for pair, by in zip(pairs, size, strict=True) if by}


def agreeing(seed, share, trusted=frozenset()):
    links, lies = told(seed, share)
    world = world_of(seed)

    def solve(some) -> Estimate:
        return begin(world.system([link for link in links if link.pair in some]), learns_camera=False)

    return find_agreeing(links, np.ones(len(links)), trusted, solve), lies, {link.pair for link in links}


@each_seed
def test_of_right_links_all_agree(seed):
    found, _, pairs = agreeing(seed, 0.0)
    assert found == pairs


@each_seed
def test_wrong_links_agree_by_rare_chance_only(seed):
    """Of a hundred cycles with wrong links in so small frames, one may close."""
    found, lies, _ = agreeing(seed, 0.25)
    assert len(lies) > 10
    assert len(found & lies) <= 2


@each_seed
def test_most_right_links_agree_among_wrong_ones(seed):
    found, lies, pairs = agreeing(seed, 0.25)
    assert len(found) > 0.9 * len(pairs - lies)


@each_seed
def test_all_frames_stay_joined(seed):
    found, _, _ = agreeing(seed, 0.25)
    world = world_of(seed)
    assert not world.system([link for link in told(seed, 0.25)[0] if link.pair in found]).part.any()


def test_links_of_a_person_are_always_among_them():
    _, lies = told(0, 0.25)
    by_person = frozenset(sorted(lies)[:2])
    found, _, _ = agreeing(0, 0.25, by_person)
    assert by_person <= found


@each_seed
def test_two_right_links_are_not_displaced_by_a_wrong_one(seed):
    """As frame 37 of copr was, by a link of the chain that bent the mosaic before anything was rejected."""
    links, lies = told(seed, 0.25)
    world = world_of(seed)
    chain = begin(world.system([link for link in links if link.pair.j == link.pair.i + 1]))
    state = estimate(chain, [link for link in links if link.pair.j > link.pair.i + 1])
    assert set(state.rejected) >= lies
    assert len(set(state.rejected) - lies) <= 1


def with_a_wrong_triangle(seed, share):
    """Return the chain, other links and frames that two links join to the rest, one of them wrong; `share` are lies."""
    links, lies = told(seed, share)
    world, rng = world_of(seed), np.random.default_rng(seed)
    kept = [link for link in links if link.pair.i > 0]
    hanging = world.links([Pair(0, 1)], rng) + world.links([Pair(0, 2)], rng, by=(40.0, 0.0))
    consecutive = [link for link in (*kept, *hanging) if link.pair.j == link.pair.i + 1]
    return begin(world.system(consecutive)), [link for link in (*kept, *hanging) if link not in consecutive], lies


@each_seed
def test_a_frame_whose_links_contradict_each_other_is_a_part_of_its_own_where_links_are_often_wrong(seed):
    chain, loops, lies = with_a_wrong_triangle(seed, 0.25)
    state = without_contested(estimate(chain, loops))
    assert {Pair(0, 1), Pair(0, 2)} <= set(state.rejected)
    assert np.sum(state.part == state.part[0]) == 1
    assert not set(state.system.place_of) & lies


@each_seed
def test_where_links_are_hardly_ever_wrong_that_of_the_chain_is_believed(seed):
    chain, loops, _ = with_a_wrong_triangle(seed, 0.0)
    state = without_contested(estimate(chain, loops))
    assert set(state.rejected) == {Pair(0, 2)}
    assert not state.part.any()
