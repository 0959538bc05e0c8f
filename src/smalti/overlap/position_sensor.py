"""A position sensor as external model: frames at nearby positions overlap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import ndtr, ndtri

from smalti.errors import ModelError
from smalti.geometry.outline import Outline
from smalti.overlap.normal_probability import rectangle_probability
from smalti.overlap.threshold_scan import MOST_FRAMES_OF_A_MATRIX, Batches, UpperMatrix, blocks_of_frames, rounded_up
from smalti.records import PairNumbers

PAIRS_AT_ONCE = 250_000

MOST_NEAR = 4_000_000
"""Largest list of near pairs. If more are near, blocks of frames are searched at every call."""

NEGLIGIBLE = 1e-5
"""Below this, a bound of P^ext replaces P^ext."""


class PositionSensor:
    """A sensor that measures every frame's position with its own covariance, such as GPS or a tracker.

    `positions` (N, 2) and `covariances` (N, 2, 2) are in the sensor's unit. `footprint` is the size of a frame in this
    unit. `headings` (N,) is the angle from the sensor's first axis to each frame's x axis, in radians.
    """

    def __init__(
        self,
        positions: NDArray[np.float64],
        covariances: NDArray[np.float64],
        footprint: tuple[float, float],
        headings: NDArray[np.float64] | None = None,
        *,
        most_frames_of_a_matrix: int = MOST_FRAMES_OF_A_MATRIX,
    ) -> None:
        positions = np.array(positions, dtype=np.float64)
        covariances = np.array(covariances, dtype=np.float64)
        if positions.ndim != 2 or positions.shape[1] != 2 or not np.isfinite(positions).all():
            raise ModelError(f"sensor positions must be finite and of shape (N, 2), got {positions.shape}")
        if covariances.shape not in ((2, 2), (len(positions), 2, 2)) or not np.isfinite(covariances).all():
            raise ModelError(
                f"sensor covariances must be finite and of shape (2, 2) or ({len(positions)}, 2, 2), "
                f"got {covariances.shape}"
            )
        angles = np.zeros(len(positions)) if headings is None else np.asarray(headings, dtype=np.float64)
        if angles.shape != (len(positions),):
            raise ModelError(f"headings have shape {angles.shape}, expected ({len(positions)},)")
        width, height = footprint
        self._outline = Outline(-width / 2, -height / 2, width / 2, height / 2)
        self._positions = positions
        self._covariances = np.broadcast_to(covariances, (len(positions), 2, 2))
        # The largest eigenvalue bounds the variance along any line.
        self._variances = np.maximum(np.linalg.eigvalsh(self._covariances)[:, 1], 0.0)
        self._most_frames_of_a_matrix = most_frames_of_a_matrix
        self._listed: tuple[float, NDArray[np.int64], PairNumbers, NDArray[np.float64]] | None = None
        self._turns = np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    @property
    def frames(self) -> int:
        """N."""
        return len(self._positions)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the probability that the centre of one frame lies in the other, mean of both directions."""
        return self._matrix

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return P^ext of the pairs (n, 2)."""
        i, j = pairs[:, 0], pairs[:, 1]
        return (self._directed(i, j) + self._directed(j, i)) / 2

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs whose P^ext reaches least[I, J], by pair of blocks, then i, then j."""
        if self.frames > self._most_frames_of_a_matrix:
            return self._listwise(least, starts)
        return self._upper.reaching(least, starts)

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> PositionSensor:
        """Return itself."""
        return self

    @cached_property
    def _matrix(self) -> NDArray[np.float64]:
        matrix = np.empty((self.frames, self.frames))
        for rows, columns, pairs in self._rows():
            part = self.of_pairs(pairs).reshape(len(rows), len(columns))
            matrix[rows[0] : rows[-1] + 1, rows[0] :], matrix[rows[0] :, rows[0] : rows[-1] + 1] = part, part.T
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def _upper(self) -> UpperMatrix:
        upper = np.empty((self.frames, self.frames), dtype=np.float32)
        for rows, columns, pairs in self._rows():
            part = rounded_up(self._bound(pairs)).reshape(len(rows), len(columns))
            upper[rows[0] : rows[-1] + 1, rows[0] :] = part
        return UpperMatrix(upper)

    def _rows(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], PairNumbers]]:
        """Yield some frames, all frames from the first of them on, and their pairs, until all frames were yielded."""
        every = np.arange(self.frames)
        for rows in _parts(every, PAIRS_AT_ONCE // max(self.frames, 1)):
            columns = every[rows[0] :]
            yield rows, columns, np.column_stack([np.repeat(rows, len(columns)), np.tile(columns, len(rows))])

    def _listwise(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the same as `pairs_above` without a matrix: from a list of all near pairs, which is made once."""
        lowest = float(np.min(least, where=np.triu(np.ones(least.shape, dtype=np.bool_)), initial=np.inf))
        listed = self._listed
        if listed is None or self._radius(lowest) > listed[0] or not np.array_equal(listed[1], starts):
            radius = self._radius(lowest / 2)
            if not np.isfinite(radius) or self._tree.count_neighbors(self._tree, radius) > 2 * MOST_NEAR + self.frames:
                yield from self._blockwise(least, starts)
                return
            self._listed = listed = radius, starts.copy(), *self._within(radius, starts)
        _, _, pairs, bound = listed
        block = blocks_of_frames(starts)
        reached = np.flatnonzero(bound >= least[block[pairs[:, 0]], block[pairs[:, 1]]])
        for some in _parts(reached, PAIRS_AT_ONCE):
            yield pairs[some], bound[some]

    def _blockwise(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the same if too many pairs are near: most pairs of blocks may be too far apart."""
        for pairs, level in self._near(least, starts):
            bound = self._bound(pairs)
            reached = bound >= level
            if reached.any():
                yield pairs[reached], bound[reached]

    def _radius(self, lowest: float) -> float:
        """Return the largest distance of two frames whose P^ext reaches a level."""
        reach = self._outline.outer_half_side
        deviation = np.sqrt(2.0 * self._variances.max(initial=0.0)) + 1e-9 * reach
        further = -float(ndtri(np.clip(lowest - 1e-9, 0.0, 0.5)))
        return float((reach + deviation * further) * (1.0 + 1e-6))

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._positions)

    def _within(self, radius: float, starts: NDArray[np.int64]) -> tuple[PairNumbers, NDArray[np.float64]]:
        """Return all pairs within a radius, by pair of blocks, then i, then j, and a bound of their P^ext."""
        pairs = self._tree.query_pairs(radius, output_type="ndarray").astype(np.int64)
        block = blocks_of_frames(starts)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0], block[pairs[:, 1]], block[pairs[:, 0]]))]
        return pairs, np.concatenate([np.empty(0), *map(self._bound, _parts(pairs, PAIRS_AT_ONCE))])

    def _near(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs that are not too far apart for their level, and the level, in large batches."""
        pairs, levels, count = [], [], 0
        for first, second in np.argwhere(self._may_reach(least, starts)):
            columns = np.arange(starts[second], starts[second + 1])
            for rows in _parts(np.arange(starts[first], starts[first + 1]), PAIRS_AT_ONCE // len(columns)):
                near = self._far_bound(*self._apart(rows[:, None], columns)) >= least[first, second]
                i, j = np.nonzero(near & (rows[:, None] < columns))
                pairs.append(np.column_stack([rows[i], columns[j]]))
                levels.append(np.full(len(i), least[first, second]))
                count += len(i)
                if count >= PAIRS_AT_ONCE:
                    yield np.concatenate(pairs), np.concatenate(levels)
                    pairs, levels, count = [], [], 0
        if count:
            yield np.concatenate(pairs), np.concatenate(levels)

    def _may_reach(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the pairs of blocks I ≤ J (M, M) that are not too far apart, by their bounding boxes."""
        low, high = (np.asarray(end.reduceat(self._positions, starts[:-1])) for end in (np.minimum, np.maximum))
        gap = np.maximum(np.maximum(low[:, None] - high[None], low[None] - high[:, None]), 0.0)
        variance = np.maximum.reduceat(self._variances, starts[:-1])
        return np.triu(self._far_bound(np.hypot(gap[..., 0], gap[..., 1]), variance[:, None] + variance) >= least)

    def _bound(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return P^ext of the pairs (n, 2) where its bound is not negligible, else the bound."""
        bound = self._far_bound(*self._apart(pairs[:, 0], pairs[:, 1]))
        relevant = bound > NEGLIGIBLE
        bound[relevant] = self.of_pairs(pairs[relevant])
        return bound

    def _apart(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distance of frames, and its largest variance."""
        offset = self._positions[i] - self._positions[j]
        return np.hypot(offset[..., 0], offset[..., 1]), self._variances[i] + self._variances[j]

    def _far_bound(self, distance: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an upper bound of P^ext: along the line between two frames, a frame reaches half its diagonal.

        A small margin covers the rounding of this bound and of P^ext at large distances.
        """
        reach = self._outline.outer_half_side * (1.0 + 1e-9)
        deviation = np.sqrt(variance) + 1e-12 * reach
        beyond = ndtr((reach - distance) / deviation) + 1e-12
        return np.where(distance <= reach, 1.0, beyond)

    def _directed(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probability that the centre of i lies in j."""
        cosine, sine = self._turns[j, 0], self._turns[j, 1]
        x, y = (self._positions[i] - self._positions[j]).T
        cov = self._covariances[i] + self._covariances[j]
        xx, xy, yy = cov[:, 0, 0], cov[:, 0, 1], cov[:, 1, 1]
        in_j = np.stack([cosine * x + sine * y, cosine * y - sine * x], axis=-1)
        turned = np.stack(
            [
                cosine**2 * xx + 2 * cosine * sine * xy + sine**2 * yy,
                cosine * sine * (yy - xx) + (cosine**2 - sine**2) * xy,
                sine**2 * xx - 2 * cosine * sine * xy + cosine**2 * yy,
            ],
            axis=-1,
        )
        return rectangle_probability(in_j, turned, self._outline)


def _parts(frames: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for begin in range(0, len(frames), max(size, 1)):
        yield frames[begin : begin + max(size, 1)]
