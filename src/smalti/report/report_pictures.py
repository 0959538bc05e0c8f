"""Pictures of the report: a small one of each mosaic, and maps over it with their colours."""

from __future__ import annotations

import base64
import colorsys
import io
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from smalti.errors import InputError
from smalti.frames.source import FrameSource
from smalti.project.uncertainty import Uncertainty
from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic_overview import MosaicOverview
from smalti.rendering.pixel_maps import MosaicMaps
from smalti.report.markup import Markup, count, element

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
    step = 0
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
        f"The frame that each place is taken from. {count(len(shown), 'frame')}, one colour each.",
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
        "How many frames show each place.",
        _draw_scale(COVERAGE, *ends),
        {"data_most": str(MOST_COUNTED)},
    )


def _draw_scale(scale: int, *marks: str) -> Markup:
    """Return a bar of the scale's colours with words below it, spread evenly."""
    stops = ",".join(f"#{colour.tobytes().hex()}" for colour in shade(scale, np.linspace(0.0, 1.0, 9)))
    bar = element("span", style=f"background:linear-gradient(90deg,{stops})", class_="bar", aria_hidden="true")
    return element("div", bar, *(element("span", mark) for mark in marks), class_="scale")


def _round_up(value: float) -> float:
    """Return a number of two digits that is not smaller, and not zero."""
    if value <= 0.0:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit


Colours = NDArray[np.uint8]
"""(n, 3)."""

UNCERTAINTY, COVERAGE = cv2.COLORMAP_VIRIDIS, cv2.COLORMAP_CIVIDIS

NUMBER_BITS = 5
"""The lowest ones of red, green and blue of a frame's colour hold its number, for the script; nobody sees them."""

MOST_NUMBERS = 2 ** (3 * NUMBER_BITS) - 1

TURN = 0.38196601
"""Of the circle of hues, from a frame to the next: the golden angle, by which no hue soon comes near an earlier one."""

SATURATION = 0.5
LIGHTNESS = (0.95, 0.55)


def shade(scale: int, shares: NDArray[np.float64]) -> Colours:
    """Return the colours of a scale at shares (n,) of its length, 0 to 1."""
    steps = np.clip(256 * shares, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(cv2.applyColorMap(steps[:, None], scale)[:, 0, ::-1])


def colour_numbers(count: int) -> Colours:
    """Return muted colours of the numbers 0 to `count` - 1, of which each differs from the next; 0 is black.

    The number can be read from the colour.
    """
    assert count - 1 <= MOST_NUMBERS, f"a colour cannot hold {count - 1}"
    colours = np.zeros((count, 3), dtype=np.uint8)
    lowest = 2**NUMBER_BITS - 1
    for number in range(1, count):
        hue, lightness = number * TURN % 1.0, LIGHTNESS[number % len(LIGHTNESS)]
        bits = number >> 2 * NUMBER_BITS, number >> NUMBER_BITS & lowest, number & lowest
        for channel, value in enumerate(colorsys.hsv_to_rgb(hue, SATURATION, lightness)):
            colours[number, channel] = int(255 * value) & ~lowest | bits[channel]
    return colours


LEVEL = 6
"""Level 9 takes ten times as long for a map that is a fifth smaller."""

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
    chunks.append((b"IDAT", zlib.compress(filtered.tobytes(), LEVEL)))
    chunks.append((b"IEND", b""))
    packed = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)
    return "data:image/png;base64," + base64.b64encode(packed).decode()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


MOST_PICTURES = 12
"""Mosaics that are shown. A video that falls apart into more has small ones of a few frames."""

ALL_BYTES = 1_400_000
FEWEST_BYTES = 40_000
"""What all pictures together may take, and what each may take in any case; the page takes 4/3 of that."""

QUALITIES = (85, 75, 60, 45)
SHRINK = 0.75

METHOD = 2
"""Method 4 takes twice as long for a picture that is 3 % smaller."""


ALL_MAPS, FEWEST_MAPS = 340_000, 5_000
"""Characters that the maps of all mosaics may take in the page, and those of each in any case."""


@dataclass(frozen=True, slots=True)
class Share:
    """What the pictures of one mosaic may take."""

    preview_bytes: int
    map_characters: int


def share_page(frames: Sequence[int]) -> list[Share]:
    """Return the shares of the mosaics that are shown, by the number of frames of each."""
    shown = frames[:MOST_PICTURES]
    return [
        Share(max(FEWEST_BYTES, ALL_BYTES * own // sum(shown)), max(FEWEST_MAPS, ALL_MAPS * own // sum(shown)))
        for own in shown
    ]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The pictures of one mosaic, as they stand in the page."""

    canvas: Canvas  # of the whole mosaic
    preview: str  # address
    maps: tuple[Map, ...]

    @classmethod
    def of(cls, overview: MosaicOverview, uncertainty: Uncertainty, share: Share) -> View:
        """Encode the overview of a mosaic."""
        rasters = overview.maps(uncertainty.spread)
        maps = make_maps(rasters, relative_to=uncertainty.relative_to, most_bytes=share.map_characters)
        return cls(overview.canvas, encode_preview(overview.picture, share.preview_bytes), tuple(maps))


def encode_preview(image: NDArray[np.uint8], most_bytes: int) -> str:
    """Return an image (h, w, 4) as the address of a WebP, at the best quality and size that fits."""
    picture = Image.fromarray(image)
    while True:
        for quality in QUALITIES:
            packed = io.BytesIO()
            picture.save(packed, "WEBP", quality=quality, method=METHOD)
            if packed.tell() <= most_bytes or max(picture.size) == 1:
                return "data:image/webp;base64," + base64.b64encode(packed.getvalue()).decode()
        width, height = (max(1, int(SHRINK * side)) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BOX)


MOST_THUMBNAILS = 200
THUMBNAIL_SIDE, THUMBNAIL_BYTES = 128, 2_500
"""Of frames that lie on no mosaic: how many are shown, and the pixels and bytes of each."""


def make_thumbnails(source: FrameSource, numbers: Sequence[int]) -> dict[int, str]:
    """Return small pictures of frames as addresses; frames that cannot be decoded have none."""
    found: dict[int, str] = {}
    for number in numbers:
        try:
            image = source.read(number)
        except InputError:
            continue
        scale = THUMBNAIL_SIDE / max(image.shape[:2])
        size = (max(1, round(scale * image.shape[1])), max(1, round(scale * image.shape[0])))
        small = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
        found[number] = encode_preview(_stretch(small), THUMBNAIL_BYTES)
    return found


def _stretch(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Brighten a dark picture: what is in it can be seen then."""
    brightest = float(image.max())
    return np.asarray(np.rint(image * (255.0 / brightest)), dtype=np.uint8) if 0.0 < brightest < 255.0 else image
