"""What answers would bring, by what the engine expects of them: nothing is adjusted for it.

What many would bring takes a while, and is computed in pieces between which others have the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from smalti.annotation.messages import ErrorAfter, Outlook
from smalti.loop import ActiveLoop
from smalti.records import Pair
from smalti.suggestion.lessons import Lessons
from smalti.suggestion.outlook import TINY
from smalti.suggestion.prospect import Prospect
from smalti.suggestion.strategy import Smalti
from smalti.suggestion.survey import Seen

FARTHEST = 20
"""Answers that are looked ahead."""

BOUND_LATER = 1.3
"""Times the error, its bound once a few answers have closed loops; before, one drift decides, and may be any."""


def describe_outlook(loop: ActiveLoop, pause: Callable[[], None]) -> Outlook:
    """Say what further answers would bring; `pause` is called after each that is supposed."""
    outlook, given = loop.outlook, len(loop.answers)
    ahead = outlook.look_ahead(pause)
    return Outlook(
        answers=given,
        bound_px=outlook.bound_px,
        ahead=[ErrorAfter(answers=given + more, predicted_px=px) for more, px in ahead.items()],
        worth_going_on=outlook.is_worth(ahead),
    )


def error_after_yes_px(loop: ActiveLoop, pair: Pair) -> float:
    """Return the predicted error after a yes about any pair; as now where it would join two mosaics."""
    now, view = loop.predicted_error_px, loop.view
    pairs = np.array([[pair.i, pair.j]])
    prospect = Prospect.of(view)
    if loop.is_settled(pair) or not view.are_joined(pairs)[0] or not prospect.weight.any():
        return now
    seen = Seen.of(view, pairs)
    lessons = Lessons.of(view.estimate, view.covariance, seen, np.ones(1), prospect.mattering, prospect.weight)
    left = 1.0 - float(lessons.gains[0]) / max(lessons.squared_error, TINY)
    known = loop.outlook.lessons
    return now if known is None else loop.outlook.error_left_px(min(max(left, 0.0), 1.0) * known.squared_error)


def bounds_ahead_px(loop: ActiveLoop) -> Iterator[float]:
    """Yield what the error is below nine times of ten, now and after every one of the next answers."""
    outlook = loop.outlook
    yield outlook.bound_px
    if outlook.lessons is None:
        return
    later = min(outlook.bound_px / max(outlook.error_px, TINY), BOUND_LATER)
    for *_, after in Smalti().choose(outlook.lessons, FARTHEST):
        yield later * outlook.error_left_px(after.squared_error)
