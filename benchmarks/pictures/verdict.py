"""The similarity of two pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from pictures.measures import best_gain, decibels

PATCH = 32
SEARCH = 12
"""Pixels either way by which relief may have moved a patch."""

Shown = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]]
"""A picture (h, w, 3), its reference (h, w, 3), and where the reference is valid (h, w)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The higher the better. For the detail, 1 is best."""

    psnr_db: float
    likeness: float  # median correlation of patches, each at its best shift
    detail: float  # ratio of the mean gradient to that of the reference


def compare(pictures: Sequence[Shown], *, one_gain: bool) -> Verdict:
    """Compare all pictures at once, after the best gain: one, or one for each channel of each."""
    errors, likeness, gradients = [], [], np.zeros(2)
    for image, true, where in pictures:
        shown, meant = image[where].astype(np.float64), true[where].astype(np.float64)
        gains = (
            [best_gain(shown, meant)] * 3
            if one_gain
            else [best_gain(a, b) for a, b in zip(shown.T, meant.T, strict=True)]
        )
        errors.append((shown * gains - meant).astype(np.float32))
        likeness.extend(_correlate(image, true, where))
        gradients += [float(np.mean(gains)) * _gradient(image, where), _gradient(true, where)]
    return Verdict(decibels(np.concatenate(errors)), float(np.median(likeness)), float(gradients[0] / gradients[1]))


def _correlate(image: NDArray[np.uint8], true: NDArray[np.uint8], where: NDArray[np.bool_]) -> list[float]:
    """Return the correlation of each patch of the reference with the picture, at its best shift."""
    shown, meant = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.cvtColor(true, cv2.COLOR_RGB2GRAY)
    height, width = where.shape
    found = []
    for top in range(SEARCH, height - PATCH - SEARCH, PATCH):
        for left in range(SEARCH, width - PATCH - SEARCH, PATCH):
            around = np.s_[top - SEARCH : top + PATCH + SEARCH, left - SEARCH : left + PATCH + SEARCH]
            if where[around].all():
                patch = meant[top : top + PATCH, left : left + PATCH]
                found.append(float(cv2.matchTemplate(shown[around], patch, cv2.TM_CCOEFF_NORMED).max()))
    return found


def _gradient(image: NDArray[np.uint8], where: NDArray[np.bool_]) -> float:
    """Return the sum of differences between neighbours in a row."""
    both = where[:, 1:] & where[:, :-1]
    return float(np.abs(np.diff(image.astype(np.int16), axis=1))[both].sum())
