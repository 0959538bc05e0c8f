"""A pair as a question: why it is asked, and where one frame is expected in the other."""

from __future__ import annotations

from collections.abc import Sequence

from smalti.annotation.messages import Given, Question
from smalti.annotation.states import AnyLoop, expect
from smalti.project.entries import FrameEntry
from smalti.records import Pair


def make_question(
    loop: AnyLoop,
    pair: Pair,
    used: Sequence[int],
    frames: Sequence[FrameEntry],
    *,
    revision: int,
    answer: Given | None,
) -> Question:
    """Return what the page needs to ask about a pair, which is in the numbers of the engine."""
    reasons = loop.likely(pair).reasons
    expected = expect(loop, pair)
    i, j = used[pair.i], used[pair.j]
    return Question(
        revision=revision,
        i=i,
        j=j,
        label_i=frames[i].label,
        label_j=frames[j].label,
        suggested=loop.best is not None and loop.best.pair == pair,
        overlap=reasons["overlap"],
        position=reasons["position"],
        looks=reasons["external"],
        joined=expected.joined,
        unknown_px=reasons["spread_px"],
        i_from_j=expected.i_from_j.ravel().tolist(),
        covariance=expected.covariance.ravel().tolist(),
        noise=expected.noise,
        answer=answer,
    )
