"""What questions cost a person: by how long the answers so far took, a no is cheaper than the landmarks of a yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from smalti.annotation.states import AnyLoop
from smalti.loop import ActiveLoop
from smalti.project.entries import AnswerEntry
from smalti.records import Author
from smalti.suggestion.strategy import Smalti

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
