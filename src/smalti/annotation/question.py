"""A pair as a question: why it is asked, and where one frame is expected in the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smalti.annotation.messages import Given, Question
from smalti.loop import ActiveLoop
from smalti.project.entries import FrameEntry
from smalti.records import Pair


def make_question(
    loop: ActiveLoop,
    pair: Pair,
    used: Sequence[int],
    frames: Sequence[FrameEntry],
    *,
    revision: int,
    answer: Given | None,
) -> Question:
    """Return what the page needs to ask about a pair, which is in the numbers of the engine."""
    likely = loop.likely(pair)
    in_i, in_j = loop.agreement.expect(pair.i, pair.j), loop.agreement.expect(pair.j, pair.i)
    i, j = used[pair.i], used[pair.j]
    return Question(
        revision=revision,
        i=i,
        j=j,
        label_i=frames[i].label,
        label_j=frames[j].label,
        suggested=loop.best is not None and loop.best.pair == pair,
        position=likely.reasons["position"],
        looks=likely.reasons["external"],
        unknown_px=math.sqrt(likely.reasons["informativeness_px2"]),
        i_from_j=in_i.target_from_source.ravel().tolist(),
        j_from_i=in_j.target_from_source.ravel().tolist(),
        covariance_i=in_i.covariance.ravel().tolist(),
        covariance_j=in_j.covariance.ravel().tolist(),
        answer=answer,
    )
