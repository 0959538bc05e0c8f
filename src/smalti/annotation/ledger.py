"""The answers in force, and the state that they lead to."""

from __future__ import annotations

from collections.abc import Mapping

from smalti.annotation.course import NOTHING_FORESEEN, Course, Entry, Foreseen
from smalti.annotation.opening import Opened
from smalti.annotation.prices import priced
from smalti.annotation.states import AnyLoop
from smalti.building.groundwork import Groundwork
from smalti.building.progress import Progress, Silence
from smalti.errors import PairError
from smalti.project.entries import AnswerEntry, FrameEntry, Role
from smalti.project.log import History
from smalti.records import Pair


class Ledger:
    """Follows the log of a project. Frames are counted as in the source, but for `inner`."""

    def __init__(self, opened: Opened, progress: Progress) -> None:
        self._opened = opened
        self._store = opened.project.store
        self.groundwork: Groundwork = opened.groundwork
        self.history: History = self._store.history()
        self._begin()
        entries = self._entries()
        with progress.stage("answers", len(entries)) as step:
            self.course.follow(entries, on_step=step)

    @property
    def loop(self) -> AnyLoop:
        """The state now."""
        return self.course.now.loop

    @property
    def used(self) -> tuple[int, ...]:
        """The numbers of the frames that the engine knows."""
        return self.groundwork.used

    @property
    def frames(self) -> tuple[FrameEntry, ...]:
        """All frames of the source."""
        return self.groundwork.frames

    def take_up(self, foreseen: Mapping[Foreseen, AnyLoop] = NOTHING_FORESEEN) -> None:
        """Go to the state of the answers that are in force now."""
        self.history = self._store.history()
        if self._ground() != self._laid_on:
            # What the chain is made of has changed: the matcher may be asked about bridges.
            self.groundwork = self._opened.lay_again(self._opened.project, Silence())
            self.history = self._store.history()
            self._begin()
        self.course.follow(self._entries(), foreseen)

    def keep_predictions(self) -> None:
        """Keep the errors that were predicted, to be shown again without being computed again."""
        self._store.keep_facts(predicted_px_after=self.course.predicted_px)

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
        start = priced(self.groundwork.start, self.history.answers)
        self.course = Course(start, self._store.fact("predicted_px_after", {}))

    def _ground(self) -> tuple[int, ...]:
        """Return the places in the log of the answers that the chain is made of."""
        return tuple(entry.place for entry in self.history.answers if entry.role not in (Role.LOOP, Role.ASIDE))

    def _entries(self) -> list[Entry]:
        loop = [entry for entry in self.answers() if entry.role is Role.LOOP]
        return [Entry(entry.place, entry.answer.of_pair(self.inner(entry.answer.pair))) for entry in loop]
