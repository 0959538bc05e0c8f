"""The value of the light correction: the mosaic against the true scene, and the steps at its seams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pictures.measures import decibels, errors_of, measure_steps
from pictures.worlds import World, make_worlds
from smalti.rendering.mosaic import Blend

BASELINE = ("feather", False)
VARIANTS: tuple[tuple[Blend, bool], ...] = (
    ("feather", False),
    ("multiband", False),
    ("none", True),
    ("feather", True),
    ("median", True),
    ("multiband", True),
)

COLUMNS = {
    "world": "sequence",
    "blend": "blend",
    "even_light": "light evened",
    "psnr_db": "PSNR dB",
    "gained_db": "over the first row",
    "step": "step",
    "step_95": "step, 95 %",
    "step_floor": "off the seams",
}


def measure_quality() -> Iterator[dict[str, Any]]:
    """Yield a row for each sequence and blend."""
    for world in make_worlds():
        yield from _measure(world)


def _measure(world: World) -> Iterator[dict[str, Any]]:
    mosaic = world.mosaic()
    canvas = mosaic.canvas()
    truth, maps = world.truth(canvas), mosaic.maps(canvas)
    baseline = 0.0
    for blend, even_light in VARIANTS:
        image = mosaic.render(canvas, blend, even_light=even_light)
        errors = errors_of(image, truth, image[..., 3] > 0)
        psnr = decibels(errors)
        baseline = psnr if (blend, even_light) == BASELINE else baseline
        row = {"world": world.name, "blend": blend, "even_light": even_light, "psnr_db": round(psnr, 2)}
        row |= {"gained_db": round(psnr - baseline, 2), "megapixels": round(canvas.width * canvas.height / 1e6, 1)}
        if even_light:
            # Blends with one frame a pixel have seams where that frame changes. The others have them where a frame
            # begins or ends.
            labels = maps.source if blend in ("none", "multiband") else maps.coverage.astype(np.int32)
            steps = measure_steps(errors, labels)
            row |= {"step": round(steps.median, 2), "step_95": round(steps.high, 2)}
            row |= {"step_floor": round(steps.floor, 2)}
        yield row
