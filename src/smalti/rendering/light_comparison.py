"""The light correction of a frame, and the comparison of the same scene points in two frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.geometry.homographies import invert_homographies, project_points
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.frame_survey import CLEAR, WORTH, Survey
from smalti.rendering.sampling_kernels import look_up

STEPS = 65
"""Points a side of the table over the field of view. The table is interpolated linearly."""


@dataclass(frozen=True, slots=True, eq=False)
class Light:
    """Factors for the colours of a frame: one for each channel, and one that depends on the position in the frame."""

    gains: NDArray[np.float32]  # (3,)
    flatness: NDArray[np.float32]  # (STEPS, STEPS): over the square around the centre, row by row
    centre: tuple[float, float]  # of the field of view, frame pixels
    radius: float  # half the side of the square, frame pixels

    def table_from_pixels(self, frame_from_pixels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (2, 2): scale and shift of x and of y, from these pixels to columns and rows of the table."""
        axes = []
        half = (STEPS - 1) / 2
        for axis in (0, 1):
            scale, shift = frame_from_pixels[axis, axis], frame_from_pixels[axis, 2]
            axes.append([half * scale / self.radius, half * ((shift - self.centre[axis]) / self.radius + 1)])
        return np.array(axes)


POINTS_ACROSS = 14
"""Grid points along the longer side of a frame at which it is compared with others."""

ENOUGH_POINTS = 40
"""Points of a pair. With fewer, a finer grid is used."""

MOST_POINTS = 400_000
"""Points of all pairs together. For 10,000 frames, the equations of the light then take about 100 MB."""

FEWEST_POINTS = 6
"""Points of a pair, at least, however many pairs there are."""

DARKEST, BRIGHTEST = 10, 245
"""Beyond these values a camera does not measure the amount of light."""

CACHED_FRAMES = 256


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Scene points that two frames share, one a row."""

    pair: NDArray[np.int64]  # (m, 2): the indices of the frames
    points: NDArray[np.float64]  # (m, 2, 2): the point in each frame, frame pixels
    logs: NDArray[np.float64]  # (m, 2, 4): logarithms of the colours and of the sharpness in each frame


def compare(
    survey: Survey,
    mosaic_from_frame: NDArray[np.float64],
    lens: Lens,
    pairs: NDArray[np.int64],
    valid: NDArray[np.bool_],
) -> Comparison:
    """Compare the frames of each pair (n, 2) on a grid of the first. Skip points that are too dark or too bright.

    `valid` (rows, columns) marks the valid cells of the survey.
    """
    read = lru_cache(CACHED_FRAMES)(lambda index: survey.frames([index])[0])
    # Read between cells in both frames. Reading there smooths, and a frame that is smoothed more looks darker.
    grids = [_grid(valid, step) + 0.5 for step in _steps(survey)]
    cell_from_frame = survey.cell_from_frame
    frame_from_cell = invert_homographies(cell_from_frame)
    cell_from_mosaic = cell_from_frame @ invert_homographies(mosaic_from_frame)
    mosaic_from_cell = mosaic_from_frame @ frame_from_cell
    lens = _in_cells(lens, cell_from_frame)
    straight_grids = [lens.undistort(grid) for grid in grids]
    found: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
    most = max(FEWEST_POINTS, MOST_POINTS // max(len(pairs), 1))
    for pair in pairs:
        i, j = pair
        for in_i, straight in zip(grids, straight_grids, strict=True):
            in_j = lens.distort(project_points(cell_from_mosaic[j] @ mosaic_from_cell[i], straight))
            values = np.empty((len(in_i), 2, 4))
            good = _read_both(read(int(i)), read(int(j)), valid, in_i, in_j, values)
            # Frames that share only a strip are compared on a finer grid.
            if np.count_nonzero(good) >= ENOUGH_POINTS or in_i is grids[-1]:
                break
        kept = np.flatnonzero(good)
        if len(kept) > most:
            kept = kept[np.linspace(0, len(kept) - 1, most).round().astype(int)]
        if len(kept):
            cells = np.stack([in_i[kept], in_j[kept]], axis=1)
            found.append((np.broadcast_to(pair, (len(kept), 2)), cells, values[kept]))
    if not found:
        return Comparison(np.empty((0, 2), np.int64), np.empty((0, 2, 2)), np.empty((0, 2, 4)))
    all_pairs, cells, values = (np.concatenate(part) for part in zip(*found, strict=True))
    # Sharpness plus 1, because the logarithm of 0 is infinite and a featureless cell has sharpness 0.
    values[:, :, 3] += 1.0
    return Comparison(all_pairs, project_points(frame_from_cell, cells), np.log(values))


def _in_cells(lens: Lens, cell_from_frame: NDArray[np.float64]) -> Lens:
    corners = project_points(cell_from_frame, lens.outline.corners)
    return Lens(Outline(*corners[0], *corners[2]), lens.k1, lens.k2)


def grid_of(valid: NDArray[np.bool_], survey: Survey) -> NDArray[np.float64]:
    """Return (n, 2): the points of the coarsest grid, x before y."""
    return _grid(valid, _steps(survey)[0])


def _steps(survey: Survey) -> list[int]:
    """Return the steps of the grids in cells, coarsest first."""
    steps = [max(1, round(max(survey.rows, survey.columns) / POINTS_ACROSS))]
    while steps[-1] > 1:
        steps.append(steps[-1] // 2)
    return steps


def _grid(valid: NDArray[np.bool_], step: int) -> NDArray[np.float64]:
    """Return (n, 2): every `step`-th valid cell in both directions."""
    rows, columns = np.nonzero(valid)
    on_grid = (rows % step == step // 2) & (columns % step == step // 2)
    return np.stack([columns[on_grid], rows[on_grid]], axis=1).astype(np.float64)


def valid_cells(mask: NDArray[np.bool_], survey: Survey) -> NDArray[np.bool_]:
    """Return (rows, columns): cells that show only the scene, and whose neighbours do too."""
    rows, columns, cell = survey.rows, survey.columns, survey.cell
    whole = np.zeros((rows * cell, columns * cell), dtype=np.bool_)
    whole[: mask.shape[0], : mask.shape[1]] = mask
    valid: NDArray[np.bool_] = whole.reshape(rows, cell, columns, cell).min(axis=(1, 3))
    padded = np.pad(valid, 1)
    for shift in (-1, 1):
        valid &= np.roll(padded, shift, 0)[1:-1, 1:-1] & np.roll(padded, shift, 1)[1:-1, 1:-1]
    return valid


@compiled
def _read_both(
    image_i: NDArray[np.uint8],
    image_j: NDArray[np.uint8],
    valid: NDArray[np.bool_],
    in_i: NDArray[np.float64],
    in_j: NDArray[np.float64],
    values: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Fill `values` (n, 2, 4) with two images at points (n, 2) of each, linearly.

    Return (n,): which points lie among valid cells of both, and are neither too dark nor too bright in any.
    """
    good = np.zeros(len(in_i), dtype=np.bool_)
    for n in range(len(in_i)):
        if not (
            _read_valid(image_i, valid, in_i[n], values[n, 0]) and _read_valid(image_j, valid, in_j[n], values[n, 1])
        ):
            continue
        good[n] = True
        for side in range(2):
            for channel in range(3):
                if not DARKEST <= values[n, side, channel] <= BRIGHTEST:
                    good[n] = False
    return good


@compiled
def _read_valid(
    image: NDArray[np.uint8], valid: NDArray[np.bool_], point: NDArray[np.float64], values: NDArray[np.float64]
) -> bool:
    """Fill `values` (4,) with the image at a point (2,), linearly, and tell whether it lies among valid cells."""
    x, y = point[0], point[1]
    if not (0 <= x < image.shape[1] - 1 and 0 <= y < image.shape[0] - 1):
        return False
    column, row = int(x), int(y)
    if not (valid[row, column] and valid[row + 1, column + 1]):
        return False
    if image.shape[2] > WORTH:
        for below in range(2):
            for beside in range(2):
                if image[row + below, column + beside, WORTH] != CLEAR:
                    return False
    look_up(image, x, y, values)
    return True
