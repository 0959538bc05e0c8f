"""Follow a camera from frame to frame, cheaply: where does a frame lie in one that was seen shortly before?

`Anchor` is the frame seen before, `follow` lays a later one over it. The later frame is warped by a guess of its map,
so that Lucas-Kanade has to find only what the guess missed, at points spread over the anchor. A map is fitted robustly
to what it found. Where most points disagree with it, the track is lost, and there is no map.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homographies import apply_map, exponential, invert_homographies, normalise
from smalti.records import Homographies, Points

LONGER_SIDE = 640
"""Frames are followed at this size, px: a tenth of a pixel of it is a fraction of a pixel of any video."""

ACROSS, DOWN = 16, 12
"""Cells of a frame; the best corner of each is followed."""

WINDOW = 15
LEVELS = 3
ITERATIONS = cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 20, 0.01
FAINTEST_CORNER = 1e-5
"""Smallest eigenvalue of the gradients of a window, of an image between 0 and 1: less is noise."""

MARGIN = WINDOW // 2 + 2
"""Pixels. Points so near an edge of either frame, or of what it shows of the scene, are not followed."""

FEWEST_POINTS = 20
LEAST_AGREEING = 0.5
"""Share of the points that have to agree with the map."""

LEAST_ALIKE = 0.5
"""Correlation. Noise and shading can make points agree where nothing is to be seen, but not make frames alike."""

SMALLEST_SCALE_PX, LARGEST_SCALE_PX = 0.3, 2.0
"""Of the deviations of points from the map. Larger ones are no deviations of a nearly flat scene."""

LEAST_STIFFNESS = 1e-9
TUKEY = 4.685
REFITS = 6
MOST_STEPS, SMALLEST_STEP = 30, 1e-12
LARGE_MOVE_PX = 4.0
"""If the guess missed by more, the frame is warped again: points of a frame that is not turned are found better."""

SMALL = 8
"""Light is compared in images reduced by this factor."""
FAINTEST_CONTRAST = 1.0
"""Gray levels."""

SURROUNDINGS = 21
"""Pixels a side. A pixel is compared with the mean of so many: shading, which does not move with the scene, goes."""

USUAL_CONTRAST, MOST_AMPLIFIED = 32.0, 3000.0
FAINTEST_LIGHT = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Where a frame lies in the anchor."""

    anchor_from_frame: Homographies  # (3, 3), px of the source
    sigma_px: float  # of where what the anchor shows lies, px of the source
    gain: float  # of the light: contrast of the frame by that of the anchor


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A frame at working size, without shading."""

    working_from_source: Homographies  # (3, 3)
    image: NDArray[np.uint8]  # (h, w): by how much it differs from its surroundings
    half: NDArray[np.uint8]  # the same at half the size, 0 outside of the scene
    small: NDArray[np.float32]  # as it was, reduced
    inside: NDArray[np.bool_] | None  # (h, w): what shows the scene; None for everything

    @classmethod
    def of(cls, gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None) -> View:
        """Prepare a gray frame (h, w); `mask` is where it shows the scene."""
        image, inside = _reduce(gray), None if mask is None or mask.all() else _reduce_mask(mask)
        flat = _flatten(image, inside)
        half = flat if inside is None else np.where(inside, flat, np.uint8(0))
        size = (max(1, image.shape[1] // 2), max(1, image.shape[0] // 2))
        return cls(
            _working_from_source(gray.shape, image.shape),
            flat,
            np.asarray(cv2.resize(half, size, interpolation=cv2.INTER_AREA), dtype=np.uint8),
            _shrink(image),
            inside,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """A frame, ready for others to be laid over it."""

    view: View
    points: NDArray[np.float32]  # (n, 2), working px

    @classmethod
    def of(cls, view: View) -> Anchor:
        """Choose the points to follow."""
        return cls(view, _find_points(view.image, view.inside))

    def follow(self, view: View, guess: Homographies) -> Track | None:
        """Return where a later frame lies; `guess` is `anchor_from_frame`. None if the track is lost."""
        if len(self.points) < FEWEST_POINTS:
            return None
        there = self.view.working_from_source
        back = invert_homographies(there)
        warp = normalise(there @ guess @ back)
        for _ in range(2):
            found = self._lay(view.image, warp)
            if found is None:
                return None
            correction, sigma = found
            corners = _corners(view.image)
            moved = float(np.abs(apply_map(correction, corners) - corners).max())
            warp = normalise(correction @ warp)
            if moved < LARGE_MOVE_PX:
                break
        if self._likeness(view, warp) < LEAST_ALIKE:
            return None
        return Track(normalise(back @ warp @ there), sigma / float(there[0, 0]), self._gain(view, warp))

    def guess_shift(self, view: View) -> Homographies:
        """Return about where a frame lies that has moved far: a shift, by phase correlation."""
        window = np.outer(*(np.hanning(side) for side in view.small.shape)).astype(np.float32)
        (x, y), _ = cv2.phaseCorrelate(self.view.small, view.small, window)
        shift = np.eye(3)
        shift[:2, 2] = np.array([-x, -y]) * SMALL / np.diag(view.working_from_source)[:2]
        return shift

    def _lay(self, image: NDArray[np.uint8], warp: Homographies) -> tuple[Homographies, float] | None:
        """Return what the guess missed, as a map to the anchor, and its deviation, px."""
        height, width = image.shape
        in_frame = apply_map(invert_homographies(warp), self.points.astype(np.float64))
        shown = ((in_frame > MARGIN) & (in_frame < np.array([width, height]) - 1 - MARGIN)).all(axis=1)
        if np.sum(shown) < FEWEST_POINTS:
            return None
        warped = cv2.warpPerspective(image, warp, (width, height), flags=cv2.INTER_LINEAR)
        points = np.ascontiguousarray(self.points[shown])
        found, status, _ = cv2.calcOpticalFlowPyrLK(
            self.view.image,
            warped,
            points,
            np.empty_like(points),
            winSize=(WINDOW, WINDOW),
            maxLevel=LEVELS,
            criteria=ITERATIONS,
            minEigThreshold=FAINTEST_CORNER,
        )
        followed = status.ravel() == 1
        return _fit(found[followed].astype(np.float64), points[followed].astype(np.float64), self.points, image.shape)

    def _likeness(self, view: View, warp: Homographies) -> float:
        """Return the correlation of two frames where both show the scene."""
        height, width = view.half.shape
        half_from_working = _working_from_source(view.image.shape, view.half.shape)
        moved = half_from_working @ warp @ invert_homographies(half_from_working)
        laid = np.asarray(cv2.warpPerspective(view.half, moved, (width, height), flags=cv2.INTER_LINEAR))
        shown = (laid > 0) & (self.view.half > 0)
        one, other = (image[shown].astype(np.float32) for image in (self.view.half, laid))
        if len(one) < FEWEST_POINTS:
            return 0.0
        one, other = one - one.mean(), other - other.mean()
        return float(np.sum(one * other) / np.sqrt(max(float(np.sum(one * one) * np.sum(other * other)), 1e-9)))

    def _gain(self, view: View, warp: Homographies) -> float:
        """Return the contrast of a frame by that of the anchor, of what both show."""
        rows, columns = np.indices(view.small.shape)
        places = np.column_stack([columns.ravel(), rows.ravel()]).astype(np.float64)
        small_from_working = np.array(
            [[1.0 / SMALL, 0.0, 0.5 / SMALL - 0.5], [0.0, 1.0 / SMALL, 0.5 / SMALL - 0.5], [0, 0, 1]]
        )
        at = apply_map(small_from_working @ warp @ invert_homographies(small_from_working), places).round()
        shown = ((at >= 0) & (at < np.array(view.small.shape[::-1]))).all(axis=1)
        if not shown.any():
            return 1.0
        columns, rows = at[shown].astype(int).T
        contrast = float(view.small.ravel()[shown].std()), float(self.view.small[rows, columns].std())
        return (contrast[0] + FAINTEST_CONTRAST) / (contrast[1] + FAINTEST_CONTRAST)


def _reduce(gray: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a gray frame (h, w) at the size at which it is followed."""
    longer = max(gray.shape)
    if longer <= LONGER_SIDE:
        return gray
    size = [max(1, round(side * LONGER_SIDE / longer)) for side in gray.shape]
    return np.asarray(cv2.resize(gray, (size[1], size[0]), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _reduce_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    whole: NDArray[np.bool_] = _reduce(np.where(mask, np.uint8(255), np.uint8(0))) == 255
    return whole


def _working_from_source(source: tuple[int, ...], working: tuple[int, ...]) -> Homographies:
    across, down = working[1] / source[1], working[0] / source[0]
    return np.array(
        [[across, 0.0, 0.5 * across - 0.5], [0.0, down, 0.5 * down - 0.5], [0.0, 0.0, 1.0]], dtype=np.float64
    )


def _flatten(image: NDArray[np.uint8], inside: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
    """Return by how much each pixel of an image (h, w) is brighter than its surroundings, as a share, about 128."""
    level = image.astype(np.float32)
    side = (SURROUNDINGS, SURROUNDINGS)
    if inside is None:
        mean = cv2.blur(level, side)
    else:
        weight = inside.astype(np.float32)
        mean = cv2.blur(level * weight, side) / np.maximum(cv2.blur(weight, side), 1e-3)
    share = np.asarray((level - mean) / (mean + FAINTEST_LIGHT), dtype=np.float32)
    some = share[::4, ::4] if inside is None else share[inside][::16]
    spread = float(some.std()) if some.size else 1.0
    gain = min(USUAL_CONTRAST / max(spread, 1e-6), MOST_AMPLIFIED)
    return np.asarray(np.clip(128.0 + gain * share, 1.0, 255.0), dtype=np.uint8)


def _shrink(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    size = (max(1, image.shape[1] // SMALL), max(1, image.shape[0] // SMALL))
    cut = image[: size[1] * SMALL, : size[0] * SMALL]
    return np.asarray(cv2.resize(cut, size, interpolation=cv2.INTER_AREA), dtype=np.float32)


def _corners(image: NDArray[np.uint8]) -> Points:
    height, width = image.shape
    return np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]]) - 0.5


def _find_points(image: NDArray[np.uint8], inside: NDArray[np.bool_] | None) -> NDArray[np.float32]:
    """Return the best corner of every cell (n, 2), without those too faint or too near an edge."""
    height, width = image.shape
    strength = cv2.cornerMinEigenVal(cv2.GaussianBlur(image, (0, 0), 1.0), WINDOW // 2)
    allowed = np.zeros(image.shape, dtype=np.uint8)
    allowed[MARGIN : height - MARGIN, MARGIN : width - MARGIN] = 1
    if inside is not None:
        around = np.ones((2 * MARGIN + 1, 2 * MARGIN + 1), dtype=np.uint8)
        allowed &= np.asarray(cv2.erode(inside.astype(np.uint8), around), dtype=np.uint8)
    strength = np.where(allowed == 1, strength, -1.0)
    points = []
    for top, bottom in _cuts(height, DOWN):
        for left, right in _cuts(width, ACROSS):
            cell = strength[top:bottom, left:right]
            if cell.size:
                y, x = divmod(int(np.argmax(cell)), right - left)
                if cell[y, x] > FAINTEST_CORNER:
                    points.append((left + x, top + y))
    return np.array(points, dtype=np.float32).reshape(-1, 2)


def _cuts(side: int, cells: int) -> list[tuple[int, int]]:
    edges = np.linspace(0, side, cells + 1).round().astype(int).tolist()
    return list(pairwise(edges))


def _fit(
    found: Points, points: Points, seen: NDArray[np.float32], shape: tuple[int, ...]
) -> tuple[Homographies, float] | None:
    """Return the map from found points (n, 2) to those of the anchor, and its deviation, px; None if few agree."""
    if len(found) < FEWEST_POINTS:
        return None
    centre = np.array([shape[1], shape[0]]) / 2.0 - 0.5
    unit = max(shape) / 2.0
    to_units = np.array([[1.0 / unit, 0.0, -centre[0] / unit], [0.0, 1.0 / unit, -centre[1] / unit], [0.0, 0.0, 1.0]])
    here, there = (found - centre) / unit, (points - centre) / unit
    correction = np.eye(3)
    correction[:2, 2] = np.median(there - here, axis=0)
    weights = np.ones(len(here))
    for _ in range(REFITS):
        at = apply_map(correction, here)
        off = there - at
        far = np.linalg.norm(off, axis=1) * unit
        scale = float(np.clip(1.4826 * np.median(far) / 1.1774, SMALLEST_SCALE_PX, LARGEST_SCALE_PX))
        weights = np.maximum(1.0 - (far / (TUKEY * scale)) ** 2, 0.0) ** 2
        if np.sum(weights > 0) < FEWEST_POINTS:
            return None
        slopes = _slopes(at)
        normal, right = _normal_equations(slopes, off, weights)
        step = np.asarray(np.linalg.solve(normal, right), dtype=np.float64)
        correction = normalise(exponential(step[None])[0] @ correction)
    agreeing = weights > 0.1
    if np.sum(agreeing) < max(FEWEST_POINTS, LEAST_AGREEING * len(found)):
        return None
    off = there - apply_map(correction, here)
    spread = float(np.sum(weights * np.sum(off**2, axis=1)) / (2.0 * np.sum(weights)))
    at = _slopes((seen.astype(np.float64) - centre) / unit).reshape(-1, 8)
    variance = spread * np.einsum("nk,kl,nl->", at, np.linalg.inv(normal), at) / len(seen)
    sigma = float(np.sqrt(variance)) * unit
    return normalise(invert_homographies(to_units) @ correction @ to_units), sigma


def fit_map(points_a: Points, points_b: Points, freedom: int = 8) -> Homographies:
    """Return the map `b_from_a` (3, 3) of points (n, 2) by least squares in b, px, of the family of this freedom."""
    centre, unit = points_b.mean(axis=0), float(np.abs(points_b - points_b.mean(axis=0)).max())
    pixels_from_units = np.array([[unit, 0.0, centre[0]], [0.0, unit, centre[1]], [0.0, 0.0, 1.0]])
    units_from_pixels = invert_homographies(pixels_from_units)
    fitted = np.eye(3)
    for _ in range(MOST_STEPS):
        at = (apply_map(fitted, points_a) - centre) / unit
        off = (points_b - centre) / unit - at
        normal, right = _normal_equations(_slopes(at)[:, :, :freedom], off, np.ones(len(at)))
        step = np.asarray(np.linalg.solve(normal, right), dtype=np.float64)
        fitted = normalise(pixels_from_units @ exponential(step[None])[0] @ units_from_pixels @ fitted)
        if np.abs(step).max() < SMALLEST_STEP:
            break
    return fitted


def _slopes(at: Points) -> NDArray[np.float64]:
    """Return the derivatives (n, 2, 8) of points by the directions of `homographies.BASIS`, in units."""
    x, y = at.T
    one, nothing = np.ones_like(x), np.zeros_like(x)
    return np.stack(
        [
            np.column_stack([one, nothing, -y, x, x, y, -x * x, -x * y]),
            np.column_stack([nothing, one, x, y, -y, x, -x * y, -y * y]),
        ],
        axis=1,
    )


def _normal_equations(
    slopes: NDArray[np.float64], off: Points, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    flat = slopes.reshape(-1, slopes.shape[2])
    weighted = flat * np.repeat(weights, 2)[:, None]
    # Not by BLAS, whose sums depend on the number of threads.
    normal = np.einsum("nk,nl->kl", weighted, flat) + LEAST_STIFFNESS * np.eye(flat.shape[1])
    return normal, np.einsum("nk,n->k", weighted, off.ravel())
