"""The picture of a mosaic, small enough to travel inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from smalti.report.findings import Part

LARGEST_SIDE = 2000

MOST_PICTURES = 12
"""Mosaics that are shown. A video that falls apart into more has small ones of a few frames."""

ALL_BYTES = 1_400_000
FEWEST_BYTES = 40_000
"""What all pictures together may take, and what each may take in any case; the page takes 4/3 of that."""

QUALITIES = (85, 75, 60, 45)
SHRINK = 0.75


def share_bytes(parts: Sequence[Part], everything: int = ALL_BYTES, fewest: int = FEWEST_BYTES) -> list[int]:
    """Return the bytes that the picture of each part may take, by its frames."""
    frames = sum(len(part.frames) for part in parts)
    return [max(fewest, everything * len(part.frames) // frames) for part in parts]


def encode_preview(image: NDArray[np.uint8], most_bytes: int) -> str:
    """Return an image (h, w, 4) as the address of a WebP, at the best quality and size that fits."""
    picture = Image.fromarray(image)
    while True:
        for quality in QUALITIES:
            packed = io.BytesIO()
            picture.save(packed, "WEBP", quality=quality, method=4)
            if packed.tell() <= most_bytes or max(picture.size) == 1:
                return "data:image/webp;base64," + base64.b64encode(packed.getvalue()).decode()
        width, height = (max(1, int(SHRINK * side)) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BOX)
