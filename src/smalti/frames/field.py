"""Where in the frame the scene is seen."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.frames.mask import read_mask
from smalti.frames.steadiness import Steadiness

__all__ = ["find_field", "read_mask"]

# Shares of the frame, or of the field.
_SMALLEST_SURROUND = 0.004
_SMALLEST_FIELD = 0.05
_SMALLEST_PART = 0.1  # text or stray light in the surround is smaller
_LARGEST_OVERLAY = 0.25
_FIXED_RIM = 0.5
_MARGIN = 0.005  # of the longer side: rims and overlays fade over some pixels

# Edges of the rim, and of overlays: over real, moving scenes no edge comes near the latter.
_RIM_STEADINESS, _RIM_STEEPNESS = 0.6, 2.5
_OVERLAY_STEADINESS, _OVERLAY_STEEPNESS = 0.8, 8.0
_SHORTEST_OVERLAY_EDGE = 24
_MOVING_STEADINESS, _MOVING_DEVIATION = 0.5, 4.0  # at most, and at least: a resting scene has but its noise
_FEWEST_FRAMES = 16  # with fewer, edges may agree by chance
_STILL_DEVIATION = 0.3  # of the scene's


def find_field(images: Iterable[NDArray[np.uint8]]) -> NDArray[np.bool_]:
    """Return where the scene is seen, (h, w), from some 20 to 40 gray frames spread over the sequence.

    Leaves out a dark surround, round or straight, and overlays that stand still while the scene moves:
    text, a logo, a cross-hair. In doubt, all of the frame is scene.
    """
    seen = Steadiness.of(images)
    field = _find_within_surround(seen)
    return field & ~_find_overlays(seen, field)


def _find_within_surround(seen: Steadiness) -> NDArray[np.bool_]:
    """Return what lies inside a surround that stays dark, reaches the frame's edge, and has a fixed rim."""
    whole = np.ones(seen.dark_share.shape, dtype=bool)
    margin = _margin(seen)
    edge = ~whole
    edge[[0, -1], :] = edge[:, [0, -1]] = True
    surround = _reach(seen.dark_share > 0.9, edge)
    if surround.mean() < _SMALLEST_SURROUND:
        return whole
    field = _large_parts(_dilate(_erode(~surround, 2), 2))
    if field.mean() < _SMALLEST_FIELD:
        return whole  # it is the scene that is dark
    rim = field & _dilate(~field, 1)
    fixed = _dilate((seen.steadiness > _RIM_STEADINESS) & (seen.steepness > _RIM_STEEPNESS), margin)
    if not rim.any() or fixed[rim].mean() < _FIXED_RIM:
        return whole
    inner = _erode(field, margin + 2)  # darkness is judged over 5 by 5 pixels, so light reaches out by 2
    return inner if inner.mean() >= _SMALLEST_FIELD else whole


def _find_overlays(seen: Steadiness, field: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return fixed, steep edges inside the field, and what they enclose that stands still too."""
    nothing = np.zeros(field.shape, dtype=bool)
    margin = _margin(seen)
    within = _erode(field, margin)
    textured = within & (seen.steepness > 0)
    if seen.frames < _FEWEST_FRAMES or not textured.any():
        return nothing
    deviation = np.median(seen.deviation[within])
    if deviation < _MOVING_DEVIATION or np.median(seen.steadiness[textured]) > _MOVING_STEADINESS:
        return nothing  # the camera rests: everything stands still
    edges = within & (seen.steadiness > _OVERLAY_STEADINESS) & (seen.steepness > _OVERLAY_STEEPNESS)
    edges = _large_groups(edges, margin)
    still = seen.deviation < _STILL_DEVIATION * deviation
    # What stands still may as well be a white sky: take it only near the edges.
    near = _dilate(edges, 8 * margin)
    overlay = _dilate(_reach(edges | (still & near & within), edges), margin) & field
    return overlay if overlay.sum() <= _LARGEST_OVERLAY * field.sum() else nothing


def _margin(seen: Steadiness) -> int:
    return max(2, round(_MARGIN * float(max(seen.dark_share.shape))))


def _reach(region: NDArray[np.bool_], seeds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the connected parts of the region that contain a seed."""
    _, labels = cv2.connectedComponents(region.astype(np.uint8))
    reached = np.unique(labels[seeds & region])
    return np.isin(labels, reached[reached > 0])


def _large_parts(region: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the largest connected part, and others that are not much smaller."""
    _, labels = cv2.connectedComponents(region.astype(np.uint8))
    sizes = np.bincount(np.ravel(labels))
    sizes[0] = 0
    return np.isin(labels, np.flatnonzero(sizes > _SMALLEST_PART * sizes.max()))


def _large_groups(edges: NDArray[np.bool_], gap: int) -> NDArray[np.bool_]:
    """Return the edge pixels that lie together with enough others, across small gaps such as those of text."""
    _, labels = cv2.connectedComponents(_dilate(edges, gap).astype(np.uint8))
    sizes = np.bincount(labels[edges], minlength=1)
    return edges & np.isin(labels, np.flatnonzero(sizes >= _SHORTEST_OVERLAY_EDGE))


def _dilate(region: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    return np.asarray(cv2.dilate(region.astype(np.uint8), _disc(radius)), dtype=bool)


def _erode(region: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    """Shrink the region, but not from the frame's edge."""
    return ~_dilate(~region, radius)


def _disc(radius: int) -> NDArray[np.uint8]:
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return np.asarray(disc, dtype=np.uint8)
