"""Maps of a mosaic, pixel by pixel: source frame, coverage (number of frames), position uncertainty."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UnknownNameError
from smalti.geometry.homographies import invert_homographies
from smalti.interchange.atomic_files import replacing
from smalti.rendering.canvas import Canvas, Window, boxes_within, frame_boxes
from smalti.rendering.frame_survey import HIDDEN, cell_of
from smalti.rendering.layout import Layout
from smalti.rendering.sampling_kernels import Bending, bending_of, covers, distorted_position, position, worth_at
from smalti.rendering.seams.seam_candidates import NONE

MapKind = Literal["source", "uncertainty", "coverage"]
MAP_KINDS: tuple[MapKind, ...] = get_args(MapKind)

FRAME_MAPS_CONVENTION = (
    "Each value of the source map stands for a frame below; 0 is no frame. frame_from_canvas: multiply (x, y, 1) of a "
    "pixel of the map by the 3x3 matrix and divide by the third number to get the pixel of the frame. x points right, "
    "y points down, (0, 0) is the centre of the top-left pixel. If there is a lens, the result is the undistorted "
    "pixel: the lens leads to the pixel of the recorded frame."
)


@dataclass(frozen=True, slots=True, eq=False)
class MosaicMaps:
    """The three maps of a canvas."""

    source: NDArray[np.int32]  # (h, w): frame number, -1 where no frame is
    coverage: NDArray[np.uint16]  # (h, w): number of frames that cover the pixel
    uncertainty: NDArray[np.float32]  # (h, w): px, NaN where it is unknown


def check_map_kind(name: str) -> None:
    """Refuse a name that is not a map."""
    if name not in MAP_KINDS:
        raise UnknownNameError("map", name, MAP_KINDS)


def map_source(layout: Layout, canvas: Canvas, even_light: bool, window: Window) -> NDArray[np.int32]:
    """Return (h, w): the number of the frame drawn at each pixel, -1 where no frame is."""
    return number_frames(layout, layout.patchwork(canvas, even_light).indices(window))


def number_frames(layout: Layout, indices: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the numbers of frames with these indices, -1 where no frame is."""
    numbers = np.array(layout.numbers)
    return np.where(indices == NONE, -1, numbers[indices]).astype(np.int32)


def map_coverage(layout: Layout, canvas: Canvas, window: Window) -> NDArray[np.uint16]:
    """Return (h, w): the number of frames that cover each pixel."""
    return count_frames(layout, canvas.canvas_from_mosaic, window)


def count_frames(layout: Layout, place_from_mosaic: NDArray[np.float64], window: Window) -> NDArray[np.uint16]:
    """Return (h, w): the number of frames that cover each place of a grid, of which the window is a part."""
    counts = np.zeros((window.height, window.width), dtype=np.uint16)
    place_from_frame = place_from_mosaic @ layout.mosaic_from_frame
    frame_from_place, bending = invert_homographies(place_from_frame), bending_of(layout.lens)
    boxes = frame_boxes(place_from_frame, layout.lens.rim)
    for index, box in zip(*(found.tolist() for found in boxes_within(boxes, window)), strict=True):
        part = Window.between(*box)
        inside = counts[part.slices_in(window)]
        worth, cell = layout.worth(index), cell_of(layout.width, layout.height)
        _count(frame_from_place[index], bending, layout.feather.weights, worth, cell, part.left, part.top, inside)
    return counts


def map_uncertainty(
    layout: Layout, canvas: Canvas, even_light: bool, spread: Mapping[int, NDArray[np.float64]], window: Window
) -> NDArray[np.float32]:
    """Return (h, w): ± px of the scene point at each pixel, NaN where no frame is or the uncertainty is unknown."""
    indices = layout.patchwork(canvas, even_light).indices(window)
    return deviations(layout, canvas.canvas_from_mosaic, indices, spread, window)


def deviations(
    layout: Layout,
    place_from_mosaic: NDArray[np.float64],
    indices: NDArray[np.int32],
    spread: Mapping[int, NDArray[np.float64]],
    window: Window,
) -> NDArray[np.float32]:
    """Return (h, w): ± px at each place of a grid, of which the window is a part, by the frames' indices there.

    `spread` has a matrix (6, 6) for each frame number. Its quadratic form in (1, x, y, x², xy, y²) of an undistorted
    pixel is the variance of the position of that pixel.
    """
    frame_from_place = invert_homographies(place_from_mosaic @ layout.mosaic_from_frame)
    forms = np.array([spread.get(number, np.full((6, 6), np.nan)) for number in layout.numbers])
    sigma = np.full(indices.shape, np.nan, dtype=np.float32)
    _spread(indices, frame_from_place, forms, window.left, window.top, sigma)
    return sigma


def write_frame_maps(path: Path, layout: Layout, canvas: Canvas, window: Window) -> Path:
    """Write for each frame number the map from canvas pixels to frame pixels."""
    frame_from_canvas = invert_homographies(canvas.canvas_from_frame(layout.mosaic_from_frame))
    frame_from_canvas = frame_from_canvas @ window.canvas_from_window
    frame_from_canvas /= frame_from_canvas[:, 2:, 2:]
    content = {
        "convention": FRAME_MAPS_CONVENTION,
        "width": window.width,
        "height": window.height,
        "frame_width": layout.width,
        "frame_height": layout.height,
        "lens": layout.lens.record,
        "frames": [
            {"value": number + 1, "frame": number, "frame_from_canvas": matrix.tolist()}
            for number, matrix in zip(layout.numbers, frame_from_canvas, strict=True)
        ],
    }
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())
    return path


@compiled
def _count(
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    weights: NDArray[np.float32],
    worth: NDArray[np.uint8],
    cell: int,
    left: int,
    top: int,
    counts: NDArray[np.uint16],
) -> None:
    for row in range(counts.shape[0]):
        for column in range(counts.shape[1]):
            x, y = distorted_position(frame_from_canvas, bending, left + column, top + row)
            if not covers(weights, x, y) or counts[row, column] == 65535:
                continue
            if worth.size == 0 or worth_at(worth, cell, x, y) != HIDDEN:
                counts[row, column] += 1


@compiled
def _spread(
    indices: NDArray[np.int32],
    frame_from_canvas: NDArray[np.float64],
    forms: NDArray[np.float64],
    left: int,
    top: int,
    sigma: NDArray[np.float32],
) -> None:
    terms = np.empty(6)
    for row in range(sigma.shape[0]):
        for column in range(sigma.shape[1]):
            index = indices[row, column]
            if index == NONE:
                continue
            x, y = position(frame_from_canvas[index], left + column, top + row)
            terms[0], terms[1], terms[2], terms[3], terms[4], terms[5] = 1.0, x, y, x * x, x * y, y * y
            variance = 0.0
            for a in range(6):
                for b in range(6):
                    variance += terms[a] * forms[index, a, b] * terms[b]
            sigma[row, column] = np.sqrt(max(variance, 0.0)) if variance == variance else np.nan
