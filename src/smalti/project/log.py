"""What the log of answers means: which are in force, what undo would take back, what redo would bring again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smalti.errors import ProjectError
from smalti.project.entries import Act, AnswerEntry, LogEntry
from smalti.records import Author, Pair


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The log up to an entry, and what follows from it; a function of the log alone.

    What a person gave or removed can be undone, the latest first, and redone until a person does something new. What
    the matcher gave is no step of these: it stays where it is.
    """

    entries: tuple[LogEntry, ...]
    answers: tuple[AnswerEntry, ...]  # in force, in the order of the log
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
        acts = (entry for entry in entries if entry.place in standing or not is_by_person(entry))
        return cls(entries, _in_force(acts), done[-1] if done else None, undone[-1] if undone else None)

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
    answers: dict[Pair | None, AnswerEntry] = {}
    for entry in acts:
        # Taken out first: a newer answer stands in the order where it was given, not where the older one was.
        answers.pop(entry.pair, None)
        if entry.answer is not None:
            answers[entry.pair] = entry.answer
    return tuple(answers.values())
