"""Lost tracking: bursts of unusable frames while the scope goes on moving."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti_lab.synthetic.terrain import fractal_noise

BURST_FRAMES = (4, 25)
CLEAR_FRAMES = 8
"""The fewest usable frames between two bursts, if possible."""

FLUID = (188.0, 168.0, 132.0)
GLOVE = (150.0, 128.0, 118.0)
STEEL = (92.0, 96.0, 102.0)
HAZE = (214.0, 208.0, 204.0)


class Disturbance(StrEnum):
    """What makes a frame unusable."""

    NONE = "none"
    BLURRED = "blurred"
    CLOUDY = "cloudy"  # turbid fluid
    COVERED = "covered"  # by a tool or a hand
    WITHDRAWN = "withdrawn"  # in the dark, or in a bright haze


def draw_disturbances(frames: int, share: float, rng: np.random.Generator) -> NDArray[np.str_]:
    """Return each frame's `Disturbance`, (frames,), in bursts that make up the given share."""
    kinds = [kind for kind in Disturbance if kind is not Disturbance.NONE]
    lengths = _draw_lengths(round(share * frames), rng)
    clear = frames - sum(lengths)
    between = min(CLEAR_FRAMES, clear // (len(lengths) + 1))
    cuts = np.sort(rng.integers(0, clear - between * (len(lengths) + 1) + 1, len(lengths)))
    found = np.full(frames, Disturbance.NONE.value, dtype="<U9")
    at = 0
    order = [kinds[k % len(kinds)] for k in rng.permutation(len(lengths))]
    for length, gap, kind in zip(lengths, np.diff(cuts, prepend=0) + between, order, strict=True):
        found[at + gap : at + gap + length] = kind.value
        at += gap + length
    return found


def first_of_burst(disturbance: NDArray[np.str_], n: int) -> int:
    """Return the first frame of the burst that frame n belongs to."""
    before = np.flatnonzero(disturbance[:n] != disturbance[n])
    return int(before[-1]) + 1 if len(before) else 0


def spoil(
    kind: str, image: NDArray[np.float32], shade: NDArray[np.float32], age: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return the frame (3, h, w), in grey levels, `age` frames into a burst.

    `rng` is new for every frame, but starts from the same seed for all frames of a burst. So its drawings move with the
    age alone.
    """
    match kind:
        case Disturbance.BLURRED:
            return _blur(image, rng.uniform(0.045, 0.08))
        case Disturbance.CLOUDY:
            return _cloud(image, shade, age, rng)
        case Disturbance.COVERED:
            return _cover(image, shade, age, rng)
        case Disturbance.WITHDRAWN:
            return _withdraw(image, shade, rng)
    return image


def _blur(image: NDArray[np.float32], width: float) -> NDArray[np.float32]:
    """Blur by a fraction of the frame's width, on a reduced copy, which is cheap."""
    size = (image.shape[2], image.shape[1])
    reduced = (max(size[0] // 8, 4), max(size[1] // 8, 4))
    small = [cv2.resize(channel, reduced, interpolation=cv2.INTER_AREA) for channel in image]
    blurred = [cv2.GaussianBlur(channel, (0, 0), width * reduced[0]) for channel in small]
    return np.stack([cv2.resize(channel, size, interpolation=cv2.INTER_CUBIC) for channel in blurred])


def _paint(colour: tuple[float, float, float], light: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return a surface of one colour, (3, h, w), under a light (h, w)."""
    return np.asarray(np.multiply.outer(colour, light), np.float32)


def _cloud(
    image: NDArray[np.float32], shade: NDArray[np.float32], age: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Put turbid fluid in front. It lets through less than the camera's noise."""
    height, width = shade.shape
    density = np.full(shade.shape, 0.85, np.float32)
    # Two layers with different motions, so that no camera motion explains both.
    for _ in range(2):
        swirls = fractal_noise(2 * width, 2 * height, 128, 32, rng)
        down, right = (age * rng.integers(-6, 7, 2)) % (height, width)
        density += np.float32(0.03) * swirls[down : down + height, right : right + width]
    fluid = density * (0.4 + 0.6 * shade)
    return np.asarray(0.04 * image + 0.96 * _paint(FLUID, fluid), np.float32)


def _cover(
    image: NDArray[np.float32], shade: NDArray[np.float32], age: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Put a hand or a tool in front, out of focus, that leaves a strip of at most a fifth at one side."""
    height, width = shade.shape
    colour, angle = (GLOVE, STEEL)[int(rng.integers(2))], rng.uniform(0, 2 * np.pi)
    x = (np.arange(width) - width / 2) / (width / 2)
    y = (np.arange(height) - height / 2) / (height / 2)
    across = np.cos(angle) * x + np.sin(angle) * y[:, None]
    along = np.cos(angle) * y[:, None] - np.sin(angle) * x
    rim = across + 0.62 + 0.05 * np.sin(3 * along + rng.uniform(0, 6) + 0.15 * age) + 0.04 * np.sin(0.3 * age)
    hidden = np.clip(rim / 0.08, 0, 1)
    round_off = 0.45 + 0.4 * np.sqrt(np.clip(1 - (across - 0.25) ** 2, 0.05, 1))
    body = _paint(colour, round_off * (0.5 + 0.5 * shade))
    return np.asarray((1 - hidden) * _blur(image, 0.03) + hidden * body, np.float32)


def _withdraw(image: NDArray[np.float32], shade: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Show the dark, or the haze of a lit room."""
    if rng.random() < 0.5:
        return np.asarray(0.05 * _blur(image, 0.08) + 4.0, np.float32)
    return _paint(HAZE, 0.8 + 0.25 * shade)


def _draw_lengths(total: int, rng: np.random.Generator) -> list[int]:
    """Return lengths of bursts that add up to `total`, or to the shortest burst if that is more."""
    shortest, longest = BURST_FRAMES
    lengths: list[int] = []
    while total > 0:
        length = int(rng.integers(shortest, longest + 1))
        # The rest must be nothing or at least a burst.
        if total - length < shortest:
            length = total if total <= longest else total - shortest
        lengths.append(max(length, shortest))
        total -= length
    return lengths
