"""What the matcher says of a pair, and whether a person should look too."""

from __future__ import annotations

from collections.abc import Sequence

from smalti.annotation.contradiction import is_surprising
from smalti.loop import ActiveLoop
from smalti.records import Answer, Verdict

SURE_LANDMARKS = 30
"""Matches that agree, from which on the paper's matcher is believed."""

DOUBTFUL_OVERLAP = 0.3
"""Position and looks together, from which on a matcher that finds nothing may have missed something."""


def is_sure(answer: Answer, loop: ActiveLoop, earlier: Sequence[float]) -> bool:
    """Tell whether the matcher's answer can stand without a person.

    A yes needs many landmarks and must agree with the mosaic; a no must not come as a surprise. `earlier` are the χ² of
    the answers so far.
    """
    if answer.verdict is Verdict.UNSURE:
        return False
    if answer.landmarks is None:
        likely = loop.likely(answer.pair).reasons
        return likely["position"] * likely["external"] < DOUBTFUL_OVERLAP
    if len(answer.landmarks) < SURE_LANDMARKS:
        return False
    return not is_surprising(loop.surprise(answer.landmarks, answer.author), earlier)
