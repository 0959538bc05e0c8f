"""The weighted distances between sparse signatures, by the words that frames share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_parallel, prange

MARGIN = 2.5e-7
"""More than a similarity of size one loses by being rounded to single precision and changed once."""

FRAMES_OF_A_LIST = 1024
"""Their words and a row of as many sums stay in a core's cache."""

FRAMES_OF_A_TASK = 32


@compiled
def subtract_in_turn(
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
    shown: NDArray[np.float64],
) -> None:
    """Write `base` less the distances from the frames `first` to `end` to all later ones, and a margin."""
    product = np.empty(FRAMES_OF_A_LIST)
    for chunk in range(first // FRAMES_OF_A_LIST, len(list_start)):
        from_frame = chunk * FRAMES_OF_A_LIST
        to_frame = min(from_frame + FRAMES_OF_A_LIST, len(squared))
        # The lists of a chunk stay in the cache while all the frames go through them.
        for i in range(first, min(end, to_frame - 1)):
            product[:] = 0.0
            for n in range(start[i], start[i + 1]):
                d = word[n]
                if weights[d] != 0.0:
                    scale = weights[d] * value[n]
                    frames = frame[list_start[chunk, d] : list_start[chunk, d + 1]]
                    values = shown[list_start[chunk, d] : list_start[chunk, d + 1]]
                    for m in range(len(frames)):
                        product[frames[m]] += scale * values[m]
            # Slices, which need no look at the sign of an index.
            later = max(i + 1, from_frame)
            before, after = base[i - origin, later - origin :], upper[i - origin, later - origin :]
            shared, squared_j = product[later - from_frame :], squared[later:to_frame]
            for m in range(len(squared_j)):
                similarity = before[m] + 2.0 * shared[m] - squared[i] - squared_j[m]
                after[m] = similarity + MARGIN * (1.0 + abs(similarity))


@compiled_parallel
def subtract_on_all_cores(
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
    shown: NDArray[np.float64],
) -> None:
    """Do the same on all cores; a task takes early frames and late ones, which have fewer frames after them."""
    tasks = (end - first + FRAMES_OF_A_TASK - 1) // FRAMES_OF_A_TASK
    for n in prange((tasks + 1) // 2):
        for side in range(2):
            task = n if side == 0 else tasks - 1 - n
            if side == 0 or task > n:
                begin = first + task * FRAMES_OF_A_TASK
                stop = min(begin + FRAMES_OF_A_TASK, end)
                subtract_in_turn(
                    base, upper, origin, begin, stop, weights, squared, start, word, value, list_start, frame, shown
                )
