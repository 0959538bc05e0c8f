"""What questions cost a person: by how long the answers so far took, a no is cheaper than the landmarks of a yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from smalti.loop import ActiveLoop
from smalti.project.entries import AnswerEntry
from smalti.records import Author
from smalti.suggestion.strategies.smalti import Smalti

SECONDS_OF_YES, SECONDS_OF_NO = 60.0, 15.0
"""Where too few answers were timed to tell."""

ENOUGH = 5


def priced(start: ActiveLoop, entries: Sequence[AnswerEntry]) -> ActiveLoop:
    """Return the state with a strategy that knows what a yes and a no cost, if it can."""
    strategy = start.strategy
    if not isinstance(strategy, Smalti):
        return start
    told = [entry for entry in entries if entry.answer.author is Author.PERSON and entry.seconds > 0]
    yes = [entry.seconds for entry in told if entry.answer.landmarks is not None]
    no = [entry.seconds for entry in told if entry.answer.landmarks is None]
    return replace(
        start,
        strategy=replace(
            strategy,
            cost_of_yes=float(np.median(yes)) if len(yes) >= ENOUGH else SECONDS_OF_YES,
            cost_of_no=float(np.median(no)) if len(no) >= ENOUGH else SECONDS_OF_NO,
        ),
    )
