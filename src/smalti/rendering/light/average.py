"""What the frames show in the mean: over many places, the scene evens out and the shading stays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homography import invert_homographies, project
from smalti.geometry.outline import Outline
from smalti.rendering.light.comparison import BRIGHTEST, DARKEST, grid_of
from smalti.rendering.light.survey import Survey

MOST_FRAMES = 256
FEWEST_VIEWS = 8
"""Places that do not overlap; over fewer nothing evens out."""

ALIKE = 4.0
"""Neighbouring points of a scene tell the same: so many of them count as one."""


@dataclass(frozen=True, slots=True, eq=False)
class AverageView:
    """The middle of all frames at points of the field of view."""

    points: NDArray[np.float64]  # (k, 2): frame pixels
    logs: NDArray[np.float64]  # (k, 3): logarithms of the colours, each frame's own level taken out
    sigma: float  # how sure they are, logarithmic; infinite where the frames see too little of the scene


def average_view(survey: Survey, mosaic_from_frame: NDArray[np.float64], seen: NDArray[np.bool_]) -> AverageView:
    """Take the median of the frames, point by point."""
    cells = grid_of(seen, survey)
    places = np.unique(np.linspace(0, len(mosaic_from_frame) - 1, MOST_FRAMES).round().astype(int))
    views = _count_views(mosaic_from_frame, Outline.of_pixels(survey.width, survey.height))
    points = project(invert_homographies(survey.cell_from_frame), cells)
    if views < FEWEST_VIEWS or len(cells) == 0:
        return AverageView(points, np.zeros((len(points), 3)), np.inf)
    colours = np.empty((len(places), len(cells), 3))
    for n, place in enumerate(places):
        colours[n] = survey.frames([int(place)])[0][cells[:, 1].astype(int), cells[:, 0].astype(int), :3]
    logs = np.where((colours >= DARKEST) & (colours <= BRIGHTEST), np.log(np.maximum(colours, 1.0)), np.nan)
    known = np.isfinite(logs).mean(axis=(1, 2)) > 0.5
    if known.sum() < FEWEST_VIEWS:
        return AverageView(points, np.zeros((len(points), 3)), np.inf)
    logs = logs[known] - np.nanmedian(logs[known], axis=1, keepdims=True)
    logs = np.where(np.isfinite(logs), logs, 0.0)
    middle = np.median(logs, axis=0)
    scatter = 1.4826 * float(np.median(np.abs(logs - middle)))
    # The median of n is surer than one by √(π / 2n).
    return AverageView(points, middle, scatter * float(np.sqrt(np.pi / 2 * ALIKE / views)))


def _count_views(mosaic_from_frame: NDArray[np.float64], outline: Outline) -> int:
    """Return about how many frames would lie side by side where all lie."""
    centres = project(mosaic_from_frame, outline.centre[None])[:, 0]
    corners = project(mosaic_from_frame, outline.corners)
    side = float(np.median(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)))
    return len(np.unique(np.floor(centres / side), axis=0))
