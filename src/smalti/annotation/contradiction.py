"""Does an answer agree with what was known? If not: by how much, and with which other answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import norm

from smalti.adjustment.innovation import DEGREES
from smalti.annotation.ledger import Ledger
from smalti.annotation.messages import Contradiction
from smalti.belief import MEDIAN_CHI2
from smalti.geometry.affine import apply
from smalti.loop import ActiveLoop
from smalti.records import Answer, Author, Pair, Verdict

QUESTIONED_CHI2 = 40.0
"""χ² of 6 degrees that honest links exceed once in two million times, where the noise is what it is said to be."""

FEWEST_SURPRISES = 3
FIRST_SCALE = 4.0
"""By how much χ² may be larger than it should be before answers have shown by how much it is: chains drift by more than
their noise where perspective or relief bends every link the same way."""

SURE_OVERLAP = 0.999
"""A pair that overlaps so probably is not believed to be apart without a word."""

LOOP_PREFERRED = 0.2
"""The rival named is an answer about a loop if it disagrees at least so strongly as the one that disagrees most."""


def find_contradiction(
    before: ActiveLoop, after: ActiveLoop, answer: Answer, earlier: Sequence[float]
) -> Contradiction | None:
    """Return in what an answer contradicts the state before it, None if it does not.

    `earlier` are the χ² of the answers before it. Frames are counted as the engine does; `in_words` tells people.
    """
    if answer.verdict is Verdict.NO:
        return _of_no(before, answer.pair)
    if answer.landmarks is None:
        return None
    surprise = before.surprise(answer.landmarks, answer.author)
    if not is_surprising(surprise, earlier):
        return None
    old, new = before.agreement.refined.mosaic_from_frame, after.agreement.refined.mosaic_from_frame
    centre = before.adjustment.outline.centre[None]
    moved = np.linalg.norm(apply(new, centre) - apply(old, centre), axis=-1).ravel()
    frame = int(np.argmax(moved))
    in_reference = before.covariance.of_pairs(np.array([[frame, before.adjustment.reference]]))
    known = float(np.sqrt(in_reference.cov[0, 0, ::2].sum()))
    rival = _rival(before, after, answer.pair)
    author = None if rival is None else _author(after, rival)
    return Contradiction(
        i=answer.pair.i,
        j=answer.pair.j,
        sigmas=sigmas_of(surprise / _scale(earlier)),
        frame=frame,
        moved_px=float(moved[frame]),
        expected_px=known,
        rival_i=None if rival is None else rival.i,
        rival_j=None if rival is None else rival.j,
        rival_author=author,
        explanation="",
    )


def is_surprising(chi2: float, earlier: Sequence[float]) -> bool:
    """Tell whether χ² of a link is more than that of others before it lets expect."""
    return chi2 > QUESTIONED_CHI2 * _scale(earlier)


def sigmas_of(chi2: float) -> float:
    """Return how many σ out a normal number is that is as surprising as χ² of 6 degrees."""
    tail = float(chi2_distribution.sf(chi2, DEGREES))
    return float(norm.isf(tail / 2)) if tail > 1e-280 else math.sqrt(chi2)


def in_words(found: Contradiction, ledger: Ledger) -> Contradiction:
    """Return it in the numbers of the source, explained."""
    pair, frame = ledger.outer(Pair(found.i, found.j)), ledger.used[found.frame]
    numbers = {"i": pair.i, "j": pair.j, "frame": frame}
    if not found.moved_px:
        words = (
            f"The mosaic is sure that frames {pair.i} and {pair.j} overlap. If they do not, another answer is wrong."
        )
        return found.model_copy(update={**numbers, "explanation": words})
    words = (
        f"This answer moves frame {frame} by {found.moved_px:.0f} px, which was known to ± {found.expected_px:.1f} px: "
        f"{found.sigmas:.0f} σ more than expected."
    )
    if found.rival_i is not None and found.rival_j is not None:
        rival = ledger.outer(Pair(found.rival_i, found.rival_j))
        who = "a person's" if found.rival_author is Author.PERSON else "the matcher's"
        words += f" It disagrees most with {who} answer on frames {rival.i} and {rival.j}."
        numbers |= {"rival_i": rival.i, "rival_j": rival.j}
    return found.model_copy(update={**numbers, "explanation": words})


def _scale(earlier: Sequence[float]) -> float:
    if len(earlier) < FEWEST_SURPRISES:
        return FIRST_SCALE
    return max(1.0, float(np.median(earlier)) / MEDIAN_CHI2)


def _of_no(before: ActiveLoop, pair: Pair) -> Contradiction | None:
    likely = before.likely(pair)
    if likely.reasons["position"] < SURE_OVERLAP:
        return None
    return Contradiction(
        i=pair.i,
        j=pair.j,
        sigmas=float(norm.isf(max(1.0 - likely.reasons["position"], 1e-16))),
        frame=pair.j,
        moved_px=0.0,
        expected_px=math.sqrt(likely.reasons["informativeness_px2"]),
        rival_i=None,
        rival_j=None,
        rival_author=None,
        explanation="",
    )


def _rival(before: ActiveLoop, after: ActiveLoop, pair: Pair) -> Pair | None:
    """Return the link that agrees so much less with the others since this pair's is among them."""
    rise = {
        other: after.agreement.of_part(other) - before.agreement.of_part(other)
        for other in after.adjustment.links
        if other != pair and other in before.adjustment.links and other not in after.priors
    }
    if not rise:
        return None
    worst = max(rise, key=lambda other: (rise[other], other))
    loops = [other for other in rise if other not in after.chain and rise[other] >= LOOP_PREFERRED * rise[worst]]
    return max(loops, key=lambda other: (rise[other], other)) if loops else worst


def _author(loop: ActiveLoop, pair: Pair) -> Author:
    return next((answer.author for answer in loop.answers if answer.pair == pair), Author.MATCHER)
