"""Pairs that stand for all: the error is a mean over all pairs, of long sequences over a fixed sample.

Its strata are the pairs between two stretches of frames. Those that may carry weight are looked at closely, up to each
of their pairs, the rest here and there. A pair stands for its share of the stratum; pairs that were answered stand for
themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from smalti.overlap.external import PairwiseModel
from smalti.records import PairNumbers, pair_key
from smalti.suggestion.view import View

ALL_WITHIN = 1.8
"""Times as many pairs as are wanted: where there are no more in all, all are looked at."""

LEAST_CLOSELY = 0.02
"""How closely strata are looked at where frames hardly overlap, beside those where they certainly do."""

TYPICAL, NEGLIGIBLE = 0.5, 1e-6
"""Of the bound on a standard deviation; of a frame's side."""

PROBES, FEWEST_PROBES = 1.6, 4
"""Pairs, so many for each that is wanted or in each stratum, whose looks tell where frames may overlap."""

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Pairs i < j, the answered ones first, and for how many pairs each of them stands."""

    pairs: PairNumbers  # (n, 2)
    stands_for: NDArray[np.float64]  # (n,)
    certain: NDArray[np.float64]  # how likely the answered ones are to overlap

    @classmethod
    def of(cls, view: View, looks: PairwiseModel, wanted: int) -> Self:
        """Return all pairs, or where they are too many about as many as wanted, which depend on the state alone."""
        linked = view.linked
        answered = np.unique(np.concatenate([linked, view.settled]), axis=0)
        certain = np.isin(pair_key(*answered.T), pair_key(*linked.T)).astype(np.float64)
        total = view.frames * (view.frames - 1) // 2
        if total <= ALL_WITHIN * wanted:
            i, j = view.frames - 1 - answered.T
            others = _pairs_numbered(np.delete(np.arange(total), i * (i - 1) // 2 + j), view.frames)
            stands_for = np.ones(len(others))
        else:
            others, stands_for = _sample_strata(view, looks, wanted)
            unknown = ~np.isin(pair_key(*others.T), pair_key(*answered.T))
            others, stands_for = others[unknown], stands_for[unknown]
        return cls(np.concatenate([answered, others]), np.concatenate([np.ones(len(answered)), stands_for]), certain)


def _combine(position: NDArray[np.float64], external: NDArray[np.float64], base_rate: float) -> NDArray[np.float64]:
    """Return how likely pairs that were not answered are to overlap (n,), by P^pos and P^ext."""
    apart = (1.0 - position) * (1.0 - external) * base_rate
    together = position * external * (1.0 - base_rate)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(together / (together + apart))


def _sample_strata(view: View, looks: PairwiseModel, wanted: int) -> tuple[PairNumbers, NDArray[np.float64]]:
    """Return pairs (n, 2) evenly spread over every two stretches, and for how many each stands."""
    strata = _Strata.of(view.covariance.stretches.starts)
    probes = max(int(PROBES * wanted) // len(strata.sizes), FEWEST_PROBES)
    probed, of_probed = strata.take(np.minimum(strata.sizes, probes))
    begins = np.flatnonzero(np.diff(of_probed, prepend=-1))
    alike = np.maximum.reduceat(looks.of_pairs(probed), begins)
    likely = _likely(view)[strata.first, strata.second]
    closeness = LEAST_CLOSELY + _combine(likely, alike, float(np.average(likely, weights=strata.sizes)))
    counts = _share_out(strata.sizes, closeness, wanted)
    pairs, of_pair = strata.take(counts)
    return pairs, (strata.sizes / counts)[of_pair]


@dataclass(frozen=True, slots=True, eq=False)
class _Strata:
    """The pairs between two stretches, or within one."""

    starts: NDArray[np.int64]  # (M + 1,) of the stretches
    first: NDArray[np.int64]  # (n,)
    second: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, starts: NDArray[np.int64]) -> Self:
        lengths = np.diff(starts)
        first, second = np.triu_indices(len(lengths))
        within = lengths[first] * (lengths[first] - 1) // 2
        return cls(starts, first, second, np.where(first == second, within, lengths[first] * lengths[second]))

    def take(self, counts: NDArray[np.int64]) -> tuple[PairNumbers, NDArray[np.int64]]:
        """Return so many pairs of each (m, 2), evenly spread and none twice, and the stratum of every pair."""
        stratum = np.repeat(np.arange(len(counts)), counts)
        # Steps of the golden section, less what they have in common with the size; each stratum begins elsewhere.
        step = np.maximum(np.rint(GOLDEN * self.sizes).astype(np.int64), 1)
        while (shared := np.gcd(step, self.sizes) > 1).any():
            step += shared
        begin = np.floor(np.arange(len(counts)) * GOLDEN % 1.0 * self.sizes).astype(np.int64)
        nth = np.arange(len(stratum)) - np.repeat(np.cumsum(counts) - counts, counts)
        number = (begin[stratum] + nth * step[stratum]) % self.sizes[stratum]
        # By frame: looks and ways of a frame are then at hand for several pairs.
        number = np.sort(pair_key(stratum, number)) - pair_key(stratum, 0)
        lengths = np.diff(self.starts)
        first, second = self.first[stratum], self.second[stratum]
        pairs = _pairs_numbered(number, lengths[first])
        apart = first != second
        pairs[apart] = np.column_stack(np.divmod(number[apart], lengths[second[apart]]))
        return pairs + np.column_stack([self.starts[first], self.starts[second]]), stratum


def _likely(view: View) -> NDArray[np.float64]:
    """Return about how probably frames of two stretches overlap (M, M), if they lie as near as they can."""
    stretches, side = view.covariance.stretches, math.sqrt(view.outline.area)
    deviation = np.maximum(TYPICAL * stretches.deviation, NEGLIGIBLE * side)
    beyond = np.maximum(stretches.distance - side / math.sqrt(2.0), 0.0) / deviation
    inside = np.minimum(side / (math.sqrt(2.0 * math.pi) * deviation), 1.0).prod(axis=-1)
    near = np.exp(-0.5 * beyond.max(axis=-1) ** 2)
    # Where little is known, bounds say less than looks.
    directed = near * np.maximum(inside, np.mean(near * inside))
    return np.asarray((directed + directed.T) / 2)


def _share_out(sizes: NDArray[np.int64], closeness: NDArray[np.float64], wanted: int) -> NDArray[np.int64]:
    """Return how many pairs to look at in strata of so many: all, or in proportion to size and closeness."""
    counts, shares = sizes.copy(), sizes * closeness
    some = np.ones(len(sizes), dtype=np.bool_)
    while some.any():
        left = wanted - int(np.sum(sizes[~some]))
        counts[some] = np.maximum(np.ceil(shares[some] * (left / np.sum(shares[some]))), 1)
        if not (counts > sizes).any():
            break
        some &= counts < sizes
        counts[~some] = sizes[~some]
    return counts


def _pairs_numbered(numbers: NDArray[np.int64], frames: NDArray[np.int64] | int) -> PairNumbers:
    """Return the pairs i < j (n, 2) of so many frames, numbered from the last back, by i and then by j."""
    i = np.floor((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)
    return np.column_stack([frames - 1 - i, frames - 1 - numbers + i * (i - 1) // 2])
