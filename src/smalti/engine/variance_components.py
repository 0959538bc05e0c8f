"""How noisy links really are, and how still the camera is held: variances learned from how well everything fits.

A link says how noisy it is by its landmarks' scatter, and a whole kind of links may say it wrongly. If the noise of a
group of links is s times what they say, their squared residuals sum up to s² times their *redundancy*, the part of what
they measure that others check: for a link of rank r

    r - tr(J C Jᵀ),

J being the derivatives of its residual in units of its noise and C the covariance of both frames. Of the camera's
attitude and motion, expectation and maximisation say the same: the variance of a kind is the mean of value² + posterior
variance. One round from the deviations before follows; the fixed point is the restricted maximum likelihood.

Neighbouring links err alike: relief and what is left of the lens bend a whole stretch the same way, which triangles of
neighbours do not show. So before any loop is closed the chain counts as `ALIKE` times noisier than they say, and as
loops close the factor is learned from by how much they miss what the chain foretold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.engine.camera_priors import KIND_OF_MOTION, Camera
from smalti.engine.equations import System
from smalti.engine.linearisation import LENS_FIXED, Weights
from smalti.engine.row_covariance import chi2_against_rest, propagate_frames, propagate_links, propagate_pairs
from smalti.engine.solution import Solution
from smalti.geometry.homographies import apply_map
from smalti.sparse.block_products import Blocks
from smalti.sparse.selected_inverse import inverse_in_pattern

CHAIN, MATCHER, PERSON = range(3)
"""Whose links have a noise of their own."""

CHAIN_INFLATION = 1.5
"""Times its local noise, the chain's before any loop has told: links of neighbours err alike, which triangles of
neighbours do not show. On the flights of the data they err by one to three times what triangles say (`benchmarks/
flights.py`, "beyond")."""

LOG_DEVIATION = 0.7
"""Of log s before anything is known: two thirds of the noise or half as much again would surprise nobody."""

LARGEST_SHARE, MEAN_SHARE = 2.0, 0.93
"""Times what is expected of it, the squared residual of a link counts for at most: one lie is not everything. What
honest ones then count for on average."""

LARGEST_CHI2 = 1000.0
"""χ² of 8 degrees that a link may show where the median is as it should be. Far out, because honest links have heavy
tails; a wrong map that matters is off by ten times what the right ones are, or a hundred times their χ². A link beyond
that is wrong and says nothing of the noise of others."""

OUTLIER_ROUNDS = 10
"""In which it is found out which links are wrong by a noise that is learned without them."""

NOISE_RANGE = (1.0 / 50.0, 50.0)
"""Of s: links that agree to rounding must leave numbers to compute with."""

ROUNDING = 1e-4
"""In units of σ: landmarks that scatter by less about a map lie on it."""

MOST_STEPS, ENOUGH_DIGITS = 100, 1e-12
"""To the most likely factor, and of its logarithm."""


SAME_PLACE = 0.5
"""In units, a quarter of a frame: frames that are nearer to each other show much the same."""

LINK_TAIL, LEAST_ROBUST_WEIGHT = 8.0, 1e-12
"""Degrees of freedom of a link's t distribution, and what is left of the weight of a link that errs endlessly."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseModel:
    """What was learned: the noise of each group of links in units of what they say, and the camera."""

    noise: tuple[float, float, float]  # of chain, matcher, person
    camera: Camera
    motion_weights: NDArray[np.float64]  # (K, 6): of the motion of every two consecutive frames
    robust_weights: NDArray[np.float64]  # (L,): of every link, 1 at most: how much of its weight is left
    shared_turn: float = 1e-3  # the deviation of the turn that links of consecutive frames err by alike
    local_noise: float = 1.0  # of the chain, as neighbours tell it
    lens_root: NDArray[np.float64] = field(default_factory=lambda: LENS_FIXED)  # of the information on the lens (2, 2)

    @classmethod
    def initial(cls, system: System) -> NoiseModel:
        """Know nothing yet of the links of a system."""
        motion_weights = np.ones((len(system.steps), len(KIND_OF_MOTION)))
        camera = Camera(frames_per_place=_frames_per_place(system))
        return cls((1.0, 1.0, 1.0), camera, motion_weights, np.ones(len(system.links)))

    @property
    def growth(self) -> float:
        """By how much the chain's noise is larger than its local one."""
        return max(self.noise[CHAIN] / self.local_noise, 1.0)

    def weights(self, groups: NDArray[np.int64]) -> Weights:
        """Return how much links of these groups (L,) and the camera count.

        What the chain's noise is beyond its local one is an error that neighbours share. Beside the camera, which they
        tell of together, links are as good as their local noise: so the camera is let go by as much.
        """
        weights = np.sqrt(self.robust_weights) / np.array(self.noise)[groups]
        return Weights(
            weights, self.camera.loosened(self.growth), self.motion_weights, self.shared_turn, self.lens_root
        )


@dataclass(frozen=True, eq=False)
class Check:
    """What the posterior says of every link of a solution."""

    solution: Solution

    @cached_property
    def covariances(self) -> tuple[Blocks, Blocks]:
        """Of all frames (N, f, f) and of the two frames of every link (L, f, f)."""
        return inverse_in_pattern(self.solution.factor)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """(L,): the squared residuals, in units of the noise."""
        return np.asarray(np.sum(self.solution.rows.residual**2, axis=1))

    @cached_property
    def fitted_covariance(self) -> NDArray[np.float64]:
        """(L, 8, 8): J C Jᵀ."""
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
        """(L,): how much of what links measure others check."""
        ranks = self.solution.system.ranks
        return np.asarray(np.clip(ranks - np.trace(self.fitted_covariance, axis1=1, axis2=2), 0.0, ranks))

    @cached_property
    def chi2(self) -> NDArray[np.float64]:
        """(L,): how strongly links contradict all others, χ² of as many degrees as their ranks; 0 if none checks it."""
        return self.chi2_at_full_weight(np.ones(len(self.fitted_covariance)))

    def chi2_at_full_weight(self, robust_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same (L,) of every link as if it, and it alone, had the weight that it has lost.

        A wrong link loses its weight first; what is left of it contradicts nobody.
        """
        return chi2_against_rest(self.fitted_covariance, self.solution.rows.residual, robust_weights)

    def attitude_squares(self) -> NDArray[np.float64]:
        """Return value² + posterior variance of all attitudes (N, 5), in the camera's own numbers."""
        rows, camera = self.solution.rows, self.solution.weights.camera
        own = self.covariances[0][: self.solution.system.frames]
        variance = propagate_frames(own, rows.by_frame)
        return np.asarray((rows.attitude**2 + variance) * camera.attitude_deviations**2)

    def motion_squares(self, motion: NDArray[np.float64], by_i: Blocks, by_j: Blocks) -> NDArray[np.float64]:
        """Return the same of motions (K, 6) and their derivatives."""
        system = self.solution.system
        variance = propagate_pairs(*self.covariances, system.step_ends, system.steps, by_i, by_j)
        return np.asarray(motion**2 + variance)


def _frames_per_place(system: System) -> float:
    """Return in how many frames the camera moves by a quarter of a frame, on average; 1 at least."""
    moved = np.linalg.norm(system.offsets[system.steps], axis=1)
    return max(1.0, SAME_PLACE * len(moved) / max(float(moved.sum()), 1.0))


def landmark_noise(system: System) -> float:
    """Return the noise of landmarks, in units of what they say, by their scatter about the maps of their own links."""
    squares, spare = 0.0, 0.0
    for link in system.links:
        free = 2 * len(link.points_j) - min(link.rank, system.family.freedom)
        off = apply_map(link.i_from_j, link.points_j) - link.points_i
        scattered = float(np.sum(off**2 / link.sigma[:, None] ** 2))
        # Landmarks that were read off a map, as those of a dense registration, lie on it to rounding and tell nothing.
        if scattered > ROUNDING**2 * free > 0.0:
            squares += scattered
            spare += free
    return float(np.clip(np.sqrt(squares / spare), *NOISE_RANGE)) if spare > 0 else 1.0


def learn_robust_weights(check: Check, before: NoiseModel, rescaled: NDArray[np.float64] | float = 1.0) -> NoiseModel:
    """Return how much of its weight every link keeps, if links err with the tails of a t distribution.

    A pair on relief, or on a strip, errs by several times what others do; it still tells something. Where another noise
    was learned from the check than it was made by, `rescaled` (L,) are the quotients of the variances, old by new: or a
    link would lose weight twice for the same error.
    """
    ranks = check.solution.system.ranks
    # Rounding may put it beyond, where what is known to all digits stands beside what is not known at all.
    uncertain = np.clip(np.trace(check.fitted_covariance, axis1=1, axis2=2), 0.0, ranks)
    squares = rescaled * (check.squares + uncertain) / before.robust_weights
    return replace(before, robust_weights=robust_weights_of(squares, ranks))


def robust_weights_of(squares: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how much of its weight a link of a t distribution keeps, by its squared residual and its rank (L,)."""
    return np.asarray(np.clip((LINK_TAIL + ranks) / (LINK_TAIL + squares), LEAST_ROBUST_WEIGHT, 1.0))


def learn_noise(
    check: Check, groups: NDArray[np.int64], before: NoiseModel, group: int, expected: float, deviation: float
) -> float:
    """Return s of a group of links, whose logarithm is beforehand normal about that of the one expected."""
    own = groups == group
    squares, redundancy = check.squares[own] * before.noise[group] ** 2, check.redundancy[own]
    found = expected
    for _ in range(OUTLIER_ROUNDS):
        inlier = squares / before.robust_weights[own] <= LARGEST_CHI2 * found**2
        found, previous = _most_likely_factor(squares[inlier], redundancy[inlier], expected, deviation), found
        if found == previous:
            break
    return found


def learn_chain_noise(check: Check, loops: NDArray[np.bool_], before: float, expected: float) -> float:
    """Return the noise of the chain, by how much loops (L,) miss what everything else foretells of them."""
    ranks = check.solution.system.ranks[loops].astype(np.float64)
    chi2 = chi2_against_rest(check.fitted_covariance[loops], check.solution.rows.residual[loops], np.ones(len(ranks)))
    return _most_likely_factor(chi2 * before**2, ranks, expected, LOG_DEVIATION)


def _most_likely_factor(
    squares: NDArray[np.float64], redundancy: NDArray[np.float64], expected: float, deviation: float
) -> float:
    """Return s from squared residuals in units of what links say, no link counting for more than its share."""
    checked = redundancy > 1e-6
    return _maximise_likelihood(squares[checked], redundancy[checked], expected, deviation)


@compiled
def _maximise_likelihood(
    squares: NDArray[np.float64], redundancy: NDArray[np.float64], expected: float, deviation: float
) -> float:
    """Return the s at which the likelihood is level: Newton's steps, halves where they lead out of what is left."""
    total, usual = MEAN_SHARE * redundancy.sum(), math.log(expected)
    lowest, highest = math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1])
    at = min(max(usual, lowest), highest)
    for _ in range(MOST_STEPS):
        scale, slope, bend = math.exp(-2.0 * at), total + (at - usual) / deviation**2, 1.0 / deviation**2
        for n in range(len(squares)):
            share, most = squares[n] * scale, LARGEST_SHARE * redundancy[n]
            slope -= min(share, most)
            bend += 2.0 * share if share < most else 0.0
        if slope < 0.0:
            lowest = at
        else:
            highest = at
        following = at - slope / bend
        if not lowest <= following <= highest:
            following = 0.5 * (lowest + highest)
        if abs(following - at) < ENOUGH_DIGITS:
            return min(max(math.exp(following), NOISE_RANGE[0]), NOISE_RANGE[1])
        at = following
    return math.exp(at)
