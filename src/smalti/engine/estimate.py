"""The state of a mosaic: maps of all frames, covariance, learned noise, rejected links.

`Estimate` is the state. `begin` computes it from a chain; `robust_estimate.py` computes it from a chain and answers.
`refine_on_landmarks` is the final refinement on all landmarks. `anneal` finds the maps that most links agree on.

Least squares spreads the error of an outlier over the inliers, so weights by residual would then reject the wrong
links. Annealing avoids this: links lose weight with their residual, and the tolerated residual shrinks step by step
from a limit that tolerates all links. So the majority decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.engine.camera_learning import (
    expected_shared_turn,
    learn_camera,
    learn_mean_motion,
    limit_camera_precision,
    step_errors,
)
from smalti.engine.covariance import Covariance
from smalti.engine.equations import System
from smalti.engine.linearisation import FIXED_DEVIATION
from smalti.engine.link_prediction import PredictedLinks
from smalti.engine.links import Link, relinearise
from smalti.engine.solution import Solution, reweighted, solve
from smalti.engine.variance_components import (
    CHAIN,
    CHAIN_INFLATION,
    LOG_DEVIATION,
    MATCHER,
    PERSON,
    Check,
    NoiseModel,
    landmark_noise,
    learn_method_noise,
    learn_noise,
    learn_robust_weights,
    robust_weights_of,
)
from smalti.geometry.homographies import Family, similarity_part
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Pair, PairNumbers

ROUNDS_OF_NOISE, ROUNDS_OF_METHODS, ROUNDS_OF_CAMERA = 5, 15, 15
"""Rounds of learning the noise, then the camera, from a chain; and of the noise where several registration methods have
made links: residuals move slowly from those of one method to those of another."""

LEAST_EXTENT = 10.0
"""In frames side by side; no mosaic is smaller."""

RELINEARISATIONS = 4
"""How many times the final refinement linearises all landmarks."""

TOLERATED_DEVIATIONS = 6.0
"""Landmarks lose weight beyond so many robust deviations. Landmarks on relief still count, wrong ones do not."""

SMALLEST_TOLERANCE_PX = 1.5
"""The smallest tolerance of a landmark."""

TOLERATED_SIGMAS = 3.0
"""A landmark's tolerance is at least so many of its own `sigma`: a person's clicks are less exact than the chain."""

TOLERATED_CHI2, SHRINKING, LEAST_ANNEALED_WEIGHT = 50.0, 2.0, 1e-6
"""Annealing: the last tolerated squared residual of a link, the factor by which the tolerance shrinks in every step,
and the smallest robust weight."""

ENOUGH_GAIN = 1e-4
"""As a share of the cost: a step that gains less ends a solve while weights still change."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Maps of all frames, estimated from the accepted links."""

    solution: Solution
    groups: NDArray[np.int64]  # (L,): the noise group of each link
    noise_model: NoiseModel
    rejected: Mapping[Pair, Link]
    person_pairs: frozenset[Pair] = frozenset()
    variance_inflation: NDArray[np.float64] | None = (
        None  # (L,), 1 for none: times so much the variance of a link may be
    )

    @property
    def local_noise(self) -> float:
        """The chain's noise from triangles of neighbours, in units of the stated noise."""
        return self.noise_model.local_noise

    @property
    def lens(self) -> Lens | None:
        """The estimated lens; None if it was certain beforehand."""
        return self.solution.lens

    @property
    def system(self) -> System:
        """The system of the accepted links."""
        return self.solution.system

    @property
    def frames(self) -> int:
        """N, the number of frames."""
        return self.system.frames

    @property
    def outline(self) -> Outline:
        """The outline of every frame."""
        return self.system.outline

    @property
    def family(self) -> Family:
        """The family of the maps."""
        return self.system.family

    @property
    def part(self) -> NDArray[np.int64]:
        """(N,): the connected part of every frame, the largest part first."""
        return self.system.part

    @cached_property
    def covariance(self) -> Covariance:
        """The covariance of frames relative to each other."""
        return Covariance(self.outline, self.family, self.solution.maps, self.solution.factor, self.part)

    @cached_property
    def conservative_covariance(self) -> Covariance:
        """The covariance with inflated variances of unconfirmed links: for predicted errors."""
        if self.variance_inflation is None:
            return self.covariance
        solution = reweighted(self.solution, 1.0 / np.sqrt(self.variance_inflation))
        return Covariance(self.outline, self.family, solution.maps, solution.factor, self.part)

    @cached_property
    def check(self) -> Check:
        """The posterior check of the accepted links against each other."""
        return Check(self.solution)

    @cached_property
    def contradictions(self) -> NDArray[np.float64]:
        """(L,): χ² of every accepted link at its full weight against the others."""
        return self.check.chi2_at_full_weight(self.noise_model.robust_weights)

    @cached_property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): from undistorted pixels of a frame to those of its part's reference frame."""
        units = self.solution.maps
        own = self.system.references[self.part]
        relative = np.linalg.inv(units[own]) @ units
        to_unit = np.vstack([self.outline.unit_from_pixels, [0.0, 0.0, 1.0]])
        # The mosaic stays level: only position, turn and scale of the reference frame are taken out.
        return (
            _in_pixels(_relative_to_references(units, own), to_unit)
            if self.family.freedom > 4
            else _in_pixels(relative, to_unit)
        )

    @cached_property
    def noise_variance(self) -> float:
        """The posterior variance of the logarithm of the links' variance."""
        loops = np.isin(self.groups, (MATCHER, PERSON))
        information = float(self.system.ranks[loops].sum()) + 0.5 / LOG_DEVIATION**2
        return 2.0 / information

    @cached_property
    def extent(self) -> float:
        """The area of the boxes around all mosaics, in frames, plus LEAST_EXTENT."""
        half = 2.0 * self.system.corner_reach
        maps = self.solution.maps
        centres = maps[:, :2, 2] / maps[:, 2:, 2] / half
        sides = [np.ptp(centres[self.part == part], axis=0) + 1.0 for part in range(int(self.part.max()) + 1)]
        return LEAST_EXTENT + float(np.sum(np.prod(sides, axis=1)))

    def surprise(self, link: Link, group: int) -> float:
        """Return χ² of a link that is not accepted against the prediction of the accepted ones; 0 between parts."""
        pair = np.array([[link.pair.i, link.pair.j]])
        if self.part[link.pair.i] != self.part[link.pair.j]:
            return 0.0
        residual, rows = self._predict(link, group, pair)
        known = self.covariance.of_predicted_links(rows)[0] / self.outline.unit**2
        # The margin covers the rounding of a very uncertain prediction.
        predicted = known + (1.0 + 1e-12 * float(np.trace(known))) * np.eye(len(residual))
        return float(residual @ np.linalg.solve(predicted, residual))

    def centre_residual(self, link: Link) -> float:
        """Return the distance between the centre of j in i on the mosaic and as a link measures it, in units."""
        i_from_j = np.linalg.inv(self.solution.maps[link.pair.i]) @ self.solution.maps[link.pair.j]
        estimated, measured = (m[:2, 2] / m[2, 2] for m in (i_from_j, link.i_from_j))
        return float(np.linalg.norm(estimated - measured))

    def chi2(self) -> dict[Pair, float]:
        """Return χ² of each link, accepted or rejected, against the accepted ones."""
        accepted = dict(zip(self.system.place_of, self.contradictions.tolist(), strict=True))
        return {**accepted, **{pair: self.surprise(link, MATCHER) for pair, link in self.rejected.items()}}

    def _predict(self, link: Link, group: int, pair: PairNumbers) -> tuple[NDArray[np.float64], PredictedLinks]:
        """Return the residual R e of a link at the mosaic, and its derivatives by both frames' increments."""
        maps = self.solution.maps
        relative = np.linalg.inv(maps[link.pair.i]) @ maps[link.pair.j]
        m = np.linalg.inv(link.i_from_j) @ relative
        m /= m[2, 2] if abs(m[2, 2]) > 1e-3 else 1e-3
        noise = self.noise_model.noise[group] * self.noise_model.factor_of(link.method)
        root = link.root / noise
        lens_residual = link.by_lens @ (self.solution.lens_change - link.lens_at) / noise
        residual = root @ (m - np.eye(3)).ravel()[:8] + lens_residual
        back = np.linalg.inv(maps[link.pair.j]) @ maps[link.pair.i]
        of_entries = PredictedLinks.of_increments(pair, relative[None], back[None])
        # PredictedLinks are in px by convention; the caller divides by unit².
        scale = self.outline.unit
        return residual, PredictedLinks(pair, root @ of_entries.by_i * scale, root @ of_entries.by_j * scale)


def begin(system: System, lens_root: NDArray[np.float64] | None = None, *, learns_camera: bool = True) -> Estimate:
    """Return the estimate of a chain; `lens_root` (2, 2) is a square root of the prior information on the lens.

    The noise is learned first, from residuals of landmarks and of triangles, then the camera. If both were learned
    together, much noise and a camera that never moves would explain any chain.
    """
    groups = np.full(len(system.links), CHAIN)
    noise_model, maps = NoiseModel.initial(system), system.first_maps()
    expected = local = landmark_noise(system, noise_model.reference_method)
    prior = noise_model
    if len(system.links):
        solution, squares = anneal(system, _chain_noise_model(noise_model, system, local), groups, maps)
        noise_model, maps = (
            replace(noise_model, robust_weights=robust_weights_of(squares, system.ranks)),
            solution.node_maps,
        )
    rounds = ROUNDS_OF_METHODS if noise_model.methods else ROUNDS_OF_NOISE
    for _ in range(rounds if len(system.links) else 0):
        noise_model = _chain_noise_model(noise_model, system, local)
        solution = solve(system, noise_model.weights(groups, system.links), maps, ENOUGH_GAIN)
        maps, check = solution.node_maps, Check(solution)
        local = learn_noise(check, groups, noise_model, CHAIN, expected, LOG_DEVIATION)
        if noise_model.methods:
            methods = learn_method_noise(check, groups, noise_model, (local, local, 1.0), prior)
            noise_model = replace(noise_model, methods=methods)
        noise_model = learn_robust_weights(check, noise_model)
    noise_model, errors = _chain_noise_model(noise_model, system, local), step_errors(system, local)
    for _ in range(ROUNDS_OF_CAMERA if len(system.links) and learns_camera else 0):
        solution = solve(system, noise_model.weights(groups, system.links), maps, ENOUGH_GAIN)
        maps = solution.node_maps
        noise_model = learn_mean_motion(solution, noise_model, errors)
        noise_model = learn_camera(Check(solution), noise_model)
    noise_model = limit_camera_precision(noise_model, errors, len(system.steps))
    # The mean of a log-normal variance is larger than its most likely value.
    unlearned = CHAIN_INFLATION * local * float(np.exp(LOG_DEVIATION**2))
    noise_model = replace(noise_model, noise=(unlearned, local, 1.0), shared_turn=expected_shared_turn(errors))
    if lens_root is not None:
        noise_model = replace(noise_model, lens_root=lens_root)
    return Estimate(solve(system, noise_model.weights(groups, system.links), maps), groups, noise_model, {})


def _chain_noise_model(noise_model: NoiseModel, system: System, local: float) -> NoiseModel:
    """Return the model while noise and camera are learned, without a shared error: the camera would absorb it."""
    return replace(noise_model, noise=(local, local, 1.0), local_noise=local, shared_turn=FIXED_DEVIATION)


def refine_on_landmarks(state: Estimate) -> Estimate:
    """Return the state after the final refinement: links are linearised at the mosaic, landmark by landmark.

    A link's map stands for its landmarks as long as the mosaic is close to it. The final refinement uses the landmarks
    themselves. Those that no map fits, on relief or wrong, lose weight.

    The chain's noise beyond the matcher's is an error that neighbouring links share. Loop closures determine this error
    now. So the links of the chain count as much as other links of the matcher.
    """
    unit = state.outline.unit
    chain, matcher, _ = state.noise_model.noise
    raised = max(chain / matcher, 1.0) if np.any(state.groups == MATCHER) else 1.0
    factors = np.where(state.groups == CHAIN, raised, 1.0)
    state = replace(state, solution=reweighted(state.solution, factors))
    for _ in range(RELINEARISATIONS):
        maps, system, lens = state.solution.maps, state.system, state.solution.lens_change
        relative = np.linalg.inv(maps[system.ends[:, 0]]) @ maps[system.ends[:, 1]]
        offsets = [
            np.linalg.norm(link.across(_project(relative[n], points_j) - points_i), axis=1)
            for n, link in enumerate(system.links)
            for points_i, points_j in (link.through(lens),)
        ]
        scale = 1.4826 * float(np.median(np.concatenate(offsets))) / 1.1774 if offsets else 0.0
        tolerance = max(TOLERATED_DEVIATIONS * scale, SMALLEST_TOLERANCE_PX / unit)
        links = tuple(
            relinearise(link, relative[n], lens, np.maximum(tolerance, TOLERATED_SIGMAS * link.sigma))
            for n, link in enumerate(system.links)
        )
        moved = replace(system, links=links)
        solution = solve(moved, state.solution.weights, state.solution.node_maps)
        state = replace(state, solution=solution)
    # The covariance is computed with the noise as it was learned.
    return replace(state, solution=reweighted(state.solution, 1.0 / factors))


def _project(i_from_j: Homographies, points: NDArray[np.float64]) -> NDArray[np.float64]:
    mapped = points @ i_from_j[:, :2].T + i_from_j[:, 2]
    return np.asarray(mapped[:, :2] / np.maximum(mapped[:, 2:], 1e-3))


def _relative_to_references(units: Homographies, references: NDArray[np.int64]) -> Homographies:
    """Return maps (N, 3, 3) relative to the position, turn and scale of their reference frames (N,)."""
    unique, at = np.unique(references, return_inverse=True)
    back = np.array([np.linalg.inv(similarity_part(units[reference])) for reference in unique])
    return np.asarray(back[at] @ units)


def _in_pixels(units: Homographies, to_unit: NDArray[np.float64]) -> Homographies:
    pixels = np.linalg.inv(to_unit) @ units @ to_unit
    return np.asarray(pixels / pixels[:, 2:, 2:])


def anneal(
    system: System, noise_model: NoiseModel, groups: NDArray[np.int64], start: Homographies
) -> tuple[Solution, NDArray[np.float64]]:
    """Return the maps that most links agree on, and the squared residuals (L,) of all links at full weight."""
    solution = solve(system, noise_model.weights(groups, system.links), start, ENOUGH_GAIN)
    squares = np.asarray(np.sum(solution.rows.residual**2, axis=1)) / noise_model.robust_weights
    tolerated = float(squares.max(initial=0.0))
    while tolerated > TOLERATED_CHI2:
        tolerated = max(tolerated / SHRINKING, TOLERATED_CHI2)
        robust_weights = np.maximum((tolerated / (tolerated + squares)) ** 2, LEAST_ANNEALED_WEIGHT)
        weights = replace(noise_model, robust_weights=robust_weights).weights(groups, system.links)
        solution = solve(system, weights, solution.node_maps, ENOUGH_GAIN)
        squares = np.asarray(np.sum(solution.rows.residual**2, axis=1)) / robust_weights
    return solution, squares
