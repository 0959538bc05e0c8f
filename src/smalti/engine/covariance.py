"""The covariance of any two frames relative to each other. Questions are chosen by it.

The information on the increments H ← H exp(Δ) of all frames is given as a Cholesky factor. The gauge of every connected
part is fixed at one frame. Which one does not matter, because only relative positions are computed. Nothing is stored
for all pairs: the distribution of a pair follows from the elimination paths of its two frames
(`elimination_paths.py`).

Nothing relates frames of different parts. Their relative position has standard deviations of FAR units.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import physical_memory, threads_for
from smalti.engine.elimination_paths import EliminationPaths, PathFinder
from smalti.engine.link_prediction import TINY, PredictedLinks, combine, combine_back
from smalti.engine.relative_position import FAR, MOST_VARIANCE, Centres, PairCentres, relate_all, relate_pairs
from smalti.engine.stretch_bounds import (
    Stretches,
    bound_stretches,
    cut_into_stretches,
    middles,
    normalised_maps,
    summarise_stretches,
)
from smalti.geometry.homographies import ENTRIES, Family
from smalti.geometry.outline import Outline
from smalti.records import Homographies, PairNumbers, Points
from smalti.sparse.cholesky import BlockCholesky
from smalti.sparse.pattern import Indices

MOST_BYTES_OF_PATHS = physical_memory() // 4
"""The elimination paths of all frames are kept if they need no more bytes. Otherwise paths are computed when needed."""

PAIRS_AT_ONCE = 4096
"""How many pairs are handled at once where not all paths are kept."""

LOADS_AT_ONCE = 32
"""How many loads are solved at once: they stay in the processor's cache."""

MONOMIALS = 6
"""1, x, y, x², xy, y²: the velocity of a point under exp(Δ) is linear in them."""


class Covariance:
    """The maps of a mosaic, and the covariance of its frames relative to each other."""

    def __init__(
        self, outline: Outline, family: Family, maps_in_units: Homographies, factor: BlockCholesky, part: Indices
    ) -> None:
        """Take maps (N, 3, 3) from frames to the mosaic, in units, the factor of the information, and parts (N,).

        Maps may have any scale, but their signs count: H_j⁻¹ H_i must map points that both frames show to positive
        depths.
        """
        self.outline = outline
        self.family = family
        self.frames = len(maps_in_units)
        self.part = part
        self._maps = np.ascontiguousarray(maps_in_units)
        self._path_finder = PathFinder(factor, family.by_entry)

    @property
    def maps_in_units(self) -> tuple[Homographies, Homographies]:
        """Maps (N, 3, 3) from frames to the mosaic, in units, and their inverses."""
        return self._maps, self._inverses

    @cached_property
    def centres(self) -> Centres:
        """The distribution of γ_ij for all pairs in both directions; O(N²) memory."""
        unit = self.outline.unit
        mean, cov = relate_all(self._paths(np.arange(self.frames)).arrays, *self.maps_in_units)
        _mark_unknown(mean, cov, self.part[:, None] != self.part[None])
        return Centres(self.outline, mean * unit + self.outline.centre, cov * unit**2)

    def of_pairs(self, pairs: PairNumbers) -> PairCentres:
        """Return the distributions of γ_ij and γ_ji for pairs (n, 2), pixels.

        Frames of different parts have their mean at the centre of the outline, and deviations of FAR units.
        """
        unit = self.outline.unit
        mean, cov = np.empty((len(pairs), 2, 2)), np.empty((len(pairs), 2, 3))
        for some in self._portions(len(pairs)):
            chosen = np.ascontiguousarray(pairs[some])
            mean[some], cov[some] = self._relate(chosen, self._paths(chosen))
        _mark_unknown(mean, cov, self._apart(pairs))
        return PairCentres(self.outline, mean * unit + self.outline.centre, cov * unit**2)

    @cached_property
    def stretches(self) -> Stretches:
        """Bounds that hold for all pairs between two stretches of consecutive frames."""
        frames, (maps, inverses) = self.frames, self.maps_in_units
        starts = cut_into_stretches(frames)
        middle = middles(starts)
        centres, centre_variances = np.empty((frames, 2)), np.empty((frames, 2))
        frame_from_middle, variances = np.empty((frames, 3, 3)), np.empty((frames, ENTRIES))
        both = np.column_stack([np.arange(frames), np.repeat(middle, np.diff(starts))])
        for some in self._portions(frames):
            pairs = np.ascontiguousarray(both[some])
            paths = self._paths(pairs)
            mean, cov = self._relate(pairs, paths)
            centres[some], centre_variances[some] = mean[:, 0], cov[:, 0, ::2]
            frame_from_middle[some], variances[some] = normalised_maps(pairs[:, 1], pairs[:, 0], paths, maps, inverses)
        summaries = summarise_stretches(starts, centres, centre_variances, frame_from_middle, variances, self.part)
        return bound_stretches(starts, summaries, self._paths(middle), maps, inverses, self.part, self.outline.unit)

    def predicted_links(
        self, pairs: PairNumbers, points_j: Points, weights: NDArray[np.float64] | None = None
    ) -> PredictedLinks:
        """Return links of pairs (n, 2) that would measure the positions in i of points (n, m, 2) of j, in units."""
        maps, inverses = self.maps_in_units
        i_from_j = inverses[pairs[:, 0]] @ maps[pairs[:, 1]]
        return PredictedLinks.at(pairs, i_from_j, points_j, weights, self.outline.unit)

    def of_predicted_links(self, predicted_links: PredictedLinks) -> NDArray[np.float64]:
        """Return the predicted covariances (n, rows, rows) of noise-free measurements of links, px².

        Rows of frames of different parts are independent and have deviations of FAR units.
        """
        rows = predicted_links.by_i.shape[1]
        return self._covariances(predicted_links, MOST_VARIANCE * self.outline.unit**2 * np.eye(rows))

    def carry(self, loads: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariance of all entries of all Δ times `loads`, both (N, 8, m)."""
        by_entry, factor = self.family.by_entry, self._path_finder.factor
        moves = np.empty_like(loads)
        # A few at a time: fresh memory costs more than the solve itself.
        for first in range(0, loads.shape[2], LOADS_AT_ONCE):
            some = slice(first, first + LOADS_AT_ONCE)
            # A system may have a shared node after the frames.
            part = np.ascontiguousarray(loads[..., some])
            work = np.zeros((factor.pattern.nodes, len(by_entry), part.shape[2]))
            combine(by_entry, part, factor.pattern.place[: self.frames], work)
            factor.solve_ordered(work)
            moved = np.empty_like(part)
            combine_back(by_entry, work, factor.pattern.place[: self.frames], moved)
            moves[..., some] = moved
        return moves

    def expect(self, target: int, source: int) -> tuple[Homographies, NDArray[np.float64]]:
        """Return the map (3, 3) from source to target, pixels, and the covariance (8, 8) of its increment.

        The increment is local to the source: P ← P exp(E) in units, by the entries of E. For frames of different parts,
        the map is the identity, with a deviation of FAR for every direction of the family.
        """
        maps, inverses = self.maps_in_units
        known = target != source and self.part[target] == self.part[source]
        target_from_source = inverses[target] @ maps[source] if known else np.eye(3)
        unit_from_pixels = np.vstack([self.outline.unit_from_pixels, [0.0, 0.0, 1.0]])
        in_pixels = np.linalg.solve(unit_from_pixels, target_from_source @ unit_from_pixels)
        largest = np.abs(in_pixels).max()
        in_pixels /= in_pixels[2, 2] if in_pixels[2, 2] > largest / FAR**2 else max(largest, TINY)
        return in_pixels, self._increments(np.array([[target, source]]))[0]

    def relate(self, pairs: PairNumbers) -> tuple[Homographies, NDArray[np.float64]]:
        """Return the maps (n, 3, 3) from the second to the first frames of pairs, in units, and their covariances.

        The covariances (n, 8, 8) are those of the increments of the maps, local to the second frames.
        """
        maps, inverses = self.maps_in_units
        return inverses[pairs[:, 0]] @ maps[pairs[:, 1]], self._increments(pairs)

    def spread_relative_to(self, frame: int) -> NDArray[np.float64]:
        """Return quadratic forms S (N, 6, 6): the variance mᵀ S_n m, px², in `frame` of the point (x, y) of frame n.

        m = (1, x, y, x², xy, y²) in units of frame n. The variance is the sum over both coordinates. The increment of
        the relative map P ← P exp(E) moves the point by J_P(x) v(x; E); J_P is taken at the centre of frame n. S is
        zero for `frame` itself. For frames of other parts, or behind the camera, every point deviates by FAR units in x
        and y.
        """
        pairs = np.column_stack([np.full(self.frames, frame), np.arange(self.frames)])
        maps, inverses = self.maps_in_units
        origin = np.zeros((self.frames, 1, 2))
        at_centre = PredictedLinks.at(pairs, inverses[pairs[:, 0]] @ maps, origin, None, self.outline.unit)
        slope = at_centre.by_j[:, :, [2, 5]]  # by the shift of frame n: Q, pixels of `frame` per unit
        monomials = _velocity_by_monomials()
        turned = np.einsum("npq,qem->nepm", slope, monomials)
        covariances = self._increments(pairs)
        spread = np.einsum("nepa,nef,nfpb->nab", turned, covariances, turned, optimize=True)
        known = np.asarray(maps[:, :, 2] @ inverses[frame, 2] > 0.0)
        known &= np.isfinite(spread).all(axis=(1, 2)) & (self.part == self.part[frame])
        spread[~known] = 0.0
        spread[~known, 0, 0] = 2.0 * MOST_VARIANCE * self.outline.unit**2
        spread[frame] = 0.0
        return np.asarray((spread + np.swapaxes(spread, 1, 2)) / 2.0)

    def _increments(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the covariances (n, 8, 8) of the increments of the maps from the second to the first frame."""
        maps, inverses = self.maps_in_units
        first, second = pairs.T
        predicted_links = PredictedLinks.of_increments(
            pairs, inverses[first] @ maps[second], inverses[second] @ maps[first]
        )
        by_entry = self.family.by_entry
        covariances = self._covariances(predicted_links, MOST_VARIANCE * by_entry.T @ by_entry)
        covariances[first == second] = 0.0
        return covariances

    def _covariances(self, predicted_links: PredictedLinks, unknown: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariances (n, rows, rows) of links; `unknown` (rows, rows) between parts and for overflows."""
        result = np.empty((len(predicted_links.pairs), *unknown.shape))
        for some in self._portions(len(result)):
            result[some] = predicted_links[some].covariances(self._paths(predicted_links.pairs[some]).arrays)
        result[self._apart(predicted_links.pairs) | ~np.isfinite(result).all(axis=(1, 2))] = unknown
        return result

    def _relate(self, pairs: PairNumbers, paths: EliminationPaths) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        with threads_for(0.7 * len(pairs)):
            return relate_pairs(pairs, paths.arrays, *self.maps_in_units)

    def _apart(self, pairs: PairNumbers) -> NDArray[np.bool_]:
        return np.asarray(self.part[pairs[:, 0]] != self.part[pairs[:, 1]])

    def _portions(self, count: int) -> list[slice]:
        """Return slices of `count` pairs, so small that their elimination paths fit into memory."""
        at_once = max(count, 1) if self._paths_fit else PAIRS_AT_ONCE
        return [slice(first, first + at_once) for first in range(0, count, at_once)]

    def _paths(self, frames: NDArray[np.int64]) -> EliminationPaths:
        return self._all_paths if self._paths_fit else self._path_finder.find(frames.ravel())

    @cached_property
    def _paths_fit(self) -> bool:
        return self._path_finder.size_of_all <= MOST_BYTES_OF_PATHS

    @cached_property
    def _all_paths(self) -> EliminationPaths:
        return self._path_finder.find(np.arange(self.frames))

    @cached_property
    def _inverses(self) -> Homographies:
        return _invert(self._maps)


def _mark_unknown(mean: NDArray[np.float64], cov: NDArray[np.float64], apart: NDArray[np.bool_]) -> None:
    """Set pairs of different parts to mean 0 and deviations of FAR, in place."""
    mean[apart] = 0.0
    cov[apart] = [MOST_VARIANCE, 0.0, MOST_VARIANCE]


def _invert(maps: Homographies) -> Homographies:
    """Return the inverses (N, 3, 3), or the adjugates of maps that are singular to all digits."""
    size = np.maximum(np.abs(maps).max(axis=(1, 2), keepdims=True), TINY)
    first, second, third = np.moveaxis(maps / size, 1, 0)
    adjugate = np.stack([np.cross(second, third), np.cross(third, first), np.cross(first, second)], axis=2)
    determinant = np.einsum("na,na->n", first, adjugate[:, :, 0])[:, None, None]
    singular = np.abs(determinant) < TINY**2
    return np.ascontiguousarray(adjugate / np.where(singular, 1.0, determinant * size))


def _velocity_by_monomials() -> NDArray[np.float64]:
    """Return the velocity v of a point as coefficients (2, 8, 6), by coordinate, entry of Δ and monomial."""
    by = np.zeros((2, ENTRIES, MONOMIALS))
    for row in range(2):
        by[row, 3 * row, 1] = by[row, 3 * row + 1, 2] = by[row, 3 * row + 2, 0] = 1.0
        by[row, 6, 3 + row] = by[row, 7, 4 + row] = -1.0
    return by
