"""The mean of all frames that see a place, weighted by the distance to each frame's border (`feather`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.blends.overlay import Method
from smalti.rendering.blends.painting import to_bytes
from smalti.rendering.sampling.feather import weight_at
from smalti.rendering.sampling.kernels import Bending, brighten, cubic, position, seen_position


def _begin(shape: tuple[int, int], frames: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return np.zeros((*shape, 3), dtype=np.float32), np.zeros(shape, dtype=np.float32)


def _finish(colours: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    covered = weights > 0
    np.divide(colours, weights[..., None], out=colours, where=covered[..., None])
    return to_bytes(colours, covered)


@compiled
def _add_weighted(
    pixels: NDArray[np.uint8],
    source_from_frame: NDArray[np.float64],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    gains: NDArray[np.float32],
    flatness: NDArray[np.float32],
    table_from_frame: NDArray[np.float64],
    weights: NDArray[np.float32],
    left: int,
    top: int,
    colour_sums: NDArray[np.float32],
    weight_sums: NDArray[np.float32],
) -> None:
    for row in range(weight_sums.shape[0]):
        for column in range(weight_sums.shape[1]):
            x, y = seen_position(frame_from_canvas, bending, left + column, top + row)
            weight = weight_at(weights, x, y)
            if weight <= 0.0:
                continue
            bright = weight * brighten(flatness, table_from_frame, x, y)
            u, v = position(source_from_frame, x, y)
            red, green, blue = cubic(pixels, u, v)
            colour_sums[row, column, 0] += red * bright * gains[0]
            colour_sums[row, column, 1] += green * bright * gains[1]
            colour_sums[row, column, 2] += blue * bright * gains[2]
            weight_sums[row, column] += weight


FEATHER = Method(_begin, _add_weighted, _finish)
