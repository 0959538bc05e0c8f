"""Predict the mosaic's error: now, its upper bound, and after more answers. Say whether more answers are useful.

`Prediction` is the result. `squared_errors` measures the error on a stratified sample of pairs (`Sample`). The strata
are the pairs between two stretches of frames. Strata that may contribute much are sampled densely, up to every pair,
the others sparsely. A pair stands for its share of the stratum. Answered pairs stand for themselves.
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
from smalti.overlap.external_model import PairwiseModel, combine
from smalti.records import PairNumbers, pair_key
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import POINTS, ExpectedGain, draw, shared_points
from smalti.suggestion.pair_survey import GOLDEN, SurveyedPairs
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.state_view import View
from smalti.suggestion.strategy import Smalti

AHEAD = (5, 10, 20)
"""Numbers of answers after which the error is predicted."""

CONFIDENCE = 0.9
MODEL_VARIANCE, OF_GROWTH = 0.005, 0.35
"""Variance of the logarithm of the squared error.

The first is what the linear model and the sample of pairs leave out, some 4 % of the error. The second is for effects
that are not modelled, relief for instance: if the chain errs by more than its neighbours tell, this share of the
squared logarithm of that growth is added. The misfit is known from matched pairs only; its variance is as large as its
square."""

PAIRS_SAMPLED, PAIRS_OF_ERROR = 15_000, 2000
"""Pairs in the sample, and pairs drawn from it in proportion to their contribution to the error."""

LEAST_ERROR_PX = 0.1
"""Smallest error, however many landmarks agree: in interpolated images they share an error of hundredths of a pixel."""

AS_PREDICTED, LARGEST_SURPRISE = 5.0, 4.0
"""Prior number of loops with residuals as predicted; limit of a loop's squared residual over the expected one."""

TINY = float(np.finfo(np.float64).tiny)

LEAST_PROGRESS, FRAMES_PER_ANSWER = 0.1, 4
"""Share of the error that the next answers must be expected to remove: twenty, or fewer in short sequences, one for so
many frames."""

ALL_WITHIN = 1.8
"""If there are no more pairs than this factor times the wanted number, all are taken."""

LEAST_DENSITY = 0.02
"""Sampling density of strata whose frames hardly overlap, relative to those that certainly do."""

TYPICAL, NEGLIGIBLE = 0.5, 1e-6
"""Typical share of the bound on a standard deviation; smallest deviation, as a share of a frame's side."""

PROBES, FEWEST_PROBES = 1.6, 4
"""Pairs whose appearance tells where frames may overlap: per wanted pair, and per stratum at least."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The mosaic's error as predicted from its own covariance, in px, without ground truth."""

    error_px: float  # RMS, over the shared area of pairs that are likely to overlap
    bound_px: float  # upper bound with 90 % confidence
    expected_gain: ExpectedGain | None  # None where no two frames are on one mosaic
    irreducible_px: float = 0.0  # the error that is left when every position is known
    judged_ahead: int = max(AHEAD)  # the number of answers that must make progress

    @classmethod
    def of(cls, view: View) -> Prediction:
        """Predict the error of a view's mosaic."""
        candidates, state = CandidatePairs.of(view), view.estimate
        if not candidates.weight.any():
            return cls(0.0, 0.0, None)
        expected_gain = candidates.expected_gain(view)
        by_links, conservative = squared_errors(view)
        misfit = misfit_px(state) ** 2
        irreducible = misfit + LEAST_ERROR_PX**2
        square = calibration(state) * by_links + irreducible
        # The squared error is a sum of squared normal variables, close to a gamma variable of the same moments.
        of_model = MODEL_VARIANCE + OF_GROWTH * math.log(state.noise_model.growth) ** 2 + misfit / square
        shape = 1.0 / (expected_gain.variation + state.noise_variance + of_model)
        bound = math.sqrt(square * float(gammaincinv(shape, CONFIDENCE)) / shape + conservative - by_links)
        judged = [answers for answers in AHEAD if FRAMES_PER_ANSWER * answers <= view.frames]
        return cls(math.sqrt(square), bound, expected_gain, math.sqrt(irreducible), max(judged, default=min(AHEAD)))

    @cached_property
    def ahead_px(self) -> dict[int, float]:
        """The predicted error by number of further answers, if the best pairs are asked and P(yes) is right."""
        return self.predict_ahead()

    @property
    def worth_going_on(self) -> bool:
        """Whether the next answers are expected to lower the error by `LEAST_PROGRESS`."""
        return self.is_progress(self.ahead_px)

    def predict_ahead(self, pause: Callable[[], None] = lambda: None) -> dict[int, float]:
        """Return `ahead_px`, which takes a while; `pause` is called after every supposed answer."""
        if self.expected_gain is None:
            return dict.fromkeys(AHEAD, self.error_px)
        left = [self.error_px]
        for *_, after in Smalti().choose(self.expected_gain, max(AHEAD)):
            left.append(self.error_left_px(after.squared_error))
            pause()
        return {answers: left[min(answers, len(left) - 1)] for answers in AHEAD}

    def error_left_px(self, squared_error: float) -> float:
        """Return the error if answers lower the squared error of `expected_gain` to this, px²."""
        share = 0.0 if self.expected_gain is None else squared_error / max(self.expected_gain.squared_error, TINY)
        return math.sqrt(self.irreducible_px**2 + share * (self.error_px**2 - self.irreducible_px**2))

    def is_progress(self, ahead_px: Mapping[int, float]) -> bool:
        """Return whether answers that lead to these errors lower the error by `LEAST_PROGRESS`."""
        return ahead_px[self.judged_ahead] < (1.0 - LEAST_PROGRESS) * self.error_px


def calibration(state: Estimate) -> float:
    """Return the ratio of squared residuals of loops to the predicted ones, each against the mosaic of the other links.

    χ² weights all directions of a link equally, and the noise is learned from it. People see pixels. The residual of a
    left-out loop is (I - J C Jᵀ)⁻¹ r in units of its noise, and the trace of that matrix is its expected square. If the
    errors of neighbours are correlated, the errors are smooth, and positions between loops are known better than under
    independent noise of the same size.
    """
    loops = state.groups != CHAIN
    left = np.eye(state.check.fitted_covariance.shape[1]) - state.check.fitted_covariance[loops]
    values, vectors = np.linalg.eigh(left)
    checked = values > LEAST_CHECKED
    values = np.where(checked, values, 1.0)
    residual = np.einsum("lab,la->lb", vectors, state.solution.rows.residual[loops]) / values
    expected = np.sum(np.where(checked, 1.0 / values, 0.0), axis=1)
    squares = np.minimum(np.sum(np.where(checked, residual**2, 0.0), axis=1), LARGEST_SURPRISE * expected)
    # The prior: `AS_PREDICTED` loops with residuals as predicted.
    prior = AS_PREDICTED * float(np.mean(expected)) if len(expected) else 1.0
    return float((squares.sum() + prior) / (expected.sum() + prior))


def misfit_px(state: Estimate) -> float:
    """Return by how much the maps of single pairs differ beyond the scatter of their landmarks, RMS.

    Relief moves the map of every pair by itself. However many links a mosaic has, its maps differ from those of pairs
    by this.
    """
    system = state.system
    by_matcher = np.flatnonzero(state.groups == MATCHER)
    noise = state.noise_model.noise[MATCHER] if len(by_matcher) else state.local_noise
    chosen = [system.links[n] for n in (by_matcher if len(by_matcher) else system.every)]
    # The variance of a pair's map where its landmarks are; some landmarks of dense registration have almost no weight.
    variance = float(np.median([link.rank / np.sum(1.0 / link.sigma**2) for link in chosen]))
    scatter = landmark_noise(system, state.noise_model.reference_method)
    return state.outline.unit * math.sqrt(max(noise**2 - scatter**2, 0.0) * variance)


def squared_errors(view: View) -> tuple[float, float]:
    """Return the mean squared error, px², over what overlapping pairs share, from the covariance of the maps.

    The second number is the same from the conservative covariance.
    """
    sample = Sample.of(view, view.pooled, PAIRS_SAMPLED)
    surveyed = SurveyedPairs.of(view, sample.pairs)
    points, share = shared_points(surveyed.centres, view.outline)
    weight = sample.sampling_weight * Posterior.of(view).overlap_of_surveyed(surveyed) * share
    weight *= view.are_joined(sample.pairs)
    if not weight.any():
        return 0.0, 0.0
    chosen, factor = draw(weight * surveyed.centres.spread, weight, PAIRS_OF_ERROR)

    def mean_square(covariance: Covariance) -> float:
        covariances = covariance.of_predicted_links(covariance.predicted_links(surveyed.pairs[chosen], points[chosen]))
        # The mean of four points.
        return float(np.sum(factor**2 * np.trace(covariances, axis1=1, axis2=2))) / POINTS

    square = mean_square(view.estimate.covariance)
    return square, square if view.estimate.variance_inflation is None else mean_square(
        view.estimate.conservative_covariance
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Pairs i < j, the answered ones first, and how many pairs each stands for."""

    pairs: PairNumbers  # (n, 2)
    sampling_weight: NDArray[np.float64]  # (n,)
    certain: NDArray[np.float64]  # (answered,): 1 for pairs that overlap, 0 for the others

    @classmethod
    def of(cls, view: View, appearance: PairwiseModel, wanted: int) -> Self:
        """Return all pairs or, if there are too many, about `wanted` of them; the choice depends on the state alone."""
        linked = view.linked
        # Without the pairs about which nobody could tell: such an answer must not change the sample.
        answered = np.unique(np.concatenate([linked, view.answered.decided]), axis=0)
        certain = np.isin(pair_key(*answered.T), pair_key(*linked.T)).astype(np.float64)
        total = view.frames * (view.frames - 1) // 2
        if total <= ALL_WITHIN * wanted:
            i, j = view.frames - 1 - answered.T
            others = _pairs_numbered(np.delete(np.arange(total), i * (i - 1) // 2 + j), view.frames)
            sampling_weight = np.ones(len(others))
        else:
            others, sampling_weight = _sample_strata(view, appearance, wanted)
            unknown = ~np.isin(pair_key(*others.T), pair_key(*answered.T))
            others, sampling_weight = others[unknown], sampling_weight[unknown]
        return cls(
            np.concatenate([answered, others]), np.concatenate([np.ones(len(answered)), sampling_weight]), certain
        )


def _sample_strata(view: View, appearance: PairwiseModel, wanted: int) -> tuple[PairNumbers, NDArray[np.float64]]:
    """Return pairs (n, 2) spread evenly over every two stretches, and how many pairs each stands for."""
    strata = _Strata.of(view.covariance.stretches.starts)
    probes = max(int(PROBES * wanted) // len(strata.sizes), FEWEST_PROBES)
    probed, of_probed = strata.take(np.minimum(strata.sizes, probes))
    begins = np.flatnonzero(np.diff(of_probed, prepend=-1))
    alike = np.maximum.reduceat(appearance.of_pairs(probed), begins)
    overlap = _stretch_overlap(view)[strata.first, strata.second]
    density = LEAST_DENSITY + combine(overlap, alike, float(np.average(overlap, weights=strata.sizes)))
    counts = _allocate(strata.sizes, density, wanted)
    pairs, of_pair = strata.take(counts)
    return pairs, (strata.sizes / counts)[of_pair]


@dataclass(frozen=True, slots=True, eq=False)
class _Strata:
    """The pairs between two stretches, or within one stretch."""

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
        """Return `counts` pairs of each stratum (m, 2), evenly spread and each once, and the stratum of every pair."""
        stratum = np.repeat(np.arange(len(counts)), counts)
        # Steps of the golden section, made coprime to the size. Each stratum begins elsewhere.
        step = np.maximum(np.rint(GOLDEN * self.sizes).astype(np.int64), 1)
        while (shared := np.gcd(step, self.sizes) > 1).any():
            step += shared
        begin = np.floor(np.arange(len(counts)) * GOLDEN % 1.0 * self.sizes).astype(np.int64)
        nth = np.arange(len(stratum)) - np.repeat(np.cumsum(counts) - counts, counts)
        number = (begin[stratum] + nth * step[stratum]) % self.sizes[stratum]
        # Sorted by frame, so that a frame's signature and elimination path serve several pairs.
        number = np.sort(pair_key(stratum, number)) - pair_key(stratum, 0)
        lengths = np.diff(self.starts)
        first, second = self.first[stratum], self.second[stratum]
        pairs = _pairs_numbered(number, lengths[first])
        apart = first != second
        pairs[apart] = np.column_stack(np.divmod(number[apart], lengths[second[apart]]))
        return pairs + np.column_stack([self.starts[first], self.starts[second]]), stratum


def _stretch_overlap(view: View) -> NDArray[np.float64]:
    """Return the approximate overlap probability of two stretches (M, M), if their frames lie as near as they can."""
    stretches, side = view.covariance.stretches, math.sqrt(view.outline.area)
    deviation = np.maximum(TYPICAL * stretches.deviation, NEGLIGIBLE * side)
    beyond = np.maximum(stretches.distance - side / math.sqrt(2.0), 0.0) / deviation
    inside = np.minimum(side / (math.sqrt(2.0 * math.pi) * deviation), 1.0).prod(axis=-1)
    near = np.exp(-0.5 * beyond.max(axis=-1) ** 2)
    # Where little is known, bounds say less than appearance.
    directed = near * np.maximum(inside, np.mean(near * inside))
    return np.asarray((directed + directed.T) / 2)


def _allocate(sizes: NDArray[np.int64], density: NDArray[np.float64], wanted: int) -> NDArray[np.int64]:
    """Return how many pairs to take of strata of these sizes: all, or in proportion to size and density."""
    counts, shares = sizes.copy(), sizes * density
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
    """Return the pairs i < j (n, 2) with these numbers; pairs are counted from the last one back, by i, then by j."""
    i = np.floor((1.0 + np.sqrt(1.0 + 8.0 * numbers)) / 2.0).astype(np.int64)
    return np.column_stack([frames - 1 - i, frames - 1 - numbers + i * (i - 1) // 2])
