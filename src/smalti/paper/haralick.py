"""Compute the covariance of every frame's map: Haralick's propagation through the linear adjustment.

With S the normal matrix and F the derivative of the cost's gradient by the landmarks, the parameters have the
covariance S⁻¹ F Fᵀ S⁻¹ (Eq. covariance_propagation_haralick), relative to the reference frame. F Fᵀ is as sparse as S,
so every wanted part of the product comes from solves with the sparse factor.

The relative position of two frames that are near each other but hundreds of frames from the reference is a difference
of large numbers. It keeps its digits, five of them at 1,000 frames, because all numbers come from the same kind of
solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.engine.relative_position import Centres
from smalti.geometry.linear_maps import compose, invert, square
from smalti.paper.centre_covariance import centre_in_other, centre_jacobian, distribute_centres
from smalti.paper.linear_adjustment import AffineLink, LinearAdjustment
from smalti.records import Pair
from smalti.sparse.block_products import Blocks
from smalti.sparse.cholesky import multiply_sparse
from smalti.sparse.pattern import Indices


class Haralick:
    """The uncertainty of one adjustment."""

    def __init__(self, adjustment: LinearAdjustment) -> None:
        self.adjustment = adjustment

    def joint(self, pair: Pair) -> NDArray[np.float64]:
        """(12, 12): the covariance of Vec₆(Θ_i, Θ_j), pixels."""
        pair.check_within(self.adjustment.frames)
        return self._joint_of([pair.i, pair.j])

    def centre(self, i: int, j: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean (2,) and covariance (2, 2) of the centre of frame i in frame j, pixels."""
        for frame in (i, j):
            self.adjustment.check_frame(frame)
        maps = self.adjustment.mosaic_from_frame
        mean = centre_in_other(maps[[i, j]], self.adjustment.outline)[0, 1]
        jacobian = centre_jacobian(maps[i], maps[j], self.adjustment.outline)
        return mean, jacobian @ self._joint_of([i, j]) @ jacobian.T

    def chi2(self, link: AffineLink) -> float:
        """Return χ² of a link outside the adjustment: its residual (P - T̂) R against the predicted one.

        P = Θ_i⁻¹ Θ_j changes by L_i⁻¹ (dΘ_j - dΘ_i P); the link's own noise has variance one. 6 degrees of freedom for
        affine maps.
        """
        i, j = self.adjustment.mosaic_from_frame[[link.pair.i, link.pair.j]]
        relative = compose(invert(i), j)
        residual = ((relative - link.i_from_j) @ link.root).ravel()
        inverse = np.linalg.inv(i[:, :2])
        by_i = -np.kron(inverse, (square(relative) @ link.root).T)
        by_j = np.kron(inverse, link.root.T)
        jacobian = np.hstack([by_i, by_j])
        predicted = jacobian @ self.joint(link.pair) @ jacobian.T + np.eye(len(residual))
        return float(residual @ np.linalg.solve(predicted, residual))

    @cached_property
    def centres(self) -> Centres:
        """The distribution of γ_ij for all pairs, both directions."""
        adjustment, family, outline = self.adjustment, self.adjustment.family, self.adjustment.outline
        place = np.full(adjustment.frames, -1, dtype=np.int64)
        place[adjustment.free] = adjustment.pattern.place
        mean, cov = distribute_centres(
            *adjustment.factor.arrays,
            *self._noise.symmetric(),
            family.basis,
            np.array([family.shift(0), family.shift(1)]),
            place,
            adjustment.unit_maps,
            invert(adjustment.unit_maps),
            outline.unit,
            *outline.centre_x_y,
        )
        return Centres(outline, mean, cov)

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
                multiply_sparse(noise.diagonal[a, b], noise.ends, noise.forth[a, b], noise.back[a, b], solved, product)
                block = solved.T @ product
                parameters[a, :, :, b] = block.reshape(len(frames), k, len(frames), k)
        joint: NDArray[np.float64] = self._in_pixels(self._as_maps(parameters[None]))[0]
        return joint.reshape(6 * len(frames), 6 * len(frames))

    def _as_maps(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn covariances (m, planes, f, k, planes, f, k) of parameters into (m, f, 2, 3, f, 2, 3) of maps."""
        family = self.adjustment.family
        many, _, frames = parameters.shape[:3]
        result = np.zeros((many, frames, 2, 3, frames, 2, 3))
        for p in (0, 1):
            for q in (0, 1):
                block = parameters[:, min(p, family.planes - 1), :, :, min(q, family.planes - 1)]
                result[:, :, p, :, :, q] = np.einsum("ac,mfcgd,bd->mfagb", family.basis[p], block, family.basis[q])
        return result

    def _in_pixels(self, maps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn covariances (m, f, 2, 3, f, 2, 3) of maps into (m, f, 6, f, 6) of Vec₆ in pixels."""
        outline = self.adjustment.outline
        x, y = outline.centre_x_y
        # Noise of 1 px is 1/unit in the adjustment's units.
        row_in_pixels = np.array([[1.0, 0, 0], [0, 1, 0], [-x, -y, outline.unit]]) / outline.unit
        many, frames = maps.shape[:2]
        result: NDArray[np.float64] = np.einsum("ac,mfpcgqd,bd->mfpagqb", row_in_pixels, maps, row_in_pixels)
        return result.reshape(many, frames, 6, frames, 6)

    @cached_property
    def _noise(self) -> _Noise:
        return _Noise.of(self.adjustment)


def best_reference(haralick: Haralick) -> int:
    """Return the frame relative to which the others are known best on average."""
    return int(np.argmin(haralick.centres.spread_squared.sum(axis=0)))


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """F Fᵀ by planes (p, q), as blocks in elimination order."""

    diagonal: Blocks  # (planes, planes, n, k, k)
    ends: Indices  # (E, 2): elimination positions of the two frames of each link between free frames
    forth: Blocks  # (planes, planes, E, k, k): row of the first, column of the second
    back: Blocks  # the other way round; not the transpose, because p and q differ

    @classmethod
    def of(cls, adjustment: LinearAdjustment) -> _Noise:
        by_i, by_j = _noise_derivatives(adjustment)
        planes, k = by_i.shape[1], by_i.shape[3]
        diagonal = np.zeros((planes, planes, adjustment.frames, k, k))
        ends, free_ends = adjustment.ends, adjustment.ends_free
        inner = (free_ends >= 0).all(axis=1)
        inner_ends = adjustment.pattern.place[free_ends[inner]]
        forth = np.zeros((planes, planes, len(inner_ends), k, k))
        back = np.zeros_like(forth)
        for p in range(planes):
            for q in range(planes):
                np.add.at(diagonal[p, q], ends[:, 0], np.swapaxes(by_i[:, p], 1, 2) @ by_i[:, q])
                np.add.at(diagonal[p, q], ends[:, 1], np.swapaxes(by_j[:, p], 1, 2) @ by_j[:, q])
                forth[p, q] = np.swapaxes(by_i[inner, p], 1, 2) @ by_j[inner, q]
                back[p, q] = np.swapaxes(by_j[inner, p], 1, 2) @ by_i[inner, q]
        in_order = adjustment.free[adjustment.pattern.node_at]
        return cls(np.ascontiguousarray(diagonal[:, :, in_order]), inner_ends, forth, back)

    def symmetric(self) -> tuple[Blocks, Indices, Blocks, Blocks]:
        """Return the same as matrices (s, …) for xx, xy and yy; xy is averaged with its mirror image."""
        if len(self.diagonal) == 1:
            return self.diagonal[0], self.ends, self.forth[0], self.back[0]
        diagonal, forth, back = (
            np.stack([blocks[0, 0], (blocks[0, 1] + blocks[1, 0]) / 2, blocks[1, 1]])
            for blocks in (self.diagonal, self.forth, self.back)
        )
        return diagonal, self.ends, forth, back


def _noise_derivatives(adjustment: LinearAdjustment) -> tuple[Blocks, Blocks]:
    """Return the columns of F: d(gradient at i, at j)/d(noise), each (L, planes, freedom, k).

    The noise is on the link's pseudo-points in i. A map fitted within a smaller family depends only on the part of the
    noise within the family. So the directions are an orthonormal basis of {δ R : δ tangent}.
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
