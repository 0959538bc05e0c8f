"""The frames and links of a mosaic, their connected parts, and the sparsity pattern of the equations.

Every connected part has a gauge of its own. One reference frame gives its position and turn. Its scale is the mean
scale of its frames. The prior on the camera's attitude makes it level (`linearisation.py`).

Links of consecutive frames share an error: on flights, a chain turns too far by the same tenth of a degree from frame
to frame. One *shared node*, after the frames, has the map B of this error: M = B Ĝ⁻¹ H_i⁻¹ H_j. Loop closures
determine it, and correct the whole chain at once.

All links share a lens. Where `lens_estimation.py` finds one, the shared node also holds the change of its coefficients
from those found on single pairs. A wrong lens bends a mosaic the same way everywhere. Level frames and loop closures
contradict that.

`System` is the only class. Its cached properties come in the order links, parts, pattern, shared node, first maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from smalti.engine.link_confirmation import are_confirmed
from smalti.engine.links import COEFFICIENTS, Link, linear_part, stacked
from smalti.errors import PairError, UsageError
from smalti.geometry.homographies import ENTRIES, PROJECTIVE, Family, invert
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Pair, PairNumbers
from smalti.sparse.pattern import Pattern

MIN_FRAMES = 2

TURN, LENS = 2, (3, 4)
"""Directions of the shared node. TURN is the error that links of consecutive frames share. LENS are the coefficients of
the lens, in place of scale and stretch, which the shared node does not need."""

FEWEST_SHARING, MOST_SHARING = 8, 5000
"""A shared error is estimated with at least so many links of consecutive frames, and at most so many frames."""

LARGEST_LOG_SCALE = 9.0
FIRST_SCALES = (np.exp(-0.4 * LARGEST_LOG_SCALE), np.exp(0.4 * LARGEST_LOG_SCALE))
"""Limits of a frame's scale relative to the reference frame, while `first_maps` follows links."""


@dataclass(frozen=True, eq=False)
class System:
    """Frames and links, links in the order of their pairs."""

    frames: int
    outline: Outline
    family: Family
    links: tuple[Link, ...]
    reference: int | None = None  # defines the gauge of its part; by default the middle frame of each part
    lens: Lens | None = None  # that undistorted the landmarks of links; None if it is certain and not estimated

    @property
    def shared_directions(self) -> NDArray[np.int64]:
        """The directions that the shared node uses: the turn, and the lens' coefficients."""
        return np.array([TURN, *self.lens_directions])

    @property
    def lens_directions(self) -> list[int]:
        """The directions of the lens' coefficients: none, one or two."""
        if self.lens is None:
            return []
        return list(LENS[:1] if self.lens.k2 == 0.0 else LENS)

    @property
    def shares_error(self) -> bool:
        """Tell whether a shared error of the chain is estimated."""
        return self.family.freedom > TURN and len(self.steps) >= FEWEST_SHARING and self.frames <= MOST_SHARING

    @property
    def nodes(self) -> int:
        """The number of frames, plus one for the shared node if there is one."""
        return self.frames + self.shares_error

    @classmethod
    def of(
        cls,
        frames: int,
        outline: Outline,
        family: Family,
        links: Sequence[Link],
        reference: int | None = None,
        lens: Lens | None = None,
    ) -> System:
        """Sort links, and refuse those that cannot be adjusted."""
        if frames < MIN_FRAMES:
            raise UsageError(f"a mosaic needs at least {MIN_FRAMES} frames, got {frames}")
        if reference is not None and not 0 <= reference < frames:
            raise UsageError(f"reference frame {reference}: the sequence has frames 0 to {frames - 1} only")
        ordered = tuple(sorted(links, key=lambda link: (link.pair.i, link.pair.j)))  # faster than comparing pairs
        for link in ordered:
            link.pair.check_within(frames)
        for one, other in pairwise(ordered):
            if one.pair == other.pair:
                raise PairError(f"pair {one.pair} is given twice: forget the earlier answer first")
        system = cls(frames, outline, family, ordered, reference)
        return replace(system, lens=lens) if system.shares_error and family is PROJECTIVE else system

    @cached_property
    def ends(self) -> PairNumbers:
        """(L, 2): the frames of every link."""
        return np.array([(link.pair.i, link.pair.j) for link in self.links], dtype=np.int64).reshape(-1, 2)

    @cached_property
    def place_of(self) -> dict[Pair, int]:
        """The index of every pair's link."""
        return {link.pair: n for n, link in enumerate(self.links)}

    @cached_property
    def measured(self) -> Homographies:
        """(L, 3, 3): the links' maps."""
        return self._stacked[0]

    @cached_property
    def measured_back(self) -> Homographies:
        """(L, 3, 3): the inverses of the links' maps."""
        return invert(self.measured)

    @cached_property
    def offsets(self) -> NDArray[np.float64]:
        """(L, 2): the measured position of the centre of j in i, in units."""
        return np.asarray(self.measured[:, :2, 2] / self.measured[:, 2:, 2])

    @property
    def roots(self) -> NDArray[np.float64]:
        """(L, 8, 8): the square roots of the links' information."""
        return self._stacked[1]

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """(L,): how many of the family's directions each link measures."""
        return np.minimum([link.rank for link in self.links], self.family.freedom).astype(np.int64)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The numbers of the links between consecutive frames."""
        return np.flatnonzero(self.is_step)

    @cached_property
    def part(self) -> NDArray[np.int64]:
        """(N,): the connected part of every frame, the largest part first, among equal ones the earlier."""
        _, label = connected_components(self._graph, directed=False)
        sizes = np.bincount(label)
        first = np.full(len(sizes), self.frames)
        np.minimum.at(first, label, np.arange(self.frames))
        order = np.lexsort((first, -sizes))
        number = np.empty(len(sizes), dtype=np.int64)
        number[order] = np.arange(len(sizes))
        return number[label]

    @cached_property
    def references(self) -> NDArray[np.int64]:
        """The reference frame of every part, which fixes its position and turn."""
        members = np.split(np.argsort(self.part, kind="stable"), np.cumsum(np.bincount(self.part))[:-1])
        chosen = np.array([frames[len(frames) // 2] for frames in members], dtype=np.int64)
        if self.reference is not None:
            chosen[self.part[self.reference]] = self.reference
        return chosen

    @cached_property
    def pattern(self) -> Pattern:
        """Where the normal equations have blocks."""
        return Pattern.of(self.nodes, np.concatenate([self.ends, self.shared_ends]), last=self.nodes - self.frames)

    @cached_property
    def shared_ends(self) -> PairNumbers:
        """(S, 2): edges between the shared node and the frames of links that it concerns."""
        if not self.shares_error:
            return np.empty((0, 2), dtype=np.int64)
        concerned = np.unique(self.ends[self.sharing])
        return np.column_stack([concerned, np.full(len(concerned), self.frames)])

    @cached_property
    def sharing(self) -> NDArray[np.int64]:
        """The numbers of the links that the shared node concerns."""
        if not self.shares_error:
            return np.empty(0, dtype=np.int64)
        return self.steps if self.lens is None else self.every

    @cached_property
    def lens_columns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives of R e by the lens' coefficients (L, 8, 2), and its change when links were fitted (L, 2)."""
        columns, at = np.array([link.by_lens for link in self.links]), np.array([link.lens_at for link in self.links])
        return columns.reshape(-1, ENTRIES, COEFFICIENTS), at.reshape(-1, COEFFICIENTS)

    @cached_property
    def shared_slot(self) -> NDArray[np.int64]:
        """(N,): the index of the block of a frame and the shared node, after those of the links; -1 for none."""
        slot = np.full(self.frames, -1, dtype=np.int64)
        slot[self.shared_ends[:, 0]] = len(self.ends) + np.arange(len(self.shared_ends))
        return slot

    @cached_property
    def confirmed(self) -> NDArray[np.bool_]:
        """(L,): whether a cycle of links confirms a link, so that others contradict it if it is wrong."""
        return are_confirmed(self.frames, self.ends)

    @cached_property
    def is_step(self) -> NDArray[np.bool_]:
        """(L,): whether a link joins consecutive frames."""
        return np.asarray(self.ends[:, 1] - self.ends[:, 0] == 1)

    @cached_property
    def step_ends(self) -> PairNumbers:
        """(S, 2): the frames of the links between consecutive frames."""
        return np.ascontiguousarray(self.ends[self.steps])

    @cached_property
    def every(self) -> NDArray[np.int64]:
        """(L,): the numbers of all links."""
        return np.arange(len(self.ends))

    @cached_property
    def corner_reach(self) -> NDArray[np.float64]:
        """(2,): half the width and height of a frame, in units."""
        return np.array([self.outline.width, self.outline.height]) / 2.0 / self.outline.unit

    def first_maps(self) -> Homographies:
        """Return level maps (N, 3, 3): follow the shifts, turns and scales of links from frame to frame."""
        linear = linear_part(self.measured)
        forth = np.tile(np.eye(3), (len(self.links), 1, 1))
        if self.family.freedom >= 3 and len(linear):
            across, along = linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1]
            angle = np.arctan2(across, along)
            scale = np.ones(len(linear))
            if self.family.freedom >= 4:
                scale = np.sqrt(np.maximum(np.abs(np.linalg.det(linear)), 1e-6))
            cos, sin = scale * np.cos(angle), scale * np.sin(angle)
            forth[:, 0, 0], forth[:, 0, 1], forth[:, 1, 0], forth[:, 1, 1] = cos, -sin, sin, cos
        forth[:, :2, 2] = self.measured[:, :2, 2] / self.measured[:, 2:, 2]
        back = np.linalg.inv(forth) if len(forth) else forth
        number = {(int(i), int(j)): n for n, (i, j) in enumerate(self.ends)}
        maps = np.tile(np.eye(3), (self.frames, 1, 1))
        for reference in self.references:
            order, parent = breadth_first_order(self._by_gap, int(reference), directed=False)
            for frame in map(int, order[1:]):
                known = int(parent[frame])
                n = number[min(known, frame), max(known, frame)]
                maps[frame] = maps[known] @ (forth[n] if known < frame else back[n])
                size = float(np.hypot(maps[frame, 0, 0], maps[frame, 1, 0]))
                maps[frame, :2, :2] *= np.clip(size, *FIRST_SCALES) / size
        if self.family.freedom >= 4:
            self._at_mean_scale(maps)
        return maps

    def _at_mean_scale(self, maps: Homographies) -> None:
        """Scale every part so that the logarithms of its frames' scales are 0 on average, in place."""
        log_scale = 0.5 * np.log(np.linalg.det(maps[:, :2, :2]))
        mean = np.bincount(self.part, log_scale) / np.bincount(self.part)
        maps[:, :2] *= np.exp(-mean)[self.part][:, None, None]

    @cached_property
    def _graph(self) -> coo_array:
        i, j = self.ends.T
        return coo_array((np.ones(len(i)), (i, j)), shape=(self.frames, self.frames))

    @cached_property
    def _by_gap(self) -> csr_array:
        """The graph of consecutive links, plus a longer link only where it joins parts that these leave apart."""
        near = np.flatnonzero(self.ends[:, 1] - self.ends[:, 0] <= 1)
        i, j = self.ends[near].T
        graph = coo_array((np.ones(len(i)), (i, j)), shape=(self.frames, self.frames))
        _, label = connected_components(graph, directed=False)
        chosen = list(near)
        for n in np.argsort(self.ends[:, 1] - self.ends[:, 0], kind="stable"):
            first, second = label[self.ends[n]]
            if first != second:
                label[label == second] = first
                chosen.append(n)
        i, j = self.ends[np.sort(np.array(chosen, dtype=np.int64))].T
        return coo_array((np.ones(len(i)), (i, j)), shape=(self.frames, self.frames)).tocsr()

    @cached_property
    def _stacked(self) -> tuple[Homographies, NDArray[np.float64]]:
        return stacked(self.links)
