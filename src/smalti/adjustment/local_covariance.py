"""Where every frame's centre falls in every other frame, and how sure we are of it: what questions are chosen by.

Differs from the paper, which propagates noise through the linear adjustment about one reference (`covariance.py`).
There, the place of one frame in its neighbour is the difference of two places that are both uncertain by everything
between them and the reference: for all pairs at once, at 1000 frames, no digit of it is left. In local increments
Θ ← Θ (I + δ) a link depends on its two frames relative to each other only. Its Jacobian at the linear solution, J,
gives the information JᵀJ on the mosaic up to a common motion, the inverse of that is the covariance, and *any* frame
may be held to take the common motion out. The two covariances agree to first order in the links' residuals; for a chain
they are the same.

Nothing is kept for all pairs: any pair's distribution follows from the ways of its two frames up the elimination tree
(`ascent.py`) when somebody asks for it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.ascent import Ascents, Climber
from smalti.adjustment.centres import Centres, PairCentres
from smalti.adjustment.cholesky import (
    ENOUGH_LEFT,
    LEAST_LEFT,
    BlockCholesky,
    Blocks,
    NotPositiveDefiniteError,
)
from smalti.adjustment.orthogonal import Rows, factorise_rows
from smalti.adjustment.pairs import relate_all, relate_pairs
from smalti.adjustment.refinement import jacobians_as_measured, normal_blocks, steady
from smalti.adjustment.relations import Relations
from smalti.adjustment.stretches import (
    Stretches,
    bound_stretches,
    cut_into_stretches,
    deviations_of_maps,
    look_inside,
    middles,
)
from smalti.compiled import physical_memory, threads_for
from smalti.errors import SingularSystemError
from smalti.geometry.affine import compose, invert
from smalti.records import PairNumbers, Transforms

MOST_BYTES_OF_WAYS = physical_memory() // 4
"""The ways of all frames are kept if they need no more; else those that are asked for are found again."""

PAIRS_AT_ONCE = 4096
"""Pairs whose ways are held at a time where not all are kept."""


class LocalCovariance:
    """An adjustment, and the uncertainty of places relative to each other on its linear mosaic, or on another one."""

    def __init__(self, adjustment: Adjustment, mosaic_from_frame: Transforms | None = None) -> None:
        """Linearise about the given maps (N, 2, 3), about the linear mosaic if there are none."""
        self.adjustment = adjustment
        self._given = mosaic_from_frame

    def bare(self) -> LocalCovariance:
        """Return the same with nothing computed yet."""
        return LocalCovariance(self.adjustment, self._given)

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
        """The distribution of γ_ij for all pairs, both directions: for those who look at all of them."""
        outline = self.adjustment.outline
        everything = np.arange(self.adjustment.frames)
        mean, cov = relate_all(self._ways(everything).arrays, self._unit_maps, self._inverses)
        mean *= outline.unit
        mean += outline.centre
        return Centres(outline, mean, cov)

    def of_pairs(self, pairs: PairNumbers) -> PairCentres:
        """Return the distributions of γ_ij and γ_ji for pairs (n, 2)."""
        outline = self.adjustment.outline
        mean, cov = np.empty((len(pairs), 2, 2)), np.empty((len(pairs), 2, 3))
        at_once = len(pairs) if self._ways_fit else PAIRS_AT_ONCE
        for first in range(0, len(pairs), max(at_once, 1)):
            some = slice(first, first + at_once)
            chosen = np.ascontiguousarray(pairs[some])
            ways = self._ways(chosen)
            mean[some], cov[some] = self._relate(chosen, ways)
        return PairCentres(outline, mean * outline.unit + outline.centre, cov)

    @cached_property
    def stretches(self) -> Stretches:
        """What can be said at once of all pairs between two stretches of frames."""
        frames, maps = self.adjustment.frames, self._unit_maps
        starts = cut_into_stretches(frames)
        middle = middles(starts)
        seen, spread, deviations = np.empty((frames, 2)), np.empty((frames, 2)), np.empty((frames, 2, 3))
        numbers = np.arange(frames)
        stands_for = np.repeat(middle, np.diff(starts))
        for first in range(0, frames, frames if self._ways_fit else PAIRS_AT_ONCE):
            some = slice(first, first + (frames if self._ways_fit else PAIRS_AT_ONCE))
            pairs = np.column_stack([numbers[some], stands_for[some]])
            ways = self._ways(pairs)
            mean, cov = self._relate(pairs, ways)
            seen[some], spread[some] = mean[:, 0], cov[:, 0, ::2]
            deviations[some] = deviations_of_maps(pairs[:, 1], pairs[:, 0], ways, maps, self._inverses)
        inside = look_inside(starts, seen, spread, deviations, maps, self._inverses)
        unit = self.adjustment.outline.unit
        return bound_stretches(starts, inside, self._ways(middle), maps, self._inverses, unit)

    def relations(self, pairs: PairNumbers, roots: NDArray[np.float64]) -> Relations:
        """Think of links of pairs (n, 2) that measure what the mosaic says, with points R (n, 3, 3) in units."""
        maps, inverses = self.maps_in_units
        return Relations.of(pairs, compose(inverses[pairs[:, 0]], maps[pairs[:, 1]]), roots)

    def of_relations(self, relations: Relations) -> NDArray[np.float64]:
        """Return the covariances (n, 6, 6) of what links would measure, were they free of noise."""
        if self._ways_fit:
            return relations.covariances(self._all_ways.arrays)
        result = np.empty((len(relations.pairs), 6, 6))
        for first in range(0, len(result), PAIRS_AT_ONCE):
            some = slice(first, first + PAIRS_AT_ONCE)
            result[some] = relations[some].covariances(self._ways(relations.pairs[some]).arrays)
        return result

    def carry(self, loads: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariance of all entries of all δ times `loads`, both (N, 6, m); one frame is held."""
        tangent = self.adjustment.family.tangent.reshape(-1, loads.shape[1])
        moves = self._climber.factor.solve(tangent @ loads)
        return np.asarray(tangent.T @ moves)

    def _relate(self, pairs: PairNumbers, ways: Ascents) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        with threads_for(0.5 * len(pairs)):
            return relate_pairs(pairs, ways.arrays, *self.maps_in_units)

    def _ways(self, frames: NDArray[np.int64]) -> Ascents:
        return self._all_ways if self._ways_fit else self._climber.ascend(frames.ravel())

    @cached_property
    def _ways_fit(self) -> bool:
        return self._climber.size_of_all <= MOST_BYTES_OF_WAYS

    @cached_property
    def _all_ways(self) -> Ascents:
        return self._climber.ascend(np.arange(self.adjustment.frames))

    @cached_property
    def _climber(self) -> Climber:
        root = int(self.adjustment.whole_pattern.node_at[-1])
        try:
            factor = self._held(root, least_left=ENOUGH_LEFT)
        except SingularSystemError:
            factor = self._held_by_rows(root)
        return Climber(factor, self.adjustment.family.tangent)

    @property
    def maps_in_units(self) -> tuple[Transforms, Transforms]:
        """The same mosaic (N, 2, 3) in the adjustment's units, and the maps back."""
        return self._unit_maps, self._inverses

    @cached_property
    def _inverses(self) -> Transforms:
        return invert(self._unit_maps)

    def _held_by_rows(self, frame: int) -> BlockCholesky:
        """Do the same for a sequence so long, or guesses so wild, that the information has no digits left.

        There the linear mosaic may have shrunk to nothing: what links measured stands for it.
        """
        by_i, by_j = jacobians_as_measured(self.adjustment)
        at_i, at_j = (self.adjustment.ends == frame).T
        own = np.concatenate([by_i[at_i], by_j[at_j]]).reshape(-1, by_i.shape[2])
        # A prior as strong as the frame's own links, as a group of rows.
        root = np.zeros((1, *by_i.shape[1:]))
        root[0, : own.shape[1]] = np.linalg.cholesky(own.T @ own).T
        rows = Rows(
            ends=np.concatenate([self.adjustment.ends, [[frame, -1]]]),
            first=np.concatenate([by_i, root]),
            second=np.concatenate([by_j, np.zeros_like(root)]),
            right=np.zeros((len(by_i) + 1, by_i.shape[1], 0)),
        )
        try:
            return factorise_rows(self.adjustment.whole_pattern, rows)[0]
        except NotPositiveDefiniteError:
            # Guesses in a row leave what lies beyond them known to no digit: say that nothing is endlessly far.
            return self._held(frame, steadied=True)

    def _held(self, frame: int, *, steadied: bool = False, least_left: float = LEAST_LEFT) -> BlockCholesky:
        """Factorise the information with one frame held by a prior as strong as its own links.

        `steadied` holds every frame besides, by a prior that is weak beside any link.
        """
        diagonal, off_diagonal = self._information
        grounded = steady(diagonal) if steadied else diagonal.copy()
        grounded[frame] *= 2.0
        try:
            return BlockCholesky(self.adjustment.whole_pattern, grounded, off_diagonal, least_left=least_left)
        except NotPositiveDefiniteError as failure:
            raise SingularSystemError(
                f"frame {failure.node}: the links do not determine how it lies to the others, check their landmarks"
            ) from None

    @cached_property
    def _information(self) -> tuple[Blocks, Blocks]:
        return normal_blocks(self.adjustment, self._unit_maps)
