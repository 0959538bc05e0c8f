"""The rows of the least-squares problem: what links and the camera cost, linearised, and the normal equations.

H ← H exp(δ). A link costs |R e|² (`links.py`), with exact derivatives by δ_i and δ_j. The attitude of every frame and
the motion between consecutive ones cost their squares over the camera's variances (`camera.py`).

With M = B Ĝ⁻¹ H_i⁻¹ H_j, normalised, and X a direction, M changes by M X for frame j, by -B Ĝ⁻¹ X H_i⁻¹ H_j for frame i
and, where links share an error, by X M for that; less M times what that changes in the corner.
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
from smalti.engine.links import COEFFICIENTS
from smalti.geometry.homographies import invert
from smalti.records import Homographies
from smalti.sparse.block_products import Blocks, add_transposed_product

FIXED = 1e-6
"""The deviation of what is not to move."""

LENS_FIXED = np.eye(COEFFICIENTS) / FIXED

NEAREST_HORIZON = 0.9
"""Of the depth at the centre of a frame, by which it may change towards a corner."""

SMALLEST_CORNER = 0.02
"""Of a link's M: below that its frames see each other from behind."""

GAUGE_DIRECTIONS = 3
"""Directions in which one frame of every part is held: place and turn."""

OPEN_DEVIATIONS = np.array([1e4, 1e4, 6.0, 3.0, 1.0, 1.0, 1.0, 1.0])
"""Of the increments of frames, so weak that they matter only where nothing else says anything."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """How much everything counts: links by their noise, the camera's attitude and motion."""

    links: NDArray[np.float64]  # (L,): 1/s of each link
    camera: Camera
    motion_weights: NDArray[
        np.float64
    ]  # (K, 6): weights of the motion of consecutive frames, below 1 where it is out of the usual
    shared_turn: float = 1e-3  # the deviation of the turn that all links of consecutive frames measure too much
    lens_root: NDArray[np.float64] = field(default_factory=lambda: LENS_FIXED)  # of the information on the lens (2, 2)


@dataclass(frozen=True, eq=False)
class Rowset:
    """Everything that is to be small, in units of its deviation, and its derivatives at some maps."""

    residual: NDArray[np.float64]  # (L, 8) of links
    by_i: NDArray[np.float64]  # (L, 8, f)
    by_j: NDArray[np.float64]
    by_shared: NDArray[np.float64]  # (L, 8, s), by the directions of the common node that mean something
    shared: NDArray[np.float64]  # (f,) or (0,): what that node costs, and the root of the information on it (f, f)
    shared_root: NDArray[np.float64]
    attitude: NDArray[np.float64]  # (N, 5)
    by_frame: NDArray[np.float64]  # (N, 5, f)
    motion: NDArray[np.float64]  # (K, 6)
    motion_by_i: NDArray[np.float64]  # (K, 6, f)
    motion_by_j: NDArray[np.float64]

    @cached_property
    def cost(self) -> float:
        """The sum of squares."""
        of_camera = np.sum(self.attitude**2) + np.sum(self.motion**2)
        return float(np.sum(self.residual**2) + of_camera + np.sum(self.shared**2))


def linearise(system: System, weights: Weights, node_maps: Homographies) -> Rowset | None:
    """Return everything at some maps, None if no camera makes them."""
    if not are_possible(system, node_maps):
        return None
    maps = node_maps[: system.frames]
    freedom, inverses = system.family.freedom, invert(maps)
    common = turn_alone(node_maps[-1]) if system.shares_error else np.eye(3)
    possible, residual, by_i, by_j, by_shared = _linearise_links(
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
    _weigh_attitudes(attitude, by_frame, 1.0 / camera.of_attitude)
    motion = np.zeros((0, MOTIONS))
    motion_by_i = motion_by_j = np.zeros((0, MOTIONS, freedom))
    if camera.moves_calmly and len(system.steps):
        motion, motion_by_i, motion_by_j = motions(maps, inverses, system.step_ends, freedom)
        _weigh_motions(
            motion,
            motion_by_i,
            motion_by_j,
            np.array(camera.usual_motion),
            weights.motion_weights,
            1.0 / camera.of_motion,
        )
    shared, shared_root = np.zeros(0), np.zeros((0, 0))
    if system.shares_error:
        shared, shared_root = np.zeros(freedom), np.eye(freedom) / FIXED
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
    """Tell whether a camera makes these maps: all frames seen from above, and whole."""
    return _are_possible(node_maps[: system.frames], *system.corner_reach)


def promised(system: System, rows: Rowset, increments: NDArray[np.float64]) -> Rowset:
    """Return the rows after small increments of all nodes (n, f), as their derivatives foretell them."""
    (i, j), (before, after) = system.ends.T, system.step_ends.T
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


def normal_equations(system: System, rows: Rowset) -> tuple[Blocks, Blocks, NDArray[np.float64]]:
    """Return JᵀJ, blocks (n, f, f) on the diagonal and (e, f, f) an edge of the pattern, and Jᵀr (n, f)."""
    freedom, frames = system.family.freedom, system.frames
    diagonal = np.zeros((system.nodes, freedom, freedom))
    off_diagonal = np.zeros((len(system.ends) + len(system.shared_ends), freedom, freedom))
    gradient = np.zeros((system.nodes, freedom))
    accumulate(system.ends, system.every, rows.by_i, rows.by_j, rows.residual, diagonal, off_diagonal, gradient)
    if len(rows.motion):
        accumulate(
            system.step_ends,
            system.steps,
            rows.motion_by_i,
            rows.motion_by_j,
            rows.motion,
            diagonal,
            off_diagonal,
            gradient,
        )
    if system.shares_error:
        _accumulate_shared(
            system.ends,
            system.sharing,
            system.shared_slot,
            system.shared_directions,
            rows.by_i,
            rows.by_j,
            rows.by_shared,
            rows.residual,
            diagonal,
            off_diagonal,
            gradient,
        )
        diagonal[frames] += rows.shared_root.T @ rows.shared_root
        gradient[frames] += rows.shared_root.T @ rows.shared
    _accumulate_attitudes(rows.by_frame, rows.attitude, OPEN_DEVIATIONS, diagonal, gradient)
    return diagonal, off_diagonal, gradient


def turn_alone(common: Homographies) -> Homographies:
    """Return the map of the common node (3, 3): what links of consecutive frames turn too much."""
    turned = common.copy()
    turned[2, :2] = 0.0
    return turned


def lens_change(common: Homographies) -> NDArray[np.float64]:
    """Return by how much the lens' coefficients (2,) differ from those that links were fitted with at first.

    The common node keeps them where a map has its perspective.
    """
    return common[2, :2]


def hold(system: System, diagonal: Blocks) -> None:
    """Hold one frame of every part in place and turn, as strongly as its own links do."""
    fixed = np.arange(min(GAUGE_DIRECTIONS, system.family.freedom))
    diagonal[system.references[:, None], fixed, fixed] *= 2.0


@compiled
def _are_possible(maps: NDArray[np.float64], half_width: float, half_height: float) -> bool:
    """Tell whether all frames are seen from above, and whole."""
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
def _linearise_links(
    ends: NDArray[np.int64],
    measured_back: NDArray[np.float64],
    roots: NDArray[np.float64],
    weights: NDArray[np.float64],
    sharing: NDArray[np.bool_],
    maps: NDArray[np.float64],
    inverses: NDArray[np.float64],
    common: NDArray[np.float64],
    freedom: int,
) -> tuple[bool, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return whether all is finite, R e (L, 8), its derivatives (L, 8, f) by i and j and (L, 8) by the common turn."""
    links = len(ends)
    residual, by_shared = np.zeros((links, 8)), np.zeros((links, 8))
    by_i, by_j = np.zeros((links, 8, freedom)), np.zeros((links, 8, freedom))
    relative, m, left = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    root = np.zeros((3, 3))  # a row of R by the entries of M; what it says of the corner stays 0
    for n in range(links):
        i, j = ends[n]
        _multiply(inverses[i], maps[j], relative)
        if sharing[n]:
            _multiply(common, measured_back[n], left)
        else:
            left[:] = measured_back[n]
        _multiply(left, relative, m)
        corner, size = m[2, 2], 0.0
        for a in range(3):
            for b in range(3):
                size = max(size, abs(m[a, b]))
        if not math.isfinite(size):
            return False, residual, by_i, by_j, by_shared
        seen_ahead = corner > SMALLEST_CORNER
        if not seen_ahead:
            # Frames that see each other from behind are as far off as they can be, and are led back from there.
            corner = SMALLEST_CORNER
        for a in range(3):
            for b in range(3):
                m[a, b] /= corner
                relative[a, b] /= corner
        for a in range(8):
            off, scaled = 0.0, 0.0
            for b in range(8):
                weighed = weights[n] * roots[n, a, b]
                root[b // 3, b % 3] = weighed
                off += weighed * (m[b // 3, b % 3] - (1.0 if b % 4 == 0 else 0.0))
                scaled += weighed * m[b // 3, b % 3]
            residual[n, a] = off
            if not seen_ahead:
                scaled = 0.0
            # By the entries of the increments first: the element (k, q) of Δ moves little of M.
            j0, j1, j2 = _entries_of_j(root, m, 0, scaled)
            j3, j4, j5 = _entries_of_j(root, m, 1, scaled)
            j6, j7, _ = _entries_of_j(root, m, 2, scaled)
            _write_directions(by_j, n, a, j0, j1, j2, j3, j4, j5, j6, j7)
            i0, i1, i2 = _entries_of_i(root, left, relative, 0, scaled)
            i3, i4, i5 = _entries_of_i(root, left, relative, 1, scaled)
            i6, i7, _ = _entries_of_i(root, left, relative, 2, scaled)
            _write_directions(by_i, n, a, -i0, -i1, -i2, -i3, -i4, -i5, -i6, -i7)
            if sharing[n]:
                turned = 0.0
                for q in range(3):
                    turned += root[1, q] * m[0, q] - root[0, q] * m[1, q]
                by_shared[n, a] = turned
    return True, residual, by_i, by_j, by_shared


@compiled
def _entries_of_j(
    root: NDArray[np.float64], m: NDArray[np.float64], k: int, scaled: float
) -> tuple[float, float, float]:
    """Return how a row moves with the row k of Δ_j: by M Δ, less M times its corner."""
    x, y, w = m[0, k], m[1, k], m[2, k]
    return (
        root[0, 0] * x + root[1, 0] * y + root[2, 0] * w,
        root[0, 1] * x + root[1, 1] * y + root[2, 1] * w,
        root[0, 2] * x + root[1, 2] * y - scaled * w,
    )


@compiled
def _entries_of_i(
    root: NDArray[np.float64], left: NDArray[np.float64], relative: NDArray[np.float64], k: int, scaled: float
) -> tuple[float, float, float]:
    """Return how a row moves with the row k of Δ_i: by what is left of Δ, Δ and the relative map."""
    x, y, w = left[0, k], left[1, k], left[2, k]
    s = root[0, 0] * x + root[1, 0] * y + root[2, 0] * w
    t = root[0, 1] * x + root[1, 1] * y + root[2, 1] * w
    u = root[0, 2] * x + root[1, 2] * y - scaled * w
    return (
        s * relative[0, 0] + t * relative[0, 1] + u * relative[0, 2],
        s * relative[1, 0] + t * relative[1, 1] + u * relative[1, 2],
        s * relative[2, 0] + t * relative[2, 1] + u * relative[2, 2],
    )


@compiled
def _write_directions(
    target: NDArray[np.float64],
    n: int,
    row: int,
    d00: float,
    d01: float,
    d02: float,
    d10: float,
    d11: float,
    d12: float,
    d20: float,
    d21: float,
) -> None:
    """Write derivatives by the directions of `geometry.maps.BASIS` from those by the entries of Δ."""
    freedom = target.shape[2]
    target[n, row, 0], target[n, row, 1] = d02, d12
    if freedom > 2:
        target[n, row, 2] = d10 - d01
    if freedom > 3:
        target[n, row, 3] = d00 + d11
    if freedom > 4:
        target[n, row, 4], target[n, row, 5] = d00 - d11, d01 + d10
    if freedom > 6:
        target[n, row, 6], target[n, row, 7] = d20, d21


@compiled
def _multiply(left: NDArray[np.float64], right: NDArray[np.float64], product: NDArray[np.float64]) -> None:
    for a in range(3):
        for b in range(3):
            product[a, b] = left[a, 0] * right[0, b] + left[a, 1] * right[1, b] + left[a, 2] * right[2, b]


@compiled
def _add_moves(
    values: NDArray[np.float64], by_node: Blocks, node: NDArray[np.int64], increments: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return rows after the increments of one node each."""
    moved = values.copy()
    for n in range(len(values)):
        for row in range(values.shape[1]):
            for a in range(by_node.shape[2]):
                moved[n, row] += by_node[n, row, a] * increments[node[n], a]
    return moved


@compiled
def _weigh_attitudes(values: NDArray[np.float64], by_frame: Blocks, strength: NDArray[np.float64]) -> None:
    """Count attitudes and their derivatives in units of their deviations, in place."""
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
    usual: NDArray[np.float64],
    motion_weights: NDArray[np.float64],
    strength: NDArray[np.float64],
) -> None:
    """Count motions about the usual one, and their derivatives, in units of their deviations, in place."""
    for n in range(len(values)):
        for row in range(values.shape[1]):
            scale = math.sqrt(motion_weights[n, row]) * strength[row]
            values[n, row] = (values[n, row] - usual[row]) * scale
            for a in range(by_i.shape[2]):
                by_i[n, row, a] *= scale
                by_j[n, row, a] *= scale


@compiled
def _accumulate_shared(
    ends: NDArray[np.int64],
    sharing: NDArray[np.int64],
    slot: NDArray[np.int64],
    directions: NDArray[np.int64],
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    by_shared: NDArray[np.float64],
    residual: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None:
    """Add what rows say of what they have in common, which is the last node."""
    node, freedom = len(diagonal) - 1, by_i.shape[2]
    for n in sharing:
        i, j = slot[ends[n, 0]], slot[ends[n, 1]]
        for row in range(by_i.shape[1]):
            for c in range(len(directions)):
                value, direction = by_shared[n, row, c], directions[c]
                gradient[node, direction] += value * residual[n, row]
                for d in range(len(directions)):
                    diagonal[node, directions[d], direction] += by_shared[n, row, d] * value
                for a in range(freedom):
                    off_diagonal[i, a, direction] += by_i[n, row, a] * value
                    off_diagonal[j, a, direction] += by_j[n, row, a] * value


@compiled
def accumulate(
    ends: NDArray[np.int64],
    number: NDArray[np.int64],
    by_i: NDArray[np.float64],
    by_j: NDArray[np.float64],
    residual: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> None:
    """Add JᵀJ and Jᵀr of rows that join two frames each, in their order; `number` is that of the link's block."""
    every, rows = (0, by_i.shape[2]), (0, by_i.shape[1])
    for n in range(len(ends)):
        i, j = ends[n, 0], ends[n, 1]
        add_transposed_product(diagonal, i, by_i, n, by_i, n, every, rows)
        add_transposed_product(diagonal, j, by_j, n, by_j, n, every, rows)
        add_transposed_product(off_diagonal, number[n], by_i, n, by_j, n, every, rows)
        for row in range(by_i.shape[1]):
            value = residual[n, row]
            for a in range(by_i.shape[2]):
                gradient[i, a] += by_i[n, row, a] * value
                gradient[j, a] += by_j[n, row, a] * value


@compiled
def _accumulate_attitudes(
    by_frame: Blocks,
    attitude: NDArray[np.float64],
    open_deviations: NDArray[np.float64],
    diagonal: Blocks,
    gradient: NDArray[np.float64],
) -> None:
    """Add what attitudes say of every frame, and the little that holds what nothing says anything of."""
    every, rows = (0, by_frame.shape[2]), (0, by_frame.shape[1])
    for n in range(len(by_frame)):
        add_transposed_product(diagonal, n, by_frame, n, by_frame, n, every, rows)
        for row in range(by_frame.shape[1]):
            for a in range(by_frame.shape[2]):
                gradient[n, a] += by_frame[n, row, a] * attitude[n, row]
        for a in range(by_frame.shape[2]):
            diagonal[n, a, a] += 1.0 / open_deviations[a] ** 2
