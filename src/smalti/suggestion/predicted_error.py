"""Predict the error of the mosaic: now, its bound, and after more answers. Says whether to go on.

Its strata are the pairs between two stretches of frames. Those that may carry weight are looked at closely, up to each
of their pairs, the rest here and there. A pair stands for its share of the stratum; pairs that were answered stand for
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from smalti.engine.covariance import Covariance
from smalti.engine.estimate import Estimate
from smalti.engine.row_covariance import LEAST_CHECKED
from smalti.engine.variance_components import CHAIN, MATCHER, landmark_noise
from smalti.overlap.external_model import PairwiseModel
from smalti.records import PairNumbers, pair_key
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import POINTS, ExpectedGain, draw, shared_points
from smalti.suggestion.pair_survey import SurveyedPairs
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.state_view import View
from smalti.suggestion.strategy import Smalti

AHEAD = (5, 10, 20)
"""Answers after which the error is foretold."""

CONFIDENCE = 0.9

MODEL_VARIANCE, OF_GROWTH = 0.005, 0.35
"""Of the logarithm of the squared error: what a linear model and a sample of pairs leave out, some 4 % of the error.
And where the chain errs by more than its neighbours tell, so much of the square of that logarithm: then something is
there that is not modelled, relief for instance. Of the misfit, which is told by the pairs that were matched and not by
all, the variance is as large as its square."""

PAIRS_SAMPLED, PAIRS_OF_ERROR = 15_000, 2000
"""Pairs that stand for all others, and those drawn from them in proportion to what they add to the error."""

LEAST_ERROR_PX = 0.1
"""However many landmarks agree: those of an interpolated image share an error of some hundredths of a pixel."""

AS_PREDICTED, LARGEST_SURPRISE = 5.0, 4.0
"""Loops that are taken to miss the mosaic by just as much as foretold, before any has told. Times that, what one loop
counts for at most."""

TINY = float(np.finfo(np.float64).tiny)

LEAST_PROGRESS = 0.1
"""Of the error, that the next twenty answers must be expected to remove to be worth their while."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the mosaic says of its own error, in px, without ground truth."""

    error_px: float  # RMS, over what frames that are likely to overlap both show
    bound_px: float  # above the real one nine times of ten
    expected_gain: ExpectedGain | None  # None where no two frames are on one mosaic
    lasting_px: float = 0.0  # what is left of the error when every place is known

    @classmethod
    def of(cls, view: View) -> Prediction:
        """Foretell."""
        considered, state = CandidatePairs.of(view), view.estimate
        if not considered.weight.any():
            return cls(0.0, 0.0, None)
        expected_gain = considered.expected_gain(view)
        by_links, conservative = squared_errors(view)
        misfit = misfit_px(state) ** 2
        lasting = misfit + LEAST_ERROR_PX**2
        square = calibration(state) * by_links + lasting
        # The square of the error is a sum of squared normal variables, much like a gamma variable of the same moments.
        of_model = MODEL_VARIANCE + OF_GROWTH * math.log(state.noise_model.growth) ** 2 + misfit / square
        shape = 1.0 / (expected_gain.variation + state.noise_variance + of_model)
        bound = math.sqrt(square * float(gammaincinv(shape, CONFIDENCE)) / shape + conservative - by_links)
        return cls(math.sqrt(square), bound, expected_gain, math.sqrt(lasting))

    @cached_property
    def ahead_px(self) -> dict[int, float]:
        """The error after so many answers more, if they are the best ones and yes as often as is likely."""
        return self.look_ahead()

    @property
    def worth_going_on(self) -> bool:
        """Tell whether the next twenty answers are expected to change much."""
        return self.is_worth(self.ahead_px)

    def look_ahead(self, pause: Callable[[], None] = lambda: None) -> dict[int, float]:
        """Return `ahead_px`, which takes a while: `pause` is called after every answer that is supposed."""
        if self.expected_gain is None:
            return dict.fromkeys(AHEAD, self.error_px)
        left = [self.error_px]
        for *_, after in Smalti().choose(self.expected_gain, max(AHEAD)):
            left.append(self.error_left_px(after.squared_error))
            pause()
        return {answers: left[min(answers, len(left) - 1)] for answers in AHEAD}

    def error_left_px(self, squared_error: float) -> float:
        """Return the error if answers leave so much of what the lessons say it is, px²."""
        share = 0.0 if self.expected_gain is None else squared_error / max(self.expected_gain.squared_error, TINY)
        return math.sqrt(self.lasting_px**2 + share * (self.error_px**2 - self.lasting_px**2))

    def is_worth(self, ahead_px: Mapping[int, float]) -> bool:
        """Tell whether answers that leave so large an error change much."""
        return ahead_px[max(AHEAD)] < (1.0 - LEAST_PROGRESS) * self.error_px


def calibration(state: Estimate) -> float:
    """Return by how many times as much as foretold loops miss the mosaic that the others make, squared.

    χ² counts all of a link's directions alike, and noise is learned by it. What people see are pixels: a landmark of a
    loop that is left out is off by (I - J C Jᵀ)⁻¹ r in units of its noise, of which the trace of that matrix is the
    expected square. Where neighbours err alike, errors are smooth, and places between loops are known better than
    independent noise of the same size would leave them.
    """
    loops = state.groups != CHAIN
    left = np.eye(state.check.fitted_covariance.shape[1]) - state.check.fitted_covariance[loops]
    values, vectors = np.linalg.eigh(left)
    checked = values > LEAST_CHECKED
    values = np.where(checked, values, 1.0)
    missed = np.einsum("lab,la->lb", vectors, state.solution.rows.residual[loops]) / values
    expected = np.sum(np.where(checked, 1.0 / values, 0.0), axis=1)
    squares = np.minimum(np.sum(np.where(checked, missed**2, 0.0), axis=1), LARGEST_SURPRISE * expected)
    # As if so many loops had missed it by just as much.
    usual = AS_PREDICTED * float(np.mean(expected)) if len(expected) else 1.0
    return float((squares.sum() + usual) / (expected.sum() + usual))


def misfit_px(state: Estimate) -> float:
    """Return by how much the maps of single pairs differ from each other beyond the scatter of their landmarks, RMS.

    Relief moves every pair's map by itself. However many links a mosaic has, its maps miss those of pairs by that.
    """
    system = state.system
    own = np.flatnonzero(state.groups == MATCHER)
    noise = state.noise_model.noise[MATCHER] if len(own) else state.local_noise
    chosen = [system.links[n] for n in (own if len(own) else system.every)]
    # Of a pair's map, where its landmarks are; some of a dense registration are hardly worth anything.
    variance = float(np.median([link.rank / np.sum(1.0 / link.sigma**2) for link in chosen]))
    return state.outline.unit * math.sqrt(max(noise**2 - landmark_noise(system) ** 2, 0.0) * variance)


def squared_errors(view: View) -> tuple[float, float]:
    """Return the mean squared error, px², over what pairs share that would get a yes, by the covariance of the maps.

    The second number is that of the cautious one.
    """
    sample = Sample.of(view, view.pooled, PAIRS_SAMPLED)
    surveyed = SurveyedPairs.of(view, sample.pairs)
    points, share = shared_points(surveyed.centres, view.outline)
    weight = sample.stands_for * Posterior.of(view).of_surveyed(surveyed) * share
    weight *= view.are_joined(sample.pairs)
    if not weight.any():
        return 0.0, 0.0
    chosen, factor = draw(weight * surveyed.centres.spread, weight, PAIRS_OF_ERROR)

    def mean_square(covariance: Covariance) -> float:
        covariances = covariance.of_predicted_links(covariance.predicted_links(surveyed.pairs[chosen], points[chosen]))
        # Of four points, the mean.
        return float(np.sum(factor**2 * np.trace(covariances, axis1=1, axis2=2))) / POINTS

    square = mean_square(view.estimate.covariance)
    return square, square if view.estimate.variance_inflation is None else mean_square(
        view.estimate.conservative_covariance
    )


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
    def of(cls, view: View, appearance: PairwiseModel, wanted: int) -> Self:
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
            others, stands_for = _sample_strata(view, appearance, wanted)
            unknown = ~np.isin(pair_key(*others.T), pair_key(*answered.T))
            others, stands_for = others[unknown], stands_for[unknown]
        return cls(np.concatenate([answered, others]), np.concatenate([np.ones(len(answered)), stands_for]), certain)


def _combine(position: NDArray[np.float64], external: NDArray[np.float64], base_rate: float) -> NDArray[np.float64]:
    """Return how likely pairs that were not answered are to overlap (n,), by P^pos and P^ext."""
    apart = (1.0 - position) * (1.0 - external) * base_rate
    together = position * external * (1.0 - base_rate)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(together / (together + apart))


def _sample_strata(view: View, appearance: PairwiseModel, wanted: int) -> tuple[PairNumbers, NDArray[np.float64]]:
    """Return pairs (n, 2) evenly spread over every two stretches, and for how many each stands."""
    strata = _Strata.of(view.covariance.stretches.starts)
    probes = max(int(PROBES * wanted) // len(strata.sizes), FEWEST_PROBES)
    probed, of_probed = strata.take(np.minimum(strata.sizes, probes))
    begins = np.flatnonzero(np.diff(of_probed, prepend=-1))
    alike = np.maximum.reduceat(appearance.of_pairs(probed), begins)
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
