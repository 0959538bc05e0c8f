"""Find spots: points that stand out from a flat noisy ground, such as fluorescent beads, stars or grains.

A frame of spots has little texture, is dark or all of one grey, and is full of detail all the same. Keypoint detectors
leave out most of its spots: those near the border, those that are nearly as large as their distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.special import erfinv

SCALES = (0.9, 1.4, 2.2, 3.5)
"""Standard deviations, in pixels, of the spots that are looked for."""

WIDER = 1.6
"""A spot is compared with its surroundings, so many times as wide."""

STANDS_OUT = 6.0
"""Standard deviations of the noise: of a million pixels of noise alone, less than one in a hundred frames has one."""

LEAST_STRENGTH = 2.0
"""Gray levels: fainter spots cannot be seen."""

GROUND = 0.4
"""Share of the pixels, those nearest to the usual level, by which noise is measured: they are ground."""

LEAST_NOISE = 0.25
"""Gray levels: rounding alone is as noisy."""

NOISE_FALLS = 1.5
"""Noise falls as the scale grows, at least by the ratio of the scales divided by this; what falls less is a scene."""

ROUGH_AT = 2
"""The scale at which the ground's roughness is measured, by its number."""

FINEST_PX = 0.05
"""Standard deviation of the place of a spot without noise: pixels are no points."""

LARGEST_SHARE = 0.35
"""Of the pixels that stand out: with more there is texture everywhere, and no ground."""


@dataclass(frozen=True, slots=True, eq=False)
class Spots:
    """Spots of a frame, the strongest first."""

    points: NDArray[np.float64]  # (n, 2), px
    strengths: NDArray[np.float64]  # (n,): above their surroundings, in gray levels
    sigmas: NDArray[np.float64]  # (n,), px: of each coordinate, by the noise and the spot's size
    roughness: float  # of the ground: 1 if it is noise alone, about 4 if it has texture

    def __len__(self) -> int:
        return len(self.points)


MOST_MEASURED = 60_000
"""Pixels that tell the noise, about, and at most twice as many."""

NO_SPOTS = Spots(np.empty((0, 2)), np.empty(0), np.empty(0), 1.0)


def find_spots(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None) -> Spots:
    """Find all spots of a frame (h, w) inside the mask; none if the frame has no flat ground.

    All are bright, or all are dark, whichever stand out more.
    """
    within = np.ones(gray.shape, dtype=bool) if mask is None else mask
    if not within.any() or min(gray.shape) < 8:
        return NO_SPOTS
    image = gray.astype(np.float32)
    if mask is not None:
        image = np.where(mask, image, np.float32(np.median(gray[mask])))
    # Mirrored, a spot at the border would be two.
    border = cv2.BORDER_REPLICATE
    levels = [
        cv2.GaussianBlur(image, (0, 0), scale * factor, borderType=border)
        for scale in SCALES
        for factor in (1.0, WIDER)
    ]
    responses = np.array([one - wide for one, wide in zip(levels[::2], levels[1::2], strict=True)], dtype=np.float32)
    every = max(1, int(within.sum()) // MOST_MEASURED)
    noise, roughness = _measure_noise(responses[:, within][:, ::every])
    above: NDArray[np.float32] = responses / noise[:, None, None]
    if -above[:, within].min() > above[:, within].max():
        responses, above = -responses, -above
    stands_out = np.asarray(np.max(above, axis=0) > STANDS_OUT)
    if np.mean(stands_out[within]) > LARGEST_SHARE:
        return NO_SPOTS
    return _find_peaks(responses, above, within, roughness)


def _measure_noise(responses: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return the standard deviation of the noise at every scale, from pixels (scales, n), and the roughness."""
    away = np.abs(responses - np.median(responses, axis=1, keepdims=True))
    noise = np.quantile(away, GROUND, axis=1) / (np.sqrt(2.0) * erfinv(GROUND))
    finest = max(float(noise[0]), LEAST_NOISE)
    at_most = finest * NOISE_FALLS * SCALES[0] / np.array(SCALES)
    clipped = np.clip(noise, LEAST_NOISE * SCALES[0] / np.array(SCALES), at_most)
    return clipped.astype(np.float32), float(noise[ROUGH_AT]) * SCALES[ROUGH_AT] / (finest * SCALES[0])


def _find_peaks(
    responses: NDArray[np.float32], above: NDArray[np.float32], within: NDArray[np.bool_], roughness: float
) -> Spots:
    """Return the highest points of the responses (scales, h, w), over place and scale."""
    # A spot is brightest at its own scale if responses are made comparable by the noise: a wider one is less noisy.
    around = np.array([cv2.dilate(level, np.ones((3, 3), np.uint8)) for level in above])
    highest = around.copy()
    highest[:-1] = np.maximum(highest[:-1], around[1:])
    highest[1:] = np.maximum(highest[1:], around[:-1])
    is_peak = (above >= highest) & (above > STANDS_OUT) & (responses > LEAST_STRENGTH) & within
    is_peak[:, [0, -1], :] = False
    is_peak[:, :, [0, -1]] = False
    scale, y, x = np.nonzero(is_peak)
    if not len(scale):
        return NO_SPOTS
    centre, left, right = (responses[scale, y, x + step] for step in (0, -1, 1))
    top, bottom = responses[scale, y - 1, x], responses[scale, y + 1, x]
    off = [_vertex(before, centre, after) for before, after in ((left, right), (top, bottom))]
    strengths = responses[scale, y, x].astype(np.float64)
    order = np.lexsort((x, y, -strengths))
    points = np.column_stack([x + off[0], y + off[1]]).astype(np.float64)
    sigmas = np.hypot(FINEST_PX, np.array(SCALES)[scale] / above[scale, y, x])
    return Spots(points[order], strengths[order], sigmas[order], roughness)


def _vertex(
    before: NDArray[np.float32], centre: NDArray[np.float32], after: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return where between -0.5 and 0.5 the parabola through three neighbours is highest (n,)."""
    curved = np.maximum(2 * centre - before - after, 1e-6)
    return np.asarray(np.clip((after - before) / (2 * curved), -0.5, 0.5), dtype=np.float32)
