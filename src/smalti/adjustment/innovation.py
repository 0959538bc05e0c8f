"""Does a link agree with the mosaic? Its residual against what the other links predict, as a χ² of 6 degrees.

The residual of a link is (P - T̂) R with P = Θ_i⁻¹ Θ_j on the refined mosaic; its covariance is one for the link's own
noise plus what is uncertain about P.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.cholesky import BlockCholesky, Blocks, NotPositiveDefiniteError
from smalti.adjustment.link import Link, normalised
from smalti.adjustment.refinement import Refinement, normal_blocks, steady
from smalti.geometry.affine import compose, invert, square
from smalti.records import Pair, Transforms

DEGREES = 6

LEAST_REDUNDANCY = 1e-6
"""A direction in which a link is checked by less than this share of its own weight is not checked at all."""


@dataclass(frozen=True, slots=True, eq=False)
class RelativeMap:
    """Where one frame lies in another, in pixels, and how surely."""

    target_from_source: Transforms  # (2, 3)
    covariance: NDArray[np.float64]  # (6, 6), of its entries, row by row


@dataclass(frozen=True, eq=False)
class Agreement:
    """A refined mosaic to hold links against."""

    adjustment: Adjustment
    refined: Refinement

    def of_new(self, link: Link) -> float:
        """Return χ² of a link that is not part of the adjustment."""
        residual, jacobian = self._residual(link)
        predicted = jacobian @ self._joint(link.pair) @ jacobian.T + np.eye(DEGREES)
        return float(residual @ np.linalg.solve(predicted, residual))

    def of_part(self, pair: Pair) -> float:
        """Return χ² of a link against all others; 0 where they say nothing about it."""
        residual, jacobian = self._residual(self.adjustment.links[pair])
        redundancy = np.eye(DEGREES) - jacobian @ self._joint(pair) @ jacobian.T
        values, vectors = np.linalg.eigh(redundancy)
        along = vectors.T @ residual
        checked = values > LEAST_REDUNDANCY
        return float(np.sum(along[checked] ** 2 / values[checked]))

    def expect(self, target: int, source: int) -> RelativeMap:
        """Say where a frame lies in another one: Θ_t⁻¹ Θ_s, which changes by Θ_t⁻¹ Θ_s δ_s - δ_t Θ_t⁻¹ Θ_s."""
        outline, tangent = self.adjustment.outline, self.adjustment.family.tangent
        relative = square(compose(invert(self._unit_maps[target]), self._unit_maps[source]))
        by_source = (relative[:2, :2] @ tangent).reshape(len(tangent), DEGREES).T
        by_target = -(tangent @ relative).reshape(len(tangent), DEGREES).T
        first, second = (by_target, by_source) if target < source else (by_source, by_target)
        joint = self._joint(Pair(min(target, source), max(target, source)))
        # From the adjustment's units to pixels: dT ↦ U⁻¹ dT U, of which the shift of U⁻¹ does not matter.
        to_units = square(outline.unit_from_pixels)
        to_pixels = np.kron(np.eye(2), to_units.T) * outline.unit
        jacobian = to_pixels @ np.hstack([first, second])
        pixels_from_unit = invert(outline.unit_from_pixels)
        target_from_source = compose(pixels_from_unit, compose(relative[:2], outline.unit_from_pixels))
        return RelativeMap(target_from_source, jacobian @ joint @ jacobian.T)

    def _residual(self, link: Link) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (P - T̂) R (6,) and its derivatives by δ_i and δ_j (6, 2·freedom)."""
        outline, tangent = self.adjustment.outline, self.adjustment.family.tangent
        side_i, side_j = normalised(link.i_from_j, link.root, outline.unit_from_pixels)
        i, j = link.pair.i, link.pair.j
        relative = square(compose(invert(self._unit_maps[i]), self._unit_maps[j]))
        mapped = relative @ side_j
        residual = (mapped - side_i)[:2].ravel() * outline.unit
        by_i = -(tangent @ mapped).reshape(len(tangent), DEGREES).T
        by_j = (relative[:2, :2] @ (tangent @ side_j)).reshape(len(tangent), DEGREES).T
        return residual, np.hstack([by_i, by_j]) * outline.unit

    def _joint(self, pair: Pair) -> NDArray[np.float64]:
        """Return the covariance of (δ_i, δ_j), common motions of the mosaic held, in the noise of the links."""
        freedom = len(self.adjustment.family.tangent)
        columns = np.zeros((self.adjustment.frames, freedom, 2 * freedom))
        columns[pair.i, :, :freedom] = columns[pair.j, :, freedom:] = np.eye(freedom)
        solved = self._factor.solve(columns)[[pair.i, pair.j]]
        joint: NDArray[np.float64] = solved.reshape(2 * freedom, 2 * freedom) / self.adjustment.outline.unit**2
        return joint

    @cached_property
    def _unit_maps(self) -> Transforms:
        return self.adjustment.in_units(self.refined.mosaic_from_frame)

    @cached_property
    def _factor(self) -> BlockCholesky:
        diagonal, off_diagonal = self._information
        grounded = diagonal.copy()
        grounded[self.adjustment.reference] *= 2.0
        pattern = self.adjustment.whole_pattern
        try:
            return BlockCholesky(pattern, grounded, off_diagonal)
        except NotPositiveDefiniteError:
            # Guesses in a row leave what lies beyond them known to no digit.
            return BlockCholesky(pattern, steady(grounded), off_diagonal)

    @cached_property
    def _information(self) -> tuple[Blocks, Blocks]:
        return normal_blocks(self.adjustment, self._unit_maps)
