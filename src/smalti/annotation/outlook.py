"""Whether to go on: what further answers would bring, computed in pieces between which others have the engine."""

from __future__ import annotations

from collections.abc import Callable

from smalti.annotation.messages import ErrorAfter, Outlook
from smalti.loop import ActiveLoop


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
