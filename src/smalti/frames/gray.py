"""Frames without their colours."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray


def in_gray(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a frame (h, w, 3), RGB, in gray (h, w)."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
