"""Lines, dots and outlines as the paths of an SVG; a path holds all of a kind, so that thousands stay small."""

from __future__ import annotations

import numpy as np

from smalti.records import Points
from smalti.report.markup import Markup, element


def draw_lines(segments: np.ndarray, kind: str) -> Markup:
    """Draw lines (n, 2, 2)."""
    return _path("".join(f"M{_at(start)}L{_at(end)}" for start, end in segments), kind)


def draw_dots(points: Points, kind: str) -> Markup:
    """Draw points as lines of hardly any length with round ends: their size does not depend on the drawing's scale."""
    return _path("".join(f"M{_at(point)}h.01" for point in points), f"{kind} dot")


def draw_outlines(corners: np.ndarray, kind: str) -> Markup:
    """Draw closed polygons (n, m, 2)."""
    return _path("".join(f"M{'L'.join(_at(corner) for corner in polygon)}Z" for polygon in corners), kind)


def draw_label(text: str, at: np.ndarray, size: float, anchor: str = "start") -> Markup:
    """Write beside a point; `size` is that of the letters."""
    shift = {"start": 0.5, "middle": 0.0, "end": -0.5}[anchor] * size
    place = {"x": _number(at[0] + shift), "y": _number(at[1] - 0.4 * size)}
    return element("text", text, **place, font_size=_number(size), text_anchor=anchor)


def view_box(left: float, top: float, width: float, height: float) -> str:
    """Return the part of the plane that a drawing shows."""
    return " ".join(map(_number, (left, top, width, height)))


def _path(course: str, kind: str) -> Markup:
    return element("path", d=course, class_=kind) if course else Markup()


def _at(point: np.ndarray) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    # A tenth of a pixel is finer than any screen shows.
    return f"{value:.1f}".removesuffix(".0")
