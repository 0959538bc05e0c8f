"""Synthetic sequences with known truth (the paper's section 7.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from smalti.agents.agent import PrecomputedAgent
from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import apply, homogeneous
from smalti.geometry.outline import Outline
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import ExternalModel, FixedProbabilities
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.records import Landmarks, Pair, PairNumbers, Points, Transforms
from smalti_lab.experiments.methods import Finish, FrameMaps, Loop, Method, finish_each_its_own_way
from smalti_lab.simulated_agents import TOLERANCE
from smalti_lab.synthetic.truth import fit_similarity

OUTLINE = Outline(0.0, 0.0, 100.0, 100.0)
CONTROL_POINTS: Points = np.array([[x, y] for x in (0.0, 50.0, 100.0) for y in (0.0, 50.0, 100.0)])
RASTER_STEP = 100.0 / 3.0
CIRCLE_RADIUS = 250.0
MIN_FRAMES = 3

FRAMES_AT_ONCE = 256
"""Frames whose neighbours are searched together. Memory grows with this number times N."""


@dataclass(frozen=True, eq=False)
class World:
    """A camera that shifts, without turning, over a plane: frames, truth and external model."""

    name: str
    positions: Points  # (N, 2) of the frames' centres
    external: ExternalModel
    outline: ClassVar[Outline] = OUTLINE

    @property
    def frames(self) -> int:
        """N."""
        return len(self.positions)

    @property
    def overlapping(self) -> PairNumbers:
        """(n, 2): the pairs to which the agent says yes, in order."""
        return self.moments[0]

    @cached_property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the truth, in the coordinates of frame 0."""
        maps = np.tile(np.eye(2, 3), (self.frames, 1, 1))
        maps[:, :, 2] = self.positions - self.positions[0]
        return maps

    def agent(self, seed: int, sigma: float = 1.0, chain_noise: float = 1.0) -> PrecomputedAgent:
        """Return an agent that has measured every overlapping pair once, with normal noise of `sigma` pixels.

        One generator for each seed draws the noise of all pairs in their order when the run begins, so every question
        about a pair gets the same landmarks. Those of consecutive frames err `chain_noise` times as much as they state.
        """
        pairs, point = self.shown_in_both
        points_j = CONTROL_POINTS[point]
        exact = points_j + self.positions[pairs[:, 1]] - self.positions[pairs[:, 0]]
        noise = np.random.default_rng(seed).normal(0.0, sigma, size=exact.shape)
        noise[np.diff(pairs, axis=1)[:, 0] == 1] *= chain_noise
        return PrecomputedAgent(pairs, exact + noise, points_j, np.full(len(pairs), sigma))

    def chain(self, agent: PrecomputedAgent) -> list[Landmarks]:
        """Return the agent's landmarks of all consecutive pairs."""
        consecutive = (agent.landmarks(Pair(n, n + 1)) for n in range(self.frames - 1))
        return [landmarks for landmarks in consecutive if landmarks is not None]

    def start(
        self, agent: PrecomputedAgent, external: ExternalModel, method: Method, stop_rule: StopRule | None = None
    ) -> Loop:
        """Begin with the chain alone."""
        return method.start(self.frames, OUTLINE, self.chain(agent), external=external, stop_rule=stop_rule)

    def finish(self, start: Loop) -> Finish:
        """Return the finish of either method."""
        return finish_each_its_own_way

    def relative_rmsd(self, maps: FrameMaps) -> float:
        """Return the paper's error: RMS distance, in frame i, of T_ij x_j to the true x_i over all control points."""
        pairs, point = self.shown_in_both
        i, j = pairs.T
        mosaic_from_frame = maps.mosaic_from_frame
        i_from_j = np.linalg.inv(mosaic_from_frame)[i] @ mosaic_from_frame[j]
        points_j = CONTROL_POINTS[point]
        mapped = maps.lens.distort(apply_map(i_from_j, maps.lens.undistort(points_j)[:, None])[:, 0])
        off = mapped - points_j - self.positions[j] + self.positions[i]
        return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))

    def shape_rmsd(self, maps: FrameMaps) -> float:
        """Return the RMS distance of the frame centres to the truth after the best similarity. It shows shrinking."""
        centres = apply_map(maps.mosaic_from_frame, OUTLINE.centre[None])[:, 0]
        true_centres = apply(self.mosaic_from_frame, OUTLINE.centre[None])[:, 0]
        residual = fit_similarity(centres, true_centres) - true_centres
        return float(np.sqrt(np.mean(np.sum(residual**2, axis=1))))

    @cached_property
    def shown_in_both(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The truth to measure against: pairs (n, 2), i < j, and a control point of j that i shows too, (n,).

        It has all control points of all overlapping pairs, with the agent's definition of overlap.
        """
        pairs, points = [], []
        for first in range(0, self.frames, FRAMES_AT_ONCE):
            offset = self.positions[None] - self.positions[first : first + FRAMES_AT_ONCE, None]
            # Frames far from each other share nothing, so most pairs of a long sequence need no closer check.
            near = (np.abs(offset) <= (OUTLINE.width + TOLERANCE, OUTLINE.height + TOLERANCE)).all(axis=2)
            earlier, later = np.nonzero(np.triu(near, first + 1))
            shown = OUTLINE.contains(CONTROL_POINTS[None] + offset[earlier, later, None], TOLERANCE)  # (near pairs, 9)
            grid = shown.reshape(-1, 3, 3)
            # Three points of a grid are not on one line if they span two rows and two columns.
            enough = (grid.any(axis=1).sum(axis=1) >= 2) & (grid.any(axis=2).sum(axis=1) >= 2)
            pair, point = np.nonzero(shown & enough[:, None])
            pairs.append(np.column_stack([earlier[pair] + first, later[pair]]))
            points.append(point)
        return np.concatenate(pairs), np.concatenate(points)

    @cached_property
    def moments(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All overlapping pairs (n, 2), each once, and Σ x̃ x̃ᵀ (n, 3, 3) of the control points of j that i shows too.

        With x̃ = (x, y, 1), they give the sum of squares of any affine map of these points, without the points.
        """
        pairs, point = self.shown_in_both
        starts = np.flatnonzero(np.append(True, (np.diff(pairs, axis=0) != 0).any(axis=1)))
        shown = homogeneous(CONTROL_POINTS)[point]
        return pairs[starts], np.add.reduceat(shown[:, :, None] * shown[:, None], starts)


def raster(frames: int) -> World:
    """There and back: the way back lies a third of a frame beside the way out. The external model is ideal."""
    check_frames("raster", frames)
    n = np.arange(1, frames + 1)
    out = n <= frames / 2
    x = np.where(out, n, frames - n + 1) * RASTER_STEP
    y = np.where(out, 0.0, RASTER_STEP)
    positions = np.column_stack([x, y])
    overlap = np.ones((frames, frames))
    for axis, side in ((0, OUTLINE.width), (1, OUTLINE.height)):
        distance = np.abs(positions[:, None, axis] - positions[None, :, axis])
        overlap *= np.maximum(0.0, 1.0 - distance / side)
    return World("raster", positions, FixedProbabilities(overlap))


def circle(frames: int) -> World:
    """One revolution, with signatures that take opposite frames for the same place."""
    check_circle(frames)
    angle = 2.0 * np.pi * np.arange(1, frames + 1) / frames
    positions = CIRCLE_RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])
    signatures = np.column_stack([np.cos(2 * angle), np.sin(2 * angle)])
    return World("circle", positions, WeightedSignatures(signatures))


def check_frames(name: str, frames: int) -> None:
    """Refuse a sequence that is too short."""
    if frames < MIN_FRAMES:
        raise UsageError(f"{name}: {frames} frames are too few, give at least {MIN_FRAMES}")


def check_circle(frames: int) -> None:
    """Refuse a circle whose consecutive frames do not overlap."""
    check_frames("circle", frames)
    step = 2 * CIRCLE_RADIUS * np.sin(np.pi / frames)
    if step > OUTLINE.width / 2:
        raise UsageError(f"circle: with {frames} frames consecutive ones do not overlap, give at least 32")
