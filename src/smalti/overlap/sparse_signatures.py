"""Compute weighted distances between sparse signatures, which contain few of the words."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from smalti.compiled import compiled, compiled_parallel, prange
from smalti.overlap.weight_training import Differences
from smalti.records import PairNumbers

MARGIN = 2.5e-7
"""More than the rounding error of a similarity of size one in single precision, after one change."""

FRAMES_OF_A_LIST = 1024
"""Frames of one chunk: their words and a row of sums fit in a core's cache."""

FRAMES_OF_A_TASK = 32
"""Frames of one parallel task."""

FRAMES_TO_SHARE = 4_000
"""With fewer later frames than this, one core is faster than all."""


class SparseSignatures:
    """Sparse signatures (N, D); a `SignatureSet` of `signature_distances.py`."""

    def __init__(self, signatures: csr_array) -> None:
        signatures = csr_array(signatures)
        signatures.sum_duplicates()
        self._signatures = signatures
        self._latest: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._rows = signatures.indptr.astype(np.int64), signatures.indices.astype(np.uint32), signatures.data

    @property
    def frames(self) -> int:
        """N."""
        return int(self._signatures.shape[0])

    @property
    def words(self) -> int:
        """D."""
        return int(self._signatures.shape[1])

    def distances(self, weights: NDArray[np.float64], pairs: PairNumbers) -> NDArray[np.float64]:
        """Return the distances of the pairs (n, 2)."""
        return _distances(*self._rows, weights, np.ascontiguousarray(pairs))

    def all_distances(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distances of all pairs (N, N)."""
        scaled = csr_array(self._signatures * np.sqrt(weights))
        squared = np.asarray((scaled**2).sum(axis=1), dtype=np.float64).ravel()
        return distances_from_products((scaled @ scaled.T).toarray(), squared)

    def differences(self, pairs: PairNumbers, apart: PairNumbers) -> Differences:
        """Return the differences of the pairs (n, 2), in the words in which the pairs `apart` differ."""
        return Differences(*_differences(*self._rows, self.words, pairs, apart))

    def subtract_distances(
        self,
        base: NDArray[np.float32],
        weights: NDArray[np.float64],
        frames: slice,
        origin: int,
        upper: NDArray[np.float32],
    ) -> None:
        """Write `base` minus the distances from some `frames` to all later ones to `upper`, plus a margin."""
        subtract = _subtract_in_parallel if self.frames - frames.start > FRAMES_TO_SHARE else _subtract_serially
        squared = self._squared_under(weights)
        subtract(base, upper, origin, frames.start, frames.stop, weights, squared, *self._rows, *self._word_lists)

    def _squared_under(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_d w_d (s_d^i)² of all frames; computed once for calls with the same array of weights."""
        latest = self._latest
        if latest is None or latest[0] is not weights:
            self._latest = latest = weights, _squared(*self._rows, weights)
        return latest[1]

    @cached_property
    def _word_lists(self) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.float64]]:
        """For each chunk of consecutive frames: where the list of each word begins, its frames, and their entries."""
        starts, frames, entries, before = [], [], [], 0
        for begin in range(0, self.frames, FRAMES_OF_A_LIST):
            lists = csr_array(self._signatures[begin : begin + FRAMES_OF_A_LIST].T)
            lists.sort_indices()
            starts.append(lists.indptr + np.int64(before))
            frames.append(lists.indices.astype(np.uint16))
            entries.append(lists.data)
            before += lists.nnz
        return np.array(starts), np.concatenate(frames), np.concatenate(entries)


def distances_from_products(products: NDArray[np.float64], squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn scalar products (N, N) into squared distances, in place; `squared` (N,) are the squared lengths."""
    products *= -2.0
    products += squared[:, None]
    products += squared[None]
    return np.maximum(products, 0.0, out=products)


@compiled
def _subtract_serially(
    base: NDArray[np.float32],
    upper: NDArray[np.float32],
    origin: int,
    first: int,
    end: int,
    weights: NDArray[np.float64],
    squared: NDArray[np.float64],
    start: NDArray[np.int64],
    word: NDArray[np.uint32],
    value: NDArray[np.float64],
    list_start: NDArray[np.int64],
    frame: NDArray[np.uint16],
    list_value: NDArray[np.float64],
) -> None:
    """Write `base` minus the distances from the frames `first` to `end` to all later ones, plus a margin."""
    product = np.empty(FRAMES_OF_A_LIST)
    for chunk in range(first // FRAMES_OF_A_LIST, len(list_start)):
        from_frame = chunk * FRAMES_OF_A_LIST
        to_frame = min(from_frame + FRAMES_OF_A_LIST, len(squared))
        # The lists of a chunk stay in the cache while all frames are processed.
        for i in range(first, min(end, to_frame - 1)):
            product[:] = 0.0
            for n in range(start[i], start[i + 1]):
                d = word[n]
                if weights[d] != 0.0:
                    scale = weights[d] * value[n]
                    frames = frame[list_start[chunk, d] : list_start[chunk, d + 1]]
                    values = list_value[list_start[chunk, d] : list_start[chunk, d + 1]]
                    for m in range(len(frames)):
                        product[frames[m]] += scale * values[m]
            # Slices avoid a check of every index's sign.
            later = max(i + 1, from_frame)
            before, after = base[i - origin, later - origin :], upper[i - origin, later - origin :]
            shared, squared_j = product[later - from_frame :], squared[later:to_frame]
            for m in range(len(squared_j)):
                similarity = before[m] + 2.0 * shared[m] - squared[i] - squared_j[m]
                after[m] = similarity + MARGIN * (1.0 + abs(similarity))


@compiled_parallel
def _subtract_in_parallel(
    base: NDArray[np.float32],
    upper: NDArray[np.float32],
    origin: int,
    first: int,
    end: int,
    weights: NDArray[np.float64],
    squared: NDArray[np.float64],
    start: NDArray[np.int64],
    word: NDArray[np.uint32],
    value: NDArray[np.float64],
    list_start: NDArray[np.int64],
    frame: NDArray[np.uint16],
    list_value: NDArray[np.float64],
) -> None:
    """Do the same on all cores; each task takes early and late frames, because late ones have fewer after them."""
    tasks = (end - first + FRAMES_OF_A_TASK - 1) // FRAMES_OF_A_TASK
    for n in prange((tasks + 1) // 2):
        for side in range(2):
            task = n if side == 0 else tasks - 1 - n
            if side == 0 or task > n:
                begin = first + task * FRAMES_OF_A_TASK
                stop = min(begin + FRAMES_OF_A_TASK, end)
                _subtract_serially(
                    base,
                    upper,
                    origin,
                    begin,
                    stop,
                    weights,
                    squared,
                    start,
                    word,
                    value,
                    list_start,
                    frame,
                    list_value,
                )


@compiled
def _squared(
    start: NDArray[np.int64], word: NDArray[np.uint32], value: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    squared = np.zeros(len(start) - 1)
    for i in range(len(squared)):
        for n in range(start[i], start[i + 1]):
            squared[i] += weights[word[n]] * value[n] * value[n]
    return squared


@compiled
def _distances(
    start: NDArray[np.int64],
    word: NDArray[np.uint32],
    value: NDArray[np.float64],
    weights: NDArray[np.float64],
    pairs: PairNumbers,
) -> NDArray[np.float64]:
    distances = np.empty(len(pairs))
    # The words of one frame as a dense row, for consecutive pairs with the same first frame.
    dense, current, squared = np.zeros(len(weights)), -1, 0.0
    for n in range(len(pairs)):
        i, j = pairs[n, 0], pairs[n, 1]
        if i != current:
            if current >= 0:
                for m in range(start[current], start[current + 1]):
                    dense[word[m]] = 0.0
            current, squared = i, 0.0
            for m in range(start[i], start[i + 1]):
                dense[word[m]] = value[m]
                squared += weights[word[m]] * value[m] * value[m]
        total = squared
        for m in range(start[j], start[j + 1]):
            total += weights[word[m]] * value[m] * (value[m] - 2.0 * dense[word[m]])
        distances[n] = max(total, 0.0)
    return distances


@compiled
def _differences(
    start: NDArray[np.int64],
    word: NDArray[np.uint32],
    value: NDArray[np.float64],
    words: int,
    pairs: PairNumbers,
    apart: PairNumbers,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]:
    """Return the fields of `Differences`."""
    dense = np.zeros(words)
    in_word, squared = np.empty(2 * words, dtype=np.uint32), np.empty(2 * words)
    column_of = np.full(words, -1)
    for n in range(len(apart)):
        for m in range(_difference(start, word, value, apart[n, 0], apart[n, 1], dense, in_word, squared)):
            column_of[in_word[m]] = 0
    chosen = np.flatnonzero(column_of == 0)
    column_of[chosen] = np.arange(len(chosen))
    most = 0
    for n in range(len(pairs)):
        most += start[pairs[n, 0] + 1] - start[pairs[n, 0]] + start[pairs[n, 1] + 1] - start[pairs[n, 1]]
    by_pair_column, by_pair_squared = np.empty(most, dtype=np.uint32), np.empty(most)
    end_of_pair, distance = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs))
    column_start = np.zeros(len(chosen) + 1, dtype=np.int64)
    found = 0
    for n in range(len(pairs)):
        for m in range(_difference(start, word, value, pairs[n, 0], pairs[n, 1], dense, in_word, squared)):
            distance[n] += squared[m]
            column = column_of[in_word[m]]
            if column >= 0:
                by_pair_column[found], by_pair_squared[found] = column, squared[m]
                column_start[column + 1] += 1
                found += 1
        end_of_pair[n] = found
    # Reorder from pairs to words.
    column_start = np.cumsum(column_start)
    filled, pair, by_word_squared = column_start.copy(), np.empty(found, dtype=np.uint32), np.empty(found)
    n = 0
    for m in range(found):
        while m >= end_of_pair[n]:
            n += 1
        at = filled[by_pair_column[m]]
        pair[at], by_word_squared[at] = n, by_pair_squared[m]
        filled[by_pair_column[m]] += 1
    return chosen, column_start, pair, by_word_squared, distance


@compiled
def _difference(
    start: NDArray[np.int64],
    word: NDArray[np.uint32],
    value: NDArray[np.float64],
    i: int,
    j: int,
    dense: NDArray[np.float64],
    in_word: NDArray[np.uint32],
    squared: NDArray[np.float64],
) -> int:
    """Write the words in which frames i and j differ and (s_d^i - s_d^j)²; return how many they are.

    `dense` (D,) is zero before and after.
    """
    for m in range(start[i], start[i + 1]):
        dense[word[m]] = value[m]
    for m in range(start[j], start[j + 1]):
        dense[word[m]] -= value[m]
    found = 0
    for frame in (i, j):
        for m in range(start[frame], start[frame + 1]):
            difference = dense[word[m]]
            dense[word[m]] = 0.0
            in_word[found], squared[found] = word[m], difference * difference
            found += difference != 0.0
    return found
