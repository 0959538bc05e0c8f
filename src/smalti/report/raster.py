"""Rasters as PNG, written so plainly that the page's own script reads their numbers back."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

INDEXED, COLOURED = 3, 2
UP = 2
"""The filter of every row: its difference to the row above, which is nothing where a map is flat."""


def encode_raster(pixels: NDArray[np.uint8], palette: NDArray[np.uint8] | None = None) -> str:
    """Return the address of a PNG: indices (h, w) of a palette (n, 3), or colours (h, w, 3). 0 is transparent."""
    height, width = pixels.shape[:2]
    rows = pixels.reshape(height, -1)
    above = np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])
    filtered = np.concatenate([np.full((height, 1), UP, dtype=np.uint8), rows - above], axis=1)
    kind = COLOURED if palette is None else INDEXED
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if palette is not None:
        chunks.append((b"PLTE", palette.tobytes()))
    chunks.append((b"tRNS", bytes(6) if palette is None else bytes(1)))
    chunks.append((b"IDAT", zlib.compress(filtered.tobytes(), 9)))
    chunks.append((b"IEND", b""))
    packed = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)
    return "data:image/png;base64," + base64.b64encode(packed).decode()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
