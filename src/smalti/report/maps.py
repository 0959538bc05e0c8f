"""Maps over the mosaic: how surely each place is known, which frame shows it, how many frames see it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.rendering.maps import MosaicMaps
from smalti.report.colours import COVERAGE, MOST_NUMBERS, UNCERTAINTY, colour_numbers, shade
from smalti.report.markup import Markup, element
from smalti.report.raster import encode_raster
from smalti.report.wording import count

LARGEST_MAP = 1000
"""Pixels of the longer side, at most."""

STEPS = 128
"""Values that the map of uncertainty tells apart. Colours go by its root: where a few frames hang on one thread, the
others would else look all alike."""

MOST_COUNTED = 255

USUAL = 99.0
"""Percent of the places whose values a scale covers: a few that are far worse would leave all others one colour."""


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A raster, and what its colours mean."""

    kind: str
    title: str
    address: str
    meaning: str
    scale: Markup
    numbers: dict[str, str]  # for the script

    def draw(self) -> Markup:
        """Return the picture."""
        return element("img", src=self.address, alt=self.meaning, class_=f"map {self.kind}", **self.numbers)

    def draw_key(self) -> Markup:
        """Return what stands below the picture."""
        return element("div", self.scale, element("p", self.meaning), class_=f"meaning {self.kind}")


def make_maps(rasters: MosaicMaps, *, relative_to: int, most_bytes: int) -> list[Map]:
    """Return the maps as fine as fits; where the uncertainty is known nowhere there is none of it.

    It is told relative to a frame.
    """
    source, coverage, uncertainty = rasters.source, rasters.coverage, rasters.uncertainty
    step = -(-max(source.shape) // LARGEST_MAP) - 1
    while True:
        step += 1
        pick = (slice(None, None, step), slice(None, None, step))
        if len(np.unique(source[pick])) > MOST_NUMBERS:
            continue
        maps = [_map_source(source[pick]), _map_coverage(coverage[pick])]
        if np.isfinite(uncertainty[pick]).any():
            maps.insert(0, _map_uncertainty(uncertainty[pick], relative_to))
        if sum(len(one.address) for one in maps) <= most_bytes or step >= max(source.shape):
            return maps


def _map_uncertainty(uncertainty: NDArray[np.float32], relative_to: int) -> Map:
    known = np.isfinite(uncertainty)
    top = _round_up(float(np.percentile(uncertainty[known], USUAL)))
    share = np.sqrt(np.clip(np.where(known, uncertainty, 0.0) / top, 0.0, 1.0))
    indices = np.where(known, 1 + np.rint(share * (STEPS - 1)), 0).astype(np.uint8)
    palette = np.concatenate([np.zeros((1, 3), dtype=np.uint8), shade(UNCERTAINTY, np.linspace(0.0, 1.0, STEPS))])
    beyond = " or more" if np.max(uncertainty[known]) > top else ""
    return Map(
        "uncertainty",
        "± px",
        encode_raster(indices, palette),
        f"Predicted standard deviation of each place, relative to frame {relative_to}.",
        _draw_scale(UNCERTAINTY, "0 px", f"{top / 4:g} px", f"{top:g} px{beyond}"),
        {"data_top": f"{top:g}", "data_steps": str(STEPS), "data_frame": str(relative_to), "data_beyond": beyond},
    )


def _map_source(source: NDArray[np.int32]) -> Map:
    frames, ranks = np.unique(source, return_inverse=True)
    nothing = int(frames[0] < 0)
    numbers = ranks.reshape(source.shape) + 1 - nothing
    shown = [str(frame) for frame in frames[nothing:]]
    return Map(
        "source",
        "Frames",
        encode_raster(colour_numbers(len(shown) + 1)[numbers]),
        f"Which of {count(len(shown), 'frame')} each place is taken from: a colour each.",
        Markup(),
        {"data_frames": " ".join(shown)},
    )


def _map_coverage(coverage: NDArray[np.uint16]) -> Map:
    seen = coverage[coverage > 0]
    top = int(np.ceil(np.percentile(seen, USUAL))) if len(seen) else 1
    values = np.arange(1, MOST_COUNTED + 1)
    palette = shade(COVERAGE, np.clip((values - 1) / max(top - 1, 1), 0.0, 1.0))
    beyond = " or more" if len(seen) and seen.max() > top else ""
    ends = ("1 frame", f"{top} frames{beyond}") if top > 1 else ("1 frame",)
    return Map(
        "coverage",
        "Coverage",
        encode_raster(
            np.minimum(coverage, MOST_COUNTED).astype(np.uint8),
            np.concatenate([np.zeros((1, 3), dtype=np.uint8), palette]),
        ),
        "How many frames see each place.",
        _draw_scale(COVERAGE, *ends),
        {"data_most": str(MOST_COUNTED)},
    )


def _draw_scale(name: str, *marks: str) -> Markup:
    """Return a bar of the scale's colours with words below it, spread evenly."""
    stops = ",".join(f"#{colour.tobytes().hex()}" for colour in shade(name, np.linspace(0.0, 1.0, 9)))
    bar = element("span", style=f"background:linear-gradient(90deg,{stops})", class_="bar", aria_hidden="true")
    return element("div", bar, *(element("span", mark) for mark in marks), class_="scale")


def _round_up(value: float) -> float:
    """Return a number of two digits that is not smaller, and not zero."""
    if value <= 0.0:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit
