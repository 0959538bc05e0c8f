"""What remains in the mosaic of things that only a few frames show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from pictures.measures import errors_of
from pictures.worlds import FRAME, World, make_worlds
from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic import Blend

BLENDS: tuple[Blend, ...] = ("feather", "none", "multiband", "median")

FEWEST_VIEWS = 3
"""Frames at a place, at least: between two frames that disagree, nothing tells which one is right."""

SEEN = 20
"""Grey levels. A thing is visible where it changes the mosaic by more."""

DISC, BAR = (252, 248, 240), (14, 14, 18)
DISC_RADIUS = 45

COLUMNS = {
    "world": "sequence",
    "thing": "thing",
    "blend": "blend",
    "rms": "RMS error there",
    "rms_without": "without the thing",
    "still_seen_percent": "still seen, % of its area",
}


def measure_moving() -> Iterator[dict[str, Any]]:
    """Yield a row for each sequence, thing and blend."""
    for world in make_worlds():
        clean = world.mosaic()
        canvas = clean.canvas()
        truth, views = world.truth(canvas), clean.maps(canvas).coverage
        without = {blend: clean.render(canvas, blend) for blend in BLENDS}
        for name, shapes in (("bright disc", _discs(world)), ("dark bar", _bars(world))):
            colour = DISC if name == "bright disc" else BAR
            frames = {n: _paint(frame, shapes.get(n), colour) for n, frame in world.frames.items()}
            mosaic = world.mosaic(frames)
            touched = _touched(world, canvas, shapes) & (views >= FEWEST_VIEWS)
            for blend in BLENDS:
                image = mosaic.render(canvas, blend)
                covered = image[..., 3] > 0
                change = np.abs(image[..., :3].astype(int) - without[blend][..., :3]).max(axis=2)
                yield {
                    "world": world.name,
                    "thing": name,
                    "blend": blend,
                    "frames_with_it": len(shapes),
                    "pixels": int(touched.sum()),
                    "rms": _rms(errors_of(image, truth, covered)[touched]),
                    "rms_without": _rms(errors_of(without[blend], truth, covered)[touched]),
                    "still_seen_percent": round(100 * float((change[touched] > SEEN).mean()), 2),
                }


def _discs(world: World) -> dict[int, NDArray[np.bool_]]:
    """Let a disc drift across the view in five frames in the middle, slower than the camera."""
    shapes = {}
    for k in range(5):
        shape = np.zeros(FRAME[::-1], np.uint8)
        cv2.circle(shape, (200 + 60 * k, 180 + 30 * k), DISC_RADIUS, (1,), -1)
        shapes[len(world.sequence) // 2 + k] = shape > 0
    return shapes


def _bars(world: World) -> dict[int, NDArray[np.bool_]]:
    """Hold a bar, like a tool, into every seventh frame, at the same position of the view."""
    shape = np.zeros(FRAME[::-1], np.uint8)
    cv2.line(shape, (0, 400), (400, 180), (1,), 36)
    return dict.fromkeys(range(3, len(world.sequence), 7), shape > 0)


def _paint(
    frame: NDArray[np.uint8], shape: NDArray[np.bool_] | None, colour: tuple[int, int, int]
) -> NDArray[np.uint8]:
    return frame if shape is None else np.where(shape[..., None], np.array(colour, np.uint8), frame)


def _touched(world: World, canvas: Canvas, shapes: dict[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return (h, w): the pixels of the canvas where a frame shows the thing."""
    touched = np.zeros((canvas.height, canvas.width), np.bool_)
    for number, shape in shapes.items():
        placed = cv2.warpPerspective(
            shape.astype(np.uint8),
            canvas.canvas_from_frame(world.maps[number]),
            (canvas.width, canvas.height),
            flags=cv2.INTER_NEAREST,
        )
        touched |= placed > 0
    return touched


def _rms(errors: NDArray[np.floating]) -> float:
    return round(float(np.sqrt(np.nanmean(np.square(errors)))), 2)
