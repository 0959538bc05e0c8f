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

from smalti.adjustment.centres import Centres
from smalti.compiled import compiled, compiled_parallel, prange
from smalti.records import Suggestion
from smalti.suggestion.search import rank
from smalti.suggestion.strategies.paper import with_reasons
from smalti.suggestion.strategies.strategy import as_suggestions
from smalti.suggestion.view import View


@dataclass(frozen=True, slots=True)
class Area:
    """Asks the largest P^ext · E[overlap] · √det Σ_γ, of which both directions' mean is taken."""

    name: str = "area"

    def rank(self, view: View, top: int) -> list[Suggestion]:
        """Return the best of all pairs."""
        reward = view.external_probabilities * expected_overlap_times_spread(view.centres)
        return with_reasons(view, as_suggestions(rank(reward, view.candidates, top)))


def expected_overlap_times_spread(centres: Centres) -> NDArray[np.float64]:
    """Return E[overlap] · √det Σ_γ (N, N), px², mean of both directions.

    Two frames of w × h whose centres are (x, y) apart share (1 - |x|/w)⁺ (1 - |y|/h)⁺ of their area, as far as they are
    turned alike. The expectation is that of x times that of y: their correlation is left out.
    """
    outline = centres.outline
    directed = _expected(centres.mean, centres.cov, *outline.centre_x_y, outline.width, outline.height)
    return (directed + directed.T) / 2


@compiled_parallel
def _expected(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    centre_x: float,
    centre_y: float,
    width: float,
    height: float,
) -> NDArray[np.float64]:
    frames = len(mean)
    result = np.zeros((frames, frames))
    for i in prange(frames):
        for j in range(frames):
            spread = cov[i, j, 0] * cov[i, j, 2] - cov[i, j, 1] * cov[i, j, 1]
            if i == j or spread <= 0.0:
                continue
            along_x = _expected_share(mean[i, j, 0] - centre_x, math.sqrt(cov[i, j, 0]), width)
            along_y = _expected_share(mean[i, j, 1] - centre_y, math.sqrt(cov[i, j, 2]), height)
            result[i, j] = along_x * along_y * math.sqrt(spread)
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
