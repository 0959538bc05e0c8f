"""Where every frame's centre falls in every other frame, and how sure we are of it: what questions are chosen by.

Differs from the paper, which propagates noise through the linear adjustment about one reference (`covariance.py`).
There, the place of one frame in its neighbour is the difference of two places that are both uncertain by everything
between them and the reference: for all pairs at once, at 1000 frames, no digit of it is left. In local increments
Θ ← Θ (I + δ) a link depends on its two frames relative to each other only. Its Jacobian at the linear solution, J,
gives the information JᵀJ on the mosaic up to a common motion, the inverse of that is the covariance, and *any* frame
may be held to take the common motion out. Each group of frames is judged with one of its own held, so that what is
near is computed from small numbers. The two covariances agree to first order in the links' residuals; for a chain they
are the same.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.centres import Centres, centre_seen
from smalti.adjustment.cholesky import (
    BlockCholesky,
    Blocks,
    NotPositiveDefiniteError,
    factorise_columns,
    solve_sparse_in_place,
)
from smalti.adjustment.pattern import Indices, Pattern
from smalti.adjustment.refinement import normal_blocks, steady
from smalti.adjustment.selected import inverse_diagonal
from smalti.compiled import compiled, compiled_parallel, prange
from smalti.errors import SingularSystemError
from smalti.geometry.affine import compose, invert
from smalti.records import Transforms

GROUP = 128
"""Frames that are judged with the same one held: few enough that what lies between them is small."""

FRAMES_AT_ONCE = 32
"""Frames whose columns are computed together: enough to fill vectors, few enough to stay in cache."""


class LocalCovariance:
    """An adjustment, and the uncertainty of places relative to each other on its linear mosaic, or on another one."""

    def __init__(
        self, adjustment: Adjustment, mosaic_from_frame: Transforms | None = None, *, steadied: bool = False
    ) -> None:
        """Linearise about the given maps (N, 2, 3), about the linear mosaic if there are none.

        `steadied` holds every frame by a prior that is weak beside any link, where links alone determine too little.
        """
        self.adjustment = adjustment
        self._given = mosaic_from_frame
        self._steadied = steadied

    @property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the mosaic about which it is linearised, pixels."""
        return self.adjustment.mosaic_from_frame if self._given is None else self._given

    @cached_property
    def _unit_maps(self) -> Transforms:
        return self.adjustment.unit_maps if self._given is None else self.adjustment.in_units(self._given)

    def centre(self, i: int, j: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean (2,) and covariance (2, 2) of the centre of frame i seen in frame j, pixels."""
        adjustment = self.adjustment
        for frame in (i, j):
            adjustment.check_frame(frame)
        outline, tangent = adjustment.outline, adjustment.family.tangent
        maps, freedom = self._unit_maps, len(tangent)
        columns = np.zeros((adjustment.frames, freedom, 2 * freedom))
        columns[i, :, :freedom] = columns[j, :, freedom:] = np.eye(freedom)
        joint = self._held(i).solve(columns)[[i, j]].reshape(2 * freedom, 2 * freedom)
        j_from_i = compose(invert(maps[j]), maps[i])
        seen = j_from_i[:, 2]  # the centre is the origin
        by_i = (j_from_i[:, :2] @ tangent[:, :, 2:])[..., 0].T
        by_j = -(tangent @ np.append(seen, 1.0)).T
        jacobian = np.hstack([by_i, by_j])
        return seen * outline.unit + outline.centre, jacobian @ joint @ jacobian.T

    @cached_property
    def centres(self) -> Centres:
        """The distribution of γ_ij for all pairs, both directions."""
        try:
            return self._centres()
        except SingularSystemError:
            if self._steadied:
                raise
        # Guesses in a row leave what lies beyond them known to no digit: say that nothing is endlessly far.
        return LocalCovariance(self.adjustment, self._given, steadied=True).centres

    def _centres(self) -> Centres:
        adjustment, pattern = self.adjustment, self._pattern
        family = adjustment.family
        # Held to begin with: the root of the elimination tree, so that holding another instead reaches one path only.
        factor = self._held(int(pattern.node_at[-1]))
        _, matrix_lower = factor.matrix
        diagonal, _ = self._information
        mean, cov, failed = _distribute(
            *factor.arrays,
            pattern.row_start,
            pattern.row_column,
            pattern.row_slot,
            pattern.parent,
            np.ascontiguousarray(diagonal[pattern.node_at]),
            matrix_lower,
            pattern.place,
            family.tangent,
            family.shift_direction(0),
            family.shift_direction(1),
            self._unit_maps,
            invert(self._unit_maps),
            adjustment.outline.unit,
            *adjustment.outline.centre_x_y,
        )
        if failed.any():
            frame = int(np.argmax(failed)) * GROUP
            raise SingularSystemError(
                f"frame {frame}: the links do not determine how frames far from it lie, check their landmarks"
            )
        return Centres(adjustment.outline, mean, cov)

    def _held(self, frame: int) -> BlockCholesky:
        """Factorise the information with one frame held by a prior as strong as its own links."""
        diagonal, off_diagonal = self._information
        grounded = diagonal.copy()
        grounded[frame] *= 2.0
        try:
            return BlockCholesky(self._pattern, grounded, off_diagonal)
        except NotPositiveDefiniteError as failure:
            raise SingularSystemError(
                f"frame {failure.node}: the links do not determine how it lies to the others, check their landmarks"
            ) from None

    @cached_property
    def _information(self) -> tuple[Blocks, Blocks]:
        diagonal, off_diagonal = normal_blocks(self.adjustment, self._unit_maps)
        return (steady(diagonal) if self._steadied else diagonal), off_diagonal

    @cached_property
    def _pattern(self) -> Pattern:
        return Pattern.of(self.adjustment.frames, self.adjustment.ends)


@compiled_parallel
def _distribute(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    row_start: Indices,
    row_column: Indices,
    row_slot: Indices,
    parent: Indices,
    diagonal: Blocks,
    matrix_lower: Blocks,
    place: Indices,
    tangent: NDArray[np.float64],
    shift_x: int,
    shift_y: int,
    maps: Transforms,
    inverses: Transforms,
    unit: float,
    centre_x: float,
    centre_y: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return mean (N, N, 2) and covariance (N, N, 3) of γ_ij in pixels, and which groups have none.

    Maps are in the adjustment's units.

    The centre is the origin of the units: γ_ij changes by Q δ_i 0̃ - δ_j γ̃_ij, Q being the linear part of Θ_j⁻¹ Θ_i. A
    thread takes a group of frames i, holds the one in its middle by a prior as strong as its own links (relative places
    do not feel how strong it is), computes every frame's own block of the inverse and the group's columns of it, and
    writes the group's rows.

    The noise of a pseudo-point is 1 px by construction of the link, so the result is in px² whatever the unit.
    """
    frames, freedom = place.shape[0], tangent.shape[0]
    mean = np.empty((frames, frames, 2))
    cov = np.empty((frames, frames, 3))
    groups = (frames + GROUP - 1) // GROUP
    failed = np.zeros(groups, dtype=np.bool_)
    for group in prange(groups):
        begin, end = group * GROUP, min((group + 1) * GROUP, frames)
        held = place[(begin + end) // 2]
        own_diagonal, own_lower, own_pivots = diagonal.copy(), lower.copy(), pivot_inverse.copy()
        own_diagonal[held] *= 2.0
        broken = factorise_columns(
            _path(parent, held),
            column_start,
            slot_row,
            row_start,
            row_column,
            row_slot,
            own_diagonal,
            matrix_lower,
            own_lower,
            own_pivots,
        )
        if broken >= 0:
            failed[group] = True
            continue
        own = _as_maps(inverse_diagonal(column_start, slot_row, own_lower, own_pivots), tangent, place)
        for first in range(begin, end, FRAMES_AT_ONCE):
            count = min(FRAMES_AT_ONCE, end - first)
            columns = np.zeros((frames * freedom, 2 * count))
            present = np.zeros(frames, dtype=np.bool_)
            for f in range(count):
                columns[place[first + f] * freedom + shift_x, 2 * f] = 1.0
                columns[place[first + f] * freedom + shift_y, 2 * f + 1] = 1.0
                present[place[first + f]] = True
            solve_sparse_in_place(column_start, slot_row, own_lower, own_pivots, columns, present)
            crossed = _crossed(columns, tangent, place)
            for f in range(count):
                i = first + f
                _write_row(
                    i,
                    crossed[2 * f],
                    crossed[2 * f + 1],
                    own,
                    maps,
                    inverses,
                    unit,
                    centre_x,
                    centre_y,
                    mean[i],
                    cov[i],
                )
    return mean, cov, failed


@compiled
def _path(parent: Indices, column: int) -> Indices:
    """Return a column and those above it in the elimination tree, ascending."""
    length = 0
    at = column
    while at >= 0:
        length += 1
        at = parent[at]
    path = np.empty(length, dtype=np.int64)
    at = column
    for n in range(length):
        path[n] = at
        at = parent[at]
    return path


@compiled
def _as_maps(blocks: Blocks, tangent: NDArray[np.float64], place: Indices) -> NDArray[np.float64]:
    """Turn covariances of increments, by place, into those of map entries (N, 2, 3, 2, 3), by frame."""
    frames, freedom = place.shape[0], tangent.shape[0]
    result = np.zeros((frames, 2, 3, 2, 3))
    for c in range(freedom):
        for p in range(2):
            for a in range(3):
                if tangent[c, p, a] == 0.0:
                    continue
                for d in range(freedom):
                    for q in range(2):
                        for b in range(3):
                            scale = tangent[c, p, a] * tangent[d, q, b]
                            if scale != 0.0:
                                for j in range(frames):
                                    result[j, p, a, q, b] += scale * blocks[place[j], c, d]
    return result


@compiled
def _crossed(columns: Blocks, tangent: NDArray[np.float64], place: Indices) -> NDArray[np.float64]:
    """Turn columns of the inverse (N·freedom, m), by place, into covariances with maps (m, N, 2, 3), by frame."""
    frames, freedom, many = place.shape[0], tangent.shape[0], columns.shape[1]
    result = np.zeros((many, frames, 2, 3))
    for c in range(freedom):
        for q in range(2):
            for b in range(3):
                scale = tangent[c, q, b]
                if scale != 0.0:
                    for j in range(frames):
                        at = place[j] * freedom + c
                        for column in range(many):
                            result[column, j, q, b] += scale * columns[at, column]
    return result


@compiled
def _write_row(
    i: int,
    crossed_x: NDArray[np.float64],
    crossed_y: NDArray[np.float64],
    own: NDArray[np.float64],
    maps: Transforms,
    inverses: Transforms,
    unit: float,
    centre_x: float,
    centre_y: float,
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Write the distribution of the centre of frame i in every frame j."""
    t_xx, t_xy, t_yy = own[i, 0, 2, 0, 2], own[i, 0, 2, 1, 2], own[i, 1, 2, 1, 2]
    for j in range(maps.shape[0]):
        a, b, c, d = inverses[j, 0, 0], inverses[j, 0, 1], inverses[j, 1, 0], inverses[j, 1, 1]
        x, y = centre_seen(maps, inverses, i, j)
        mean[j, 0], mean[j, 1] = x * unit + centre_x, y * unit + centre_y
        if i == j:
            cov[j] = 0.0
            continue
        # Q, and the covariance of t_i with u_j = δ_j γ̃_ij.
        e, g = a * maps[i, 0, 0] + b * maps[i, 1, 0], a * maps[i, 0, 1] + b * maps[i, 1, 1]
        h, m = c * maps[i, 0, 0] + d * maps[i, 1, 0], c * maps[i, 0, 1] + d * maps[i, 1, 1]
        c_xx = crossed_x[j, 0, 0] * x + crossed_x[j, 0, 1] * y + crossed_x[j, 0, 2]
        c_xy = crossed_x[j, 1, 0] * x + crossed_x[j, 1, 1] * y + crossed_x[j, 1, 2]
        c_yx = crossed_y[j, 0, 0] * x + crossed_y[j, 0, 1] * y + crossed_y[j, 0, 2]
        c_yy = crossed_y[j, 1, 0] * x + crossed_y[j, 1, 1] * y + crossed_y[j, 1, 2]
        u_xx, u_xy, u_yy = _of_point(own[j], 0, 0, x, y), _of_point(own[j], 0, 1, x, y), _of_point(own[j], 1, 1, x, y)
        # Q T Qᵀ - Q C - Cᵀ Qᵀ + U
        cov[j, 0] = e * e * t_xx + 2.0 * e * g * t_xy + g * g * t_yy - 2.0 * (e * c_xx + g * c_yx) + u_xx
        cov[j, 1] = (
            e * h * t_xx + (e * m + g * h) * t_xy + g * m * t_yy - (e * c_xy + g * c_yy + h * c_xx + m * c_yx) + u_xy
        )
        cov[j, 2] = h * h * t_xx + 2.0 * h * m * t_xy + m * m * t_yy - 2.0 * (h * c_xy + m * c_yy) + u_yy


@compiled
def _of_point(own: NDArray[np.float64], p: int, q: int, x: float, y: float) -> float:
    """Return the covariance of rows p and q of δ (x, y, 1)ᵀ."""
    first = own[p, 0, q, 0] * x + own[p, 0, q, 1] * y + own[p, 0, q, 2]
    second = own[p, 1, q, 0] * x + own[p, 1, q, 1] * y + own[p, 1, q, 2]
    third = own[p, 2, q, 0] * x + own[p, 2, q, 1] * y + own[p, 2, q, 2]
    return float(x * first + y * second + third)
