"""Position and looks as in the paper, with the *expected overlap* in the place of the probability of overlap.

Differs from the paper, for which two frames overlap if the centre of one lies in the other: strips that share a rim are
then never asked, and a pair that just reaches the centre is worth as much as one that coincides. A matcher finds
landmarks in proportion to what two frames share, so that is what is expected here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.centres import PairCentres
from smalti.compiled import compiled, compiled_parallel, prange, threads_for
from smalti.records import Suggestion
from smalti.suggestion.search import search
from smalti.suggestion.strategies.paper import with_reasons
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class Area:
    """Asks the largest P^ext · E[overlap] · √det Σ_γ, of which both directions' mean is taken."""

    name: str = "area"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        return with_reasons(view, as_suggestions(search(view, view.looks, ExpectedOverlapTimesSpread(), top)))


class ExpectedOverlapTimesSpread:
    """E[overlap] · √det Σ_γ.

    Two frames of w × h whose centres are (x, y) apart share (1 - |x|/w)⁺ (1 - |y|/h)⁺ of their area, as far as they are
    turned alike. The expectation is that of x times that of y: their correlation is left out.
    """

    reach = 1.0

    def of(self, centres: PairCentres, least: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return it for pairs (n,), px², mean of both directions."""
        outline = centres.outline
        with threads_for(0.3 * len(least)):
            return _expected(centres.mean, centres.cov, *outline.centre_x_y, outline.width, outline.height)


@compiled_parallel
def _expected(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    centre_x: float,
    centre_y: float,
    width: float,
    height: float,
) -> NDArray[np.float64]:
    result = np.zeros(len(mean))
    for n in prange(len(mean)):
        for side in range(2):
            xx, xy, yy = cov[n, side, 0], cov[n, side, 1], cov[n, side, 2]
            spread = xx * yy - xy * xy
            if spread > 0.0:
                along_x = _expected_share(mean[n, side, 0] - centre_x, math.sqrt(xx), width)
                along_y = _expected_share(mean[n, side, 1] - centre_y, math.sqrt(yy), height)
                result[n] += 0.5 * along_x * along_y * math.sqrt(spread)
    return result


@compiled
def _expected_share(mean: float, deviation: float, length: float) -> float:
    """Return E[(1 - |x|/length)⁺] of a normal x: the second difference of E[(u)⁺], u = x + length, x, x - length."""
    if abs(mean) > length + 8.0 * deviation:
        return 0.0
    above = _expected_positive(mean + length, deviation) + _expected_positive(mean - length, deviation)
    return max((above - 2.0 * _expected_positive(mean, deviation)) / length, 0.0)


@compiled
def _expected_positive(mean: float, deviation: float) -> float:
    z = mean / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return mean * 0.5 * math.erfc(-z * math.sqrt(0.5)) + deviation * density
