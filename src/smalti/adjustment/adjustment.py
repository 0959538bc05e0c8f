"""The linear bundle adjustment: the place of every frame, from links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.adjustment.cholesky import ENOUGH_LEFT, BlockCholesky, NotPositiveDefiniteError
from smalti.adjustment.link import Link, normalised, stacked
from smalti.adjustment.orthogonal import Rows, factorise_rows
from smalti.adjustment.pattern import Pattern
from smalti.errors import PairError, SingularSystemError, UsageError
from smalti.geometry.affine import IDENTITY, compose, invert
from smalti.geometry.family import AFFINE, Family
from smalti.geometry.outline import Outline
from smalti.records import Pair, Transforms, pair_key

MIN_FRAMES = 2

MOST_REFERENCES = 1000
"""Frames that are tried as the reference, where the best is wanted."""

Reference = int | Literal["auto"]


class Adjustment:
    """A set of links and the mosaic that fits them best.

    A value: `add`, `change` and `remove` return a new adjustment and leave this one as it is, so undo is
    keeping the old one, and a change that fails changes nothing. What it holds depends on its links alone, not on
    the order in which they came.

    The cost of a link is |(Θ_j - Θ_i T̂) R|² (see `Link`), Θ_n being `mosaic_from_frame[n]` and the mosaic's
    coordinates those of the reference frame. x and y share one matrix where the family allows.
    """

    def __init__(
        self,
        frames: int,
        outline: Outline,
        links: Iterable[Link],
        *,
        family: Family = AFFINE,
        reference: Reference = 0,
    ) -> None:
        if frames < MIN_FRAMES:
            raise UsageError(f"a mosaic needs at least {MIN_FRAMES} frames, got {frames}")
        links = list(links)
        if reference == "auto":
            # The middle frame is the best of a chain and near enough to the best of any sequence to judge from.
            reference = Adjustment(frames, outline, links, family=family, reference=frames // 2).best_reference()
        self.frames = frames
        self.outline = outline
        self.family = family
        self.reference = reference
        self.check_frame(reference, "reference frame")
        by_pair: dict[Pair, Link] = {}
        for link in sorted(links, key=lambda link: link.pair):
            link.pair.check_within(frames)
            if link.pair in by_pair:
                raise PairError(f"pair {link.pair} is given twice")
            by_pair[link.pair] = link
        self.links: Mapping[Pair, Link] = MappingProxyType(by_pair)
        self.terms = LinkTerms.of(list(by_pair.values()), outline, family, self.reference)
        self._check_connected()
        self._factorise()

    def add(self, link: Link) -> Adjustment:
        """Return the adjustment with one link more."""
        if link.pair in self.links:
            raise PairError(f"pair {link.pair} has a link already: change it or remove it first")
        link.pair.check_within(self.frames)
        return self._with(link.pair, link)

    def change(self, link: Link) -> Adjustment:
        """Return the adjustment with another link for a pair that has one."""
        self._check_linked(link.pair)
        return self._with(link.pair, link)

    def remove(self, pair: Pair) -> Adjustment:
        """Return the adjustment without a pair's link."""
        self._check_linked(pair)
        return self._with(pair, None)

    @cached_property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the linear solution, in pixels of the reference frame.

        It asks the questions, as in the paper; `smalti.adjustment.refinement` gives what users see.
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
        """Where systems over the free frames have blocks."""
        return self.factor.pattern

    @cached_property
    def whole_pattern(self) -> Pattern:
        """Where systems over all frames have blocks."""
        return Pattern.of(self.frames, self.ends)

    @property
    def ends(self) -> NDArray[np.int64]:
        """(L, 2): the frames i, j of every link, in the order of `links`."""
        return self.terms.ends

    @cached_property
    def ends_free(self) -> NDArray[np.int64]:
        """(L, 2): the same counted among the free frames, -1 for the reference."""
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
        """Bring maps (N, 2, 3) from the adjustment's units to pixels."""
        unit_from_pixels = self.outline.unit_from_pixels
        return compose(invert(unit_from_pixels), compose(unit_maps, unit_from_pixels))

    def in_units(self, maps: Transforms) -> Transforms:
        """Bring maps (N, 2, 3) from pixels to the adjustment's units, the reference at the origin."""
        unit_from_pixels = self.outline.unit_from_pixels
        units = compose(unit_from_pixels, compose(maps, invert(unit_from_pixels)))
        return compose(invert(units[self.reference]), units)

    def with_reference(self, reference: Reference) -> Adjustment:
        """Return the same links adjusted about another frame."""
        return Adjustment(self.frames, self.outline, self.links.values(), family=self.family, reference=reference)

    def weighted(
        self, weights: Mapping[Pair, float], exchanged: Mapping[Pair, Link] = MappingProxyType({})
    ) -> Adjustment:
        """Return the same links, each counted with a weight, but for those that are exchanged."""
        roots = np.sqrt([weights[pair] for pair in self.links])
        links = {
            pair: exchanged.get(pair) or link.changed(link.i_from_j, root * link.root)
            for root, (pair, link) in zip(roots, self.links.items(), strict=True)
        }
        if not exchanged:
            return self._of(links, self.terms.scaled(roots))
        return self._of(links, LinkTerms.of(list(links.values()), self.outline, self.family, self.reference))

    def best_reference(self) -> int:
        """Return the frame relative to which the others are known best, on average.

        Beyond 1000 frames, one of 1000 that are evenly spread, relative to which the rest of these are known best.
        """
        # Imported here: the covariance is computed from an adjustment.
        from smalti.adjustment.local_covariance import LocalCovariance  # noqa: PLC0415

        chosen = np.linspace(0, self.frames - 1, min(self.frames, MOST_REFERENCES)).round().astype(np.int64)
        i, j = np.triu_indices(len(chosen), 1)
        cov = LocalCovariance(self).of_pairs(np.column_stack([chosen[i], chosen[j]])).cov
        spread_squared = cov[..., 0] + cov[..., 2]
        total = np.bincount(j, spread_squared[:, 0], len(chosen)) + np.bincount(i, spread_squared[:, 1], len(chosen))
        return int(chosen[np.argmin(total)])

    def parts_without(self, pairs: Iterable[Pair]) -> NDArray[np.int64]:
        """Return for every frame the number of its part (N,), were these pairs not linked."""
        left_out = {(pair.i, pair.j) for pair in pairs}
        kept = np.array([(int(i), int(j)) not in left_out for i, j in self.ends], dtype=bool)
        i, j = self.ends[kept].T
        graph = coo_array((np.ones(len(i)), (i, j)), shape=(self.frames, self.frames))
        _, part = connected_components(graph, directed=False)
        return np.asarray(part, dtype=np.int64)

    def needed_of(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return those of the pairs whose frames nothing but these pairs connects."""
        pairs = sorted(pairs)
        part = self.parts_without(pairs)
        return [pair for pair in pairs if part[pair.i] != part[pair.j]]

    def _with(self, pair: Pair, link: Link | None) -> Adjustment:
        """Return the adjustment with this link in the place of the pair's, or without one."""
        at, present = self.terms.find(pair)
        entries = list(self.links.items())
        entries[at : at + present] = [] if link is None else [(pair, link)]
        return self._of(
            dict(entries), self.terms.changed(pair, link, self.outline, self.family), disconnected=link is None
        )

    def _of(self, links: dict[Pair, Link], terms: LinkTerms, *, disconnected: bool = False) -> Adjustment:
        """Return the adjustment of other links of the same frames, `disconnected` if some may have no link left."""
        successor = Adjustment.__new__(Adjustment)
        successor.frames, successor.outline = self.frames, self.outline
        successor.family, successor.reference = self.family, self.reference
        successor.links, successor.terms = MappingProxyType(links), terms
        if disconnected:
            successor._check_connected()
        successor._factorise()
        return successor

    def _factorise(self) -> None:
        inner = (self.ends_free >= 0).all(axis=1)
        pattern = Pattern.of(self.frames - 1, self.ends_free[inner])
        self._solution: NDArray[np.float64] | None = None
        diagonal = self.terms.diagonal(self.frames)[self.free]
        try:
            self.factor = BlockCholesky(pattern, diagonal, self.terms.ij[inner], least_left=ENOUGH_LEFT)
        except NotPositiveDefiniteError:
            # Thousands of frames in an open chain: its ends are too far apart for the normal equations.
            rows = self.terms.rows(self.ends_free, self.family)
            try:
                self.factor, self._solution = factorise_rows(pattern, rows)
            except NotPositiveDefiniteError as failure:
                frame = int(self.free[failure.node])
                raise SingularSystemError(
                    f"frame {frame}: its links do not determine where it is, check their landmarks"
                ) from None

    def _check_linked(self, pair: Pair) -> None:
        if pair not in self.links:
            raise PairError(f"pair {pair} has no link")

    def _check_connected(self) -> None:
        _, part = connected_components(self.graph, directed=False)
        apart = np.flatnonzero(part != part[self.reference])
        if not len(apart):
            return
        first = int(apart[0])
        if np.sum(part == part[first]) == 1:
            message = f"frame {first} has no link: register it with a neighbour or leave it out"
        else:
            message = (
                f"frame {first} and {len(apart) - 1} more are not connected to the reference frame "
                f"{self.reference}: add a link between the parts"
            )
        raise SingularSystemError(message)


@dataclass(frozen=True, slots=True, eq=False)
class LinkTerms:
    """What each link adds to the normal equations, links in the order of their pairs."""

    reference: int
    ends: NDArray[np.int64]  # (L, 2)
    side_i: NDArray[np.float64]  # (L, 3, 3): pseudo-points of i, a column each
    side_j: NDArray[np.float64]
    ii: NDArray[np.float64]  # (L, k, k)
    ij: NDArray[np.float64]
    jj: NDArray[np.float64]
    right_i: NDArray[np.float64]  # (L, planes, k)
    right_j: NDArray[np.float64]

    @classmethod
    def of(cls, links: list[Link], outline: Outline, family: Family, reference: int) -> LinkTerms:
        """Compute the terms of links that come in the order of their pairs."""
        side_i, side_j = normalised(*stacked(links), outline.unit_from_pixels)
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
        """Return the equations themselves, whose products these terms are; `ends` (L, 2) number the free frames."""
        residual = _fixed_residual(self.ends, self.side_i, self.side_j, family, self.reference)
        of_i, of_j = (
            np.concatenate([np.swapaxes(family.basis[row].T @ side, 1, 2) for row in family.rows_of_plane[0]], axis=1)
            for side in (self.side_i, self.side_j)
        )
        right = [np.concatenate([residual[:, row] for row in rows], axis=1) for rows in family.rows_of_plane]
        return Rows(ends, -of_i, np.ascontiguousarray(of_j), -np.stack(right, axis=2))

    def changed(self, pair: Pair, link: Link | None, outline: Outline, family: Family) -> LinkTerms:
        """Return the terms with `link` in the place of the pair's, or without the pair."""
        at, present = self.find(pair)
        own = None if link is None else LinkTerms.of([link], outline, family, self.reference)
        arrays = {}
        for name in ("ends", "side_i", "side_j", "ii", "ij", "jj", "right_i", "right_j"):
            kept = np.delete(getattr(self, name), at, axis=0) if present else getattr(self, name)
            arrays[name] = kept if own is None else np.insert(kept, at, getattr(own, name)[0], axis=0)
        return replace(self, **arrays)

    @property
    def measured(self) -> NDArray[np.float64]:
        """What the links measured (L, 3, 3): the maps from j to i, in the adjustment's units."""
        return self.side_i @ np.linalg.inv(self.side_j)

    def scaled(self, roots: NDArray[np.float64]) -> LinkTerms:
        """Return the terms of the same links, with R times a factor each (L,)."""
        root = roots[:, None, None]
        sides = {name: root * getattr(self, name) for name in ("side_i", "side_j")}
        products = {name: root**2 * getattr(self, name) for name in ("ii", "ij", "jj", "right_i", "right_j")}
        return replace(self, **sides, **products)

    def find(self, pair: Pair) -> tuple[int, bool]:
        """Return where a pair's link is, or would be, and whether it is there."""
        at = int(np.searchsorted(pair_key(*self.ends.T), pair_key(pair.i, pair.j)))
        return at, at < len(self.ends) and tuple(self.ends[at]) == (pair.i, pair.j)

    def diagonal(self, frames: int) -> NDArray[np.float64]:
        """Sum the diagonal blocks (frames, k, k), in the order of pairs: the same bits however they came about."""
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
    """Return the residuals (L, 2, 3) by what is not to be solved for: all of the reference frame's map."""
    fixed_i = np.where((ends[:, 0] == reference)[:, None, None], IDENTITY, family.offset)
    fixed_j = np.where((ends[:, 1] == reference)[:, None, None], IDENTITY, family.offset)
    return fixed_j @ side_j - fixed_i @ side_i
