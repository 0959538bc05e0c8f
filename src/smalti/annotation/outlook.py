"""Whether to go on: what further answers would bring, computed in pieces between which others have the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from smalti.annotation.messages import ErrorAfter, Outlook
from smalti.loop import ActiveLoop
from smalti.suggestion.lessons import Lessons


def describe_outlook(loop: ActiveLoop, pause: Callable[[], None]) -> Outlook:
    """Say what further answers would bring; `pause` is called before each that is supposed."""
    outlook, given = loop.outlook, len(loop.answers)
    if outlook.lessons is not None:
        outlook = replace(outlook, lessons=_PacedLessons.of_lessons(outlook.lessons, pause))
    return Outlook(
        answers=given,
        bound_px=outlook.bound_px,
        ahead=[ErrorAfter(answers=given + more, predicted_px=px) for more, px in outlook.ahead_px.items()],
        worth_going_on=outlook.worth_going_on,
    )


@dataclass(frozen=True, eq=False)
class _PacedLessons(Lessons):
    """Lessons that pause before each that is supposed: twenty at once would keep an answer waiting."""

    pause: Callable[[], None] = lambda: None

    @classmethod
    def of_lessons(cls, lessons: Lessons, pause: Callable[[], None]) -> _PacedLessons:
        return cls(**{field.name: getattr(lessons, field.name) for field in fields(lessons)}, pause=pause)

    def suppose(self, n: int) -> Lessons:
        self.pause()
        return super().suppose(n)
