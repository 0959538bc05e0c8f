"""Where in the frame the scene is seen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from smalti.frames.mask import read_mask
from smalti.frames.region import edge_of, grow, keep_large_parts, label_parts, reach, shrink
from smalti.frames.steadiness import Steadiness

__all__ = ["find_field", "read_mask"]

# Shares of the frame, or of the field.
_SMALLEST_SURROUND = 0.004
_SMALLEST_FIELD = 0.05
_SMALLEST_PART = 0.1  # text or stray light in the surround is smaller
_LARGEST_OVERLAY = 0.25
_FIXED_RIM = 0.5
_MARGIN = 0.005  # of the longer side

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
    return find_fixed_field(Steadiness.of(images))


def find_fixed_field(seen: Steadiness) -> NDArray[np.bool_]:
    """Return the same from what the frames have in common."""
    within = _find_within_surround(seen)
    return within & ~find_overlays(seen, within)


def find_margin(shape: tuple[int, ...]) -> int:
    """Return how many pixels are left out along rims and overlays, which fade."""
    return max(2, round(_MARGIN * float(max(shape))))


def _find_within_surround(seen: Steadiness) -> NDArray[np.bool_]:
    """Return what lies inside a surround that stays dark, reaches the frame's edge, and has a fixed rim."""
    whole = np.ones(seen.dark_share.shape, dtype=bool)
    margin = find_margin(seen.dark_share.shape)
    surround = reach(seen.dark_share > 0.9, edge_of(whole.shape))
    if surround.mean() < _SMALLEST_SURROUND:
        return whole
    field = keep_large_parts(grow(shrink(~surround, 2), 2), _SMALLEST_PART)
    if field.mean() < _SMALLEST_FIELD:
        return whole  # it is the scene that is dark
    rim = field & grow(~field, 1)
    fixed = grow((seen.steadiness > _RIM_STEADINESS) & (seen.steepness > _RIM_STEEPNESS), margin)
    if not rim.any() or fixed[rim].mean() < _FIXED_RIM:
        return whole
    inner = shrink(field, margin + 2)  # darkness is judged over 5 by 5 pixels, so light reaches out by 2
    return inner if inner.mean() >= _SMALLEST_FIELD else whole


def find_overlays(seen: Steadiness, field: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return fixed, steep edges inside the field, and what they enclose that stands still too."""
    nothing = np.zeros(field.shape, dtype=bool)
    margin = find_margin(seen.dark_share.shape)
    within = shrink(field, margin)
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
    near = grow(edges, 8 * margin)
    overlay = grow(reach(edges | (still & near & within), edges), margin) & field
    return overlay if overlay.sum() <= _LARGEST_OVERLAY * field.sum() else nothing


def _large_groups(edges: NDArray[np.bool_], gap: int) -> NDArray[np.bool_]:
    """Return the edge pixels that lie together with enough others, across small gaps such as those of text."""
    labels, _ = label_parts(grow(edges, gap))
    sizes = np.bincount(labels[edges], minlength=1)
    return edges & np.isin(labels, np.flatnonzero(sizes >= _SHORTEST_OVERLAY_EDGE))
