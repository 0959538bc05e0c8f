"""The answers in force, the state after each of them, and the costs of answers.

`AnswerHistory` follows the log of a project. `StateHistory` keeps the states. `asking_people` sets the costs.
"""

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
from smalti.building.source_questions import counts_after_chain, usable
from smalti.errors import PairError
from smalti.frame_numbers import FrameNumbers
from smalti.progress import Progress, Silence
from smalti.project.entries import AnswerEntry, FrameEntry, History, Role
from smalti.project.facts import PredictedErrors
from smalti.records import Answer, Author, Pair, Verdict
from smalti.suggestion.strategy import Smalti

KEPT_WHOLE = 2
"""The latest states keep what they have computed. Older ones compute the same again if somebody goes back."""


Hypothetical: TypeAlias = tuple[str, Pair, Verdict, bytes]
"""The key of the answers so far, and a person's next answer without its reason. The bytes are of its landmarks."""

NOTHING_PRECOMPUTED: Mapping[Hypothetical, AnyLoop] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """An answer in engine numbers, and its position in the log."""

    place: int
    answer: Answer


@dataclass(frozen=True, slots=True, eq=False)
class AnswerState:
    """The state after an answer."""

    loop: AnyLoop
    entry: Entry | None  # None before the first answer
    key: str  # identifies the answers so far, and their order
    surprise: Surprise | None  # of a yes about frames that were on one mosaic


class StateHistory:
    """The state after each answer. States are kept, so that undo costs nothing."""

    def __init__(self, start: AnyLoop, predicted_px: Mapping[str, float]) -> None:
        """Start before the first answer. `predicted_px` are the errors that earlier sessions predicted, by key."""
        self._states = [AnswerState(start, None, "", None)]
        self._predicted_px = dict(predicted_px)
        self._predict()

    @property
    def now(self) -> AnswerState:
        """The state after the last answer in force."""
        return self._states[-1]

    @property
    def states(self) -> tuple[AnswerState, ...]:
        """The states after none, one and more of the answers in force."""
        return tuple(self._states)

    @property
    def before(self) -> AnswerState:
        """The state before the last answer in force."""
        return self._states[-2]

    @property
    def predicted_px(self) -> dict[str, float]:
        """All predicted errors, by key."""
        return self._predicted_px

    def follow(
        self,
        entries: Sequence[Entry],
        precomputed: Mapping[Hypothetical, AnyLoop] = NOTHING_PRECOMPUTED,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Go to the state after these answers. Answers that have not changed are not computed again.

        `precomputed` are states that were computed before the answer came.
        """
        same = 0
        for answer_state, entry in zip(self._states[1:], entries, strict=False):
            if answer_state.entry is None or answer_state.entry.place != entry.place:
                break
            same += 1
        del self._states[same + 1 :]
        for entry in entries[same:]:
            self._states.append(_after(self.now, entry, precomputed))
            if entry.answer.author is Author.PERSON:
                self._predict()
            self._lighten()
            on_step()
        self._predict()

    def errors(self) -> list[tuple[int, float]]:
        """Return the predicted errors that are known, each with its number of answers."""
        known = [(count, self._predicted_px.get(answer_state.key)) for count, answer_state in enumerate(self._states)]
        return [(count, value) for count, value in known if value is not None]

    def surprises(self) -> list[Surprise]:
        """Return the surprise of every yes at the time it was given."""
        return [answer_state.surprise for answer_state in self._states if answer_state.surprise is not None]

    def earlier_surprises(self) -> list[Surprise]:
        """Return the same without the last answer."""
        return [answer_state.surprise for answer_state in self._states[:-1] if answer_state.surprise is not None]

    def _predict(self) -> None:
        if self.now.key not in self._predicted_px:
            self._predicted_px[self.now.key] = self.now.loop.predicted_error_px

    def _lighten(self) -> None:
        if len(self._states) > KEPT_WHOLE:
            old = self._states[-KEPT_WHOLE - 1]
            self._states[-KEPT_WHOLE - 1] = replace(old, loop=replace(old.loop, known=None))


def key_after(key: str, entry: Entry) -> str:
    """Return the key of the answers so far with one more."""
    return hashlib.blake2b(f"{key},{entry.place}".encode(), digest_size=8).hexdigest()


def _after(before: AnswerState, entry: Entry, precomputed: Mapping[Hypothetical, AnyLoop]) -> AnswerState:
    entry = replace(entry, answer=usable(entry.answer, before.loop.link_of))
    answer, key = entry.answer, key_after(before.key, entry)
    surprise = None
    if answer.landmarks is not None:
        part, pair = before.loop.part, answer.pair
        joined = part[pair.i] == part[pair.j]
        surprise = surprise_of(before.loop, answer.landmarks, answer.author) if joined else None
    known = None
    if answer.author is Author.PERSON and not answer.reason:
        known = precomputed.get(name_of(before.key, answer))
    return AnswerState(before.loop.record(answer) if known is None else known, entry, key, surprise)


def name_of(key: str, answer: Answer) -> Hypothetical:
    """Return the name of the state after a person's answer, before the answer is given."""
    landmarks = answer.landmarks
    drawn = b""
    if landmarks is not None:
        arrays = (landmarks.points_i, landmarks.points_j, landmarks.weights, landmarks.directions)
        drawn = b"".join(array.tobytes() for array in arrays)
    return key, answer.pair, answer.verdict, drawn


class AnswerHistory:
    """Follows the log of a project. Frames have source numbers, except in the results of `inner`."""

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
        """The current state."""
        return self.state_history.now.loop

    @property
    def numbers(self) -> FrameNumbers:
        """The frames that the engine knows."""
        return self.preparation.numbers

    @property
    def frames(self) -> tuple[FrameEntry, ...]:
        """All frames of the source."""
        return self.preparation.frames

    def take_up(self, precomputed: Mapping[Hypothetical, AnyLoop] = NOTHING_PRECOMPUTED) -> None:
        """Go to the state of the answers that are now in force."""
        self.history = self._store.history()
        if self._chain_answers() != self._prepared_on:
            # The answers of the chain have changed. The matcher may be asked about bridges.
            self.preparation = self._opened.prepare_again(self._opened.project, Silence())
            self.history = self._store.history()
            self._begin()
        self.state_history.follow(self._entries(), precomputed)

    def keep_predictions(self) -> None:
        """Store the predicted errors, so that they are shown again without being computed again."""
        self._store.keep_fact(PredictedErrors(self.state_history.predicted_px))

    def role_of(self, pair: Pair) -> Role:
        """Return the role of an answer on this pair."""
        known = self.history.answer_of(pair)
        return Role.LOOP if known is None else known.role

    def inner(self, pair: Pair) -> Pair:
        """Return a pair in engine numbers."""
        for number in (pair.i, pair.j):
            if number >= len(self.frames):
                raise PairError(f"pair {pair}: the sequence has frames 0 to {len(self.frames) - 1} only")
            if number not in self.numbers:
                raise PairError(f"frame {number} {_say_unused(self.frames[number])}: ask about one of its neighbours")
        return self.numbers.pair_in_engine(pair)

    def outer(self, pair: Pair) -> Pair:
        """Return a pair of the engine in source numbers."""
        return self.numbers.pair_in_source(pair)

    def answers(self) -> list[AnswerEntry]:
        """Return the answers in force between frames that the engine knows."""
        return [entry for entry in self.history.answers if self.numbers.knows(entry.answer.pair)]

    def _begin(self) -> None:
        self._prepared_on = self._chain_answers()
        start = asking_people(self.preparation.start, self.history.answers)
        predicted = self._store.fact(PredictedErrors)
        self.state_history = StateHistory(start, {} if predicted is None else predicted.px)

    def _chain_answers(self) -> tuple[int, ...]:
        """Return the positions in the log of the chain's answers."""
        return tuple(
            entry.place for entry in self.history.answers if not (entry.role.is_after_chain or entry.role is Role.ASIDE)
        )

    def _entries(self) -> list[Entry]:
        """Return what was answered after the chain, and what the matcher could not tell before a person did."""
        start, entries = self.preparation.start, []
        chain = start.chain
        # The paper's method knows one answer a pair.
        given = self.history.attempts if isinstance(start, ActiveLoop) else self.history.answers
        for entry in given:
            if not self.numbers.knows(entry.answer.pair):
                continue
            inner = self.inner(entry.answer.pair)
            if counts_after_chain(entry, inner, chain):
                entries.append(Entry(entry.place, entry.answer.of_pair(inner)))
        return entries


SECONDS_OF_YES, SECONDS_OF_NO = 60.0, 15.0
"""Used while too few answers have been timed."""

ENOUGH = 5


def asking_people(start: AnyLoop, entries: Sequence[AnswerEntry]) -> AnyLoop:
    """Return the state for questions to people, with what a yes and a no cost them, if the strategy uses costs."""
    if not isinstance(start, ActiveLoop):
        return start
    start = replace(start, setup=replace(start.setup, asked=Author.PERSON))
    if not isinstance(start.strategy, Smalti):
        return start
    timed_answers = [entry for entry in entries if entry.answer.author is Author.PERSON and entry.seconds > 0]
    yes = [entry.seconds for entry in timed_answers if entry.answer.landmarks is not None]
    no = [entry.seconds for entry in timed_answers if entry.answer.landmarks is None]
    timed = replace(
        start.strategy,
        cost_of_yes=float(np.median(yes)) if len(yes) >= ENOUGH else SECONDS_OF_YES,
        cost_of_no=float(np.median(no)) if len(no) >= ENOUGH else SECONDS_OF_NO,
    )
    return replace(start, setup=replace(start.setup, strategy=timed))


def _say_unused(frame: FrameEntry) -> str:
    return "lies between keyframes" if frame.is_between else f"was set aside ({frame.reason})"
