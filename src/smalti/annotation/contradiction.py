"""Check whether an answer agrees with the state before it. If not: by how much, and with which other answer."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import norm

from smalti.annotation.answer_history import AnswerHistory
from smalti.annotation.messages import Contradiction
from smalti.annotation.session_state import AnyLoop, Surprise, chi2_of, expect, surprise_of
from smalti.building.build_results import residual_px
from smalti.records import Answer, Author, Pair, Verdict

SURE_OVERLAP = 0.95
"""If the probability of overlap is at least this, a no is questioned.

The probability is that of a yes. Even some frames that lie on each other get a no.
"""

LOOP_PREFERRED = 0.2
"""An answer about a loop is named as the rival if it disagrees at least this much, relative to the largest one."""


def find_contradiction(
    before: AnyLoop, after: AnyLoop, answer: Answer, earlier: Sequence[Surprise]
) -> Contradiction | None:
    """Return how an answer contradicts the state before it; None if it does not.

    `earlier` are the surprises of the answers before it. Frames have engine numbers; `in_words` adds the explanation.
    """
    if answer.verdict is Verdict.NO:
        return _of_no(before, answer.pair)
    if answer.landmarks is None:
        return None
    surprise = surprise_of(before, answer.landmarks, answer.author)
    if not surprise.is_more_than(earlier):
        return None
    rival = _rival(before, after, answer.pair)
    author = None if rival is None else _author(after, rival)
    return Contradiction(
        i=answer.pair.i,
        j=answer.pair.j,
        sigmas=surprise.sigmas(earlier),
        off_px=residual_px(before.mosaic_from_frame, answer.landmarks, before.lens),
        expected_px=expect(before, answer.pair).known_px(answer.landmarks, before),
        rival_i=None if rival is None else rival.i,
        rival_j=None if rival is None else rival.j,
        rival_author=author,
        explanation="",
    )


def in_words(found: Contradiction, answer_history: AnswerHistory) -> Contradiction:
    """Return the contradiction in source numbers, with an explanation."""
    pair = answer_history.outer(Pair(found.i, found.j))
    numbers = {"i": pair.i, "j": pair.j}
    if not found.off_px:
        words = (
            f"By the other answers, frames {pair.i} and {pair.j} show a common place. If not, one of these is wrong."
        )
        return found.model_copy(update={**numbers, "explanation": words})
    words = (
        f"This answer moves frame {pair.j} by {found.off_px:.0f} px from its expected position in frame {pair.i}, "
        f"which was known to ± {found.expected_px:.1f} px."
    )
    if found.rival_i is not None and found.rival_j is not None:
        rival = answer_history.outer(Pair(found.rival_i, found.rival_j))
        who = "a person's" if found.rival_author is Author.PERSON else "the matcher's"
        words += f" It disagrees most with {who} answer on frames {rival.i} and {rival.j}."
        numbers |= {"rival_i": rival.i, "rival_j": rival.j}
    return found.model_copy(update={**numbers, "explanation": words})


def _of_no(before: AnyLoop, pair: Pair) -> Contradiction | None:
    reasons = before.likely(pair).reasons
    if reasons["overlap"] < SURE_OVERLAP:
        return None
    return Contradiction(
        i=pair.i,
        j=pair.j,
        sigmas=float(norm.isf(max(1.0 - reasons["overlap"], 1e-16))),
        off_px=0.0,
        expected_px=reasons["spread_px"],
        rival_i=None,
        rival_j=None,
        rival_author=None,
        explanation="",
    )


def _rival(before: AnyLoop, after: AnyLoop, pair: Pair) -> Pair | None:
    """Return the link whose agreement with the others dropped most when this pair's link came."""
    old, new = chi2_of(before), chi2_of(after)
    rise = {other: new[other] - old[other] for other in new if other != pair and other in old}
    if not rise:
        return None
    worst = max(rise, key=lambda other: (rise[other], other))
    loops = [other for other in rise if other not in after.chain and rise[other] >= LOOP_PREFERRED * rise[worst]]
    return max(loops, key=lambda other: (rise[other], other)) if loops else worst


def _author(loop: AnyLoop, pair: Pair) -> Author:
    return next((answer.author for answer in loop.answers if answer.pair == pair), Author.MATCHER)
