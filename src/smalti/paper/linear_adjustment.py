"""The paper's linear bundle adjustment: condense landmarks to links (`AffineLink`), and solve (`LinearAdjustment`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.errors import LandmarkError, PairError, SingularSystemError, UsageError
from smalti.geometry.linear_maps import AFFINE, IDENTITY, Family, compose, homogeneous, invert, square
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, Pair, Transforms, are_collinear
from smalti.sparse.cholesky import ACCURATE_PIVOT_SHARE, BlockCholesky, NotPositiveDefiniteError
from smalti.sparse.orthogonal_factor import Rows, factorise_rows
from smalti.sparse.pattern import Pattern

MIN_LANDMARKS = 3
MIN_FRAMES = 2


@dataclass(frozen=True, slots=True, eq=False)
class AffineLink:
    """The sufficient statistic of a pair: its fitted map and a square root of its points' second moments.

    Differs from the paper: minimising its bundle adjustment on the raw landmarks shrinks the mosaic to nothing, because
    the landmarks' residuals cost less in a smaller mosaic. Here T̂ is fitted first. With R Rᵀ = Σ x̃_j x̃_jᵀ/σ², the
    pair costs |(Θ_j - Θ_i T̂) R|², as if it had three landmarks: the columns of R in j and of T̂ R in i, each with
    noise of variance one. σ is that of the landmarks.
    """

    pair: Pair
    i_from_j: Transforms  # (2, 3)
    root: NDArray[np.float64]  # (3, 3)
    residual_px: float  # RMS distance between the landmarks in i and those of j mapped there
    landmarks: int


def fit_affine_link(landmarks: Landmarks, family: Family = AFFINE) -> AffineLink:
    """Fit the pair's map in `family`, weighted by 1/σ, and condense the landmarks."""
    check_landmarks(landmarks)
    points_i, points_j = landmarks.points_i, landmarks.points_j
    weights = landmarks.weights

    # Both sides have one scale, so that a translation or similarity stays one; each has its own centre.
    centre_i, centre_j = points_i.mean(axis=0), points_j.mean(axis=0)
    scale = float(np.sqrt(np.mean((points_j - centre_j) ** 2)))
    local = family.fit((points_i - centre_i) / scale, (points_j - centre_j) / scale, weights)
    linear = local[:, :2]
    shift = scale * local[:, 2] + centre_i - linear @ centre_j
    i_from_j = np.column_stack([linear, shift])
    if np.linalg.det(linear) <= 0:
        raise LandmarkError(
            f"pair {landmarks.pair}: the landmarks show frame {landmarks.pair.j} mirrored in frame "
            f"{landmarks.pair.i}, check whether two of them are swapped"
        )

    # A QR factor of the points keeps the digits that their second moments would lose.
    _, upper = np.linalg.qr(homogeneous(points_j) * weights[:, None])
    residuals = homogeneous(points_j) @ i_from_j.T - points_i
    return AffineLink(
        pair=landmarks.pair,
        i_from_j=i_from_j,
        root=upper.T,
        residual_px=float(np.sqrt(np.mean(np.sum(residuals**2, axis=1)))),
        landmarks=len(landmarks),
    )


def check_landmarks(landmarks: Landmarks) -> None:
    """Refuse landmarks that do not determine an affine map."""
    if len(landmarks) < MIN_LANDMARKS:
        raise LandmarkError(
            f"pair {landmarks.pair}: {len(landmarks)} landmarks are too few for the paper's method, "
            f"give at least {MIN_LANDMARKS} that are not on one line"
        )
    if landmarks.along is not None:
        raise LandmarkError(
            f"pair {landmarks.pair}: the paper's method takes points only, mark points instead of curves"
        )
    for frame, points in ((landmarks.pair.i, landmarks.points_i), (landmarks.pair.j, landmarks.points_j)):
        if are_collinear(points):
            raise LandmarkError(
                f"pair {landmarks.pair}: the landmarks in frame {frame} are collinear and do not determine "
                "the map, add one away from their line"
            )


def pseudo_points(
    i_from_j: Transforms, root: NDArray[np.float64], unit_from_pixels: Transforms
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pseudo-points (..., 3, 3) of links in i and in j, one a column, in the adjustment's units."""
    to_unit = square(unit_from_pixels)
    return to_unit @ square(i_from_j) @ root, to_unit @ root


class LinearAdjustment:
    """A set of links and the mosaic that fits them best.

    It is a value: `add` returns a new adjustment. It depends only on the set of links, to the last bit, not on their
    order.

    The cost of a link is |(Θ_j - Θ_i T̂) R|² (see `AffineLink`). Θ_n is `mosaic_from_frame[n]`. The mosaic's
    coordinates are those of the reference frame. x and y share one matrix if the family allows.
    """

    def __init__(
        self,
        frames: int,
        outline: Outline,
        links: Iterable[AffineLink],
        *,
        family: Family = AFFINE,
        reference: int = 0,
    ) -> None:
        if frames < MIN_FRAMES:
            raise UsageError(f"a mosaic needs at least {MIN_FRAMES} frames, got {frames}")
        self.frames = frames
        self.outline = outline
        self.family = family
        self.reference = reference
        self.check_frame(reference, "reference frame")
        by_pair: dict[Pair, AffineLink] = {}
        for link in sorted(links, key=lambda link: link.pair):
            link.pair.check_within(frames)
            if link.pair in by_pair:
                raise PairError(f"pair {link.pair} is given twice: forget the earlier answer first")
            by_pair[link.pair] = link
        self.links: Mapping[Pair, AffineLink] = MappingProxyType(by_pair)
        self.terms = LinkTerms.of(list(by_pair.values()), outline, family, reference)
        self._check_connected()
        self._factorise()

    def add(self, *links: AffineLink) -> LinearAdjustment:
        """Return the adjustment with more links."""
        if not links:
            return self
        together = [*self.links.values(), *links]
        return LinearAdjustment(self.frames, self.outline, together, family=self.family, reference=self.reference)

    @cached_property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the linear solution, in pixels of the reference frame.

        Questions are chosen on it, as in the paper; `paper_refinement.py` computes the mosaic for output.
        """
        return self.in_pixels(self.unit_maps)

    @cached_property
    def unit_maps(self) -> Transforms:
        """(N, 2, 3): the same in the adjustment's own units (see `Outline.unit_from_pixels`)."""
        solution = self._solution
        if solution is None:
            right = self.terms.right_side(self.frames)[self.free]  # (n, planes, k)
            solution = self.factor.solve(np.ascontiguousarray(np.swapaxes(right, 1, 2)))
        maps = np.empty((self.frames, 2, 3))
        maps[self.reference] = IDENTITY
        maps[self.free] = self.family.maps(np.swapaxes(solution, 1, 2))
        return maps

    @cached_property
    def free(self) -> NDArray[np.int64]:
        """The frames that move: all but the reference."""
        return np.delete(np.arange(self.frames), self.reference)

    @property
    def pattern(self) -> Pattern:
        """The block pattern of systems over the free frames."""
        return self.factor.pattern

    @property
    def ends(self) -> NDArray[np.int64]:
        """(L, 2): the frames i, j of every link, in the order of `links`."""
        return self.terms.ends

    @cached_property
    def ends_free(self) -> NDArray[np.int64]:
        """(L, 2): the same numbered among the free frames, -1 for the reference."""
        number = np.full(self.frames, -1, dtype=np.int64)
        number[self.free] = np.arange(self.frames - 1)
        return number[self.ends]

    @cached_property
    def graph(self) -> coo_array:
        """The frames as vertices, the links as edges (i, j) of weight 1."""
        i, j = self.ends.T
        return coo_array((np.ones(len(i)), (i, j)), shape=(self.frames, self.frames))

    def check_frame(self, frame: int, role: str = "frame") -> None:
        """Refuse a frame that the sequence does not have."""
        if not 0 <= frame < self.frames:
            raise UsageError(f"{role} {frame}: the sequence has frames 0 to {self.frames - 1} only")

    def in_pixels(self, unit_maps: Transforms) -> Transforms:
        """Convert maps (N, 2, 3) from the adjustment's units to pixels."""
        unit_from_pixels = self.outline.unit_from_pixels
        return compose(invert(unit_from_pixels), compose(unit_maps, unit_from_pixels))

    def _factorise(self) -> None:
        inner = (self.ends_free >= 0).all(axis=1)
        pattern = Pattern.of(self.frames - 1, self.ends_free[inner])
        self._solution: NDArray[np.float64] | None = None
        diagonal = self.terms.diagonal(self.frames)[self.free]
        try:
            self.factor = BlockCholesky(pattern, diagonal, self.terms.ij[inner], least_pivot_share=ACCURATE_PIVOT_SHARE)
        except NotPositiveDefiniteError:
            # In an open chain of thousands of frames the normal equations are too badly conditioned.
            rows = self.terms.rows(self.ends_free, self.family)
            try:
                self.factor, self._solution = factorise_rows(pattern, rows)
            except NotPositiveDefiniteError as failure:
                frame = int(self.free[failure.node])
                raise SingularSystemError(
                    f"frame {frame}: its links do not determine where it is, check their landmarks"
                ) from None

    def _check_connected(self) -> None:
        _, part = connected_components(self.graph, directed=False)
        apart = np.flatnonzero(part != part[self.reference])
        if not len(apart):
            return
        others = f" and {len(apart) - 1} more" if len(apart) > 1 else ""
        raise UsageError(
            f"frame {apart[0]}{others}: no link joins it to the reference frame {self.reference}, and the paper's "
            "method needs a chain that joins all frames; register it with a neighbour, leave it out, or use another "
            "method"
        )


@dataclass(frozen=True, slots=True, eq=False)
class LinkTerms:
    """The contribution of each link to the normal equations; links are sorted by pair."""

    reference: int
    ends: NDArray[np.int64]  # (L, 2)
    side_i: NDArray[np.float64]  # (L, 3, 3): pseudo-points of i, one a column
    side_j: NDArray[np.float64]
    ii: NDArray[np.float64]  # (L, k, k)
    ij: NDArray[np.float64]
    jj: NDArray[np.float64]
    right_i: NDArray[np.float64]  # (L, planes, k)
    right_j: NDArray[np.float64]

    @classmethod
    def of(cls, links: list[AffineLink], outline: Outline, family: Family, reference: int) -> LinkTerms:
        """Compute the terms of links that are sorted by pair."""
        maps = np.array([link.i_from_j for link in links]).reshape(-1, 2, 3)
        roots = np.array([link.root for link in links]).reshape(-1, 3, 3)
        side_i, side_j = pseudo_points(maps, roots, outline.unit_from_pixels)
        ends = np.array([(link.pair.i, link.pair.j) for link in links], dtype=np.int64).reshape(-1, 2)
        ii, ij, jj = (np.zeros((len(links), family.size, family.size)) for _ in range(3))
        right_i, right_j = (np.zeros((len(links), family.planes, family.size)) for _ in range(2))
        residual = _fixed_residual(ends, side_i, side_j, family, reference)
        for plane, rows in enumerate(family.rows_of_plane):
            for row in rows:
                a_i, a_j = (np.swapaxes(family.basis[row].T @ side, 1, 2) for side in (side_i, side_j))  # (L, 3, k)
                if plane == 0:
                    ii += np.swapaxes(a_i, 1, 2) @ a_i
                    ij -= np.swapaxes(a_i, 1, 2) @ a_j
                    jj += np.swapaxes(a_j, 1, 2) @ a_j
                right_i[:, plane] += (np.swapaxes(a_i, 1, 2) @ residual[:, row, :, None])[..., 0]
                right_j[:, plane] -= (np.swapaxes(a_j, 1, 2) @ residual[:, row, :, None])[..., 0]
        return cls(reference, ends, side_i, side_j, ii, ij, jj, right_i, right_j)

    def rows(self, ends: NDArray[np.int64], family: Family) -> Rows:
        """Return the equations whose products these terms are; `ends` (L, 2) number the free frames."""
        residual = _fixed_residual(self.ends, self.side_i, self.side_j, family, self.reference)
        of_i, of_j = (
            np.concatenate([np.swapaxes(family.basis[row].T @ side, 1, 2) for row in family.rows_of_plane[0]], axis=1)
            for side in (self.side_i, self.side_j)
        )
        right = [np.concatenate([residual[:, row] for row in rows], axis=1) for rows in family.rows_of_plane]
        return Rows(ends, -of_i, np.ascontiguousarray(of_j), -np.stack(right, axis=2))

    @property
    def measured(self) -> NDArray[np.float64]:
        """The measured maps (L, 3, 3) from j to i, in the adjustment's units."""
        return self.side_i @ np.linalg.inv(self.side_j)

    def diagonal(self, frames: int) -> NDArray[np.float64]:
        """Sum the diagonal blocks (frames, k, k) in the order of pairs, so that the bits do not depend on history."""
        total = np.zeros((frames, *self.ii.shape[1:]))
        for side, blocks in ((0, self.ii), (1, self.jj)):
            np.add.at(total, self.ends[:, side], blocks)
        return total

    def right_side(self, frames: int) -> NDArray[np.float64]:
        """Sum the right-hand sides (frames, planes, k)."""
        total = np.zeros((frames, *self.right_i.shape[1:]))
        np.add.at(total, self.ends[:, 0], self.right_i)
        np.add.at(total, self.ends[:, 1], self.right_j)
        return total


def _fixed_residual(
    ends: NDArray[np.int64],
    side_i: NDArray[np.float64],
    side_j: NDArray[np.float64],
    family: Family,
    reference: int,
) -> NDArray[np.float64]:
    """Return the residuals (L, 2, 3) of the fixed part: the reference frame's map, and the family's offset."""
    fixed_i = np.where((ends[:, 0] == reference)[:, None, None], IDENTITY, family.offset)
    fixed_j = np.where((ends[:, 1] == reference)[:, None, None], IDENTITY, family.offset)
    return fixed_j @ side_j - fixed_i @ side_i
