"""The least-squares problem linearised at some maps: residuals of links and of the camera priors, and derivatives.

Maps move by H ← H exp(δ). Links cost |R e|² (`link_rows.py`). The attitude of every frame and the motion between
consecutive frames cost their squares over the camera's variances (`camera_priors.py`).

`Weights` says how much each term counts and `Rowset` holds the terms. `linearise` computes them exactly, `extrapolate`
to first order. Kernels come last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.engine.camera_priors import MOTIONS, Camera, attitudes, motions
from smalti.engine.equations import LARGEST_LOG_SCALE, LENS, TURN, System
from smalti.engine.link_rows import linearise_links
from smalti.engine.links import COEFFICIENTS
from smalti.geometry.homographies import invert
from smalti.records import Homographies
from smalti.sparse.block_products import Blocks

FIXED_DEVIATION = 1e-6
"""The standard deviation of a parameter that must not move."""

LENS_FIXED = np.eye(COEFFICIENTS) / FIXED_DEVIATION

NEAREST_HORIZON = 0.9
"""The largest change of depth from the centre of a frame to a corner, as a share of the depth at the centre."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weights of links, attitudes and motions."""

    links: NDArray[np.float64]  # (L,): 1/s of each link
    camera: Camera
    motion_weights: NDArray[np.float64]  # (K, 6): robust weights of the motions of consecutive frames
    shared_turn: float = 1e-3  # deviation of the turn by which all links of consecutive frames err
    lens_root: NDArray[np.float64] = field(default_factory=lambda: LENS_FIXED)  # (2, 2): of the information on the lens


@dataclass(frozen=True, eq=False)
class Rowset:
    """All residuals, in units of their deviations, and their derivatives at some maps; f is the family's freedom."""

    residual: NDArray[np.float64]  # (L, 8) of links
    by_i: NDArray[np.float64]  # (L, 8, f)
    by_j: NDArray[np.float64]
    by_shared: NDArray[np.float64]  # (L, 8, s), by the directions that the shared node uses
    shared: NDArray[np.float64]  # (f,) or (0,): residual of the shared node
    shared_root: NDArray[np.float64]  # (f, f): root of the prior information on it
    attitude: NDArray[np.float64]  # (N, 5)
    by_frame: NDArray[np.float64]  # (N, 5, f)
    motion: NDArray[np.float64]  # (K, 6)
    motion_by_i: NDArray[np.float64]  # (K, 6, f)
    motion_by_j: NDArray[np.float64]

    @cached_property
    def cost(self) -> float:
        """The sum of squared residuals."""
        of_camera = np.sum(self.attitude**2) + np.sum(self.motion**2)
        return float(np.sum(self.residual**2) + of_camera + np.sum(self.shared**2))


def linearise(system: System, weights: Weights, node_maps: Homographies) -> Rowset | None:
    """Return all residuals and derivatives at the maps of all nodes; None if no camera makes such maps."""
    if not are_possible(system, node_maps):
        return None
    maps = node_maps[: system.frames]
    freedom, inverses = system.family.freedom, invert(maps)
    common = turn_alone(node_maps[-1]) if system.shares_error else np.eye(3)
    possible, residual, by_i, by_j, by_shared = linearise_links(
        system.ends,
        system.measured_back,
        system.roots,
        weights.links,
        system.is_step & system.shares_error,
        maps,
        inverses,
        common,
        freedom,
    )
    if not possible:
        return None
    by_shared = by_shared[:, :, None]
    if system.lens is not None:
        columns, at = system.lens_columns
        columns = weights.links[:, None, None] * columns
        residual += np.einsum("lab,lb->la", columns, lens_change(node_maps[-1]) - at)
        by_shared = np.concatenate([by_shared, columns[:, :, : len(system.lens_directions)]], axis=2)
    camera = weights.camera
    attitude, by_frame = attitudes(maps, freedom)
    _weigh_attitudes(attitude, by_frame, 1.0 / camera.attitude_deviations)
    motion = np.zeros((0, MOTIONS))
    motion_by_i = motion_by_j = np.zeros((0, MOTIONS, freedom))
    if camera.has_motion_prior and len(system.steps):
        motion, motion_by_i, motion_by_j = motions(maps, inverses, system.step_ends, freedom)
        _weigh_motions(
            motion,
            motion_by_i,
            motion_by_j,
            np.array(camera.mean_motion),
            weights.motion_weights,
            1.0 / camera.motion_deviations,
        )
    shared, shared_root = np.zeros(0), np.zeros((0, 0))
    if system.shares_error:
        shared, shared_root = np.zeros(freedom), np.eye(freedom) / FIXED_DEVIATION
        shared[TURN], shared_root[TURN, TURN] = math.atan2(common[1, 0], common[0, 0]), 1.0 / weights.shared_turn
        if system.lens is not None:
            shared[list(LENS)], shared_root[np.ix_(LENS, LENS)] = lens_change(node_maps[-1]), weights.lens_root
        shared = shared_root @ shared
    rows = Rowset(
        residual,
        by_i,
        by_j,
        by_shared,
        shared,
        shared_root,
        attitude,
        by_frame,
        motion,
        motion_by_i,
        motion_by_j,
    )
    return rows if math.isfinite(rows.cost) else None


def are_possible(system: System, node_maps: Homographies) -> bool:
    """Tell whether a camera can make these maps: no frame is mirrored, and no horizon crosses a frame."""
    return _are_possible(node_maps[: system.frames], *system.corner_reach)


def extrapolate(system: System, rows: Rowset, increments: NDArray[np.float64]) -> Rowset:
    """Return the rows after small increments of all nodes (n, f), to first order."""
    (i, j), (before, after) = np.ascontiguousarray(system.ends.T), np.ascontiguousarray(system.step_ends.T)
    residual = _add_moves(_add_moves(rows.residual, rows.by_i, i, increments), rows.by_j, j, increments)
    motion = rows.motion
    if len(motion):
        motion = _add_moves(
            _add_moves(motion, rows.motion_by_i, before, increments), rows.motion_by_j, after, increments
        )
    shared = rows.shared
    if system.shares_error:
        residual += rows.by_shared @ increments[-1, system.shared_directions]
        shared = shared + rows.shared_root @ increments[-1]
    attitude = _add_moves(rows.attitude, rows.by_frame, np.arange(system.frames), increments)
    return replace(rows, residual=residual, shared=shared, attitude=attitude, motion=motion)


def turn_alone(common: Homographies) -> Homographies:
    """Return the turn of the shared node's map (3, 3), without the lens' coefficients."""
    turned = common.copy()
    turned[2, :2] = 0.0
    return turned


def lens_change(common: Homographies) -> NDArray[np.float64]:
    """Return by how much the lens' coefficients (2,) differ from those that links were first fitted with.

    The shared node stores them in the place of a map's perspective.
    """
    return common[2, :2]


@compiled
def _are_possible(maps: NDArray[np.float64], half_width: float, half_height: float) -> bool:
    """Tell whether no frame is mirrored and no horizon crosses a frame."""
    for n in range(len(maps)):
        corner = maps[n, 2, 2]
        if not corner > 0.0:
            return False
        p_x, p_y = maps[n, 2, 0] / corner, maps[n, 2, 1] / corner
        if not abs(p_x) * half_width + abs(p_y) * half_height <= NEAREST_HORIZON:
            return False
        t_x, t_y = maps[n, 0, 2] / corner, maps[n, 1, 2] / corner
        a, b = maps[n, 0, 0] / corner - t_x * p_x, maps[n, 0, 1] / corner - t_x * p_y
        c, d = maps[n, 1, 0] / corner - t_y * p_x, maps[n, 1, 1] / corner - t_y * p_y
        area = a * d - b * c
        if not area > 0.0 or not abs(0.5 * math.log(area)) <= LARGEST_LOG_SCALE:
            return False
        if not (math.isfinite(t_x) and math.isfinite(t_y)):
            return False
    return True


@compiled
def _add_moves(
    values: NDArray[np.float64], by_node: Blocks, node: NDArray[np.int64], increments: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return rows (n, r) moved by the increments of one node each."""
    moved = values.copy()
    for n in range(len(values)):
        for row in range(values.shape[1]):
            for a in range(by_node.shape[2]):
                moved[n, row] += by_node[n, row, a] * increments[node[n], a]
    return moved


@compiled
def _weigh_attitudes(values: NDArray[np.float64], by_frame: Blocks, strength: NDArray[np.float64]) -> None:
    """Scale attitudes and their derivatives to units of their deviations, in place; `strength` is 1 / deviation."""
    for n in range(len(values)):
        for row in range(values.shape[1]):
            values[n, row] *= strength[row]
            for a in range(by_frame.shape[2]):
                by_frame[n, row, a] *= strength[row]


@compiled
def _weigh_motions(
    values: NDArray[np.float64],
    by_i: Blocks,
    by_j: Blocks,
    mean: NDArray[np.float64],
    motion_weights: NDArray[np.float64],
    strength: NDArray[np.float64],
) -> None:
    """Scale motions about the mean one, and their derivatives, to units of their deviations, in place."""
    for n in range(len(values)):
        for row in range(values.shape[1]):
            scale = math.sqrt(motion_weights[n, row]) * strength[row]
            values[n, row] = (values[n, row] - mean[row]) * scale
            for a in range(by_i.shape[2]):
                by_i[n, row, a] *= scale
                by_j[n, row, a] *= scale
