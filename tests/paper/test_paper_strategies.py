"""Every strategy against its section of the paper, written down with loops on a small world."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from smalti.errors import UnknownNameError
from smalti.overlap.external_model import FixedProbabilities
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.position_bounds import probability_bounds
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.paper.paper_loop import PaperLoop
from smalti.paper.paper_strategy import Paper, PaperStrategy, search_rewards
from smalti.records import Answer, Landmarks, Pair
from smalti_lab.comparison_strategies import (
    PAPER_STRATEGIES,
    Elibol,
    ExternalOnly,
    PositionOnly,
    Sawhney,
    Xia,
    arc_lengths,
    paper_strategy_named,
)
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, World, circle, raster

EVERYTHING = 10**6
NEXT_TO_NOTHING = 1e-12
"""Rewards below this are rounding: they depend on the path by which they were computed."""

Ranking = list[tuple[tuple[int, int], float]]


def answered(world: World, pairs: list[tuple[int, int]], *, seed: int = 3, sigma: float = 1.0) -> PaperLoop:
    """The state after the world's agent was asked about these pairs."""
    agent = world.agent(seed, sigma)
    state = PaperLoop.start(world.frames, OUTLINE, world.chain(agent), external=world.external)
    return state.replay(agent.answer(Pair(i, j)) for i, j in pairs)


def moved_by(steps: list[tuple[float, float]]) -> PaperLoop:
    """A chain of exact landmarks, frame n+1 lying `steps[n]` from frame n."""
    chain = [Landmarks(Pair(n, n + 1), CONTROL_POINTS + step, CONTROL_POINTS) for n, step in enumerate(steps)]
    return PaperLoop.start(len(steps) + 1, OUTLINE, chain)


def small_circle() -> World:
    """Fourteen frames once around, of which opposite ones look alike."""
    angle = 2 * np.pi * np.arange(14) / 14
    signatures = np.column_stack([np.cos(2 * angle), np.sin(2 * angle)])
    positions = 60.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    return World("small circle", positions, WeightedSignatures(signatures))


SMALL_STATES = {
    "raster": lambda: answered(raster(14), [(3, 10), (2, 8), (0, 12), (5, 8)]),
    "circle": lambda: answered(small_circle(), [(0, 13), (2, 9), (1, 12)]),
    "quiet raster": lambda: answered(raster(14), [(3, 10), (2, 8)], sigma=0.01),
}


@cache
def small_state(name: str) -> PaperLoop:
    return SMALL_STATES[name]()


@pytest.fixture(params=["raster", "circle"])
def state(request: pytest.FixtureRequest) -> PaperLoop:
    return small_state(request.param)


@pytest.fixture
def raster_state() -> PaperLoop:
    return small_state("raster")


def may_be_asked(state: PaperLoop) -> list[tuple[int, int]]:
    """Pairs at least two frames apart without link or answer, in order."""
    gone = {(pair.i, pair.j) for pair in state.adjustment.links}
    gone |= {(answer.pair.i, answer.pair.j) for answer in state.answers}
    frames = state.adjustment.frames
    return [(i, j) for i in range(frames) for j in range(i + 2, frames) if (i, j) not in gone]


@dataclass(frozen=True)
class Directed:
    """What the strategies know of the centre of i in j, by pairs (i, j) in either order."""

    spread: dict[tuple[int, int], float]
    log_det: dict[tuple[int, int], float]
    probability: dict[tuple[int, int], float]
    upper: dict[tuple[int, int], float]


@cache
def directed(state: PaperLoop) -> Directed:
    """Every pair's own covariance, asked for one by one."""
    frames = state.adjustment.frames
    pairs = [(i, j) for i in range(frames) for j in range(frames) if i != j]
    centres = [state.haralick.centre(i, j) for i, j in pairs]
    mean = np.array([mean for mean, _ in centres])
    cov = np.array([[cov[0, 0], cov[0, 1], cov[1, 1]] for _, cov in centres])
    probability = rectangle_probability(mean, cov, OUTLINE)
    _, upper = probability_bounds(mean, cov, OUTLINE)
    det = [float(np.linalg.det(cov)) for _, cov in centres]
    return Directed(
        spread=dict(zip(pairs, map(math.sqrt, det), strict=True)),
        log_det=dict(zip(pairs, map(math.log, det), strict=True)),
        probability=dict(zip(pairs, map(float, probability), strict=True)),
        upper=dict(zip(pairs, map(float, upper), strict=True)),
    )


def best_first(rewards: dict[tuple[int, int], float]) -> Ranking:
    return sorted(rewards.items(), key=lambda item: (-item[1], item[0]))


def ranking(strategy: PaperStrategy, state: PaperLoop, top: int = EVERYTHING) -> Ranking:
    return [((s.pair.i, s.pair.j), s.expected_reward) for s in strategy.rank(state.view, top)]


def assert_same(found: Ranking, expected: Ranking) -> None:
    """The same rewards at the same ranks, and the same pairs with the same rewards.

    Pairs whose rewards agree to nine digits may change places: the two computations round differently.
    """
    np.testing.assert_allclose([r for _, r in found], [r for _, r in expected], rtol=1e-6, atol=1e-12)
    found_rewards, expected_rewards = dict(found), dict(expected)
    assert found_rewards.keys() == expected_rewards.keys()
    for pair, reward in expected_rewards.items():
        assert found_rewards[pair] == pytest.approx(reward, rel=1e-6, abs=1e-12)


def transcribe_expected_reward(state: PaperLoop, external: np.ndarray) -> Ranking:
    """Eq. tradeoff_reward, product averaged over the two directions."""
    known = directed(state)
    rewards = {}
    for i, j in may_be_asked(state):
        products = [known.probability[pair] * known.spread[pair] for pair in ((i, j), (j, i))]
        reward = external[i, j] * sum(products) / 2
        if reward > NEXT_TO_NOTHING:
            rewards[i, j] = reward
    return best_first(rewards)


def transcribe_elibol(state: PaperLoop) -> Ranking:
    """Section 6.1: upper bound of 0.99 at least; then P · log det Σ."""
    known = directed(state)
    rewards = {}
    for i, j in may_be_asked(state):
        if (known.upper[i, j] + known.upper[j, i]) / 2 >= 0.99:
            products = [known.probability[pair] * known.log_det[pair] for pair in ((i, j), (j, i))]
            rewards[i, j] = sum(products) / 2
    return best_first(rewards)


def transcribe_arc_lengths(state: PaperLoop) -> np.ndarray:
    """Eq. sawhney_overlap_score."""
    centres, radii = [], []
    for transform in state.adjustment.mosaic_from_frame:
        centre = transform[:, :2] @ OUTLINE.centre + transform[:, 2]
        corners = [transform[:, :2] @ corner + transform[:, 2] for corner in OUTLINE.corners]
        centres.append(centre)
        radii.append(sum(math.dist(corner, centre) for corner in corners) / 4)
    frames = len(centres)
    arcs = np.zeros((frames, frames))
    for i in range(frames):
        for j in range(frames):
            gap = max(0.0, math.dist(centres[i], centres[j]) - abs(radii[i] - radii[j]))
            arcs[i, j] = gap / min(2 * radii[i], 2 * radii[j])
    return arcs


def shortest_paths(arcs: np.ndarray, edges: list[tuple[int, int]]) -> np.ndarray:
    """Dijkstra from every frame over the registered pairs."""
    frames = len(arcs)
    neighbours: dict[int, list[int]] = {n: [] for n in range(frames)}
    for i, j in edges:
        neighbours[i].append(j)
        neighbours[j].append(i)
    lengths = np.full((frames, frames), np.inf)
    for start in range(frames):
        heap = [(0.0, start)]
        while heap:
            length, at = heapq.heappop(heap)
            if length >= lengths[start, at]:
                continue
            lengths[start, at] = length
            for other in neighbours[at]:
                heapq.heappush(heap, (length + arcs[at, other], other))
    return lengths


def transcribe_sawhney(state: PaperLoop) -> Ranking:
    """Section 6.2."""
    arcs = transcribe_arc_lengths(state)
    paths = shortest_paths(arcs, [(pair.i, pair.j) for pair in state.adjustment.links])
    rewards = {}
    for i, j in may_be_asked(state):
        probability = max(0.0, 1.0 - arcs[i, j])
        reward = probability * max(0.0, paths[i, j] / arcs[i, j] - 1.0)
        if reward > NEXT_TO_NOTHING:
            rewards[i, j] = reward
    return best_first(rewards)


def transcribe_xia(state: PaperLoop) -> list[tuple[int, int]]:
    """Pairs of which one centre lies in the other frame, by the later frame, then by the earlier one."""
    maps = state.adjustment.mosaic_from_frame
    overlapping = []
    for i, j in may_be_asked(state):
        for a, b in ((i, j), (j, i)):
            on_mosaic = maps[a][:, :2] @ OUTLINE.centre + maps[a][:, 2]
            x, y = np.linalg.solve(maps[b][:, :2], on_mosaic - maps[b][:, 2])
            if 0.0 <= x <= 100.0 and 0.0 <= y <= 100.0:
                overlapping.append((j, i))
                break
    return [(i, j) for j, i in sorted(overlapping)]


def test_paper_equals_its_formula(state: PaperLoop) -> None:
    found = [item for item in ranking(Paper(), state) if item[1] > NEXT_TO_NOTHING]
    assert_same(found, transcribe_expected_reward(state, state.external.probabilities()))


def test_position_only_is_the_paper_with_an_external_probability_of_one(state: PaperLoop) -> None:
    found = [item for item in ranking(PositionOnly(), state) if item[1] > NEXT_TO_NOTHING]
    ones = np.ones((state.adjustment.frames, state.adjustment.frames))
    assert_same(found, transcribe_expected_reward(state, ones))


def test_external_only_has_no_position_probability(state: PaperLoop) -> None:
    external, spread = state.external.probabilities(), directed(state).spread
    expected = {
        (i, j): external[i, j] * (spread[i, j] + spread[j, i]) / 2
        for i, j in may_be_asked(state)
        if external[i, j] > 0  # a pair of reward zero is no suggestion
    }
    assert_same(ranking(ExternalOnly(), state), best_first(expected))


@pytest.mark.parametrize("name", SMALL_STATES)
def test_elibol_equals_section_six_one(name: str) -> None:
    state = small_state(name)
    expected = transcribe_elibol(state)
    assert expected
    assert_same(ranking(Elibol(), state), expected)


def test_sawhney_equals_section_six_two(state: PaperLoop) -> None:
    expected = transcribe_sawhney(state)
    assert expected
    found = [item for item in ranking(Sawhney(), state) if item[1] > NEXT_TO_NOTHING]
    assert_same(found, expected)


def test_arc_lengths_of_all_pairs_are_computed_registered_or_not(state: PaperLoop) -> None:
    np.testing.assert_allclose(arc_lengths(state.adjustment), transcribe_arc_lengths(state), rtol=1e-9, atol=1.1e-9)


def test_xia_asks_the_pairs_that_overlap_on_the_mosaic_in_the_order_of_the_sequence(
    state: PaperLoop,
) -> None:
    expected = transcribe_xia(state)
    assert expected
    assert [pair for pair, _ in ranking(Xia(), state)] == expected


@pytest.mark.parametrize("strategy", PAPER_STRATEGIES.values(), ids=PAPER_STRATEGIES)
def test_the_first_few_are_the_beginning_of_the_whole_ranking(raster_state: PaperLoop, strategy: PaperStrategy) -> None:
    assert ranking(strategy, raster_state, 3) == ranking(strategy, raster_state)[:3]


def brute_force_top(state: PaperLoop, top: int) -> list[tuple[int, int]]:
    """The paper's best pairs, by the exact reward of every candidate."""
    centres = state.view.centres
    directed = rectangle_probability(centres.mean, centres.cov, OUTLINE) * np.sqrt(centres.determinant)
    reward = state.external.probabilities() * (directed + directed.T) / 2
    rewards = {(i, j): float(reward[i, j]) for i, j in may_be_asked(state) if reward[i, j] > 0}
    return [pair for pair, _ in best_first(rewards)[:top]]


LARGER_STATES = {
    "raster at the start": lambda: answered(raster(80), []),
    "raster": lambda: answered(raster(80), [(3, 76), (20, 58), (10, 40), (35, 44), (0, 78)]),
    "circle": lambda: answered(circle(64), [(0, 63), (10, 42), (5, 37), (1, 62)]),
}


@cache
def larger_state(name: str) -> PaperLoop:
    return LARGER_STATES[name]()


@pytest.mark.parametrize("top", [3, EVERYTHING])
@pytest.mark.parametrize("name", LARGER_STATES)
def test_paper_finds_the_exact_best_of_all_candidates(name: str, top: int) -> None:
    larger = larger_state(name)
    assert [pair for pair, _ in ranking(Paper(), larger, top)] == brute_force_top(larger, top)


def test_paper_leaves_most_pairs_of_a_raster_unevaluated() -> None:
    state = answered(raster(120), [(3, 116), (20, 98)])
    found = search_rewards(state.view, state.view.external_probabilities, 1)
    assert found.evaluated < len(may_be_asked(state)) / 5


def test_paper_gives_the_factors_of_its_reward_as_reasons(raster_state: PaperLoop) -> None:
    suggestion = Paper().rank(raster_state.view, 1)[0]
    i, j = suggestion.pair.i, suggestion.pair.j
    known, external = directed(raster_state), raster_state.external.probabilities()[i, j]
    position = (known.probability[i, j] + known.probability[j, i]) / 2
    spread = (known.spread[i, j] + known.spread[j, i]) / 2
    assert suggestion.reasons["position"] == pytest.approx(position, rel=1e-6)
    assert suggestion.reasons["external"] == external
    assert suggestion.reasons["overlap"] == pytest.approx(position * external, rel=1e-6)
    assert suggestion.reasons["spread_px"] == pytest.approx(math.sqrt(spread), rel=1e-6)


def test_elibol_never_asks_a_filtered_pair_though_all_that_pass_have_negative_rewards() -> None:
    quiet = small_state("quiet raster")
    found, upper = ranking(Elibol(), quiet), directed(quiet).upper
    assert min(reward for _, reward in found) < 0
    assert max(reward for _, reward in found) <= 0
    assert all((upper[i, j] + upper[j, i]) / 2 >= 0.99 for (i, j), _ in found)


def test_elibol_asks_nothing_when_no_pair_passes_its_filter() -> None:
    # Frames two apart lie 98 px away: outside of the square around the frame, whose half side is 71 px.
    assert Elibol().rank(moved_by([(49.0, 0.0)] * 6).view, EVERYTHING) == []


def test_xia_asks_nothing_when_no_two_frames_overlap_on_the_mosaic() -> None:
    assert Xia().rank(moved_by([(49.0, 0.0)] * 6).view, EVERYTHING) == []


def test_sawhney_asks_nothing_when_no_arc_is_shorter_than_one() -> None:
    # An arc is the distance in diagonals: two frames apart along the diagonal it is 1.2.
    assert Sawhney().rank(moved_by([(60.0, 60.0)] * 6).view, EVERYTHING) == []


def test_sawhney_asks_two_frames_of_one_place_first_and_for_a_finite_reward() -> None:
    state = moved_by([(40.0, 0.0), (0.0, 40.0), (-40.0, 0.0), (0.0, -40.0)])
    first = Sawhney().rank(state.view, 1)[0]
    assert first.pair == Pair(0, 4)
    assert math.isfinite(first.expected_reward)


def test_paper_and_external_only_ask_nothing_that_the_external_model_rules_out() -> None:
    world = raster(12)
    agent = world.agent(1)
    nothing = FixedProbabilities(np.zeros((12, 12)))
    state = PaperLoop.start(12, OUTLINE, world.chain(agent), external=nothing)
    assert Paper().rank(state.view, EVERYTHING) == []
    assert ExternalOnly().rank(state.view, EVERYTHING) == []


@pytest.mark.parametrize("strategy", PAPER_STRATEGIES.values(), ids=PAPER_STRATEGIES)
def test_an_answered_pair_is_not_suggested_again(raster_state: PaperLoop, strategy: PaperStrategy) -> None:
    first = strategy.rank(raster_state.view, 1)[0].pair
    assert (first.i, first.j) not in dict(ranking(strategy, raster_state.record(Answer.unsure(first))))


@pytest.mark.parametrize("strategy", PAPER_STRATEGIES.values(), ids=PAPER_STRATEGIES)
def test_only_pairs_that_may_be_asked_are_suggested(raster_state: PaperLoop, strategy: PaperStrategy) -> None:
    assert set(dict(ranking(strategy, raster_state))) <= set(may_be_asked(raster_state))


@pytest.mark.parametrize("strategy", PAPER_STRATEGIES.values(), ids=PAPER_STRATEGIES)
def test_consecutive_frames_are_not_suggested_where_the_chain_bridges_over_them(strategy: PaperStrategy) -> None:
    positions = np.array([[20.0 * n, 0.0] for n in range(8)])
    pairs = [(0, 1), (1, 2), (2, 4), (3, 4), (4, 5), (5, 6), (6, 7)]
    moved = [CONTROL_POINTS + positions[j] - positions[i] for i, j in pairs]
    chain = [Landmarks(Pair(*pair), there, CONTROL_POINTS) for pair, there in zip(pairs, moved, strict=True)]
    state = PaperLoop.start(8, OUTLINE, chain)
    found = dict(ranking(strategy, state))
    assert found
    assert all(j - i >= 2 for i, j in found)
    assert (2, 4) not in found


@pytest.mark.parametrize("strategy", PAPER_STRATEGIES.values(), ids=PAPER_STRATEGIES)
def test_best_comes_first(raster_state: PaperLoop, strategy: PaperStrategy) -> None:
    rewards = [reward for _, reward in ranking(strategy, raster_state)]
    assert all(earlier >= later for earlier, later in pairwise(rewards))


def test_a_strategy_is_found_by_its_name() -> None:
    for name in ("paper", "external-only", "position-only", "elibol", "sawhney", "xia"):
        assert paper_strategy_named(name).name == name


def test_an_unknown_strategy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownNameError) as caught:
        paper_strategy_named("papr")
    for name in ("papr", *PAPER_STRATEGIES):
        assert name in str(caught.value)
