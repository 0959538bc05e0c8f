"""The state of a mosaic: maps of all frames, covariance, learned noise, rejected links; and how it is found.

Here it is made from a chain; `judgement.py` makes it from a chain and answers.

Least squares spreads what is wrong over what is right, and weights by residuals then take the wrong for the usual. So
links lose weight with their residual, and what is tolerated shrinks step by step, from a limit that tolerates all: the
many decide.
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
    learn_noise,
    learn_robust_weights,
    robust_weights_of,
)
from smalti.geometry.homographies import Family, similarity_part
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Pair, PairNumbers

ROUNDS_OF_NOISE, ROUNDS_OF_CAMERA = 5, 15
"""In which noise and camera are learned from a chain."""

LEAST_EXTENT = 10.0
"""Frames beside each other: nobody makes a mosaic of less."""

RELINEARISATIONS = 4
"""Times that landmarks themselves are looked at, at the end."""

TOLERATED_DEVIATIONS = 6.0
"""Landmarks lose weight beyond so many robust deviations: what relief moves counts, what is wrong does not."""

SMALLEST_TOLERANCE_PX = 1.5

TOLERATED_SIGMAS = 3.0
"""Of a landmark's own, that it may be off beside: a person's clicks err by more than the pixels of a chain do."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Maps of all frames by the links that are accepted."""

    solution: Solution
    groups: NDArray[np.int64]  # (L,): whose noise each link has
    noise_model: NoiseModel
    rejected: Mapping[Pair, Link]
    person_pairs: frozenset[Pair] = frozenset()
    variance_inflation: NDArray[np.float64] | None = (
        None  # (L,), 1 for none: times so much the variance of a link may be
    )

    @property
    def local_noise(self) -> float:
        """Of the chain, as neighbours tell it."""
        return self.noise_model.local_noise

    @property
    def lens(self) -> Lens | None:
        """The lens, None where it was known for certain beforehand."""
        return self.solution.lens

    @property
    def system(self) -> System:
        """The accepted links."""
        return self.solution.system

    @property
    def frames(self) -> int:
        """N."""
        return self.system.frames

    @property
    def outline(self) -> Outline:
        """Of every frame."""
        return self.system.outline

    @property
    def family(self) -> Family:
        """Of the maps."""
        return self.system.family

    @property
    def part(self) -> NDArray[np.int64]:
        """(N,): the part of every frame, the largest first."""
        return self.system.part

    @cached_property
    def covariance(self) -> Covariance:
        """How surely frames lie to each other."""
        return Covariance(self.outline, self.family, self.solution.maps, self.solution.factor, self.part)

    @cached_property
    def conservative_covariance(self) -> Covariance:
        """The same, with what links that nobody confirms are doubted by: for what people are told."""
        if self.variance_inflation is None:
            return self.covariance
        solution = reweighted(self.solution, 1.0 / np.sqrt(self.variance_inflation))
        return Covariance(self.outline, self.family, solution.maps, solution.factor, self.part)

    @cached_property
    def check(self) -> Check:
        """What the accepted links say of each other."""
        return Check(self.solution)

    @cached_property
    def contradictions(self) -> NDArray[np.float64]:
        """(L,): χ² of every accepted link, at its full weight, against the others."""
        return self.check.chi2_at_full_weight(self.noise_model.robust_weights)

    @cached_property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): in pixels of each part's reference frame, straight of the lens."""
        units = self.solution.maps
        own = self.system.references[self.part]
        relative = np.linalg.inv(units[own]) @ units
        to_unit = np.vstack([self.outline.unit_from_pixels, [0.0, 0.0, 1.0]])
        # Level is level: of the reference frame only place, turn and scale are taken.
        return (
            _in_pixels(_relative_to_references(units, own), to_unit)
            if self.family.freedom > 4
            else _in_pixels(relative, to_unit)
        )

    @cached_property
    def noise_variance(self) -> float:
        """Of the logarithm of the links' variance, as far as it was learned."""
        loops = np.isin(self.groups, (MATCHER, PERSON))
        information = float(self.system.ranks[loops].sum()) + 0.5 / LOG_DEVIATION**2
        return 2.0 / information

    @cached_property
    def extent(self) -> float:
        """How many frames beside each other would cover the boxes around all mosaics, and some more."""
        half = 2.0 * self.system.corner_reach
        maps = self.solution.maps
        centres = maps[:, :2, 2] / maps[:, 2:, 2] / half
        sides = [np.ptp(centres[self.part == part], axis=0) + 1.0 for part in range(int(self.part.max()) + 1)]
        return LEAST_EXTENT + float(np.sum(np.prod(sides, axis=1)))

    def surprise(self, link: Link, group: int) -> float:
        """Return χ² of a link that is not accepted, against what the accepted ones foretell; 0 between parts."""
        pair = np.array([[link.pair.i, link.pair.j]])
        if self.part[link.pair.i] != self.part[link.pair.j]:
            return 0.0
        residual, rows = self._predict(link, group, pair)
        known = self.covariance.of_predicted_links(rows)[0] / self.outline.unit**2
        # With room for the rounding of what is foretold endlessly badly.
        predicted = known + (1.0 + 1e-12 * float(np.trace(known))) * np.eye(len(residual))
        return float(residual @ np.linalg.solve(predicted, residual))

    def centre_residual(self, link: Link) -> float:
        """Return how far the mosaic is from where a link has the centre of j in i, in units."""
        i_from_j = np.linalg.inv(self.solution.maps[link.pair.i]) @ self.solution.maps[link.pair.j]
        estimated, measured = (m[:2, 2] / m[2, 2] for m in (i_from_j, link.i_from_j))
        return float(np.linalg.norm(estimated - measured))

    def chi2(self) -> dict[Pair, float]:
        """Return how strongly each link, accepted or rejected, contradicts the others."""
        accepted = dict(zip(self.system.place_of, self.contradictions.tolist(), strict=True))
        return {**accepted, **{pair: self.surprise(link, MATCHER) for pair, link in self.rejected.items()}}

    def _predict(self, link: Link, group: int, pair: PairNumbers) -> tuple[NDArray[np.float64], PredictedLinks]:
        """Return R e of a link at the mosaic, and how it moves with both frames' increments."""
        maps = self.solution.maps
        relative = np.linalg.inv(maps[link.pair.i]) @ maps[link.pair.j]
        m = np.linalg.inv(link.i_from_j) @ relative
        m /= m[2, 2] if abs(m[2, 2]) > 1e-3 else 1e-3
        root = link.root / self.noise_model.noise[group]
        lens_residual = link.by_lens @ (self.solution.lens_change - link.lens_at) / self.noise_model.noise[group]
        residual = root @ (m - np.eye(3)).ravel()[:8] + lens_residual
        back = np.linalg.inv(maps[link.pair.j]) @ maps[link.pair.i]
        of_entries = PredictedLinks.of_increments(pair, relative[None], back[None])
        # In units, not px: the caller's covariance is in px² by convention.
        scale = self.outline.unit
        return residual, PredictedLinks(pair, root @ of_entries.by_i * scale, root @ of_entries.by_j * scale)


def begin(system: System, lens_root: NDArray[np.float64] | None = None, *, learns_camera: bool = True) -> Estimate:
    """Learn from a chain, and place its frames; `lens_root` (2, 2) is a root of what is known of the lens.

    First the noise, from the scatter of landmarks and from how triangles close, then the camera: learned together,
    much noise and a camera that never moves would explain any chain.
    """
    groups = np.full(len(system.links), CHAIN)
    noise_model, maps = NoiseModel.initial(system), system.first_maps()
    expected = local = landmark_noise(system)
    if len(system.links):
        solution, squares = anneal(system, _chain_noise_model(noise_model, system, local), groups, maps)
        noise_model, maps = (
            replace(noise_model, robust_weights=robust_weights_of(squares, system.ranks)),
            solution.node_maps,
        )
    for _ in range(ROUNDS_OF_NOISE if len(system.links) else 0):
        noise_model = _chain_noise_model(noise_model, system, local)
        solution = solve(system, noise_model.weights(groups), maps, ENOUGH_GAIN)
        maps, check = solution.node_maps, Check(solution)
        local = learn_noise(check, groups, noise_model, CHAIN, expected, LOG_DEVIATION)
        noise_model = learn_robust_weights(check, noise_model)
    noise_model, errors = _chain_noise_model(noise_model, system, local), step_errors(system, local)
    for _ in range(ROUNDS_OF_CAMERA if len(system.links) and learns_camera else 0):
        solution = solve(system, noise_model.weights(groups), maps, ENOUGH_GAIN)
        maps = solution.node_maps
        noise_model = learn_mean_motion(solution, noise_model, errors)
        noise_model = learn_camera(Check(solution), noise_model)
    noise_model = limit_camera_precision(noise_model, errors, len(system.steps))
    # Of a variance whose logarithm is normal, the mean lies above what is most likely.
    unlearned = CHAIN_INFLATION * local * float(np.exp(LOG_DEVIATION**2))
    noise_model = replace(noise_model, noise=(unlearned, local, 1.0), shared_turn=expected_shared_turn(errors))
    if lens_root is not None:
        noise_model = replace(noise_model, lens_root=lens_root)
    return Estimate(solve(system, noise_model.weights(groups), maps), groups, noise_model, {})


def _chain_noise_model(noise_model: NoiseModel, system: System, local: float) -> NoiseModel:
    """Return what is known while noise and camera are learned: a common error would be confused with the camera's."""
    return replace(noise_model, noise=(local, local, 1.0), local_noise=local, shared_turn=FIXED_DEVIATION)


def refine_on_landmarks(state: Estimate) -> Estimate:
    """Return the state with links looked at landmark by landmark, at the mosaic that they make together.

    A link's map stands for its landmarks as long as the mosaic agrees with it. At the end the landmarks speak for
    themselves, and those that no map follows, on relief or wrong, lose weight.

    What loops have added to the chain's noise is an error that neighbours share. The loops hold it now, and within that
    a link of the chain is as good as any other of the matcher's.
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
            np.linalg.norm(_project(relative[n], points_j) - points_i, axis=1)
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
    # How surely frames lie is told by the noise as it was learned.
    return replace(state, solution=reweighted(state.solution, 1.0 / factors))


def _project(i_from_j: Homographies, points: NDArray[np.float64]) -> NDArray[np.float64]:
    mapped = points @ i_from_j[:, :2].T + i_from_j[:, 2]
    return np.asarray(mapped[:, :2] / np.maximum(mapped[:, 2:], 1e-3))


def _relative_to_references(units: Homographies, references: NDArray[np.int64]) -> Homographies:
    """Return maps (N, 3, 3) with the place, turn and scale of their references taken out."""
    unique, at = np.unique(references, return_inverse=True)
    back = np.array([np.linalg.inv(similarity_part(units[reference])) for reference in unique])
    return np.asarray(back[at] @ units)


def _in_pixels(units: Homographies, to_unit: NDArray[np.float64]) -> Homographies:
    pixels = np.linalg.inv(to_unit) @ units @ to_unit
    return np.asarray(pixels / pixels[:, 2:, 2:])


TOLERATED_CHI2, SHRINKING, LEAST_ROBUST_WEIGHT = 50.0, 2.0, 1e-6
"""Squared residual of a link that is tolerated at last, and by which factor what is tolerated shrinks with every step;
what is left of a link's weight at least."""

ENOUGH_GAIN = 1e-4
"""Of the cost, while weights still change."""


def anneal(
    system: System, noise_model: NoiseModel, groups: NDArray[np.int64], start: Homographies
) -> tuple[Solution, NDArray[np.float64]]:
    """Return the maps that most links agree on, and the squared residuals (L,) of all links at full weight."""
    solution = solve(system, noise_model.weights(groups), start, ENOUGH_GAIN)
    squares = np.asarray(np.sum(solution.rows.residual**2, axis=1)) / noise_model.robust_weights
    tolerated = float(squares.max(initial=0.0))
    while tolerated > TOLERATED_CHI2:
        tolerated = max(tolerated / SHRINKING, TOLERATED_CHI2)
        robust_weights = np.maximum((tolerated / (tolerated + squares)) ** 2, LEAST_ROBUST_WEIGHT)
        weights = replace(noise_model, robust_weights=robust_weights).weights(groups)
        solution = solve(system, weights, solution.node_maps, ENOUGH_GAIN)
        squares = np.asarray(np.sum(solution.rows.residual**2, axis=1)) / robust_weights
    return solution, squares
