"""From what the lens shows to what the file holds: blur, colour, light, what is in the way, the rim, noise, JPEG."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.records import Points
from smalti.synthetic.degradation import trail
from smalti.synthetic.endoscopy.settings import Camera
from smalti.synthetic.endoscopy.tissue import DEVIATION, GREY

TISSUE = (184.0, 104.0, 88.0)
TINT = (0.75, 1.15, 0.95)
"""Colour of the tissue in full light, and how much of its contrast each channel shows: blood hides least in green."""

GLINT = (255.0, 252.0, 246.0)
PARTICLE = (226.0, 214.0, 190.0)
SURROUND = (9.0, 6.0, 6.0)
RIM_PX = 1.5
"""Half the width of the field's soft rim."""


def reach_of_blur(camera: Camera, way: Points) -> int:
    """Return how many pixels around a frame its blur draws on at most, for a scope that moves by `way` (2,)."""
    return math.ceil(4 * (camera.blur_px + camera.defocus_px) + camera.motion_blur * float(np.linalg.norm(way)) / 2) + 1


def blur_view(view: NDArray[np.float32], way: Points, blur_px: float) -> NDArray[np.float32]:
    """Blur along the way (2,) that the scope moves while the shutter is open, and out of focus."""
    moved = cv2.filter2D(view, -1, trail(way))
    return np.asarray(cv2.GaussianBlur(moved, (0, 0), blur_px) if blur_px else moved, np.float32)


def colour_tissue(view: NDArray[np.float32], contrast: float, shade: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn prepared tissue (h, w) into lit tissue (3, h, w), RGB in grey levels."""
    detail = (view - np.float32(GREY)) * np.float32(contrast / DEVIATION)
    return np.stack([shade * (colour + tint * detail) for colour, tint in zip(TISSUE, TINT, strict=True)])


def lay_over(image: NDArray[np.float32], colour: tuple[float, float, float], part: NDArray[np.float32]) -> None:
    """Mix a colour into an image (3, h, w), in place, by each pixel's part (h, w)."""
    for c, level in enumerate(colour):
        image[c] += part * (level - image[c])


def record(
    image: NDArray[np.float32], depth: NDArray[np.float32], camera: Camera, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return the frame (h, w, 3) that the file holds; `depth` (h, w) is how far inside the field a pixel lies."""
    outside = np.clip(np.float32(0.5) - depth / np.float32(2 * RIM_PX), 0, 1)
    lay_over(image, SURROUND, outside)
    # Of the noise in colour little is left in such files.
    noise = np.float32(camera.noise) * rng.standard_normal(depth.shape, dtype=np.float32)
    levels = cv2.merge([cv2.add(channel, noise, dtype=cv2.CV_8U) for channel in image[::-1]])
    _, encoded = cv2.imencode(".jpg", levels, (cv2.IMWRITE_JPEG_QUALITY, camera.jpeg_quality))
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB), np.uint8)
