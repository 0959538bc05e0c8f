"""What the matcher says of a pair, and whether a person should look too."""

from __future__ import annotations

from collections.abc import Sequence

from smalti.annotation.states import AnyLoop
from smalti.annotation.surprise import Surprise, surprise_of
from smalti.records import Answer, Verdict

SURE_LANDMARKS = 30
"""Matches that agree, from which on the paper's matcher is believed."""

DOUBTFUL_OVERLAP = 0.15
"""Probability from which on a matcher that finds nothing may have missed something: one that misses every third overlap
is wrong in one no of twenty about pairs that overlap so probably, and less often below."""


def is_sure(answer: Answer, loop: AnyLoop, earlier: Sequence[Surprise]) -> bool:
    """Tell whether the matcher's answer can stand without a person.

    A yes needs many landmarks and must agree with the mosaic; a no must not come as a surprise. One that failed has
    said that it cannot tell. `earlier` are the surprises of the answers so far.
    """
    if answer.verdict is Verdict.UNSURE:
        return False
    if answer.landmarks is None:
        return loop.likely(answer.pair).reasons["overlap"] < DOUBTFUL_OVERLAP
    if len(answer.landmarks) < SURE_LANDMARKS:
        return False
    return not surprise_of(loop, answer.landmarks, answer.author).is_more_than(earlier)
