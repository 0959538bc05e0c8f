"""Compute how alike frames are by their keypoints: how many of one frame are found in the other, and how exactly.

`likeness_of` does all of it. Words of a vocabulary, or sums over them (VLAD, Fisher vectors), blur descriptors until
places on one field or in one town look the same. So the descriptors themselves are compared, a few hundred of each
frame. A keypoint counts if it and one of the other frame are each other's nearest, and counts the less the more they
differ: similar texture has many similar keypoints, but the same place has nearly equal ones.

Not all are compared with all. Each keypoint belongs to the cell of the nearest of some centres, which are keypoints
drawn at random. It is looked for in the cells of its nearest centres alone. So the work per keypoint is the same in
long sequences. Descriptors are compared as integers, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from smalti.compiled import compiled, compiled_parallel, prange
from smalti.registration.keypoints import DESCRIPTOR_LEVELS, SIFT_MATCHES, Descriptors, Keypoints, MatchSettings

KEYPOINTS = 300
"""Of each frame: the strongest, spread over it."""

MOST_DESCRIPTORS = 4_000_000
"""Of all frames, 512 MB: longer sequences have fewer per frame."""

FEWEST_KEYPOINTS = 40
"""Of each frame, however many frames there are."""

FALL = 0.25
"""Share of the largest squared distance of matched descriptors at which they count 1/e. At larger distances than that
keypoints are not matched either: nothing tells them from chance."""

KEYPOINTS_OF_A_CELL = 500
MOST_CELLS = 4096
CELLS_SEARCHED = 4

MOST_PAIRS = 16_000_000
"""Of frames, 8 bytes each: in sequences of more than 5,600 frames only the pairs most alike of each frame are kept."""

ENTRY = np.dtype([("i", np.uint32), ("j", np.uint32), ("likeness", np.float32)])

FRAMES_AT_ONCE = 64
DESCRIPTORS_AT_ONCE = 4096


def likeness_of(
    keypoints: Iterable[Keypoints], frames: int, seed: int = 0, settings: MatchSettings = SIFT_MATCHES
) -> csr_array:
    """Return how alike the frames are, (N, N): symmetric, from 0 to 1, 1 of each frame and itself.

    `settings` are those by which the keypoints are matched. The seed draws the centres of the cells. A frame without
    keypoints is like no other.
    """
    wanted = int(np.clip(MOST_DESCRIPTORS // max(frames, 1), FEWEST_KEYPOINTS, KEYPOINTS))
    shown = _Shown.of((one.spread(wanted).descriptors for one in keypoints), seed)
    return symmetric(_rows_of(shown, settings.largest_ratio**2 * settings.usual_next), shown.frames)


def symmetric(strips: Iterable[NDArray[np.float32]], frames: int, most_pairs: int = MOST_PAIRS) -> csr_array:
    """Return the symmetric matrix (N, N) of rows of its upper triangle, (n, N) at a time, with a diagonal of 1.

    Only the `most_pairs` / N largest entries of each row are kept.
    """
    most = max(most_pairs // max(frames, 1), 1)
    rows, columns, values, before = [], [], [], 0
    for strip in strips:
        for row, entries in enumerate(strip, start=before):
            later = row + 1 + np.flatnonzero(entries[row + 1 :])
            if len(later) > most:
                later = np.sort(later[np.argsort(-entries[later], kind="stable")[:most]])
            rows.append(np.full(len(later), row, dtype=np.int32))
            columns.append(later.astype(np.int32))
            values.append(entries[later])
        before += len(strip)
    i, j, of_pair = (np.concatenate(parts) for parts in (rows, columns, values))
    upper = csr_array((of_pair.astype(np.float32), (i, j)), shape=(frames, frames))
    diagonal = csr_array((np.ones(frames, dtype=np.float32), (np.arange(frames), np.arange(frames))))
    return csr_array(upper + upper.T + diagonal)


def pack_likeness(likeness: csr_array) -> NDArray[Any]:
    """Return the entries with i ≤ j as one array (n,), to be stored; the diagonal tells how many frames there are."""
    row = np.repeat(np.arange(likeness.shape[0]), np.diff(likeness.indptr))
    upper = row <= likeness.indices
    packed = np.empty(int(upper.sum()), dtype=ENTRY)
    packed["i"], packed["j"], packed["likeness"] = row[upper], likeness.indices[upper], likeness.data[upper]
    return packed


def unpack_likeness(packed: NDArray[Any], frames: int) -> csr_array | None:
    """Return the matrix (N, N) of stored entries; None if they are not those of so many frames."""
    if packed.dtype != ENTRY or packed.ndim != 1:
        return None
    i, j, values = packed["i"], packed["j"], packed["likeness"]
    if not np.array_equal(i[i == j], np.arange(frames)) or (j >= frames).any() or (i > j).any():
        return None
    if not ((values >= 0.0) & (values <= 1.0)).all():
        return None
    half = csr_array((values, (i.astype(np.int32), j.astype(np.int32))), shape=(frames, frames))
    return csr_array(half + half.T - diags_array(half.diagonal(), dtype=np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """The descriptors of all frames, and the cells they are looked for in."""

    descriptors: NDArray[Any]  # (K, d): all of one kind
    start: NDArray[np.int64]  # (N + 1,): the first descriptor of each frame
    searched: NDArray[np.int32]  # (K, n): the cells of the nearest centres, nearest first; that of the first is its own
    cell_start: NDArray[np.int64]  # (C + 1,)
    members: NDArray[np.int32]  # (K,): the descriptors of each cell, ascending

    @property
    def frames(self) -> int:
        return len(self.start) - 1

    @classmethod
    def of(cls, descriptors: Iterable[Descriptors], seed: int) -> _Shown:
        of_frames = [np.ascontiguousarray(of_frame) for of_frame in descriptors]
        start = np.cumsum([0, *map(len, of_frames)])
        together = np.concatenate(of_frames)
        cells = int(np.clip(len(together) // KEYPOINTS_OF_A_CELL, 1, MOST_CELLS))
        drawn = np.sort(np.random.default_rng(seed).permutation(len(together))[:cells])
        centres = together[drawn].astype(np.float32)
        searched = np.empty((len(together), min(CELLS_SEARCHED, cells)), dtype=np.int32)
        # Products of integers as small as these are exact in single precision, in any order.
        offset = 0.5 * np.sum(centres**2, axis=1)
        for first in range(0, len(together) if len(drawn) else 0, DESCRIPTORS_AT_ONCE):
            some = slice(first, first + DESCRIPTORS_AT_ONCE)
            _take_largest(together[some].astype(np.float32) @ centres.T - offset, searched[some])
        own = searched[:, 0]
        cell_start = np.searchsorted(np.sort(own), np.arange(cells + 1))
        return cls(together, start, searched, cell_start, np.argsort(own, kind="stable").astype(np.int32))


def _rows_of(shown: _Shown, largest: float) -> Iterator[NDArray[np.float32]]:
    """Yield the likeness of some frames and all later ones, (n, N); entries of earlier ones are 0.

    Descriptors count up to the squared distance `largest`, where their length is 1.
    """
    frame = np.repeat(np.arange(shown.frames, dtype=np.int32), np.diff(shown.start))
    levels = largest * DESCRIPTOR_LEVELS**2
    counted = np.exp(-np.arange(int(levels) + 1) / (FALL * levels))
    for first in range(0, shown.frames, FRAMES_AT_ONCE):
        end = min(first + FRAMES_AT_ONCE, shown.frames)
        rows = np.zeros((end - first, shown.frames))
        _compare(
            rows,
            first,
            shown.descriptors,
            shown.start,
            frame,
            shown.searched,
            shown.cell_start,
            shown.members,
            counted,
        )
        size = np.maximum(np.diff(shown.start), 1)
        yield (rows / np.sqrt(np.outer(size[first:end], size))).astype(np.float32)


@compiled
def _take_largest(nearness: NDArray[np.float32], taken: NDArray[np.int32]) -> None:
    """Write the columns of each row's largest entries, largest first."""
    count = taken.shape[1]
    best = np.empty(count, dtype=np.float32)
    for row in range(len(nearness)):
        best[:] = -np.inf
        for column in range(nearness.shape[1]):
            value = nearness[row, column]
            if value > best[count - 1]:
                place = count - 1
                while place > 0 and value > best[place - 1]:
                    best[place] = best[place - 1]
                    taken[row, place] = taken[row, place - 1]
                    place -= 1
                best[place] = value
                taken[row, place] = column


@compiled_parallel
def _compare(
    rows: NDArray[np.float64],
    first: int,
    descriptors: Descriptors,
    start: NDArray[np.int64],
    frame: NDArray[np.int32],
    searched: NDArray[np.int32],
    cell_start: NDArray[np.int64],
    members: NDArray[np.int32],
    counted: NDArray[np.float64],
) -> None:
    """Add to rows[n, j] what counts of the mutual nearest keypoints of frame first + n and a later frame j."""
    for n in prange(len(rows)):
        i = first + n
        _compare_frame(rows[n], i, descriptors, start, frame, searched, cell_start, members, counted)


@compiled
def _compare_frame(
    row: NDArray[np.float64],
    i: int,
    descriptors: Descriptors,
    start: NDArray[np.int64],
    frame: NDArray[np.int32],
    searched: NDArray[np.int32],
    cell_start: NDArray[np.int64],
    members: NDArray[np.int32],
    counted: NDArray[np.float64],
) -> None:
    limit = np.int32(len(counted))
    later = start[i + 1]
    of_b = np.full(len(descriptors) - later, limit)  # the distance of b's nearest keypoint of frame i
    owner = np.full(len(descriptors) - later, -1)  # and which it is
    in_frame = np.full(len(row), limit)  # the distance of a's nearest keypoint of each frame
    nearest = np.full(len(row), -1)
    pairs = [(np.int64(0), np.int64(0))]
    for a in range(start[i], later):
        touched = [np.int64(0)]
        for cell in searched[a]:
            of_cell = members[cell_start[cell] : cell_start[cell + 1]]
            for m in range(np.searchsorted(of_cell, later), len(of_cell)):
                b = np.int64(of_cell[m])
                distance = np.int32(0)
                for k in range(descriptors.shape[1]):
                    off = np.int32(descriptors[a, k]) - np.int32(descriptors[b, k])
                    distance += off * off
                if distance >= limit:
                    continue
                if distance < of_b[b - later]:
                    of_b[b - later], owner[b - later] = distance, a
                j = np.int64(frame[b])
                if in_frame[j] == limit:
                    touched.append(j)
                if distance < in_frame[j] or (distance == in_frame[j] and b < nearest[j]):
                    in_frame[j], nearest[j] = distance, b
        for n in range(1, len(touched)):
            j = touched[n]
            pairs.append((np.int64(a), nearest[j]))
            in_frame[j], nearest[j] = limit, -1
    for n in range(1, len(pairs)):
        one, other = pairs[n]
        if owner[other - later] == one:
            row[frame[other]] += counted[of_b[other - later]]
