"""What people and the matcher do to answers, and the plainest model of what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies

from smalti.project.answer_store import Store
from smalti.project.entries import Act, AnswerEntry, LogEntry, Role
from smalti.records import Answer, Author, Pair

PAIRS = [Pair(0, 1), Pair(0, 2), Pair(1, 2), Pair(0, 7)]


def given(pair: Pair, author: Author, reason: str = "") -> AnswerEntry:
    answer = replace(Answer.no(pair, reason), author=author)
    return AnswerEntry(answer, Role.LOOP, 1.5)


def pairs(store: Store) -> list[Pair]:
    return [entry.answer.pair for entry in store.answers()]


def do(store: Store, act: str, pair: Pair) -> None:
    if act in ("person", "matcher"):
        store.keep_answer(given(pair, Author(act)))
    elif act == "remove":
        store.remove_answer(pair)
    else:
        store.undo() if act == "undo" else store.redo()


@dataclass
class Deed:
    place: int
    removes: bool
    pair: Pair
    by_person: bool
    stands: bool = True
    forgotten: bool = False
    undone_at: int = 0


class PlainModel:
    """Keeps every deed with marks on it, and looks for everything from the start."""

    def __init__(self) -> None:
        self.deeds: list[Deed] = []
        self.places = 0

    def do(self, act: str, pair: Pair) -> LogEntry | None:
        """Do it if it can be done, and return the entry that says so."""
        place = self.places + 1
        touched, answer = pair, None
        if act in ("person", "matcher"):
            answer = replace(given(pair, Author(act)), place=place)
            self._add(Deed(place, False, pair, act == "person"))
        elif act == "remove":
            if pair not in [deed.pair for deed in self.in_force()]:
                return None
            self._add(Deed(place, True, pair, True))
        elif act == "undo":
            deed = self.undoable()
            if deed is None:
                return None
            deed.stands, deed.undone_at, touched = False, place, deed.pair
        else:
            deed = self.redoable()
            if deed is None:
                return None
            deed.stands, touched = True, deed.pair
        self.places = place
        return LogEntry(place, Act.GIVE if answer else Act(act), touched, answer)

    def _add(self, new: Deed) -> None:
        if new.by_person:
            for deed in self.deeds:
                deed.forgotten |= not deed.stands
        self.deeds.append(new)

    def undoable(self) -> Deed | None:
        standing = [deed for deed in self.deeds if deed.by_person and deed.stands]
        return standing[-1] if standing else None

    def redoable(self) -> Deed | None:
        waiting = [deed for deed in self.deeds if not deed.stands and not deed.forgotten]
        return max(waiting, key=lambda deed: deed.undone_at, default=None)

    def in_force(self) -> list[Deed]:
        found: list[Deed] = []
        for deed in self.deeds:
            if deed.stands:
                found = [other for other in found if other.pair != deed.pair]
                found += [] if deed.removes else [deed]
        return found


def wishes(longest: int = 40) -> strategies.SearchStrategy[list[tuple[str, Pair]]]:
    """What somebody may want to do, whether it can be done or not."""
    acts = strategies.sampled_from(["person", "person", "matcher", "remove", "undo", "undo", "redo"])
    return strategies.lists(strategies.tuples(acts, strategies.sampled_from(PAIRS)), max_size=longest)
