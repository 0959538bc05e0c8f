"""How objects show themselves in a notebook: a small picture and a table, as HTML that loads nothing."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from html import escape

import cv2
import numpy as np
from numpy.typing import NDArray

PICTURE_SIDE = 480
"""Pixels of the longer side."""

JPEG_QUALITY = 85
_CELL = "text-align: left; padding: 2px 12px 2px 0"


def draw_card(title: str, rows: Iterable[tuple[str, str]], picture: NDArray[np.uint8] | None = None) -> str:
    """Return a title, a row for each name and its words, and a picture (h, w, 4), RGBA. All words are escaped."""
    lines = "".join(
        f'<tr><th style="{_CELL}" scope="row">{escape(name)}</th><td style="{_CELL}">{escape(words)}</td></tr>'
        for name, words in rows
    )
    image = "" if picture is None else f'<img alt="{escape(title)}" src="{_inline(picture)}">'
    return f"<div><p><strong>{escape(title)}</strong></p><table>{lines}</table>{image}</div>"


def say_error(error_px: float | None, bound_px: float | None) -> str:
    """Return the predicted error and its bound in words."""
    if error_px is None or not math.isfinite(error_px):
        return "not known"
    bound = (
        "" if bound_px is None or not math.isfinite(bound_px) else f", below {bound_px:.2f} px with 90 % probability"
    )
    return f"{error_px:.2f} px{bound}"


def say_answers(yes: int, no: int, unsure: int) -> str:
    """Return how many questions were answered, and how."""
    return f"{yes + no + unsure}: {yes} yes, {no} no, {unsure} cannot tell"


def shrink(picture: NDArray[np.uint8], side: int = PICTURE_SIDE) -> NDArray[np.uint8]:
    """Return a picture whose longer side has at most so many pixels."""
    height, width = picture.shape[:2]
    scale = side / max(height, width)
    if scale >= 1.0:
        return picture
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _inline(picture: NDArray[np.uint8]) -> str:
    """Return the address of a JPEG that holds the picture itself, on white."""
    small = shrink(picture)
    opacity = small[..., 3:].astype(np.float32) / 255.0
    opaque = (small[..., :3] * opacity + 255.0 * (1.0 - opacity)).round().astype(np.uint8)
    _, packed = cv2.imencode(".jpg", opaque[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(packed.tobytes()).decode()
