"""Exact sampling of a scene between its pixels.

OpenCV's remap rounds coordinates of its better kernels to 1/32 pixel, and its cubic kernel (a = -0.75) does not
reproduce even a ramp. That would be an error in the truth. Here the weights are computed for every pixel's own
coordinates, by the six-point cubic convolution of R. Keys, "Cubic convolution interpolation for digital image
processing", 1981, section VII: exact for polynomials up to the third degree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Transforms

HALF_WIDTH = 3.0


def resample(
    scene: NDArray[np.uint8], scene_from_frame: Transforms, width: int, height: int, margin: int = 0
) -> NDArray[np.float32]:
    """Return the scene in a frame of `width` × `height`: (height, width, 3), in grey levels, not clipped.

    `margin` more pixels are rendered on every side. Beyond the scene's border its last pixels continue. If the frame
    has fewer pixels than the scene, the kernel is widened accordingly, against aliasing.
    """
    frame = np.empty((height + 2 * margin, width + 2 * margin, 3), np.float32)
    # How far a step of one frame pixel can move along the scene's x and y.
    stretch = np.maximum(np.linalg.norm(scene_from_frame[:, :2], axis=1), 1.0)
    _sample(scene, np.ascontiguousarray(scene_from_frame), stretch, margin, frame)
    return frame


@compiled
def _kernel(s: float) -> float:
    s = abs(s)
    if s < 1:
        return (4 / 3 * s - 7 / 3) * s * s + 1
    if s < 2:
        return ((-7 / 12 * s + 3) * s - 59 / 12) * s + 5 / 2
    if s < 3:
        return ((1 / 12 * s - 2 / 3) * s + 7 / 4) * s - 3 / 2
    return 0.0


@compiled
def weigh_pixels(at: float, stretch: float, weights: NDArray[np.float32]) -> tuple[int, int]:
    """Fill in the weights of the pixels around `at`. Return the number of the first one, and their count."""
    reach = HALF_WIDTH * stretch
    first = int(np.ceil(at - reach))
    count = int(np.floor(at + reach)) - first + 1
    total = 0.0
    for k in range(count):
        weight = _kernel((first + k - at) / stretch)
        weights[k] = weight
        total += weight
    for k in range(count):
        weights[k] /= total
    return first, count


@compiled
def _sample(
    scene: NDArray[np.uint8],
    scene_from_frame: Transforms,
    stretch: NDArray[np.float64],
    margin: int,
    frame: NDArray[np.float32],
) -> None:
    rows, columns = scene.shape[:2]
    longest = int(2 * HALF_WIDTH * max(stretch[0], stretch[1])) + 2
    weights_x, weights_y = np.empty(longest, np.float32), np.empty(longest, np.float32)
    for v in range(frame.shape[0]):
        for u in range(frame.shape[1]):
            x, y = u - margin, v - margin
            at_x = scene_from_frame[0, 0] * x + scene_from_frame[0, 1] * y + scene_from_frame[0, 2]
            at_y = scene_from_frame[1, 0] * x + scene_from_frame[1, 1] * y + scene_from_frame[1, 2]
            first_x, count_x = weigh_pixels(at_x, stretch[0], weights_x)
            first_y, count_y = weigh_pixels(at_y, stretch[1], weights_y)
            red = green = blue = np.float32(0)
            for j in range(count_y):
                row = min(max(first_y + j, 0), rows - 1)
                r = g = b = np.float32(0)
                for i in range(count_x):
                    column = min(max(first_x + i, 0), columns - 1)
                    weight = weights_x[i]
                    r += weight * scene[row, column, 0]
                    g += weight * scene[row, column, 1]
                    b += weight * scene[row, column, 2]
                red += weights_y[j] * r
                green += weights_y[j] * g
                blue += weights_y[j] * b
            frame[v, u, 0], frame[v, u, 1], frame[v, u, 2] = red, green, blue
