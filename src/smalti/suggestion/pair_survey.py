"""Survey pairs: their relative position and their appearance. Samples of them represent all pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange, threads_for
from smalti.engine.relative_position import PairCentres
from smalti.overlap.position_bounds import largest_reward_in_square, probability_in_square
from smalti.records import PairNumbers
from smalti.suggestion.state_view import View

NEAR_PAIRS, FAR_PAIRS = 2000, 2000
"""Pairs in the two samples: near in time, and anywhere."""

FURTHEST_NEAR = 48
"""Frames. Consecutive frames overlap, so that a camera needs some time to leave a place."""

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
REACHES = np.array([1.0, 1.5, 2.0, 4.0])
"""Sides, in frame sizes, of boxes around a frame's centre. The smallest that holds the other's centre is a pair's kind.

Within the first the paper speaks of overlap. Within the next two the frames share a good part of their area, or a rim.
Within the last they are neighbours."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
ERF_IS_ONE = 6.0
"""From this argument on erf is 1 to all digits."""

FURTHEST = 4.5
"""Standard deviations beyond which a position is ignored."""


@dataclass(frozen=True, slots=True, eq=False)
class SurveyedPairs:
    """What position and appearance say about pairs (n, 2)."""

    pairs: PairNumbers
    centres: PairCentres
    within: NDArray[np.float64]  # (n, 4): probability that the one's centre is within REACHES of the other
    external: NDArray[np.float64]  # P^ext before any answer

    @classmethod
    def of(cls, view: View, pairs: PairNumbers) -> SurveyedPairs:
        """Survey pairs. For frames on different mosaics, the position is the base rate of overlap."""
        centres = view.covariance.of_pairs(pairs)
        within = probability_within(centres)
        within[~view.are_joined(pairs)] = np.minimum(REACHES**2 / view.extent, 1.0)
        return cls(pairs, centres, within, view.pooled.of_pairs(pairs))

    @property
    def position(self) -> NDArray[np.float64]:
        """P^pos, mean of both directions."""
        return self.within[:, 0]

    @classmethod
    def joined(cls, first: SurveyedPairs, second: SurveyedPairs) -> SurveyedPairs:
        """Concatenate two surveys."""
        mean = np.concatenate([first.centres.mean, second.centres.mean])
        cov = np.concatenate([first.centres.cov, second.centres.cov])
        return cls(
            np.concatenate([first.pairs, second.pairs]),
            PairCentres(first.centres.outline, mean, cov),
            np.concatenate([first.within, second.within]),
            np.concatenate([first.external, second.external]),
        )

    def __getitem__(self, chosen: slice | NDArray[np.int64]) -> SurveyedPairs:
        return SurveyedPairs(
            self.pairs[chosen], self.centres.chosen(chosen), self.within[chosen], self.external[chosen]
        )


@cache
def near_pairs(frames: int) -> tuple[PairNumbers, NDArray[np.float64]]:
    """Return pairs (n, 2) of frames near in time, more of nearer ones, and how many pairs each stands for."""
    furthest = min(FURTHEST_NEAR, frames)
    n = np.arange(NEAR_PAIRS)
    gap = np.exp((n + 0.5) / NEAR_PAIRS * math.log(furthest)).astype(np.int64)
    first = (n * GOLDEN % 1.0 * (frames - gap)).astype(np.int64)
    pairs = np.unique(np.column_stack([gap, first]), axis=0)
    gap, first = pairs.T
    counted = np.bincount(gap)
    return np.column_stack([first, first + gap]), (frames - gap) / counted[gap]


@cache
def far_pairs(frames: int) -> PairNumbers:
    """Return pairs (n, 2) from the whole sequence that are further apart in time than the near ones."""
    n = np.arange(1, FAR_PAIRS + 1)
    # A low-discrepancy sequence in two dimensions: the first two powers of the plastic number.
    one, other = (n * 0.7548776662466927) % 1.0, (n * 0.5698402909980532) % 1.0
    pairs = np.sort((frames * np.column_stack([one, other])).astype(np.int64), axis=1)
    return np.unique(pairs[np.diff(pairs, axis=1)[:, 0] >= FURTHEST_NEAR], axis=0)


def probability_within(
    centres: PairCentres, reaches: NDArray[np.float64] = REACHES, *, spread_above: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the probability (n, k) that a centre is within reach, mean of both directions.

    With `spread_above` (n,), return it times √det Σ. Values may then be 0 where all of a pair's are below its limit.
    """
    outline = centres.outline
    with threads_for(2.0 * len(centres.mean)):
        return _within(
            centres.mean,
            centres.cov,
            *outline.centre_x_y,
            outline.width / 2.0,
            outline.height / 2.0,
            reaches,
            spread_above is not None,
            np.zeros(len(centres.mean)) if spread_above is None else spread_above,
        )


@compiled_parallel
def _within(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    centre_x: float,
    centre_y: float,
    half_width: float,
    half_height: float,
    reaches: NDArray[np.float64],
    of_spread: bool,
    above: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the probability (n, k) of boxes that are `reaches` times the frame's.

    The frame's own box is integrated closely, because candidates are often at its rim. The others are replaced by
    squares of the same area along the eigenvectors.
    """
    result = np.zeros((len(mean), len(reaches)))
    half_side = math.sqrt(half_width * half_height)
    widest = max(math.hypot(half_width, half_height), reaches[-1] * half_side)
    for n in prange(len(mean)):
        if of_spread:
            bound = 0.0
            for side in range(2):
                dx, dy = mean[n, side, 0] - centre_x, mean[n, side, 1] - centre_y
                xx, xy, yy = cov[n, side, 0], cov[n, side, 1], cov[n, side, 2]
                bound += 0.5 * largest_reward_in_square(dx, dy, xx, xy, yy, widest)
            if bound < above[n]:
                continue
        for side in range(2):
            dx, dy = mean[n, side, 0] - centre_x, mean[n, side, 1] - centre_y
            xx, xy, yy = cov[n, side, 0], cov[n, side, 1], cov[n, side, 2]
            share = 0.5 * math.sqrt(max(xx * yy - xy * xy, 0.0)) if of_spread else 0.5
            within = _in_frame(dx, dy, xx, xy, yy, half_width, half_height)
            result[n, 0] += share * within
            for k in range(1, len(reaches)):
                within = max(within, probability_in_square(dx, dy, xx, xy, yy, reaches[k] * half_side))
                result[n, k] += share * within
    return result


@compiled
def _in_frame(dx: float, dy: float, xx: float, xy: float, yy: float, half_width: float, half_height: float) -> float:
    """Return the probability of the frame: integrate over y given x, at the Gauss-Legendre nodes of x."""
    deviation = math.sqrt(xx)
    first = max(-half_width - dx, -FURTHEST * deviation) / deviation
    last = min(half_width - dx, FURTHEST * deviation) / deviation
    if first >= last or abs(dy) > half_height + 2.0 * FURTHEST * math.sqrt(yy):
        return 0.0
    slope = xy / deviation
    scale = 1.0 / math.sqrt(2.0 * max(yy - slope * slope, 1e-12 * yy))
    furthest = max(abs(dy + slope * first), abs(dy + slope * last))
    saturated = (half_height - furthest) * scale > ERF_IS_ONE
    total = 0.0
    for node in range(len(NODES)):
        x = 0.5 * (first + last + (last - first) * NODES[node])
        y = dy + slope * x
        inside = 2.0 if saturated else math.erf((half_height - y) * scale) + math.erf((half_height + y) * scale)
        total += WEIGHTS[node] * math.exp(-0.5 * x * x) * inside
    return total * 0.25 * (last - first) / math.sqrt(2.0 * math.pi)
