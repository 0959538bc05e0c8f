"""The states that a session has gone through: one after every answer in force."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from smalti.annotation.states import AnyLoop
from smalti.annotation.surprise import Surprise, surprise_of
from smalti.records import Answer, Author, Pair, Verdict

KEPT_WHOLE = 2
"""Latest states that keep what they have computed; others compute it again, the same, when somebody goes back."""


Foreseen: TypeAlias = tuple[str, Pair, Verdict, bytes]
"""The key of the answers so far, and what a person then says, without a reason: the bytes are the landmarks'."""

NOTHING_FORESEEN: Mapping[Foreseen, AnyLoop] = {}


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


class Course:
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
        foreseen: Mapping[Foreseen, AnyLoop] = NOTHING_FORESEEN,
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
            self._moments.append(_after(self.now, entry, foreseen))
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


def _after(before: Moment, entry: Entry, foreseen: Mapping[Foreseen, AnyLoop]) -> Moment:
    answer, key = entry.answer, key_after(before.key, entry)
    surprise = None
    if answer.landmarks is not None:
        part, pair = before.loop.part, answer.pair
        joined = part[pair.i] == part[pair.j]
        surprise = surprise_of(before.loop, answer.landmarks, answer.author) if joined else None
    known = None
    if answer.author is Author.PERSON and not answer.reason:
        known = foreseen.get(name_of(before.key, answer))
    return Moment(before.loop.record(answer) if known is None else known, entry, key, surprise)


def name_of(key: str, answer: Answer) -> Foreseen:
    """Return what the state after a person's answer is known by, before it is given."""
    landmarks = answer.landmarks
    drawn = b""
    if landmarks is not None:
        drawn = landmarks.points_i.tobytes() + landmarks.points_j.tobytes() + landmarks.weights.tobytes()
    return key, answer.pair, answer.verdict, drawn
