"""The answers in force, the state after each of them, and what an answer costs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from smalti.active_loop import ActiveLoop
from smalti.annotation.opening import Opened
from smalti.annotation.session_state import AnyLoop, Surprise, surprise_of
from smalti.building.preparation import Preparation
from smalti.building.source_questions import counts_after_chain
from smalti.errors import PairError
from smalti.progress import Progress, Silence
from smalti.project.entries import AnswerEntry, FrameEntry, History, Role
from smalti.records import Answer, Author, Pair, Verdict
from smalti.suggestion.strategy import Smalti

KEPT_WHOLE = 2
"""Latest states that keep what they have computed; others compute it again, the same, when somebody goes back."""


Hypothetical: TypeAlias = tuple[str, Pair, Verdict, bytes]
"""The key of the answers so far, and what a person then says, without a reason: the bytes are the landmarks'."""

NOTHING_PRECOMPUTED: Mapping[Hypothetical, AnyLoop] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer in the numbers of the engine, and its place in the log."""

    place: int
    answer: Answer


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The state after an answer."""

    loop: AnyLoop
    entry: Entry | None  # None before the first
    key: str  # names the answers so far, and their order
    surprise: Surprise | None  # of a yes about frames that were on one mosaic


class StateHistory:
    """States by answers. What was computed up to an answer is kept, so that undo costs nothing."""

    def __init__(self, start: AnyLoop, predicted_px: Mapping[str, float]) -> None:
        """Begin before the first answer; `predicted_px` are errors, by key, that were predicted in earlier sessions."""
        self._moments = [Moment(start, None, "", None)]
        self._predicted_px = dict(predicted_px)
        self._predict()

    @property
    def now(self) -> Moment:
        """The state after the last answer in force."""
        return self._moments[-1]

    @property
    def before(self) -> Moment:
        """The state before the last answer in force."""
        return self._moments[-2]

    @property
    def predicted_px(self) -> dict[str, float]:
        """All errors that were ever predicted, by key."""
        return self._predicted_px

    def follow(
        self,
        entries: Sequence[Entry],
        precomputed: Mapping[Hypothetical, AnyLoop] = NOTHING_PRECOMPUTED,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Go to the state after these answers; those that are the same as before are not gone through again.

        `foreseen` are states that were computed before the answer came.
        """
        same = 0
        for moment, entry in zip(self._moments[1:], entries, strict=False):
            if moment.entry is None or moment.entry.place != entry.place:
                break
            same += 1
        del self._moments[same + 1 :]
        for entry in entries[same:]:
            self._moments.append(_after(self.now, entry, precomputed))
            if entry.answer.author is Author.PERSON:
                self._predict()
            self._lighten()
            on_step()
        self._predict()

    def errors(self) -> list[tuple[int, float]]:
        """Return after how many answers which error was predicted, as far as it is known."""
        known = [(count, self._predicted_px.get(moment.key)) for count, moment in enumerate(self._moments)]
        return [(count, value) for count, value in known if value is not None]

    def surprises(self) -> list[Surprise]:
        """Return how surprising every yes was when it came."""
        return [moment.surprise for moment in self._moments if moment.surprise is not None]

    def earlier_surprises(self) -> list[Surprise]:
        """Return the same without the last answer."""
        return [moment.surprise for moment in self._moments[:-1] if moment.surprise is not None]

    def _predict(self) -> None:
        if self.now.key not in self._predicted_px:
            self._predicted_px[self.now.key] = self.now.loop.predicted_error_px

    def _lighten(self) -> None:
        if len(self._moments) > KEPT_WHOLE:
            old = self._moments[-KEPT_WHOLE - 1]
            self._moments[-KEPT_WHOLE - 1] = replace(old, loop=replace(old.loop, known=None))


def key_after(key: str, entry: Entry) -> str:
    """Return the key of the answers so far with one more."""
    return hashlib.blake2b(f"{key},{entry.place}".encode(), digest_size=8).hexdigest()


def _after(before: Moment, entry: Entry, precomputed: Mapping[Hypothetical, AnyLoop]) -> Moment:
    answer, key = entry.answer, key_after(before.key, entry)
    surprise = None
    if answer.landmarks is not None:
        part, pair = before.loop.part, answer.pair
        joined = part[pair.i] == part[pair.j]
        surprise = surprise_of(before.loop, answer.landmarks, answer.author) if joined else None
    known = None
    if answer.author is Author.PERSON and not answer.reason:
        known = precomputed.get(name_of(before.key, answer))
    return Moment(before.loop.record(answer) if known is None else known, entry, key, surprise)


def name_of(key: str, answer: Answer) -> Hypothetical:
    """Return what the state after a person's answer is known by, before it is given."""
    landmarks = answer.landmarks
    drawn = b""
    if landmarks is not None:
        drawn = landmarks.points_i.tobytes() + landmarks.points_j.tobytes() + landmarks.weights.tobytes()
    return key, answer.pair, answer.verdict, drawn


class AnswerHistory:
    """Follows the log of a project. Frames are counted as in the source, but for `inner`."""

    def __init__(self, opened: Opened, progress: Progress) -> None:
        self._opened = opened
        self._store = opened.project.store
        self.preparation: Preparation = opened.preparation
        self.history: History = self._store.history()
        self._begin()
        entries = self._entries()
        with progress.stage("answers", len(entries)) as step:
            self.state_history.follow(entries, on_step=step)

    @property
    def loop(self) -> AnyLoop:
        """The state now."""
        return self.state_history.now.loop

    @property
    def used(self) -> tuple[int, ...]:
        """The numbers of the frames that the engine knows."""
        return self.preparation.used

    @property
    def frames(self) -> tuple[FrameEntry, ...]:
        """All frames of the source."""
        return self.preparation.frames

    def take_up(self, precomputed: Mapping[Hypothetical, AnyLoop] = NOTHING_PRECOMPUTED) -> None:
        """Go to the state of the answers that are in force now."""
        self.history = self._store.history()
        if self._ground() != self._laid_on:
            # What the chain is made of has changed: the matcher may be asked about bridges.
            self.preparation = self._opened.lay_again(self._opened.project, Silence())
            self.history = self._store.history()
            self._begin()
        self.state_history.follow(self._entries(), precomputed)

    def keep_predictions(self) -> None:
        """Keep the errors that were predicted, to be shown again without being computed again."""
        self._store.keep_facts(predicted_px_after=self.state_history.predicted_px)

    def role_of(self, pair: Pair) -> Role:
        """Return the role in which an answer on this pair counts."""
        known = self.history.answer_of(pair)
        return Role.LOOP if known is None else known.role

    def inner(self, pair: Pair) -> Pair:
        """Return a pair in the numbers of the engine."""
        for number in (pair.i, pair.j):
            if number >= len(self.frames):
                raise PairError(f"pair {pair}: the sequence has frames 0 to {len(self.frames) - 1} only")
            if number not in self._place:
                reason = self.frames[number].reason
                raise PairError(f"frame {number} was set aside ({reason}): ask about one of its neighbours")
        return Pair(self._place[pair.i], self._place[pair.j])

    def outer(self, pair: Pair) -> Pair:
        """Return a pair of the engine's in the numbers of the source."""
        return Pair(self.used[pair.i], self.used[pair.j])

    def answers(self) -> list[AnswerEntry]:
        """Return the answers in force between frames that the engine knows."""
        return [entry for entry in self.history.answers if {entry.answer.pair.i, entry.answer.pair.j} <= self._known]

    def _begin(self) -> None:
        self._place = {number: n for n, number in enumerate(self.used)}
        self._known = set(self.used)
        self._laid_on = self._ground()
        start = priced(self.preparation.start, self.history.answers)
        self.state_history = StateHistory(start, self._store.fact("predicted_px_after", {}))

    def _ground(self) -> tuple[int, ...]:
        """Return the places in the log of the answers that the chain is made of."""
        return tuple(entry.place for entry in self.history.answers if entry.role not in (Role.LOOP, Role.ASIDE))

    def _entries(self) -> list[Entry]:
        """Return what was answered after the chain."""
        chain, entries = self.preparation.start.chain, []
        for entry in self.answers():
            inner = self.inner(entry.answer.pair)
            if counts_after_chain(entry, inner, chain):
                entries.append(Entry(entry.place, entry.answer.of_pair(inner)))
        return entries


SECONDS_OF_YES, SECONDS_OF_NO = 60.0, 15.0
"""Where too few answers were timed to tell."""

ENOUGH = 5


def priced(start: AnyLoop, entries: Sequence[AnswerEntry]) -> AnyLoop:
    """Return the state with a strategy that knows what a yes and a no cost, if it can."""
    if not isinstance(start, ActiveLoop) or not isinstance(start.strategy, Smalti):
        return start
    told = [entry for entry in entries if entry.answer.author is Author.PERSON and entry.seconds > 0]
    yes = [entry.seconds for entry in told if entry.answer.landmarks is not None]
    no = [entry.seconds for entry in told if entry.answer.landmarks is None]
    timed = replace(
        start.strategy,
        cost_of_yes=float(np.median(yes)) if len(yes) >= ENOUGH else SECONDS_OF_YES,
        cost_of_no=float(np.median(no)) if len(no) >= ENOUGH else SECONDS_OF_NO,
    )
    return replace(start, ground=replace(start.ground, strategy=timed))
