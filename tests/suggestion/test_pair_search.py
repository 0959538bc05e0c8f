"""The exact search against looking at every pair, in double precision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.geometry.homographies import PROJECTIVE, apply_map
from smalti.overlap.external_model import FixedProbabilities, NoExternalModel
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.records import Answer, Landmarks, Pair
from smalti.suggestion.candidates import AcceptedTimesSpread
from smalti.suggestion.pair_search import ROUNDING, Found, _bound, _Search, merge, search
from smalti.suggestion.state_view import Answered, GivenUp, View
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, raster
from tests.worlds import at_places

EVERYTHING = 10**6
NEARLY_EQUAL = 1e-12
PROBLEMS = 9
TILTED = (0.0, 0.0, 0.2, 0.05, 0.02, 0.02, 0.01, 0.01)


class PositionTimesSpread:
    """P^pos · √det Σ, the paper's reward, about homographies."""

    reach = 0.5

    def of(self, centres, least):
        del least
        inside = rectangle_probability(centres.mean, centres.cov, centres.outline)
        xx, xy, yy = np.moveaxis(centres.cov, -1, 0)
        return (inside * np.sqrt(np.maximum(xx * yy - xy**2, 0.0))).mean(axis=1)


REWARDS = {
    "position": PositionTimesSpread(),
    "accepted": AcceptedTimesSpread(np.array([0.95, 0.3, 0.05, 0.0, 0.0])),
    "accepted to the rim": AcceptedTimesSpread(np.array([0.95, 0.9, 0.7, 0.1, 0.0])),
}
each_reward = pytest.mark.parametrize("name", REWARDS)


# Random problems


def wandering(rng, frames):
    """Centres (N, 2) of frames along a path that comes back to where it was."""
    if rng.random() < 0.3:
        width = int(rng.integers(5, 20))  # to and fro, row beside row
        n = np.arange(frames)
        row, at = np.divmod(n, width)
        places = np.column_stack([np.where(row % 2, width - 1 - at, at) * 33.0, row * 33.0])
        return places + rng.normal(0.0, 3.0, places.shape)
    heading = np.cumsum(rng.normal(0.0, 0.5, frames))
    steps = 30.0 * np.column_stack([np.cos(heading), np.sin(heading)])
    reach = rng.uniform(100.0, 400.0)
    places = np.zeros((frames, 2))
    for n in range(1, frames):
        home = -0.3 * places[n - 1] / reach * 30.0
        places[n] = places[n - 1] + steps[n] + home
    return places


def landmarks_of(rng, maps, pair):
    sigma = float(rng.uniform(0.3, 3.0))
    i_from_j = np.linalg.inv(maps[pair.i]) @ maps[pair.j]
    exact = apply_map(i_from_j, (CONTROL_POINTS - OUTLINE.centre) / OUTLINE.unit) * OUTLINE.unit + OUTLINE.centre
    return Landmarks(pair, exact + rng.normal(0.0, sigma, exact.shape), CONTROL_POINTS, sigma)


def random_signatures(rng, places):
    """Words that are seen at places, few a frame, and some that lie."""
    words = 300
    where = rng.uniform(places.min(axis=0), places.max(axis=0), (words, 2))
    near = np.linalg.norm(places[:, None] - where[None], axis=2) < 80.0
    raw = rng.exponential(size=near.shape) * (near | (rng.random(near.shape) < 0.01))
    raw[:, 0] += 0.05
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def external_of(rng, kind, places):
    if kind == "matrix":
        matrix = rng.random((len(places), len(places))) ** 3
        return FixedProbabilities(np.maximum(matrix, matrix.T))
    return WeightedSignatures(random_signatures(rng, places)) if kind == "words" else None


@cache
def random_state(number):
    """A loop of 30 to 250 frames after some answers, in one part or two; a third each knows a matrix, words, none."""
    rng = np.random.default_rng([71, number])
    frames = round(30 * (250 / 30) ** rng.random())
    places = wandering(rng, frames)
    maps = at_places(rng, places / OUTLINE.unit, PROJECTIVE, TILTED)
    external = external_of(rng, ("matrix", "words", "nothing")[number % 3], places)
    broken = frames // 2 if number % 4 == 3 else -1
    chain = [landmarks_of(rng, maps, Pair(n, n + 1)) for n in range(frames - 1) if n != broken]
    state = ActiveLoop.start(frames, OUTLINE, chain, external=external)
    apart = np.column_stack(np.triu_indices(frames, 2))
    distance = np.abs(places[apart[:, 0]] - places[apart[:, 1]]).max(axis=1)
    overlapping, others = apart[distance < 60.0], apart[distance > 110.0]
    for some, count in ((overlapping, int(rng.integers(0, 8))), (others, int(rng.integers(0, 8)))):
        for i, j in some[rng.choice(len(some), size=min(count, len(some)), replace=False)].tolist():
            pair = Pair(i, j)
            yes = some is overlapping and (broken < 0 or (i > broken) == (j > broken))
            state = state.record(Answer.yes(landmarks_of(rng, maps, pair)) if yes else Answer.no(pair))
    return state


# The reference


def candidates(view):
    """The pairs i < j (n, 2) that may be asked."""
    allowed = np.triu(np.ones((view.frames, view.frames), dtype=bool), 2)
    for i, j in (*view.linked, *view.settled):
        allowed[i, j] = False
    return np.argwhere(allowed)


@dataclass(frozen=True)
class Exhaustive:
    """All candidates of a positive reward, best first, equal ones by pair."""

    pairs: np.ndarray
    rewards: np.ndarray

    @classmethod
    def of(cls, view, reward):
        pairs = candidates(view)
        # The covariance of all pairs at once goes another way than that of some.
        centres = view.covariance.of_pairs(pairs)
        worth = view.appearance.of_pairs(pairs) * reward.of(centres, np.zeros(len(pairs)))
        order = np.lexsort((pairs[:, 1], pairs[:, 0], -worth))
        order = order[worth[order] > 0]
        return cls(pairs[order], worth[order])

    def worth_of(self, pairs):
        known = {tuple(pair): worth for pair, worth in zip(self.pairs.tolist(), self.rewards, strict=True)}
        return [known[tuple(pair)] for pair in pairs.tolist()]


@cache
def exhaustive(number, name):
    return Exhaustive.of(random_state(number).view, REWARDS[name])


def assert_best(found, every, top):
    """The same rewards rank by rank, and the same pairs but where rewards are equal to twelve digits."""
    best = every.rewards[:top]
    assert len(found.pairs) == len(best)
    np.testing.assert_allclose(found.rewards, best, rtol=1e-9)
    assert len({tuple(pair) for pair in found.pairs.tolist()}) == len(found.pairs)
    np.testing.assert_allclose(every.worth_of(found.pairs), best, rtol=NEARLY_EQUAL)


@pytest.mark.parametrize("number", range(PROBLEMS))
def test_what_is_found_is_what_looking_at_every_pair_finds(number):
    view = random_state(number).view
    name = list(REWARDS)[number // 3]  # so that every reward meets every kind of looks
    for top in (1, 25):
        assert_best(search(view, view.appearance, REWARDS[name], top), exhaustive(number, name), top)


@pytest.mark.parametrize("number", [0, 3])
def test_it_is_so_where_the_ways_of_all_frames_have_no_room(number, monkeypatch):
    monkeypatch.setattr("smalti.engine.covariance.MOST_BYTES_OF_PATHS", 0)
    monkeypatch.setattr("smalti.engine.covariance.PAIRS_AT_ONCE", 50)
    state = random_state(number)
    fresh = replace(state.estimate)
    view = View(fresh, state.external, Answered(state.view.settled))
    assert_best(search(view, view.appearance, REWARDS["accepted"], 5), exhaustive(number, "accepted"), 5)


@pytest.mark.parametrize(("number", "share"), [(0, 0.3), (7, 1e-3), (8, 0.3)])
def test_all_that_reach_a_share_of_the_best_are_found_in_their_order(number, share):
    view, every = random_state(number).view, exhaustive(number, "position")
    found = search(view, view.appearance, REWARDS["position"], 2000, smallest_share=share)
    wanted = every.rewards[:2000] >= share * every.rewards[0] * (1.0 + NEARLY_EQUAL)
    assert 0 < wanted.sum() <= len(found.rewards)
    np.testing.assert_allclose(found.rewards[: wanted.sum()], every.rewards[:2000][wanted], rtol=1e-9)


def test_what_is_fainter_is_not_looked_for():
    view = random_state(1).view
    looked_at = [
        search(view, view.appearance, REWARDS["position"], 2000, smallest_share=share).evaluated
        for share in (0.0, 1e-3, 0.3)
    ]
    assert looked_at[0] >= looked_at[1] >= looked_at[2] > 0
    assert looked_at[0] > looked_at[2]


# Bounds


@each_reward
@pytest.mark.parametrize("number", [0, 3])
def test_no_pair_is_worth_more_than_the_bound_of_its_stretches(number, name):
    covariance, reward = random_state(number).covariance, REWARDS[name]
    pairs = np.column_stack(np.triu_indices(covariance.frames, 1))
    exact = reward.of(covariance.of_pairs(pairs), np.zeros(len(pairs)))
    stretches = covariance.stretches
    directed = _bound(stretches.deviation, stretches.distance, OUTLINE, reward.reach)
    i, j = stretches.of_frames(pairs).T
    assert (exact <= ROUNDING * (directed + directed.T)[i, j] / 2 + 1e-12 * exact.max()).all()


@each_reward
@pytest.mark.parametrize("number", [0, 3])
def test_no_pair_is_worth_more_than_the_bound_by_its_own_distance_nor_that_more_than_its_stretches(number, name):
    view, reward = random_state(number).view, REWARDS[name]
    state = _Search(view, view.appearance, reward, 1)
    pairs = np.column_stack(np.triu_indices(view.frames, 1))
    exact = reward.of(view.covariance.of_pairs(pairs), np.zeros(len(pairs)))
    bound = state._bound_of_pairs(pairs)
    assert (exact <= bound + 1e-12 * exact.max()).all()
    i, j = state.stretch_of[pairs].T
    assert (bound <= state.bound[i, j] * ROUNDING).all()


def test_hardly_any_pair_of_a_raster_is_evaluated():
    world = raster(400)
    agent = world.agent(2)
    state = ActiveLoop.start(400, OUTLINE, world.chain(agent), external=world.external)
    every = 400 * 399 // 2
    closed = state.record(agent.answer(Pair(3, 396)))
    assert search(closed.view, closed.view.appearance, REWARDS["position"], 25).evaluated < every / 20


# Few candidates, and none


@cache
def small(frames):
    world = raster(frames)
    return ActiveLoop.start(frames, OUTLINE, world.chain(world.agent(1, 2.0))).estimate


def on_raster(frames, external=None, settled=None, given_up=None):
    answered = Answered() if settled is None else Answered(settled)
    return View(small(frames), NoExternalModel(frames) if external is None else external, answered, given_up)


def found_in(view, name, top):
    found = search(view, view.appearance, REWARDS[name], top)
    return [tuple(pair) for pair in found.pairs[found.rewards > 0.0].tolist()]


def test_fewer_candidates_than_asked_for_are_all_found_once():
    view = on_raster(12)
    found = found_in(view, "accepted", EVERYTHING)
    every = Exhaustive.of(view, REWARDS["accepted"])
    assert len(set(found)) == len(found)
    assert set(found) >= {tuple(pair) for pair in every.pairs.tolist()}


def test_asking_for_no_pair_gives_none():
    assert found_in(on_raster(12), "position", 0) == []


def test_nothing_is_found_where_every_pair_was_answered():
    assert found_in(on_raster(12, settled=np.column_stack(np.triu_indices(12, 1))), "accepted", 5) == []


@pytest.mark.parametrize("probability", [1e-30, 1e-6])
def test_the_only_pair_that_looks_alike_is_found_however_faintly(probability):
    matrix = np.zeros((60, 60))
    matrix[3, 56] = matrix[56, 3] = probability
    found = found_in(on_raster(60, FixedProbabilities(matrix)), "position", 3)
    assert found == [(3, 56)]


def test_parts_that_were_given_up_are_not_joined():
    part = np.repeat([0, 1, 2], [8, 8, 4])
    given_up = GivenUp(part, np.array([False, True, False]))
    found = set(found_in(on_raster(20, given_up=given_up), "position", EVERYTHING))
    free = set(found_in(on_raster(20), "position", EVERYTHING))
    assert found == {(i, j) for i, j in free if part[i] == part[j] or 1 not in (part[i], part[j])}
    assert found < free


@pytest.mark.parametrize("nth_goal", [1, 5])
def test_a_pair_that_single_precision_takes_for_reaching_a_goal_is_found_once(nth_goal):
    # Its P^ext is below the level of a round, and equal to it in single precision: it may turn up in two rounds.
    bare = on_raster(40)
    state = _Search(bare, bare.appearance, REWARDS["position"], 2)
    goal = state.bound.max() / 4.0**nth_goal
    tried = 0
    pairs = candidates(bare)
    exact = REWARDS["position"].of(bare.covariance.of_pairs(pairs), np.zeros(len(pairs)))
    for i, j in pairs[exact > 1e-6 * exact.max()]:
        bound = state.bound[state.stretch_of[i], state.stretch_of[j]]
        for level in (goal / bound, goal / ROUNDING / bound):
            if bound >= goal and level <= 1.0 and tried < 4:
                tried += 1
                matrix = np.zeros((40, 40))
                matrix[i, j] = matrix[j, i] = np.float32(level)
                assert found_in(on_raster(40, FixedProbabilities(matrix)), "position", 2) == [(int(i), int(j))]
    assert tried


def test_merging_keeps_the_best_of_both_and_orders_equal_rewards_by_pair():
    first = merge(Found.nothing(), np.array([[2, 9], [1, 5], [0, 7]]), np.array([1.0, 3.0, 2.0]), 3, 3)
    found = merge(first, np.array([[2, 8], [0, 3]]), np.array([1.0, 2.0]), 4, 9)
    assert found.pairs.tolist() == [[1, 5], [0, 3], [0, 7], [2, 8]]
    assert found.rewards.tolist() == [3.0, 2.0, 2.0, 1.0]
    assert found.evaluated == 12
