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
from scipy.optimize import brentq

from smalti.compiled import compiled
from smalti.engine.camera_priors import KIND_OF_ATTITUDE, KIND_OF_MOTION, Camera, motions
from smalti.engine.equations import TURN, System
from smalti.engine.row_covariance import chi2_against_rest, propagate_frames, propagate_links, propagate_pairs
from smalti.engine.rows import LENS_FIXED, Weights
from smalti.engine.solution import Solution
from smalti.geometry.homographies import apply_map, invert
from smalti.sparse.block_products import Blocks
from smalti.sparse.selected_inverse import inverse_in_pattern

CHAIN, MATCHER, PERSON = range(3)
"""Whose links have a noise of their own."""

ALIKE = 1.5
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

ROUNDS_WITHOUT_WRONG = 10
"""In which it is found out which links are wrong by a noise that is learned without them."""

EXTREMES = (1.0 / 50.0, 50.0)
"""Of s: links that agree to rounding must leave numbers to compute with."""

ROUNDING = 1e-4
"""In units of σ: landmarks that scatter by less about a map lie on it."""

MOST_STEPS, ENOUGH_DIGITS = 100, 1e-12
"""To the most likely factor, and of its logarithm."""

USUAL_DEVIATION, LOG_DEVIATION_OF_CAMERA = 0.03, 1.5
"""Of the camera before anything is known: what flights show, within a factor of four."""

LEAST_DEVIATION, LARGEST_DEVIATION = 1e-5, 1.0
"""Of attitude and motion; beyond the larger one a prior says nothing."""

FEWEST_FRAMES = 8
"""Of which something can be learned of the camera."""

SHARED_SHARE, FIRST_SHARED_TURN = 4.0, 1e-3
"""Times the turn of a single link's noise, the deviation of what all links of consecutive frames turn too much. On the
two long flights of the data they turn too much by about three times that noise."""

SAME_PLACE = 0.5
"""In units, a quarter of a frame: frames that are nearer to each other show much the same."""

LINK_TAIL, LEAST_ROBUST_WEIGHT = 8.0, 1e-12
"""Degrees of freedom of a link's t distribution, and what is left of the weight of a link that errs endlessly."""

BEYOND_DOUBT = 3.0
"""Deviations of its mean, from which on a camera's motion is taken to be kept up."""

HEAVY_TAIL = 3.0
"""Degrees of freedom of a motion's t distribution: a camera that keeps its heading along lanes turns at their ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What was learned: the noise of each group of links in units of what they say, and the camera."""

    noise: tuple[float, float, float]  # of chain, matcher, person
    camera: Camera
    motion_weights: NDArray[np.float64]  # (K, 6): of the motion of every two consecutive frames
    robust_weights: NDArray[np.float64]  # (L,): of every link, 1 at most: how much of its weight is left
    shared_turn: float = 1e-3  # the deviation of the turn that links of consecutive frames err by alike
    local_noise: float = 1.0  # of the chain, as neighbours tell it
    lens_root: NDArray[np.float64] = field(default_factory=lambda: LENS_FIXED)  # of the information on the lens (2, 2)

    @classmethod
    def nothing(cls, system: System) -> Knowledge:
        """Know nothing yet of the links of a system."""
        motion_weights = np.ones((len(system.steps), len(KIND_OF_MOTION)))
        camera = Camera(together=_frames_of_a_place(system))
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
        return Weights(weights, self.camera.let_go(self.growth), self.motion_weights, self.shared_turn, self.lens_root)


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
    def known(self) -> NDArray[np.float64]:
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
        return np.asarray(np.clip(ranks - np.trace(self.known, axis1=1, axis2=2), 0.0, ranks))

    @cached_property
    def chi2(self) -> NDArray[np.float64]:
        """(L,): how strongly links contradict all others, χ² of as many degrees as their ranks; 0 if none checks it."""
        return self.chi2_at_full_weight(np.ones(len(self.known)))

    def chi2_at_full_weight(self, robust_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same (L,) of every link as if it, and it alone, had the weight that it has lost.

        A wrong link loses its weight first; what is left of it contradicts nobody.
        """
        return chi2_against_rest(self.known, self.solution.rows.residual, robust_weights)

    def attitude_squares(self) -> NDArray[np.float64]:
        """Return value² + posterior variance of all attitudes (N, 5), in the camera's own numbers."""
        rows, camera = self.solution.rows, self.solution.weights.camera
        own = self.covariances[0][: self.solution.system.frames]
        variance = propagate_frames(own, rows.by_frame)
        return np.asarray((rows.attitude**2 + variance) * camera.of_attitude**2)

    def motion_squares(self, motion: NDArray[np.float64], by_i: Blocks, by_j: Blocks) -> NDArray[np.float64]:
        """Return the same of motions (K, 6) and their derivatives."""
        system = self.solution.system
        variance = propagate_pairs(*self.covariances, system.step_ends, system.steps, by_i, by_j)
        return np.asarray(motion**2 + variance)


def learn_camera(check: Check, before: Knowledge) -> Knowledge:
    """Return what one round more tells of the camera."""
    solution = check.solution
    system = solution.system
    if system.frames < FEWEST_FRAMES:
        return before
    deviations = np.array(before.camera.deviations)
    squares = check.attitude_squares()
    moved = np.zeros((0, len(KIND_OF_MOTION)))
    if len(system.steps) >= FEWEST_FRAMES:
        motion, by_i, by_j = motions(
            solution.maps, invert(solution.maps), system.ends[system.steps], system.family.freedom
        )
        moved = check.motion_squares(motion - before.camera.usual_motion, by_i, by_j)
    motion_weights = before.motion_weights
    for kind in range(len(deviations)):
        of_kind, table = (
            (kind == KIND_OF_ATTITUDE, squares) if kind in KIND_OF_ATTITUDE else (kind == KIND_OF_MOTION, moved)
        )
        if not len(table):
            continue
        chosen = table[:, of_kind]
        if kind in KIND_OF_MOTION:
            first = deviations[kind] if np.isfinite(deviations[kind]) else float(np.sqrt(np.median(chosen)) + 1e-3)
            usual = (HEAVY_TAIL + 1.0) / (HEAVY_TAIL + chosen / first**2)
            motion_weights = motion_weights.copy()
            motion_weights[:, of_kind] = usual
            chosen = usual * chosen
        deviations[kind] = _most_likely_deviation(float(chosen.sum()), chosen.size)
    return replace(before, camera=before.camera.with_deviations(deviations), motion_weights=motion_weights)


def learn_usual_motion(solution: Solution, before: Knowledge, errors: NDArray[np.float64]) -> Knowledge:
    """Return what is known with the motion that a camera keeps up from frame to frame, where it is beyond doubt.

    Whoever pans or circles turns by much the same every time. If that had to be small, all links of consecutive frames
    would be thought to turn alike too much, which they may by some. They err by `errors` (6,).
    """
    system = solution.system
    if len(system.steps) < FEWEST_FRAMES:
        return before
    maps = solution.maps
    motion, _, _ = motions(maps, invert(maps), system.ends[system.steps], system.family.freedom)
    # Weighted as motions are: then they pull no common error out of the links.
    usual = np.sum(before.motion_weights * motion, axis=0) / np.sum(before.motion_weights, axis=0)
    about = 1.4826 * np.median(np.abs(motion - usual), axis=0)
    doubt = np.hypot(about, errors) / np.sqrt(len(motion))
    kept = np.where(np.abs(usual) > BEYOND_DOUBT * doubt, usual, 0.0)
    return replace(before, camera=replace(before.camera, usual_motion=tuple(kept.tolist())))


def _frames_of_a_place(system: System) -> float:
    """Return in how many frames the camera moves by a quarter of a frame, on average; 1 at least."""
    moved = np.linalg.norm(system.offsets[system.steps], axis=1)
    return max(1.0, SAME_PLACE * len(moved) / max(float(moved.sum()), 1.0))


def scatter(system: System) -> float:
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
    return float(np.clip(np.sqrt(squares / spare), *EXTREMES)) if spare > 0 else 1.0


def expected_turn(errors: NDArray[np.float64]) -> float:
    """Return by how much links of consecutive frames that err by `errors` (6,) may turn alike too much."""
    return SHARED_SHARE * float(errors[0]) if errors[0] > 0.0 else FIRST_SHARED_TURN


def errors_of_steps(system: System, noise: float) -> NDArray[np.float64]:
    """Return by how much a link of consecutive frames errs in turn, zoom, stretch and perspective (6,), as a rule."""
    errors, measured = np.zeros(len(KIND_OF_MOTION)), _step_variances(system)
    if measured is not None and len(measured) > TURN:
        errors[: len(measured) - TURN] = noise * np.sqrt(measured[TURN:])
    return errors


def _step_variances(system: System) -> NDArray[np.float64] | None:
    """Return how uncertain links of consecutive frames are of each direction (f,), in the median."""
    found = []
    for n in system.steps:
        link = system.links[n]
        if link.rank >= system.family.freedom:
            rows = link.root @ system.family.by_entry.T
            found.append(np.diag(np.linalg.inv(rows.T @ rows)))
    return np.asarray(np.median(found, axis=0)) if found else None


def not_stiller_than_told(knowledge: Knowledge, errors: NDArray[np.float64], count: int) -> Knowledge:
    """Return the camera held no stiller than so many links can tell that err by `errors` (6,) each.

    A variance that is learned from n numbers of variance τ² each is known to τ² √(2/n): less than that may be chance,
    and a camera that is held too still bends a mosaic for good. Frames are no more level than they move.
    """
    deviations = np.array(knowledge.camera.deviations)
    chance = errors**2 * np.sqrt(2.0 / max(count, 1))
    for kind in np.unique(KIND_OF_MOTION):
        if np.isfinite(deviations[kind]):
            deviations[kind] = np.sqrt(deviations[kind] ** 2 + np.mean(chance[kind == KIND_OF_MOTION]))
    deviations[:3] = np.maximum(deviations[:3], 0.5 * np.where(np.isfinite(deviations[4:]), deviations[4:], 0.0))
    return replace(knowledge, camera=knowledge.camera.with_deviations(deviations))


def learn_robust_weights(check: Check, before: Knowledge, rescaled: NDArray[np.float64] | float = 1.0) -> Knowledge:
    """Return how much of its weight every link keeps, if links err with the tails of a t distribution.

    A pair on relief, or on a strip, errs by several times what others do; it still tells something. Where another noise
    was learned from the check than it was made by, `rescaled` (L,) are the quotients of the variances, old by new: or a
    link would lose weight twice for the same error.
    """
    ranks = check.solution.system.ranks
    # Rounding may put it beyond, where what is known to all digits stands beside what is not known at all.
    unknown = np.clip(np.trace(check.known, axis1=1, axis2=2), 0.0, ranks)
    bent = rescaled * (check.squares + unknown) / before.robust_weights
    return replace(before, robust_weights=robust_weights_of(bent, ranks))


def robust_weights_of(squares: NDArray[np.float64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how much of its weight a link of a t distribution keeps, by its squared residual and its rank (L,)."""
    return np.asarray(np.clip((LINK_TAIL + ranks) / (LINK_TAIL + squares), LEAST_ROBUST_WEIGHT, 1.0))


def learn_noise(
    check: Check, groups: NDArray[np.int64], before: Knowledge, group: int, expected: float, deviation: float
) -> float:
    """Return s of a group of links, whose logarithm is beforehand normal about that of the one expected."""
    own = groups == group
    squares, redundancy = check.squares[own] * before.noise[group] ** 2, check.redundancy[own]
    found = expected
    for _ in range(ROUNDS_WITHOUT_WRONG):
        honest = squares / before.robust_weights[own] <= LARGEST_CHI2 * found**2
        found, known = _most_likely_factor(squares[honest], redundancy[honest], expected, deviation), found
        if found == known:
            break
    return found


def learn_from_loops(check: Check, loops: NDArray[np.bool_], before: float, expected: float) -> float:
    """Return the noise of the chain, by how much loops (L,) miss what everything else foretells of them."""
    ranks = check.solution.system.ranks[loops].astype(np.float64)
    chi2 = chi2_against_rest(check.known[loops], check.solution.rows.residual[loops], np.ones(len(ranks)))
    return _most_likely_factor(chi2 * before**2, ranks, expected, LOG_DEVIATION)


def _most_likely_factor(
    squares: NDArray[np.float64], redundancy: NDArray[np.float64], expected: float, deviation: float
) -> float:
    """Return s from squared residuals in units of what links say, no link counting for more than its share."""
    told = redundancy > 1e-6
    return _where_level(squares[told], redundancy[told], expected, deviation)


@compiled
def _where_level(
    squares: NDArray[np.float64], redundancy: NDArray[np.float64], expected: float, deviation: float
) -> float:
    """Return the s at which the likelihood is level: Newton's steps, halves where they lead out of what is left."""
    total, usual = MEAN_SHARE * redundancy.sum(), math.log(expected)
    lowest, highest = math.log(EXTREMES[0]), math.log(EXTREMES[1])
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
            return min(max(math.exp(following), EXTREMES[0]), EXTREMES[1])
        at = following
    return math.exp(at)


def _most_likely_deviation(total: float, count: int) -> float:
    """Return the deviation of numbers whose squares sum up to a total, by what cameras usually show."""

    def slope(log_deviation: float) -> float:
        told = count - total * np.exp(-2.0 * log_deviation)
        return float(told + (log_deviation - np.log(USUAL_DEVIATION)) / LOG_DEVIATION_OF_CAMERA**2)

    lowest, highest = np.log([LEAST_DEVIATION, LARGEST_DEVIATION])
    if slope(lowest) >= 0.0:
        return LEAST_DEVIATION
    return LARGEST_DEVIATION if slope(highest) <= 0.0 else float(np.exp(brentq(slope, lowest, highest)))
