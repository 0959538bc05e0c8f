"""Learn visual words on the sequence and compute the signature of every frame (`signatures_of`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.outline import Outline
from smalti.registration.keypoints import Keypoints

WORDS = 1000
CELL_PX = 100
"""The strongest keypoint of every cell of this side represents the cell, as in the paper's aerial study."""

FEWEST_CELLS = 64
"""Small frames have smaller cells, so that there are at least this many."""

TRAINING_DESCRIPTORS = 20_000
ROUNDS = 10


def signatures_of(keypoints: Iterable[Keypoints], outline: Outline, seed: int = 0) -> NDArray[np.float64]:
    """Return the word histogram of every frame (N, D), rows of length 1.

    The words are the centres of k-means over the strongest keypoints of all frames, at most one word per five
    keypoints. A frame without keypoints gets the mean of all frames.
    """
    # One frame at a time, and of each only the bytes of what is shown: long sequences have gigabytes of keypoints.
    shown = [strongest_of_cells(of_frame, outline) for of_frame in keypoints]
    starts = np.cumsum([0, *(len(of_frame) for of_frame in shown)])
    if not starts[-1]:
        return np.ones((len(shown), 1))
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(starts[-1])[:TRAINING_DESCRIPTORS])
    rows = np.split(chosen, np.searchsorted(chosen, starts[1:-1]))
    taken = [of_frame.unit_descriptors[row - start] for of_frame, row, start in zip(shown, rows, starts, strict=False)]
    words = learn_words(np.concatenate(taken), max(1, min(WORDS, len(chosen) // 5)), rng)
    return make_signatures([count_words(words, of_frame.unit_descriptors) for of_frame in shown])


def strongest_of_cells(keypoints: Keypoints, outline: Outline) -> Keypoints:
    """Return the strongest keypoint of every cell of the frame."""
    side = min(CELL_PX, float(np.sqrt(outline.area / FEWEST_CELLS)))
    cell = np.floor((keypoints.points - [outline.left, outline.top]) / side).astype(np.int64)
    # Keypoints are sorted by strength, so the first of each cell is the strongest.
    _, first = np.unique(cell, axis=0, return_index=True)
    kept = np.sort(first)
    return Keypoints(keypoints.points[kept], keypoints.descriptors[kept], keypoints.strengths[kept])


def learn_words(
    descriptors: NDArray[np.float32], count: int, rng: np.random.Generator, rounds: int = ROUNDS
) -> NDArray[np.float32]:
    """Return `count` centres (count, d) of the descriptors by Lloyd's k-means."""
    words = descriptors[np.sort(rng.permutation(len(descriptors))[:count])]
    for _ in range(rounds):
        nearest = _nearest(words, descriptors)
        order = np.argsort(nearest, kind="stable")
        used, start = np.unique(nearest[order], return_index=True)
        sums = np.add.reduceat(descriptors[order], start, axis=0)
        words = words.copy()  # a word without descriptors stays where it is
        words[used] = sums / np.diff(np.append(start, len(order)))[:, None]
    return words


def count_words(words: NDArray[np.float32], descriptors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return how many of the descriptors (n, d) are nearest to each word (D, d), as (D,)."""
    return np.bincount(_nearest(words, descriptors), minlength=len(words))


def make_signatures(counts: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Scale the counts (D,) of all frames to length 1, (N, D); a frame without words gets the mean of all frames."""
    signatures = np.array(counts, dtype=np.float64)
    signatures[signatures.sum(axis=1) == 0] = signatures.mean(axis=0) + 1.0
    signatures /= np.linalg.norm(signatures, axis=1, keepdims=True)
    return signatures


def _nearest(words: NDArray[np.float32], descriptors: NDArray[np.float32]) -> NDArray[np.int64]:
    if not len(descriptors):
        return np.empty(0, dtype=np.int64)
    nearness = descriptors @ words.T
    nearness -= 0.5 * np.sum(words**2, axis=1)
    nearest: NDArray[np.int64] = np.argmax(nearness, axis=1)
    return nearest
