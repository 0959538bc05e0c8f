"""The quality of a picture against a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEGMENT = 16
"""Side of the blocks that cut seams into pieces, in pixels. A step must continue over such a piece."""

FEWEST = 8
"""Pairs of pixels of a piece, at least."""

AWAY = 40
"""Pixels by which seams are moved to where there are none."""


def best_gain(image: NDArray[np.floating], truth: NDArray[np.floating]) -> float:
    """Return the factor that brings an image nearest to the truth."""
    return float((image * truth).sum() / max((image * image).sum(), 1e-9))


def errors_of(image: NDArray[np.uint8], truth: NDArray[np.uint8], where: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return (h, w, 3): the image (h, w, 3|4) minus the truth, after the best gain over `where`; NaN elsewhere."""
    errors = np.full((*where.shape, 3), np.nan, np.float32)
    pixels, true = image[..., :3][where].astype(np.float32), truth[where].astype(np.float32)
    errors[where] = best_gain(pixels.astype(np.float64), true.astype(np.float64)) * pixels - true
    return errors


def decibels(errors: NDArray[np.floating]) -> float:
    """Return the PSNR of errors in grey levels. NaN is left out."""
    return float(10 * np.log10(255**2 / np.nanmean(np.square(errors, dtype=np.float64))))


@dataclass(frozen=True, slots=True)
class Steps:
    """The jump of the picture where its source frame changes, grey levels."""

    median: float
    high: float  # 95 % of the pieces have less
    floor: float  # median along the same lines moved to where there is no seam: the effect of noise


def measure_steps(errors: NDArray[np.float32], labels: NDArray[np.integer]) -> Steps:
    """Measure the jump of the errors (h, w, 3) across lines between unlike labels (h, w).

    The signed difference of the errors of the two pixels beside a line is averaged over each piece of the line in a
    block of 16 × 16 pixels and over the channels, so that noise does not count as a step.
    """
    grey = errors.mean(axis=2)
    found = _steps(grey, labels)
    elsewhere = _steps(grey[AWAY:, AWAY:], labels[:-AWAY, :-AWAY])
    return Steps(float(np.median(found)), float(np.quantile(found, 0.95)), float(np.median(elsewhere)))


def _steps(grey: NDArray[np.float32], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the size of the step (n,) of every piece."""
    pieces, jumps = [], []
    for first, second in (((slice(None), slice(None, -1)), (slice(None), slice(1, None))), (np.s_[:-1], np.s_[1:])):
        low, high = labels[first].astype(np.int64), labels[second].astype(np.int64)
        jump = grey[second] - grey[first]
        rows, columns = np.nonzero((low != high) & np.isfinite(jump))
        low, high, jump = low[rows, columns], high[rows, columns], jump[rows, columns]
        jumps.append(np.where(low < high, jump, -jump))
        pieces.append(
            np.stack([np.minimum(low, high), np.maximum(low, high), rows // SEGMENT, columns // SEGMENT], axis=1)
        )
    _, piece = np.unique(np.concatenate(pieces), axis=0, return_inverse=True)
    counts = np.bincount(piece)
    means = np.bincount(piece, weights=np.concatenate(jumps)) / counts
    return np.abs(means[counts >= FEWEST])
