"""Find the field of view of a sequence: from what stays constant in a sample of frames, or from a mask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError, UsageError
from smalti.frames.image_reading import decode_eight_bits, decode_sixteen_bits, read_header
from smalti.frames.pixels import edge_of, grow, keep_large_parts, label_parts, reach, shrink

__all__ = ["find_field", "read_mask"]

# Shares of the frame or of the field.
_SMALLEST_SURROUND = 0.004
_SMALLEST_FIELD = 0.05
_SMALLEST_PART = 0.1  # text or stray light in the surround is smaller
_LARGEST_OVERLAY = 0.25
_FIXED_RIM = 0.5
_MARGIN = 0.005  # share of the longer side

# A mask must leave a square of so many pixels, and of this part of the longer side: a sample of pixels must meet it.
_SMALLEST_SCENE = 16
_SCENE_PER_SIDE = 200

# Edges of the rim and of overlays. In real, moving scenes no edge comes near the latter.
_RIM_STABILITY, _RIM_STEEPNESS = 0.6, 2.5
_OVERLAY_STABILITY, _OVERLAY_STEEPNESS = 0.8, 8.0
_FAINT_STABILITY, _FAINT_STEEPNESS, _FAINT_RATIO = 0.85, 1.5, 5.0  # the last: to the median of the mean gradients
_SHORTEST_OVERLAY_EDGE = 24
_MOVING_STABILITY, _MOVING_DEVIATION = 0.5, 4.0  # at most and at least: a resting scene varies only by noise
_FEWEST_FRAMES = 16  # with fewer frames, edges may agree by chance
_STILL_DEVIATION = 0.3  # share of the scene's deviation

# A surround is darker than this, in gray levels: noise and stray light keep it above 0.
_DARK_BELOW = 28.0


def find_field(images: Iterable[NDArray[np.uint8]]) -> NDArray[np.bool_]:
    """Return where the scene is visible, (h, w), from some 20 to 40 gray frames spread over the sequence.

    A dark surround, round or straight, is left out. So are overlays that stand still while the scene moves: text, a
    logo, a cross-hair. In doubt, the whole frame is scene.
    """
    statistics = Stability.of(images)
    within = find_within_surround(statistics)
    return within & ~find_overlays(statistics, within)


def find_margin(shape: tuple[int, ...]) -> int:
    """Return how many pixels are left out along rims and overlays, which fade."""
    return max(2, round(_MARGIN * float(max(shape))))


def find_within_surround(statistics: Stability) -> NDArray[np.bool_]:
    """Return the inside of a surround that stays dark, reaches the frame's edge, and has a fixed rim."""
    whole = np.ones(statistics.dark_share.shape, dtype=bool)
    margin = find_margin(statistics.dark_share.shape)
    surround = reach(statistics.dark_share > 0.9, edge_of(whole.shape))
    if surround.mean() < _SMALLEST_SURROUND:
        return whole
    field = keep_large_parts(grow(shrink(~surround, 2), 2), _SMALLEST_PART)
    if field.mean() < _SMALLEST_FIELD:
        return whole  # the scene itself is dark
    rim = field & grow(~field, 1)
    fixed = grow((statistics.stability > _RIM_STABILITY) & (statistics.steepness > _RIM_STEEPNESS), margin)
    if not rim.any() or fixed[rim].mean() < _FIXED_RIM:
        return whole
    inner = shrink(field, margin + 2)  # darkness is measured over 5 by 5 pixels, so light extends by 2
    return inner if inner.mean() >= _SMALLEST_FIELD else whole


def find_overlays(statistics: Stability, field: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return fixed edges inside the field, and the constant areas that steep ones enclose.

    Scratches and dirt on a lens are fainter than text. They are found where the scene's own edges average out so well
    that nothing else would leave an edge.
    """
    nothing = np.zeros(field.shape, dtype=bool)
    margin = find_margin(statistics.dark_share.shape)
    within = shrink(field, margin)
    textured = within & (statistics.steepness > 0)
    if statistics.frames < _FEWEST_FRAMES or not textured.any():
        return nothing
    deviation = np.median(statistics.deviation[within])
    if deviation < _MOVING_DEVIATION or np.median(statistics.stability[textured]) > _MOVING_STABILITY:
        return nothing  # the camera rests: everything stands still
    edges = within & (statistics.stability > _OVERLAY_STABILITY) & (statistics.steepness > _OVERLAY_STEEPNESS)
    edges = _large_groups(edges, margin)
    faintest = max(_FAINT_RATIO * float(np.median(statistics.steepness[within])), _FAINT_STEEPNESS)
    faint = within & (statistics.stability > _FAINT_STABILITY) & (statistics.steepness > faintest)
    faint = _large_groups(faint, margin)
    still = statistics.deviation < _STILL_DEVIATION * deviation
    # A constant area may also be a white sky: take it only near the edges.
    near = grow(edges, 8 * margin)
    overlay = grow(reach(edges | (still & near & within), edges) | faint, margin)
    # Digits that change leave gaps; the middle of a speck has no edges.
    overlay = _fill_small_holes(shrink(grow(overlay, 2 * margin), 2 * margin), (8 * margin) ** 2) & field
    return overlay if overlay.sum() <= _LARGEST_OVERLAY * field.sum() else nothing


def _fill_small_holes(region: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Add the holes of at most so many pixels."""
    labels, sizes = label_parts(~region)
    filled: NDArray[np.bool_] = region | ((sizes > 0) & (sizes <= most))[labels]
    return filled


def _large_groups(edges: NDArray[np.bool_], gap: int) -> NDArray[np.bool_]:
    """Return the edge pixels that form large groups with others, across small gaps such as those of text."""
    labels, _ = label_parts(grow(edges, gap))
    sizes = np.bincount(labels[edges], minlength=1)
    return edges & np.isin(labels, np.flatnonzero(sizes >= _SHORTEST_OVERLAY_EDGE))


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """Statistics of each pixel over the frames that are not black, all (h, w) but the count.

    `dark_share` is how often the pixel is dark. `deviation` is the standard deviation of its gray level. `steepness` is
    the length of the mean gradient, in gray levels per pixel. `stability` is its ratio to the mean length of the
    gradients: 1 where an edge stands still, 0 where edges come and go.
    """

    frames: int
    dark_share: NDArray[np.float32]
    deviation: NDArray[np.float32]
    steepness: NDArray[np.float32]
    stability: NDArray[np.float32]

    @classmethod
    def of(cls, images: Iterable[NDArray[np.uint8]]) -> Self:
        """Compute the statistics of gray frames of one size, in one pass."""
        frames = 0
        shape: tuple[int, ...] = ()
        sums: list[NDArray[np.float32]] = []
        for image in images:
            shape = shape or image.shape
            terms = _describe(image)
            if np.percentile(image[::4, ::4], 99) < _DARK_BELOW:
                continue  # a black frame does not tell where the scene is
            frames += 1
            sums = [total + term for total, term in zip(sums, terms, strict=True)] if sums else terms
        if not shape:
            raise UsageError("the field of view cannot be found without frames: give some")
        if not frames:
            zeros = np.zeros(shape, dtype=np.float32)
            return cls(0, zeros, zeros, zeros, zeros)
        dark, level, squared_level, across, down, length = (total / np.float32(frames) for total in sums)
        steepness = np.hypot(across, down)
        return cls(
            frames=frames,
            dark_share=dark,
            deviation=np.sqrt(np.maximum(squared_level - level * level, 0)),
            steepness=steepness,
            stability=steepness / np.maximum(length, np.float32(1e-3)),
        )


def _describe(image: NDArray[np.uint8]) -> list[NDArray[np.float32]]:
    gray = image.astype(np.float32)
    across = np.asarray(cv2.Sobel(gray, cv2.CV_32F, 1, 0, scale=1 / 8), dtype=np.float32)
    down = np.asarray(cv2.Sobel(gray, cv2.CV_32F, 0, 1, scale=1 / 8), dtype=np.float32)
    dark = (cv2.blur(gray, (5, 5)) < _DARK_BELOW).astype(np.float32)
    return [dark, gray, gray * gray, across, down, np.hypot(across, down)]


def read_mask(path: Path, width: int, height: int, *, scale: float = 1.0) -> NDArray[np.bool_]:
    """Read an image whose nonzero pixels are scene; return it at the working size, (height, width).

    It may have the working size or, if `scale` (working pixels per source pixel) is not 1, the source's.
    """
    mask = read_region(path, width, height, scale=scale)
    if not mask.any():
        raise InputError(f"{path}: is completely black, so no scene is left; paint the scene white")
    side = min(max(_SMALLEST_SCENE, -(-max(width, height) // _SCENE_PER_SIDE)), width, height)
    square = np.ones((side, side), np.uint8)
    if not cv2.erode(mask.astype(np.uint8), square, borderType=cv2.BORDER_CONSTANT, borderValue=0).any():
        raise InputError(f"{path}: no square of {side} px is white, so too little scene is left; paint the scene white")
    return mask


def read_region(path: Path, width: int, height: int, *, scale: float = 1.0) -> NDArray[np.bool_]:
    """Return the same, however little scene is left."""
    header = read_header(path)
    size = (header.width, header.height)
    fits = size == (width, height)
    if not fits and (round(header.width * scale), round(header.height * scale)) != (width, height):
        source = "" if scale == 1.0 else f" (or {round(width / scale)}x{round(height / scale)} as in the source)"
        raise InputError(
            f"{path}: is {header.width}x{header.height} px, but the frames are {width}x{height}{source}; "
            f"give a mask of that size"
        )
    pixels = decode_sixteen_bits(header) if header.bits == 16 else decode_eight_bits(header)
    mask = np.asarray(pixels.reshape(header.height, header.width, -1).max(axis=2) > 0)
    if not fits:
        # Keep only pixels that cover nothing but the scene.
        shares = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
        mask = np.asarray(shares > 1.0 - 1e-4, dtype=bool)
    return mask
