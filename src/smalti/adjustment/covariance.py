"""How sure we are of every frame's place: Haralick's covariance propagation through the linear adjustment.

With S the normal matrix and F the derivative of the cost's gradient by the landmarks, the parameters have the
covariance S⁻¹ F Fᵀ S⁻¹ (Eq. covariance_propagation_haralick). F Fᵀ is as sparse as S, so every wanted part of
the product comes from solves with the sparse factor: no matrix over all parameters is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.cholesky import Blocks, Indices, solve_in_place
from smalti.adjustment.selected import sandwiched_diagonal
from smalti.compiled import compiled, compiled_parallel, prange
from smalti.geometry.affine import apply, invert
from smalti.geometry.outline import Outline
from smalti.records import Pair, Transforms

FRAMES_AT_ONCE = 32
"""Frames whose columns one thread works on together: their right-hand sides fill vectors and fit in cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """Where the centre of every frame i falls in every frame j, as a normal distribution (γ_ij)."""

    outline: Outline
    mean: NDArray[np.float64]  # (N, N, 2), [i, j], pixels of frame j
    cov: NDArray[np.float64]  # (N, N, 3): xx, xy, yy

    @property
    def spread_squared(self) -> NDArray[np.float64]:
        """(N, N): tr Σ_γ, px²."""
        total: NDArray[np.float64] = self.cov[..., 0] + self.cov[..., 2]
        return total

    @property
    def determinant(self) -> NDArray[np.float64]:
        """(N, N): det Σ_γ, px⁴."""
        return determinant(self.cov)


def determinant(cov: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the determinants of covariances (..., 3) given as xx, xy, yy."""
    det: NDArray[np.float64] = cov[..., 0] * cov[..., 2] - cov[..., 1] ** 2
    return np.maximum(det, 0.0)


class Covariance:
    """The uncertainty of one adjustment."""

    def __init__(self, adjustment: Adjustment) -> None:
        self.adjustment = adjustment

    def frames(self) -> NDArray[np.float64]:
        """(N, 6, 6): the covariance of each frame's Vec₆(Θ), pixels."""
        own = self._own
        return self._in_pixels(own[:, :, None, :, :, None])[:, 0, :, 0]

    def joint(self, pair: Pair) -> NDArray[np.float64]:
        """(12, 12): the covariance of Vec₆(Θ_i, Θ_j), pixels."""
        pair.check_within(self.adjustment.frames)
        return self._joint_of([pair.i, pair.j])

    def centre(self, i: int, j: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean (2,) and covariance (2, 2) of the centre of frame i seen in frame j, pixels."""
        for frame in (i, j):
            self.adjustment.check_frame(frame)
        maps = self.adjustment.mosaic_from_frame
        mean = centre_in_other(maps, self.adjustment.outline)[i, j]
        jacobian = centre_jacobian(maps[i], maps[j], self.adjustment.outline)
        return mean, jacobian @ self._joint_of([i, j]) @ jacobian.T

    @cached_property
    def centres(self) -> Centres:
        """The distribution of γ_ij for all pairs, both directions."""
        adjustment, noise = self.adjustment, self._noise
        family, outline = adjustment.family, adjustment.outline
        maps = adjustment.unit_maps
        # The frame's centre is the origin of the adjustment's units.
        place = np.full(adjustment.frames, -1, dtype=np.int64)
        place[adjustment.free] = adjustment.pattern.place
        mean = _centres_in_others(maps)
        cov = np.zeros((adjustment.frames, adjustment.frames, 3))
        plane_of_row = np.array([0, family.planes - 1])
        # The parameter that moves row p, and its number among those that move a row of the same plane.
        shift_of_row = np.argmax(family.basis[:, 2] != 0, axis=1)
        column_of_row = np.array([0, 2 - family.planes])
        own = self._own
        _accumulate_crossed(
            *adjustment.factor.arrays,
            noise.diagonal,
            noise.ends,
            noise.forth,
            noise.back,
            family.basis,
            plane_of_row,
            shift_of_row,
            column_of_row,
            place,
            mean,
            cov,
        )
        inverse_linear = invert(maps)[:, :, :2]
        _finish_centres(inverse_linear, family.basis, plane_of_row, shift_of_row, own, mean, cov)
        # The noise of a pseudo-point is 1 px by construction of the link, so `cov` is in px² already.
        return Centres(outline, mean * outline.unit + outline.centre, cov)

    def _joint_of(self, frames: list[int]) -> NDArray[np.float64]:
        adjustment, noise = self.adjustment, self._noise
        family = adjustment.family
        k, planes, n = family.size, family.planes, adjustment.frames - 1
        columns = np.zeros((n, k, len(frames) * k))
        for at, frame in enumerate(frames):
            if frame != adjustment.reference:
                node = int(np.searchsorted(adjustment.free, frame))
                columns[node, :, at * k : (at + 1) * k] = np.eye(k)
        solved = adjustment.factor.solve(columns)[adjustment.pattern.node_at].reshape(n * k, -1)
        parameters = np.zeros((planes, len(frames), k, planes, len(frames), k))
        for a in range(planes):
            for b in range(planes):
                product = np.empty_like(solved)
                _multiply(noise.diagonal[a, b], noise.ends, noise.forth[a, b], noise.back[a, b], solved, product)
                block = solved.T @ product
                parameters[a, :, :, b] = block.reshape(len(frames), k, len(frames), k)
        joint: NDArray[np.float64] = self._in_pixels(parameters[None])[0]
        return joint.reshape(6 * len(frames), 6 * len(frames))

    def _in_pixels(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring covariances (m, planes, f, k, planes, f, k) of parameters to (m, f, 6, f, 6) of Vec₆ in pixels."""
        family, outline = self.adjustment.family, self.adjustment.outline
        x, y = outline.centre
        # Noise of 1 px is 1/unit in the adjustment's units.
        row_in_pixels = np.array([[1.0, 0, 0], [0, 1, 0], [-x, -y, outline.unit]]) / outline.unit
        many, _, frames = parameters.shape[:3]
        result = np.zeros((many, frames, 2, 3, frames, 2, 3))
        for p in (0, 1):
            for q in (0, 1):
                block = parameters[:, min(p, family.planes - 1), :, :, min(q, family.planes - 1)]
                rows, columns = row_in_pixels @ family.basis[p], row_in_pixels @ family.basis[q]
                result[:, :, p, :, :, q] = np.einsum("ac,mfcgd,bd->mfagb", rows, block, columns)
        return result.reshape(many, frames, 6, frames, 6)

    @cached_property
    def _own(self) -> NDArray[np.float64]:
        """(N, planes, k, planes, k): the covariance of each frame's own parameters."""
        adjustment, noise = self.adjustment, self._noise
        pattern, planes, k = adjustment.pattern, adjustment.family.planes, adjustment.family.size
        own = np.zeros((adjustment.frames, planes, k, planes, k))
        flipped = pattern.edge_flipped[:, None, None]
        for p in range(planes):
            for q in range(p, planes):
                lower = np.zeros((len(pattern.slot_row), k, k))
                upper = np.zeros_like(lower)
                lower[pattern.edge_slot] = np.where(flipped, noise.forth[p, q], noise.back[p, q])
                upper[pattern.edge_slot] = np.where(flipped, noise.back[p, q], noise.forth[p, q])
                blocks = sandwiched_diagonal(adjustment.factor, noise.diagonal[p, q], lower, upper)
                own[adjustment.free, p, :, q] = blocks[pattern.place]
                own[adjustment.free, q, :, p] = np.swapaxes(blocks[pattern.place], 1, 2)
        return own

    @cached_property
    def _noise(self) -> _Noise:
        return _Noise.of(self.adjustment)


def centre_in_other(mosaic_from_frame: Transforms, outline: Outline) -> NDArray[np.float64]:
    """Return γ_ij (N, N, 2): the centre of each frame i in the pixels of each frame j."""
    centres = apply(mosaic_from_frame, outline.centre[None])[:, 0]
    return np.swapaxes(apply(invert(mosaic_from_frame), centres[None]), 0, 1)


def centre_jacobian(mosaic_from_i: Transforms, mosaic_from_j: Transforms, outline: Outline) -> NDArray[np.float64]:
    """Return J_ij (2, 12), the derivative of γ_ij by Vec₆(Θ_i, Θ_j) (Eqs. jacobian_gamma_i, _j)."""
    inverse = np.linalg.inv(mosaic_from_j[:, :2])
    centre = np.append(outline.centre, 1.0)
    seen = np.append(inverse @ (mosaic_from_i @ centre - mosaic_from_j[:, 2]), 1.0)
    return np.hstack([np.kron(inverse, centre), -np.kron(inverse, seen)])


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """F Fᵀ by planes (p, q), as blocks in elimination order."""

    diagonal: Blocks  # (planes, planes, n, k, k)
    ends: Indices  # (E, 2): places of the two frames of each link between free frames
    forth: Blocks  # (planes, planes, E, k, k): row of the first, column of the second
    back: Blocks  # the other way round; not the transpose, as p and q differ

    @classmethod
    def of(cls, adjustment: Adjustment) -> _Noise:
        by_i, by_j = _noise_derivatives(adjustment)
        planes, k, n = by_i.shape[1], by_i.shape[3], adjustment.frames - 1
        diagonal = np.zeros((planes, planes, adjustment.frames, k, k))
        ends, free_ends = adjustment.ends, adjustment.ends_free
        inner = (free_ends >= 0).all(axis=1)
        places = adjustment.pattern.place[free_ends[inner]]
        forth = np.zeros((planes, planes, len(places), k, k))
        back = np.zeros_like(forth)
        for p in range(planes):
            for q in range(planes):
                np.add.at(diagonal[p, q], ends[:, 0], np.swapaxes(by_i[:, p], 1, 2) @ by_i[:, q])
                np.add.at(diagonal[p, q], ends[:, 1], np.swapaxes(by_j[:, p], 1, 2) @ by_j[:, q])
                forth[p, q] = np.swapaxes(by_i[inner, p], 1, 2) @ by_j[inner, q]
                back[p, q] = np.swapaxes(by_j[inner, p], 1, 2) @ by_i[inner, q]
        in_order = adjustment.free[adjustment.pattern.node_at]
        assert len(in_order) == n
        return cls(np.ascontiguousarray(diagonal[:, :, in_order]), places, forth, back)


def _noise_derivatives(adjustment: Adjustment) -> tuple[Blocks, Blocks]:
    """Return the columns of F: d(gradient at i, at j)/d(noise), each (L, planes, freedom, k).

    The noise is on the link's pseudo-points in i. A map fitted within a smaller family only feels the part of
    it that lies in the family, so the directions are an orthonormal basis of {δ R : δ tangent}.
    """
    family, terms = adjustment.family, adjustment.terms
    links = len(terms.ends)
    maps_i = adjustment.unit_maps[terms.ends[:, 0]]
    maps_j = adjustment.unit_maps[terms.ends[:, 1]]
    residual = maps_j @ terms.side_j - maps_i @ terms.side_i  # (L, 2, 3)
    spanning = (family.tangent[None] @ terms.side_j[:, None]).reshape(links, family.freedom, 6)
    orthonormal, _ = np.linalg.qr(np.swapaxes(spanning, 1, 2))  # (L, 6, freedom)
    noise = np.swapaxes(orthonormal, 1, 2).reshape(links, family.freedom, 2, 3)

    on_mosaic = maps_i[:, None, :, :2] @ noise  # Θ_i dY
    gradient_j = -on_mosaic @ np.swapaxes(terms.side_j, 1, 2)[:, None]  # (L, freedom, 2, 3)
    gradient_i = on_mosaic @ np.swapaxes(terms.side_i, 1, 2)[:, None]
    gradient_i[..., :2] -= residual[:, None] @ np.swapaxes(noise, 2, 3)
    by_i = np.zeros((links, family.planes, family.freedom, family.size))
    by_j = np.zeros_like(by_i)
    for plane, rows in enumerate(family.rows_of_plane):
        for row in rows:
            by_i[:, plane] += gradient_i[:, :, row] @ family.basis[row]
            by_j[:, plane] += gradient_j[:, :, row] @ family.basis[row]
    return by_i, by_j


@compiled_parallel
def _centres_in_others(maps: Transforms) -> NDArray[np.float64]:
    frames = maps.shape[0]
    mean = np.empty((frames, frames, 2))
    for i in prange(frames):
        for j in range(frames):
            x, y = maps[i, 0, 2] - maps[j, 0, 2], maps[i, 1, 2] - maps[j, 1, 2]
            a, b, c, d = maps[j, 0, 0], maps[j, 0, 1], maps[j, 1, 0], maps[j, 1, 1]
            det = a * d - b * c
            mean[i, j, 0] = (d * x - b * y) / det
            mean[i, j, 1] = (a * y - c * x) / det
    return mean


@compiled
def _multiply(diagonal: Blocks, ends: Indices, forth: Blocks, back: Blocks, vectors: Blocks, product: Blocks) -> None:
    """Write the product of one plane pair's F Fᵀ with `vectors` (n·k, m)."""
    n, k = diagonal.shape[0], diagonal.shape[1]
    m = vectors.shape[1]
    for node in range(n):
        for a in range(k):
            row = node * k + a
            for x in range(m):
                product[row, x] = 0.0
            for b in range(k):
                scale = diagonal[node, a, b]
                for x in range(m):
                    product[row, x] += scale * vectors[node * k + b, x]
    for edge in range(len(ends)):
        first, second = ends[edge, 0] * k, ends[edge, 1] * k
        for a in range(k):
            for b in range(k):
                there, again = forth[edge, a, b], back[edge, a, b]
                for x in range(m):
                    product[first + a, x] += there * vectors[second + b, x]
                for x in range(m):
                    product[second + a, x] += again * vectors[first + b, x]


@compiled_parallel
def _accumulate_crossed(
    column_start: Indices,
    slot_row: Indices,
    lower: Blocks,
    pivot_inverse: Blocks,
    noise_diagonal: Blocks,
    noise_ends: Indices,
    noise_forth: Blocks,
    noise_back: Blocks,
    basis: NDArray[np.float64],
    plane_of_row: Indices,
    shift_of_row: Indices,
    column_of_row: Indices,
    place: Indices,
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Write into `cov` minus the terms that cross two frames.

    `cov[i, j]` gets -Cov(t_i, u_j) - Cov(u_j, t_i), where t_i is the centre of i and u_j the point of j that
    lies there, both on the mosaic. A thread takes some frames i and holds only their columns.
    """
    frames = place.shape[0]
    planes, n, k = noise_diagonal.shape[0], noise_diagonal.shape[2], noise_diagonal.shape[3]
    width = 3 - planes  # columns a frame: the parameters of one plane that shift its centre
    parts = (frames + FRAMES_AT_ONCE - 1) // FRAMES_AT_ONCE
    for part in prange(parts):
        first = part * FRAMES_AT_ONCE
        count = min(FRAMES_AT_ONCE, frames - first)
        solved = np.zeros((n * k, count * width))
        for f in range(count):
            if place[first + f] >= 0:
                for q in range(2):
                    solved[place[first + f] * k + shift_of_row[q], f * width + column_of_row[q]] = 1.0
        solve_in_place(column_start, slot_row, lower, pivot_inverse, solved)
        crossed = np.empty((n * k, count * width))
        for plane_p in range(planes):
            for plane_q in range(planes):
                # Becomes Cov(all parameters of plane p, those of plane q that shift the centre of frame f).
                _multiply(
                    noise_diagonal[plane_p, plane_q],
                    noise_ends,
                    noise_forth[plane_p, plane_q],
                    noise_back[plane_p, plane_q],
                    solved,
                    crossed,
                )
                solve_in_place(column_start, slot_row, lower, pivot_inverse, crossed)
                by_frame = np.ascontiguousarray(crossed.T)
                for p in range(2):
                    for q in range(2):
                        if plane_of_row[p] != plane_p or plane_of_row[q] != plane_q:
                            continue
                        twice = 2.0 if p == q else 1.0
                        for f in range(count):
                            i = first + f
                            row = by_frame[f * width + column_of_row[q]]
                            for j in range(frames):
                                if place[j] < 0:
                                    continue
                                total = 0.0
                                for c in range(k):
                                    weight = (
                                        basis[p, 0, c] * mean[i, j, 0] + basis[p, 1, c] * mean[i, j, 1] + basis[p, 2, c]
                                    )
                                    total += weight * row[place[j] * k + c]
                                cov[i, j, p + q] -= twice * total


@compiled_parallel
def _finish_centres(
    inverse_linear: NDArray[np.float64],
    basis: NDArray[np.float64],
    plane_of_row: Indices,
    shift_of_row: Indices,
    own: NDArray[np.float64],
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
) -> None:
    """Add the frames' own terms to `cov` and carry it from the mosaic into frame j."""
    frames, k = own.shape[0], own.shape[2]
    for i in prange(frames):
        weight = np.empty((2, k))
        on_mosaic = np.empty(3)
        for j in range(frames):
            for p in range(2):
                for c in range(k):
                    weight[p, c] = basis[p, 0, c] * mean[i, j, 0] + basis[p, 1, c] * mean[i, j, 1] + basis[p, 2, c]
            for entry in range(3):
                p, q = entry // 2, (entry + 1) // 2
                plane_p, plane_q = plane_of_row[p], plane_of_row[q]
                total = cov[i, j, entry] + own[i, plane_p, shift_of_row[p], plane_q, shift_of_row[q]]
                for a in range(k):
                    for b in range(k):
                        total += weight[p, a] * own[j, plane_p, a, plane_q, b] * weight[q, b]
                on_mosaic[entry] = total
            if i == j:
                on_mosaic[:] = 0.0
            a, b = inverse_linear[j, 0, 0], inverse_linear[j, 0, 1]
            c, d = inverse_linear[j, 1, 0], inverse_linear[j, 1, 1]
            xx, xy, yy = on_mosaic[0], on_mosaic[1], on_mosaic[2]
            cov[i, j, 0] = a * a * xx + 2.0 * a * b * xy + b * b * yy
            cov[i, j, 1] = a * c * xx + (a * d + b * c) * xy + b * d * yy
            cov[i, j, 2] = c * c * xx + 2.0 * c * d * xy + d * d * yy
