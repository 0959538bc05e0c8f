"""A smooth scene with a formula, cameras that look at it, and how near a picture comes to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from smalti.geometry.lens import Lens


def colour_at(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(..., 3) in 0..255 at points of the mosaic; nothing in it is shorter than 19 pixels."""
    red = 128 + 55 * np.sin(2 * np.pi * x / 29) + 50 * np.cos(2 * np.pi * y / 31)
    green = 120 + 60 * np.sin(2 * np.pi * (x + y) / 37) + 40 * np.sin(2 * np.pi * (x - 2 * y) / 61)
    blue = 130 + 100 * np.cos(2 * np.pi * (0.8 * x - 0.6 * y) / 19)
    return np.stack([red, green, blue], axis=-1)


def mapped(b_from_a: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    m = b_from_a
    scale = m[2, 0] * x + m[2, 1] * y + m[2, 2]
    return (m[0, 0] * x + m[0, 1] * y + m[0, 2]) / scale, (m[1, 0] * x + m[1, 1] * y + m[1, 2]) / scale


def frame_of(mosaic_from_frame: np.ndarray, width: int, height: int, lens: Lens | None = None) -> np.ndarray:
    y, x = np.mgrid[:height, :width].astype(float)
    if lens is not None:
        x, y = np.moveaxis(lens.undistort(np.stack([x, y], axis=-1)), -1, 0)
    return np.rint(colour_at(*mapped(mosaic_from_frame, x, y))).clip(0, 255).astype(np.uint8)


def shift(x: float, y: float) -> np.ndarray:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


def turn(degrees: float, scale: float = 1.0) -> np.ndarray:
    c, s = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def tilt(x: float, y: float) -> np.ndarray:
    return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [x, y, 1.0]])


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((image.astype(float) - truth) ** 2)))


def displacement(image: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much (x, y) an image (..., 3) shows the scene beside the points where it should, in mosaic pixels.

    Least squares over all pixels: rounded and flattened colours do not matter.
    """
    step = 0.1
    along_x = (colour_at(x + step, y) - colour_at(x - step, y)) / (2 * step)
    along_y = (colour_at(x, y + step) - colour_at(x, y - step)) / (2 * step)
    slopes = np.stack([along_x.ravel(), along_y.ravel()], axis=1)
    return np.linalg.lstsq(slopes, (image - colour_at(x, y)).ravel(), rcond=None)[0]


class Frames:
    """A reader of frames in memory that counts what it decodes, in all and call by call."""

    def __init__(self, frames: dict[int, np.ndarray]) -> None:
        self.frames = frames
        self.calls: list[list[int]] = []

    @property
    def decoded(self) -> list[int]:
        return [index for call in self.calls for index in call]

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, np.ndarray]]:
        call: list[int] = []
        self.calls.append(call)
        for index in indices:
            call.append(index)
            yield index, self.frames[index].copy()
