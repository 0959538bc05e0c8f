"""The ways in which frames become one picture, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from smalti.errors import UnknownNameError
from smalti.geometry.homography import invert_homographies
from smalti.rendering.blends.feathered import FEATHER
from smalti.rendering.blends.median import MEDIAN, SLOTS
from smalti.rendering.blends.median import VIEWS as MEDIAN_VIEWS
from smalti.rendering.blends.multiband import MultibandPainting, levels_for, reach_of
from smalti.rendering.blends.overlay import OverlayPainting
from smalti.rendering.blends.painting import Technique
from smalti.rendering.blends.patches import PatchPainting
from smalti.rendering.canvas import Canvas, Window, boxes_within
from smalti.rendering.layout import Layout
from smalti.rendering.light.correction import Light
from smalti.rendering.seams.selection import select_frames

Blend = Literal["multiband", "feather", "median", "none"]
BLENDS: tuple[Blend, ...] = get_args(Blend)


def check_blend(name: str) -> None:
    """Refuse what is no blend."""
    if name not in BLENDS:
        raise UnknownNameError("blend", name, BLENDS)


def technique_of(blend: Blend, canvas: Canvas, layout: Layout, even_light: bool) -> Technique:
    """Choose how to paint a canvas."""
    light = lru_cache(maxsize=4096)(layout.exposure(even_light).light)
    canvas_from_frame = canvas.canvas_from_frame(layout.mosaic_from_frame)
    if blend in ("feather", "median"):
        return _mix(blend, canvas, layout, light)
    patchwork = layout.patchwork(canvas, even_light)
    if blend == "none":
        return Technique(
            lambda tile: PatchPainting(tile, patchwork, light), patchwork.prepare, levels=1, reach=0, bytes_per_pixel=24
        )
    zoom = np.sqrt(np.abs(np.linalg.det(canvas_from_frame[:, :2, :2])))
    levels = levels_for(float(np.median(zoom)) * min(layout.width, layout.height))
    reach = reach_of(levels)
    return Technique(
        lambda tile: MultibandPainting(tile, patchwork, light, levels),
        lambda window, pool: patchwork.prepare(window.grow(reach + 2**levels), pool),
        levels=levels + 1,
        reach=reach,
        bytes_per_pixel=60,
    )


def _mix(blend: Blend, canvas: Canvas, layout: Layout, light: Callable[[int], Light]) -> Technique:
    """Paint with all frames that see a place, or for the median with enough of them."""
    frame_from_canvas = invert_homographies(canvas.canvas_from_frame(layout.mosaic_from_frame))
    places = np.arange(len(frame_from_canvas))
    if blend == "median":
        quality = layout.groundwork().quality
        places = select_frames(layout.mosaic_from_frame, layout.lens, layout.feather.weights, quality, MEDIAN_VIEWS)
    method = MEDIAN if blend == "median" else FEATHER

    boxes = layout.boxes(canvas)[places]

    def begin(tile: Window) -> OverlayPainting:
        touching, parts = boxes_within(boxes, tile)
        touched = {int(places[n]): Window.between(*part) for n, part in zip(touching, parts.tolist(), strict=True)}
        return OverlayPainting(method, tile, touched, frame_from_canvas, layout.lens, layout.feather, light)

    bytes_per_pixel = 4 * SLOTS + 20 if blend == "median" else 28
    return Technique(begin, lambda window, pool: None, levels=1, reach=0, bytes_per_pixel=bytes_per_pixel)
