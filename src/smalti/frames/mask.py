"""The field of view as the user paints it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.frames.image_header import read_header
from smalti.frames.image_pixels import decode_eight_bits, decode_sixteen_bits


def read_mask(path: Path, width: int, height: int, *, scale: float = 1.0) -> NDArray[np.bool_]:
    """Read an image whose nonzero pixels are scene; return it at the working size, (height, width).

    It may have the working size or, where `scale` (working pixels per source pixel) is not 1, the source's.
    """
    header = read_header(path)
    size = (header.width, header.height)
    fits = size == (width, height)
    if not fits and (round(header.width * scale), round(header.height * scale)) != (width, height):
        source = "" if scale == 1.0 else f" (or {round(width / scale)}x{round(height / scale)} as in the source)"
        raise InputError(
            f"{path}: is {header.width}x{header.height} px, but the frames are {width}x{height}{source}; "
            f"give a mask of that size"
        )
    pixels = decode_sixteen_bits(header) if header.bits == 16 else decode_eight_bits(header)
    mask = np.asarray(pixels.reshape(header.height, header.width, -1).max(axis=2) > 0)
    if not fits:
        # Only pixels that see nothing but the scene.
        shares = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
        mask = np.asarray(shares > 1.0 - 1e-4, dtype=bool)
    if not mask.any():
        raise InputError(f"{path}: is black all over, which leaves no scene; paint the scene white")
    return mask
