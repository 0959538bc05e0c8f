"""What a project's file holds, a record a row; and which entries of the answer log are in force."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from smalti.errors import ProjectError, SmaltiError
from smalti.frame_numbers import FrameNumbers
from smalti.records import Answer, Author, Homographies, Landmarks, Pair, Verdict


class Role(StrEnum):
    """Why a pair was asked."""

    CHAIN = "chain"  # consecutive frames
    BRIDGE = "bridge"  # over a consecutive pair that failed
    CHECK = "check"  # over some frames at once, to measure the noise and hold the chain
    LOOP = "loop"  # suggested by the engine
    NEAR = "near"  # surely overlaps, and is looked for near its expected place
    RETRY = "retry"  # was not matched before its place was known; looked for near it, faint detail too
    ASIDE = "aside"  # to place a frame that had been set aside
    CONTROL = "control"  # its answer is known: it measures the person, and moves nothing

    @property
    def is_after_chain(self) -> bool:
        """Whether answers in this role change the mosaic that the chain has made."""
        return self in (Role.LOOP, Role.NEAR, Role.RETRY)


class Act(StrEnum):
    """What an entry of the log does."""

    GIVE = "give"  # an answer; a later one on the same pair takes its place
    REMOVE = "remove"
    UNDO = "undo"  # the latest act of a person that stands
    REDO = "redo"  # the latest act that was undone


class LinkState(StrEnum):
    """What became of a yes."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"  # contradicts the others, and is not used


BETWEEN = "between keyframes"

_OF_LANDMARK = ("x_i", "y_i", "x_j", "y_j", "sigma_px")


@dataclass(frozen=True, slots=True)
class FrameEntry:
    """A frame of the source; the engine uses those without a reason."""

    number: int
    label: str
    reason: str = ""  # why it was set aside, or BETWEEN

    @property
    def is_between(self) -> bool:
        """Whether the frame is good, but its keyframes stand for it."""
        return self.reason == BETWEEN

    @property
    def is_set_aside(self) -> bool:
        """Whether the frame is not good enough."""
        return bool(self.reason) and not self.is_between


def number_usable(frames: Iterable[FrameEntry]) -> FrameNumbers:
    """Return the engine numbers of the frames that it uses."""
    return FrameNumbers(tuple(frame.number for frame in frames if not frame.reason))


@dataclass(frozen=True, slots=True, eq=False)
class AnswerEntry:
    """An answer and the circumstances."""

    answer: Answer
    role: Role
    seconds: float  # that it took to answer
    details: str = ""  # JSON: who gave it, and what the page needs to open it again
    place: int = 0  # in the log, from 1; 0 for an answer that is not kept yet
    time: float = 0.0  # when it was given, in unix seconds; 0 if that is not known

    @property
    def person(self) -> str:
        """The name of the person who gave it; empty if nobody, or without a name."""
        name = self._said.get("person", "")
        return name if isinstance(name, str) else ""

    @property
    def known(self) -> Verdict | None:
        """Of a control: what was known when it was asked, a yes or a no."""
        known = self._said.get("known")
        return Verdict(known) if known in ("yes", "no") else None

    @property
    def left_out(self) -> Landmarks | None:
        """The landmarks that are for checking only: no link is made of them. Those on curves do not count."""
        listed = self._said.get("landmarks", [])
        marks = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        rows = [
            [one.get(name) for name in _OF_LANDMARK]
            for one in marks
            if one.get("check") is True and one.get("along_deg") is None
        ]
        if not rows:
            return None
        try:
            numbers = np.array(rows, dtype=np.float64)
            return Landmarks(self.answer.pair, numbers[:, :2], numbers[:, 2:4], numbers[:, 4])
        except (ValueError, TypeError, SmaltiError):  # of another program
            return None

    @property
    def _said(self) -> dict[str, Any]:
        try:
            said = json.loads(self.details or "{}")
        except (ValueError, RecursionError):  # of another program
            return {}
        return said if isinstance(said, dict) else {}

    @property
    def author_name(self) -> str:
        """The name of the person who gave it, or the kind of its author."""
        return self.person or str(self.answer.author)


@dataclass(frozen=True, slots=True, eq=False)
class LogEntry:
    """A line of the log; only a give has an answer. An undo or redo names the pair of what it undoes or redoes."""

    place: int  # from 1, in the order in which they were written
    act: Act
    pair: Pair | None
    answer: AnswerEntry | None


LIGHT = 0.5
"""Of the full weight: a link that counts less contradicts the others."""


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """What the finished mosaic says of a yes."""

    pair: Pair
    state: LinkState
    chi2: float  # of 8 degrees, against all other links
    weight: float  # between 0 and 1, in the final fit
    residual_px: float  # RMS of its landmarks on the final mosaic


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where a frame lies: on which mosaic, by which maps, how surely."""

    number: int
    part: int  # from 0, the largest first
    chain: Homographies  # (3, 3): by the chain alone
    final: Homographies  # (3, 3), of straight pixels: see `Project.lens`
    sigma_px: float  # of its centre relative to the part's reference frame, predicted


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The log up to an entry, and what follows from it; a function of the log alone.

    What a person gave or removed can be undone, the latest first, and redone until a person does something new. What
    the matcher gave is no step of these: it stays where it is.
    """

    entries: tuple[LogEntry, ...]
    answers: tuple[AnswerEntry, ...]  # in force, in the order of the log
    attempts: tuple[AnswerEntry, ...]  # the same, and what the matcher could not tell before a person did
    standing: tuple[AnswerEntry, ...]  # all that was given and not undone, replaced and removed ones too
    undoable: LogEntry | None  # what undo would take back
    redoable: LogEntry | None  # what redo would bring again

    @classmethod
    def of(cls, entries: Iterable[LogEntry]) -> History:
        """Read a log from its beginning."""
        entries = tuple(entries)
        done: list[LogEntry] = []
        undone: list[LogEntry] = []
        for entry in entries:
            if entry.act is Act.UNDO:
                undone.append(_take(done, entry))
            elif entry.act is Act.REDO:
                done.append(_take(undone, entry))
            elif is_by_person(entry):
                done.append(entry)
                undone.clear()
        standing = {entry.place for entry in done}
        acts = [entry for entry in entries if entry.place in standing or not is_by_person(entry)]
        given = tuple(entry.answer for entry in acts if entry.answer is not None)
        attempts = _in_force(acts)
        latest = {entry.answer.pair: entry for entry in attempts}
        answers = tuple(entry for entry in attempts if latest[entry.answer.pair] is entry)
        return cls(entries, answers, attempts, given, done[-1] if done else None, undone[-1] if undone else None)

    @property
    def controls(self) -> tuple[AnswerEntry, ...]:
        """The answers to pairs whose answer was known, in the order of the log."""
        return tuple(entry for entry in self.standing if entry.role is Role.CONTROL)

    @property
    def revision(self) -> int:
        """The place of the last entry, 0 if there is none."""
        return self.entries[-1].place if self.entries else 0

    def is_that_of(self, revision: int) -> bool:
        """Tell whether the answers in force are those of a revision, whatever was undone and redone since."""
        if revision >= self.revision:
            return revision == self.revision
        return [entry.place for entry in self.at(revision)] == [entry.place for entry in self.answers]

    def at(self, revision: int) -> tuple[AnswerEntry, ...]:
        """Return the answers that were in force at a revision."""
        if revision >= self.revision:
            return self.answers
        return History.of(entry for entry in self.entries if entry.place <= revision).answers

    def answer_of(self, pair: Pair) -> AnswerEntry | None:
        """Return the answer of a pair that is in force, None if it has none."""
        return next((entry for entry in self.answers if entry.answer.pair == pair), None)


def is_by_person(entry: LogEntry) -> bool:
    """Tell whether a person did this; only answers are given by the matcher too."""
    return entry.answer is None or entry.answer.answer.author is Author.PERSON


def _take(stack: list[LogEntry], entry: LogEntry) -> LogEntry:
    if not stack or entry.pair not in (None, stack[-1].pair):
        raise ProjectError(f"entry {entry.place} of the log, {entry.act}: there is no such act before it")
    return stack.pop()


def _in_force(acts: Iterable[LogEntry]) -> tuple[AnswerEntry, ...]:
    """Return the answers in force. What the matcher could not tell stays beside a person's answer on the same pair."""
    answers: dict[tuple[Pair | None, bool], AnswerEntry] = {}
    for entry in acts:
        if entry.answer is not None and entry.answer.role is Role.CONTROL:
            continue  # beside the answer that was known
        given = None if entry.answer is None else entry.answer.answer
        # Taken out first: a newer answer stands in the order where it was given, not where the older one was.
        answers.pop((entry.pair, False), None)
        if given is None or given.author is Author.MATCHER:
            answers.pop((entry.pair, True), None)
        if given is not None and entry.answer is not None:
            answers[entry.pair, given.is_failure] = entry.answer
    return tuple(answers.values())
