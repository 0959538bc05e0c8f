"""Basic operations on pictures: gray values, and growing, shrinking and labelling regions."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Region = NDArray[np.bool_]  # (h, w)


def in_gray(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a frame (h, w, 3), RGB, in gray (h, w)."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def grow(region: Region, radius: int) -> Region:
    """Add all pixels within the radius."""
    return np.asarray(cv2.dilate(region.astype(np.uint8), _disc(radius)), dtype=bool)


def shrink(region: Region, radius: int) -> Region:
    """Remove the pixels within the radius of other pixels; the picture's edge does not count."""
    return ~grow(~region, radius)


def edge_of(shape: tuple[int, ...]) -> Region:
    """Return the outermost pixels of a picture."""
    edge = np.zeros(shape, dtype=bool)
    edge[[0, -1], :] = edge[:, [0, -1]] = True
    return edge


def reach(region: Region, seeds: Region) -> Region:
    """Return the connected parts of the region that contain a seed."""
    labels, sizes = label_parts(region)
    reached = np.zeros(len(sizes), dtype=bool)
    reached[labels[seeds & region]] = True
    reached[0] = False
    parts: Region = reached[labels]
    return parts


def keep_large_parts(region: Region, least: float) -> Region:
    """Return the largest connected part, and others of at least this share of its size."""
    labels, sizes = label_parts(region)
    large = sizes >= max(1.0, least * sizes.max())
    parts: Region = large[labels]
    return parts


def label_parts(region: Region) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the part of each pixel, and the parts' sizes; part 0 is the background and counts as empty."""
    count, labels = cv2.connectedComponents(region.astype(np.uint8))
    sizes = np.bincount(np.ravel(labels), minlength=count)
    sizes[0] = 0
    return np.asarray(labels, dtype=np.int32), sizes


def _disc(radius: int) -> NDArray[np.uint8]:
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return np.asarray(disc, dtype=np.uint8)
