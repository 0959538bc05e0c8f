"""What is distinctive in a frame: SIFT keypoints, found once."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

PIXELS_PER_KEYPOINT = 300
FEWEST_WANTED = 1000
MOST_WANTED = 4000
"""Keypoints wanted of a frame: by its area, so that a narrow strip that two frames share still holds some."""

LEAST_CONTRAST = 0.01
"""Lower than customary: the strongest are kept anyway, and a dull frame shall have its share."""

DESCRIPTOR_LEVELS = 255


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints:
    """Points of a frame, strongest first, with what they look like."""

    points: NDArray[np.float32]  # (n, 2), pixels
    descriptors: NDArray[np.uint8]  # (n, 128): root-SIFT, length 1 being DESCRIPTOR_LEVELS
    strengths: NDArray[np.float32]  # (n,)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def unit_descriptors(self) -> NDArray[np.float32]:
        """(n, 128): of length 1, to rounding."""
        return self.descriptors.astype(np.float32) / np.float32(DESCRIPTOR_LEVELS)


NO_KEYPOINTS = Keypoints(np.empty((0, 2), np.float32), np.empty((0, 128), np.uint8), np.empty(0, np.float32))


def find_keypoints(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None = None) -> Keypoints:
    """Find the strongest keypoints of an image (h, w) inside the mask."""
    wanted = int(np.clip(gray.size / PIXELS_PER_KEYPOINT, FEWEST_WANTED, MOST_WANTED))
    # Without the precise upscaling OpenCV places every keypoint a quarter of a pixel too far right and down.
    detector = cv2.SIFT.create(wanted, 3, LEAST_CONTRAST, enable_precise_upscale=True)
    shown = None if mask is None else mask.astype(np.uint8)
    found, descriptors = detector.detectAndCompute(gray, shown)
    if not found:
        return NO_KEYPOINTS
    # OpenCV returns every orientation of the last ones: more than asked, and their order depends on its threads.
    points = np.array([keypoint.pt for keypoint in found], dtype=np.float32)
    strengths = np.array([keypoint.response for keypoint in found], dtype=np.float32)
    angles = np.array([keypoint.angle for keypoint in found], dtype=np.float32)
    order = np.lexsort((angles, points[:, 1], points[:, 0], -strengths))[:wanted]
    histograms = np.asarray(descriptors, dtype=np.float32)[order]
    share = histograms / np.maximum(histograms.sum(axis=1, keepdims=True), 1.0)
    rooted = np.rint(np.sqrt(share) * DESCRIPTOR_LEVELS).astype(np.uint8)
    return Keypoints(points[order], rooted, strengths[order])
