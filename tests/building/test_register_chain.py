"""The chain: bridges over failures, parts where all fail, no more attempts than allowed."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.building.chain import register_chain
from smalti.engine.equations import System
from smalti.engine.links import fit_link, map_in_pixels
from smalti.geometry.homographies import PROJECTIVE
from smalti.project.entries import Role
from smalti.records import Answer, Expectation, Landmarks, Pair
from tests.worlds import OUTLINE, measured

FRAMES = 12


class Asked:
    """Answers by the truth of a straight flight, except for pairs that fail; notes what it was asked."""

    def __init__(self, fails=lambda pair: False, noise: float = 1.0, frames: int = FRAMES) -> None:
        self.fails = fails
        self.noise = noise
        self.truth = np.tile(np.eye(2, 3), (frames, 1, 1))
        self.truth[:, 0, 2] = np.arange(frames) * OUTLINE.width / 6
        self.questions: list[tuple[Pair, Role]] = []
        self.expected: dict[Pair, Expectation | None] = {}

    def __call__(self, pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        self.questions.append((pair, role))
        self.expected[pair] = expected
        return Answer.no(pair) if self.fails(pair) else Answer.yes(self.landmarks(pair))

    def landmarks(self, pair: Pair) -> Landmarks:
        rng = np.random.default_rng([pair.i, pair.j])
        points = rng.uniform([OUTLINE.left, OUTLINE.top], [OUTLINE.right, OUTLINE.bottom], (20, 2))
        true = measured(rng, self.truth, pair, points, self.noise)
        return Landmarks(pair, true.points_i, true.points_j, self.noise)

    def landmarks_map(self, pair: Pair):
        return map_in_pixels(self.landmarks(pair), OUTLINE)

    def pairs(self, role: Role) -> list[Pair]:
        return [pair for pair, why in self.questions if why is role]


def register(ask: Asked, attempts: int = 100, frames: int = FRAMES):
    return register_chain(frames, OUTLINE, ask, attempts)


def parts_of(chain, frames: int = FRAMES) -> list[list[int]]:
    """The frames that hold together, the largest part first."""
    links = [fit_link(landmarks, OUTLINE) for landmarks in chain.links]
    part = System.of(frames, OUTLINE, PROJECTIVE, links).part
    return [np.flatnonzero(part == n).tolist() for n in range(part.max() + 1)]


def is_connected(chain, frames: int = FRAMES) -> bool:
    return len(parts_of(chain, frames)) == 1


def test_a_chain_without_failures_needs_no_bridge():
    ask = Asked()
    chain = register(ask)
    assert ask.pairs(Role.CHAIN) == [Pair(n, n + 1) for n in range(FRAMES - 1)]
    assert ask.pairs(Role.BRIDGE) == []
    assert chain.bridges == ()
    assert {landmarks.pair for landmarks in chain.links} == {pair for pair, _ in ask.questions}


def test_one_failed_pair_is_bridged_by_one_more_question():
    ask = Asked(lambda pair: pair == Pair(5, 6))
    chain = register(ask)
    assert ask.pairs(Role.BRIDGE) == [Pair(4, 6)] == list(chain.bridges)
    assert Pair(4, 6) in {landmarks.pair for landmarks in chain.links}
    assert is_connected(chain)


def test_a_frame_that_matches_neither_neighbour_is_bridged_on_its_own():
    """Both pairs of frame 6 failed; what joins 5 and 7 leaves 6 to be joined."""
    ask = Asked(lambda pair: pair in {Pair(5, 6), Pair(6, 7)})
    chain = register(ask)
    assert len(chain.bridges) == 2
    assert is_connected(chain)


def test_a_frame_that_matches_nothing_is_apart_and_the_rest_holds_together():
    ask = Asked(lambda pair: 6 in (pair.i, pair.j))
    chain = register(ask)
    assert any(pair.i < 6 < pair.j for pair in chain.bridges)
    assert parts_of(chain) == [[n for n in range(FRAMES) if n != 6], [6]]


def test_a_bridge_that_fails_too_gives_way_to_the_next():
    ask = Asked(lambda pair: pair.i <= 5 < pair.j and pair != Pair(4, 7))
    chain = register(ask)
    asked = ask.pairs(Role.BRIDGE)
    assert asked[-1] == Pair(4, 7)
    assert chain.bridges == (Pair(4, 7),)
    assert len(asked) > 1
    assert is_connected(chain)


def test_where_all_bridges_fail_nothing_joins_the_parts():
    chain = register(Asked(lambda pair: pair.i <= 4 < pair.j))
    assert chain.bridges == ()
    assert parts_of(chain) == [[*range(5, FRAMES)], [*range(5)]]


def test_where_everything_fails_there_is_no_link():
    assert register(Asked(lambda pair: True)).links == ()


@pytest.mark.parametrize("fails", [lambda pair: False, lambda pair: True, lambda pair: pair.i % 3 == 0])
@pytest.mark.parametrize("attempts", [FRAMES - 1, FRAMES + 2])
def test_no_more_is_asked_than_allowed_and_nothing_twice(fails, attempts):
    ask = Asked(fails)
    chain = register(ask, attempts)
    assert len(ask.questions) <= attempts
    assert len({pair for pair, _ in ask.questions}) == len(ask.questions)
    yes = {pair for pair, _ in ask.questions if not fails(pair)}
    assert {landmarks.pair for landmarks in chain.links} == yes


def test_two_frames_are_a_chain():
    ask = Asked(frames=2)
    chain = register(ask, 4, frames=2)
    assert [landmarks.pair for landmarks in chain.links] == [Pair(0, 1)]


def test_triangles_are_closed_all_along_the_sequence():
    ask = Asked(frames=120)
    register(ask, 240, frames=120)
    checks = ask.pairs(Role.CHECK)
    assert all(pair.j == pair.i + 2 for pair in checks)
    assert 4 <= len(checks) <= 24
    firsts = np.array([pair.i for pair in checks])
    assert firsts[0] == 0
    assert firsts[-1] == 117
    assert np.diff(firsts).max() <= 8


def test_a_camera_is_expected_to_go_on_as_it_went():
    ask = Asked(noise=0.01)
    register(ask)
    assert ask.expected[Pair(0, 1)] is None
    for n in range(1, FRAMES - 1):
        expected = ask.expected[Pair(n, n + 1)]
        assert expected is not None
        assert expected.i_from_j == pytest.approx(ask.landmarks_map(Pair(n - 1, n)), abs=0.1)
        assert 0 < expected.sigma_px < OUTLINE.width / 4


def test_after_a_failure_nothing_is_expected():
    ask = Asked(lambda pair: pair == Pair(5, 6))
    register(ask)
    assert ask.expected[Pair(6, 7)] is None


def lost(first: int, last: int):
    """Nothing matches the frames from the first to the last."""
    return lambda pair: first <= pair.i <= last or first <= pair.j <= last


def test_runs_on_both_sides_of_a_lost_stretch_are_joined_by_one_question():
    ask = Asked(lost(8, 15), frames=24)
    chain = register(ask, frames=24)
    assert ask.pairs(Role.BRIDGE) == [Pair(7, 16)] == list(chain.bridges)
    assert parts_of(chain, 24)[0] == [*range(8), *range(16, 24)]


def test_a_crossing_that_fails_gives_way_to_one_further_from_the_rim():
    fails = lost(8, 15)
    ask = Asked(lambda pair: fails(pair) or pair == Pair(7, 16), frames=24)
    assert register(ask, frames=24).bridges == (Pair(5, 18),)


def test_frames_of_a_long_lost_stretch_cost_no_questions_of_their_own():
    ask = Asked(lost(8, 30), frames=60)
    register(ask, attempts=120, frames=60)
    assert all(pair == Pair(7, 31) for pair in ask.pairs(Role.BRIDGE))


def test_a_run_of_two_frames_within_a_lost_stretch_does_not_end_it():
    fails = lost(8, 20)
    ask = Asked(lambda pair: fails(pair) and pair != Pair(13, 14), frames=30)
    assert register(ask, frames=30).bridges == (Pair(7, 21),)


class Creeping(Asked):
    """A camera that hardly moves."""

    def __init__(self, frames: int) -> None:
        super().__init__(noise=0.05, frames=frames)
        self.truth[:, 0, 2] = np.arange(frames) * OUTLINE.width / 60


def test_ties_of_every_length_overlap_by_half_while_the_camera_still_shows_much_of_the_same():
    creeping, quick = Creeping(100), Asked(frames=100)
    for ask in (creeping, quick):
        register_chain(100, OUTLINE, ask, 200, longest_baseline=64)
    ties = [pair for pair in creeping.pairs(Role.CHECK) if pair.j - pair.i > 2]
    for span, between in ((8, 4), (16, 8)):
        assert [pair.i for pair in ties if pair.j - pair.i == span] == list(range(0, 100 - span, between))
    # A frame's width in 60 frames, of which half a height may have gone by.
    assert max(pair.j - pair.i for pair in ties) == 16
    assert all(pair.j - pair.i == 2 for pair in quick.pairs(Role.CHECK))


def test_no_tie_leads_over_a_failure_or_beyond_what_was_asked_for():
    ask = Creeping(60)
    ask.fails = lambda pair: pair == Pair(30, 31)
    register_chain(60, OUTLINE, ask, 120, longest_baseline=8)
    ties = [pair for pair in ask.pairs(Role.CHECK) if pair.j - pair.i > 2]
    assert {pair.j - pair.i for pair in ties} == {8}
    assert not any(pair.i <= 30 < pair.j for pair in ties)


def test_a_check_or_a_tie_is_expected_where_the_links_between_put_it():
    ask = Creeping(40)
    register_chain(40, OUTLINE, ask, 100, longest_baseline=16)
    for pair in ask.pairs(Role.CHECK):
        expected = ask.expected[pair]
        assert expected is not None
        assert expected.i_from_j[0, 2] == pytest.approx(ask.truth[pair.j, 0, 2] - ask.truth[pair.i, 0, 2], abs=1.0)
