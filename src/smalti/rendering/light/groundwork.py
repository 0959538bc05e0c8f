"""What is decided once for a mosaic, before any of its pixels: the light of each frame, and which frames are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.lens import Lens
from smalti.rendering.light.average import average_view
from smalti.rendering.light.comparison import compare, seen_cells
from smalti.rendering.light.exposure import Exposure, estimate_exposure
from smalti.rendering.light.neighbours import find_neighbours
from smalti.rendering.light.survey import Survey
from smalti.rendering.sampling.cache import FrameReader


@dataclass(frozen=True, slots=True, eq=False)
class Groundwork:
    """How the frames compare with each other; they are counted by their places in the order of their numbers."""

    survey: Survey
    exposure: Exposure  # as estimated
    quality: NDArray[np.float64]  # (n,), between 0 and 1


def lay_groundwork(
    frames: FrameReader,
    numbers: list[int],
    mosaic_from_frame: NDArray[np.float64],
    lens: Lens,
    mask: NDArray[np.bool_],
    sigma_px: NDArray[np.float64],
    folder: Path,
    on_frame: Callable[[], None],
) -> Groundwork:
    """Look at every frame once, and compare those that see the same places."""
    height, width = mask.shape
    survey = Survey(folder, numbers, width, height)
    survey.look(frames, on_frame)
    pairs = find_neighbours(mosaic_from_frame, lens.outline)
    seen = seen_cells(mask, survey)
    comparison = compare(survey, mosaic_from_frame, lens, pairs, seen)
    exposure = estimate_exposure(len(numbers), comparison, average_view(survey, mosaic_from_frame, seen), mask)
    return Groundwork(survey, exposure, rate_frames(exposure.sharpness, sigma_px))


def rate_frames(sharpness: NDArray[np.float64], sigma_px: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), between 0 and 1: the sharper and the more certain, the better.

    `sharpness` is logarithmic; `sigma_px` is each frame's uncertainty, 0 where it is not known.
    """
    sharp = np.exp(0.7 * np.clip(sharpness - np.quantile(sharpness, 0.9), -1.5, 0.0))
    certain = (np.median(sigma_px) + 1.0) / (np.median(sigma_px) + 1.0 + sigma_px)
    rated = sharp * certain
    return np.asarray(rated / rated.max())
