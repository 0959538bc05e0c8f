"""Variance components: the noise of groups and of registration methods, learned from residuals; robust weights.

A link states its noise by its landmarks' `sigma`, and a whole group of links may state it wrongly. If the noise of a
group is s times the stated one, its squared residuals sum to s² times its *redundancy*, the part of the measurements
that other links check. The redundancy of a link of rank r is

    r - tr(J C Jᵀ),

where J are the derivatives of its residual in units of its noise and C is the covariance of both frames.

The registration methods state their noise differently: keypoints count as one pixel each, alignments of all pixels
estimate a σ. So where several methods have made links, those of each have one more factor, relative to the method that
has made most links of the chain. Its prior is the scatter of the method's landmarks about their own maps. It is learned
from the chain's triangles, and then from loops, where the noise that neighbours share does not hide it.

The errors of neighbouring links are correlated: relief and the remaining distortion of the lens bend a whole stretch
the same way, and triangles of neighbours do not show it. So the chain counts as `CHAIN_INFLATION` times noisier than
its triangles show until a loop is closed. Then the factor is learned from the residuals of loop closures against the
prediction of the chain.

`NoiseModel` holds what was learned, here and in `camera_learning.py`. `Check` holds what the posterior says about every
link. Functions that learn come next, the maximisation of the likelihood last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.engine.camera_priors import KIND_OF_MOTION, Camera
from smalti.engine.equations import System
from smalti.engine.linearisation import LENS_FIXED, Weights
from smalti.engine.links import Link
from smalti.engine.row_covariance import chi2_against_rest, propagate_frames, propagate_links, propagate_pairs
from smalti.engine.solution import Solution
from smalti.geometry.homographies import apply_map
from smalti.sparse.block_products import Blocks
from smalti.sparse.selected_inverse import inverse_in_pattern

CHAIN, MATCHER, PERSON = range(3)
"""The groups of links; each has a noise of its own."""

CHAIN_INFLATION = 1.5
"""The chain's noise before any loop closure, in multiples of its local noise. The errors of neighbouring links are
correlated, and triangles of neighbours do not show it. On the flights of the data the errors are one to three times
what triangles show (`benchmarks/flights.py`, "beyond")."""

LOG_DEVIATION = 0.7
"""The prior deviation of log s: half and twice the expected noise are both plausible."""

LEAST_METHOD_DEVIATION = 0.2
"""The deviation of the logarithm of a method's factor that is left when the chain has taught it: loops may show another
one."""

LARGEST_SHARE, MEAN_SHARE = 2.0, 0.93
"""The squared residual of a link counts for at most so many times its expected value, so that one wrong link does not
dominate; and the mean of an inlier's squared residual after this limit, as a share of its expected value."""

LARGEST_CHI2 = 1000.0
"""The largest χ² of 8 degrees of freedom of an inlier, where the median χ² is as expected. It is large because inliers
have heavy tails. A wrong map that matters has ten times the error of right ones, or a hundred times their χ². A link
beyond the limit is an outlier and does not count for the noise of its group."""

OUTLIER_ROUNDS = 10
"""The most rounds of finding outliers with a noise that is learned without them."""

NOISE_RANGE = (1.0 / 50.0, 50.0)
"""Limits of s, so that links that agree to rounding still give usable numbers."""

ROUNDING = 1e-4
"""In units of σ: landmarks with smaller residuals were read off the map itself."""

MOST_STEPS, ENOUGH_DIGITS = 100, 1e-12
"""The most Newton steps to the most likely s, and the last step's size in log s."""


SAME_PLACE = 0.5
"""In units; a quarter of a frame. Frames whose centres are nearer show about the same place."""

LINK_TAIL, LEAST_ROBUST_WEIGHT = 8.0, 1e-12
"""Degrees of freedom of a link's t distribution, and the smallest robust weight."""


@dataclass(frozen=True, slots=True)
class MethodNoise:
    """By which factor links of a registration method are noisier than those of the reference method."""

    method: str
    factor: float
    deviation: float = LOG_DEVIATION  # of the logarithm


@dataclass(frozen=True, slots=True, eq=False)
class NoiseModel:
    """What was learned: the noise of every group of links in units of the stated noise, robust weights, the camera."""

    noise: tuple[float, float, float]  # of chain, matcher, person
    camera: Camera
    motion_weights: NDArray[np.float64]  # (K, 6): robust weights of the motions of consecutive frames
    robust_weights: NDArray[np.float64]  # (L,): the share of its weight that each link keeps, at most 1
    shared_turn: float = 1e-3  # prior deviation of the turn that links of consecutive frames share
    local_noise: float = 1.0  # of the chain, from triangles of neighbours
    lens_root: NDArray[np.float64] = field(default_factory=lambda: LENS_FIXED)  # (2, 2): of the information on the lens
    reference_method: str = ""  # the registration method of most links of the chain
    methods: tuple[MethodNoise, ...] = ()  # the other methods that have made links

    @classmethod
    def initial(cls, system: System) -> NoiseModel:
        """Return the model before anything is learned from the links of a system."""
        motion_weights = np.ones((len(system.steps), len(KIND_OF_MOTION)))
        camera = Camera(frames_per_place=_frames_per_place(system))
        counts = Counter(link.method for link in system.links if link.method)
        reference = min(counts, key=lambda method: (-counts[method], method), default="")
        model = cls((1.0, 1.0, 1.0), camera, motion_weights, np.ones(len(system.links)), reference_method=reference)
        return model.with_methods_of(system)

    def with_methods_of(self, system: System) -> NoiseModel:
        """Return the model with the registration methods of a system's links, as far as they are not known."""
        if not self.reference_method:
            return self
        known = {self.reference_method, *(one.method for one in self.methods)}
        new = sorted({link.method for link in system.links if link.method} - known)
        if not new:
            return self
        usual = landmark_noise(system, self.reference_method)
        added = tuple(MethodNoise(method, landmark_noise(system, method) / usual) for method in new)
        return replace(self, methods=(*self.methods, *added))

    def factor_of(self, method: str) -> float:
        """Return the factor on the noise of a registration method's links; 1 for the reference, people and unknown."""
        return next((one.factor for one in self.methods if one.method == method), 1.0)

    def factors(self, links: Sequence[Link]) -> NDArray[np.float64]:
        """Return the factors (L,) of links' registration methods."""
        of = {one.method: one.factor for one in self.methods}
        return np.array([of.get(link.method, 1.0) for link in links])

    @property
    def growth(self) -> float:
        """The ratio of the chain's noise to its local noise, at least 1."""
        return max(self.noise[CHAIN] / self.local_noise, 1.0)

    def weights(self, groups: NDArray[np.int64], links: Sequence[Link]) -> Weights:
        """Return the weights of links of these groups (L,) and of the camera.

        The chain's noise beyond its local noise is an error that neighbouring links share. It does not make a single
        link worse against the camera prior. So the deviations of that prior grow by the same factor.
        """
        weights = np.sqrt(self.robust_weights) / np.array(self.noise)[groups]
        if self.methods:
            weights = weights / self.factors(links)
        return Weights(
            weights, self.camera.loosened(self.growth), self.motion_weights, self.shared_turn, self.lens_root
        )


@dataclass(frozen=True, eq=False)
class Check:
    """What the posterior says about every link of a solution."""

    solution: Solution

    @cached_property
    def covariances(self) -> tuple[Blocks, Blocks]:
        """The posterior covariances of all frames (N, f, f), and of the two frames of every link (L, f, f)."""
        return inverse_in_pattern(self.solution.factor)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """(L,): the squared residuals, in units of the noise."""
        return np.asarray(np.sum(self.solution.rows.residual**2, axis=1))

    @cached_property
    def fitted_covariance(self) -> NDArray[np.float64]:
        """(L, 8, 8): J C Jᵀ, the covariance of the fitted residuals in units of the links' noise."""
        rows, system = self.solution.rows, self.solution.system
        own, crossed = self.covariances
        return propagate_links(
            own,
            crossed,
            system.ends,
            rows.by_i,
            rows.by_j,
            rows.by_shared,
            system.shared_slot,
            system.shared_directions,
        )

    @cached_property
    def redundancy(self) -> NDArray[np.float64]:
        """(L,): how many of the numbers that a link measures are checked by other links."""
        ranks = self.solution.system.ranks
        return np.asarray(np.clip(ranks - np.trace(self.fitted_covariance, axis1=1, axis2=2), 0.0, ranks))

    @cached_property
    def chi2(self) -> NDArray[np.float64]:
        """(L,): χ² of every link against all others, with its rank as degrees of freedom; 0 if nothing checks it."""
        return self.chi2_at_full_weight(np.ones(len(self.fitted_covariance)))

    def chi2_at_full_weight(self, robust_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return χ² (L,) of every link against all others, as if this link alone had its full weight again.

        A wrong link first loses its weight. With the rest of its weight it would contradict no other link.
        """
        return chi2_against_rest(self.fitted_covariance, self.solution.rows.residual, robust_weights)

    def attitude_squares(self) -> NDArray[np.float64]:
        """Return value² + posterior variance of all attitudes (N, 5), not divided by their deviations."""
        rows, camera = self.solution.rows, self.solution.weights.camera
        own = self.covariances[0][: self.solution.system.frames]
        variance = propagate_frames(own, rows.by_frame)
        return np.asarray((rows.attitude**2 + variance) * camera.attitude_deviations**2)

    def motion_squares(self, motion: NDArray[np.float64], by_i: Blocks, by_j: Blocks) -> NDArray[np.float64]:
        """Return value² + posterior variance of motions (K, 6), given their derivatives (K, 6, f)."""
        system = self.solution.system
        variance = propagate_pairs(*self.covariances, system.step_ends, system.steps, by_i, by_j)
        return np.asarray(motion**2 + variance)


def _frames_per_place(system: System) -> float:
    """Return after how many frames the camera has moved by a quarter of a frame, on average; at least 1."""
    moved = np.linalg.norm(system.offsets[system.steps], axis=1)
    return max(1.0, SAME_PLACE * len(moved) / max(float(moved.sum()), 1.0))


def landmark_noise(system: System, method: str = "") -> float:
    """Return the noise of landmarks, in units of their stated `sigma`, from their residuals to their own link's map.

    Landmarks of other registration methods do not count, those of unknown ones do.
    """
    squares, spare = 0.0, 0.0
    for link in system.links:
        if link.method not in (method, ""):
            continue
        free = int(link.coordinates.sum()) - min(link.rank, system.family.freedom)
        off = link.across(apply_map(link.i_from_j, link.points_j) - link.points_i)
        scattered = float(np.sum(off**2 / link.sigma[:, None] ** 2))
        # Landmarks of a dense registration were read off its map and lie on it to rounding: they have no scatter.
        if scattered > ROUNDING**2 * free > 0.0:
            squares += scattered
            spare += free
    return float(np.clip(np.sqrt(squares / spare), *NOISE_RANGE)) if spare > 0 else 1.0


def learn_robust_weights(check: Check, before: NoiseModel, rescaled: NDArray[np.float64] | float = 1.0) -> NoiseModel:
    """Return the noise model with robust weights: link errors have the tails of a t distribution.

    A pair on relief, or with landmarks on a strip, has several times the usual error and is still useful. `rescaled`
    (L,) is the old variance over the new one, if the noise has changed since `check` was made. Without it, a link would
    lose weight twice for the same error.
    """
    ranks = check.solution.system.ranks
    # Rounding may exceed these limits where very well and very badly determined directions meet.
    uncertain = np.clip(np.trace(check.fitted_covariance, axis1=1, axis2=2), 0.0, ranks)
    squares = rescaled * (check.squares + uncertain) / before.robust_weights
    return replace(before, robust_weights=robust_weights_of(squares, ranks))


def robust_weights_of(squares: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the robust weights (L,) of a t distribution, given squared residuals and ranks (L,)."""
    return np.asarray(np.clip((LINK_TAIL + ranks) / (LINK_TAIL + squares), LEAST_ROBUST_WEIGHT, 1.0))


def learn_noise(
    check: Check, groups: NDArray[np.int64], before: NoiseModel, group: int, expected: float, deviation: float
) -> float:
    """Return the noise s of a group of links; the prior on log s is normal about log `expected`."""
    own = groups == group
    return _learn_factor(check, own, before, before.noise[group], expected, deviation)


def learn_method_noise(
    check: Check, groups: NDArray[np.int64], before: NoiseModel, noise: tuple[float, float, float], prior: NoiseModel
) -> tuple[MethodNoise, ...]:
    """Return the factors of registration methods from links of these groups (L,), -1 for those that do not count.

    `noise` is the groups' noise as it was just learned, `prior` has what is expected of the methods.
    """
    found: list[MethodNoise] = []
    expected = {one.method: one for one in prior.methods}
    links = check.solution.system.links
    for method in before.methods:
        known = expected.get(method.method, method)
        own = (groups >= 0) & np.array([link.method == method.method for link in links], dtype=np.bool_)
        ratio = (np.array(before.noise) / noise)[groups[own]]
        factor = _learn_factor(check, own, before, method.factor * ratio, known.factor, known.deviation)
        information = known.deviation**-2 + 2.0 * float(check.redundancy[own].sum())
        found.append(MethodNoise(method.method, factor, max(information**-0.5, LEAST_METHOD_DEVIATION)))
    return tuple(found)


def _learn_factor(
    check: Check,
    own: NDArray[np.bool_],
    before: NoiseModel,
    factor: NDArray[np.float64] | float,
    expected: float,
    deviation: float,
) -> float:
    """Return the most likely factor of the noise of some links (L,), which was `factor` when `check` was made."""
    squares, redundancy = check.squares[own] * factor**2, check.redundancy[own]
    found = expected
    for _ in range(OUTLIER_ROUNDS):
        inlier = squares / before.robust_weights[own] <= LARGEST_CHI2 * found**2
        found, previous = _most_likely_factor(squares[inlier], redundancy[inlier], expected, deviation), found
        if found == previous:
            break
    return found


def learn_chain_noise(check: Check, loops: NDArray[np.bool_], before: float, expected: float) -> float:
    """Return the chain's noise from the residuals of `loops` (L,) against the prediction of all other links."""
    ranks = check.solution.system.ranks[loops].astype(np.float64)
    chi2 = chi2_against_rest(check.fitted_covariance[loops], check.solution.rows.residual[loops], np.ones(len(ranks)))
    return _most_likely_factor(chi2 * before**2, ranks, expected, LOG_DEVIATION)


def _most_likely_factor(
    squares: NDArray[np.float64], redundancy: NDArray[np.float64], expected: float, deviation: float
) -> float:
    """Return s from squared residuals in units of the stated noise, with a limited share for each link."""
    checked = redundancy > 1e-6
    return _maximise_likelihood(squares[checked], redundancy[checked], expected, deviation)


@compiled
def _maximise_likelihood(
    squares: NDArray[np.float64], redundancy: NDArray[np.float64], expected: float, deviation: float
) -> float:
    """Return the most likely s: Newton steps on log s, or bisection where a step leaves the bracket."""
    total, usual = MEAN_SHARE * redundancy.sum(), math.log(expected)
    lowest, highest = math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1])
    at = min(max(usual, lowest), highest)
    for _ in range(MOST_STEPS):
        scale, slope, curvature = math.exp(-2.0 * at), total + (at - usual) / deviation**2, 1.0 / deviation**2
        for n in range(len(squares)):
            share, most = squares[n] * scale, LARGEST_SHARE * redundancy[n]
            slope -= min(share, most)
            curvature += 2.0 * share if share < most else 0.0
        if slope < 0.0:
            lowest = at
        else:
            highest = at
        following = at - slope / curvature
        if not lowest <= following <= highest:
            following = 0.5 * (lowest + highest)
        if abs(following - at) < ENOUGH_DIGITS:
            return min(max(math.exp(following), NOISE_RANGE[0]), NOISE_RANGE[1])
        at = following
    return math.exp(at)
