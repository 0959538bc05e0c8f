"""Pairs whose answer is known, asked between the other questions to measure the person who answers.

A known yes is the answer of another person, or of the matcher with many landmarks, that the mosaic confirms. A known no
is a pair that surely does not overlap by the mosaic of today, and that the chain alone holds for possible. Both are
shown as they looked before they were known: a known yes by the mosaic of the answers before it, a known no by the chain
alone. By the mosaic of today, the expected place would give the answer away.

What is asked is a function of the log, the share and the seed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from smalti.active_loop import ActiveLoop
from smalti.annotation.answer_history import AnswerHistory
from smalti.annotation.auto_answer import SURE_LANDMARKS
from smalti.annotation.session_state import contradicted_of
from smalti.errors import UsageError
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Author, Pair, PairNumbers
from smalti.suggestion.pair_survey import SurveyedPairs

LARGEST_SHARE = 0.5

NO_SHARE = 0.5
"""Of the known pairs, so many do not overlap, if there are both kinds."""

SURELY_APART = 1e-3
"""The largest probability of an overlap, by all evidence and by position alone, of a pair that is a known no."""

PLAUSIBLE = 0.05
"""The least probability of an overlap by the chain alone: hardly anybody would be asked about a pair below."""

MOST_TRIED = 20_000
"""Pairs among which known noes are looked for."""


@dataclass(frozen=True, slots=True)
class Measures:
    """How the people who answer are measured."""

    known_share: float = 0.0  # of each person's questions
    check_landmarks: bool = False  # the last of four or more landmarks of a person is left out of the link

    def __post_init__(self) -> None:
        if not 0.0 <= self.known_share <= LARGEST_SHARE:
            raise UsageError(
                f"--known-share {self.known_share:g}: is not between 0 and {LARGEST_SHARE:g}; 0.1 asks every tenth "
                "question about a pair whose answer is known"
            )

    def check_method(self, method: str) -> None:
        """Refuse known pairs for the paper's method, whose mosaic has no probabilities that could tell them."""
        if self.known_share and method == "paper":
            raise UsageError(
                "--known-share is not for --method paper, which cannot tell what is surely known; leave it out"
            )


@dataclass(frozen=True, slots=True, eq=False)
class KnownPair:
    """A pair to ask about, in engine numbers, and the state as it was before its answer was known."""

    pair: Pair
    before: ActiveLoop


class KnownPairs:
    """Chooses the known pairs of a session."""

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._seed = share, seed
        self._latest: tuple[tuple[int, str], KnownPair | None] | None = None
        self._plausible: tuple[ActiveLoop, ActiveLoop, PairNumbers] | None = None

    def next(self, answer_history: AnswerHistory, person: str) -> KnownPair | None:
        """Return the known pair that a person is to be asked about now; None if it is another question's turn."""
        if not self._share:
            return None
        key = answer_history.history.revision, person
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._choose(answer_history, person)
        return self._latest[1]

    def _choose(self, answer_history: AnswerHistory, person: str) -> KnownPair | None:
        history = answer_history.history
        in_force = {entry.place for entry in history.answers}
        own = [
            entry
            for entry in history.standing
            if entry.answer.author is Author.PERSON
            and entry.person == person
            and (entry.role is Role.CONTROL or entry.place in in_force)
        ]
        turn = self._turn(len(own), person)
        if turn is None:
            return None
        seen = {
            entry.answer.pair
            for entry in history.standing
            if entry.answer.author is Author.PERSON and entry.person == person
        }
        kinds = [self._known_no, self._known_yes] if turn.random() < NO_SHARE else [self._known_yes, self._known_no]
        for find in kinds:
            found = find(answer_history, person, seen, turn)
            if found is not None:
                return found
        return None

    def _turn(self, answered: int, person: str) -> np.random.Generator | None:
        """Return the random numbers of the known pair that comes after so many answers; None if none does.

        Number k comes at a random place of the k-th stretch of 1/share questions: nobody can count it out.
        """
        digest = hashlib.blake2b(person.encode(), digest_size=8).digest()
        for k in range(int(answered * self._share), int((answered + 1) * self._share) + 1):
            rng = np.random.default_rng([self._seed, int.from_bytes(digest), k])
            if int((k + rng.random()) / self._share) == answered:
                return rng
        return None

    def _known_yes(
        self, answer_history: AnswerHistory, person: str, seen: set[Pair], rng: np.random.Generator
    ) -> KnownPair | None:
        states = answer_history.state_history.states
        loop = states[-1].loop
        assert isinstance(loop, ActiveLoop)
        contradicted = contradicted_of(loop)
        by_place = {entry.place: entry for entry in answer_history.answers()}
        found = []
        for before, state in pairwise(states):
            entry = None if state.entry is None else by_place.get(state.entry.place)
            if entry is None or entry.answer.pair in seen or not _is_sure(entry, person):
                continue
            assert state.entry is not None
            pair = state.entry.answer.pair
            if state.entry.answer.landmarks is not None and pair not in contradicted:
                found.append((pair, before.loop))
        if not found:
            return None
        pair, before_it = found[int(rng.integers(len(found)))]
        assert isinstance(before_it, ActiveLoop)
        return KnownPair(pair, before_it)

    def _known_no(
        self, answer_history: AnswerHistory, person: str, seen: set[Pair], rng: np.random.Generator
    ) -> KnownPair | None:
        start, now = answer_history.state_history.states[0].loop, answer_history.loop
        assert isinstance(start, ActiveLoop)
        assert isinstance(now, ActiveLoop)
        if self._plausible is None or self._plausible[0].setup is not start.setup:
            # Kept with what it has computed: every known no is shown by it.
            self._plausible = start, start, _plausible_by_chain(start, self._seed)
        _, chain, pairs = self._plausible
        joined = now.part[pairs[:, 0]] == now.part[pairs[:, 1]]
        pairs = pairs[joined]
        if not len(pairs):
            return None
        position = SurveyedPairs.of(now.view, pairs).position
        apart = (position <= SURELY_APART) & (now.posterior.overlap_of_pairs(pairs) <= SURELY_APART)
        linked = {*now.chain, *now.links}
        candidates = [Pair(int(i), int(j)) for i, j in pairs[apart]]
        found = [pair for pair in candidates if pair not in linked and answer_history.outer(pair) not in seen]
        return KnownPair(found[int(rng.integers(len(found)))], chain) if found else None


def _is_sure(entry: AnswerEntry, person: str) -> bool:
    """Tell whether a yes is known to somebody else: of another person, or of the matcher with many landmarks."""
    landmarks = entry.answer.landmarks
    if landmarks is None:
        return False
    if entry.answer.author is Author.PERSON:
        return entry.person != person
    return len(landmarks) >= SURE_LANDMARKS


def _plausible_by_chain(start: ActiveLoop, seed: int) -> PairNumbers:
    """Return pairs (n, 2) of one mosaic that the chain alone holds for possible overlaps, in order."""
    frames = start.frames
    if frames * frames <= 2 * MOST_TRIED:
        pairs = np.column_stack(np.triu_indices(frames, 2))
    else:
        pairs = np.sort(np.random.default_rng(seed).integers(0, frames, (MOST_TRIED, 2)), axis=1)
        pairs = np.unique(pairs[pairs[:, 1] - pairs[:, 0] >= 2], axis=0)
    pairs = pairs[start.part[pairs[:, 0]] == start.part[pairs[:, 1]]]
    possible = start.posterior.overlap_of_pairs(pairs) >= PLAUSIBLE if len(pairs) else np.zeros(0, dtype=bool)
    return np.asarray(pairs[possible], dtype=np.int64)
