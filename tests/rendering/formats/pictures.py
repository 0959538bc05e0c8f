"""Pictures to be written, and what they become at half their size, computed plainly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from smalti.rendering.formats.bands import Bands


def picture(width: int, height: int, seed: int = 1) -> np.ndarray:
    """Smooth colours, noise, and every alpha."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    image[: height // 2, :, :3] = (np.arange(width) % 256)[None, :, None]
    return image


def photograph(width: int, height: int) -> np.ndarray:
    """Smooth waves, opaque but for a hole."""
    y, x = np.mgrid[:height, :width]
    waves = [128 + 100 * np.sin(x / 37 + k) * np.cos(y / (23 + k)) for k in range(3)]
    image = np.stack([*waves, np.full((height, width), 255)], axis=-1).astype(np.uint8)
    image[height // 3 : height // 2, width // 4 : width // 3] = 0
    return image


def bands_of(image: np.ndarray, rows: int = 64) -> Bands:
    return Bands(image.shape[1], image.shape[0], rows, (image[top : top + rows] for top in range(0, len(image), rows)))


def halved(image: np.ndarray) -> np.ndarray:
    """The mean of what every block of 2×2 has, colours weighted by alpha, from the definition."""
    height, width = -(-image.shape[0] // 2), -(-image.shape[1] // 2)
    colours, alphas, counts = np.zeros((height, width, 3)), np.zeros((height, width)), np.zeros((height, width))
    for row in range(2):
        for column in range(2):
            part = image[row::2, column::2].astype(float)
            here = np.s_[: part.shape[0], : part.shape[1]]
            colours[here] += part[..., :3] * part[..., 3:]
            alphas[here] += part[..., 3]
            counts[here] += 1
    colours /= np.maximum(alphas, 1)[..., None]
    return np.floor(np.concatenate([colours, (alphas / counts)[..., None]], axis=-1) + 0.5).astype(np.uint8)


def on_white(image: np.ndarray) -> np.ndarray:
    alpha = image[..., 3:].astype(float) / 255
    return np.floor(image[..., :3] * alpha + 255 * (1 - alpha) + 0.5).astype(np.uint8)


def opened(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
