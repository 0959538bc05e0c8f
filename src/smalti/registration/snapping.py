"""Find a point clicked in one frame in another frame, to a tenth of a pixel, by correlating its surroundings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2
from scipy.ndimage import map_coordinates, spline_filter

from smalti.records import Points, Transforms

HALF_SIDES = (15, 20, 25, 30)
"""Of the patch around the point. The smallest one with enough detail is used."""

SMOOTHING = 0.8
"""Standard deviation of both frames' blur, in pixels: finer detail changes with the sampling grid."""

LEAST_SHARE = 0.6  # share of the patch that both frames have to show
LEAST_SLOPE = 1.0  # grey levels per pixel, RMS, in the direction in which the patch varies least
LEAST_RATIO = 0.15  # of that slope to the steepest: a smaller one means a line
LEAST_CORRELATION = 0.82
LARGEST_RIVALRY = 0.6  # ratio of 1 - correlation of the best candidate to that of the next
LARGEST_STRETCH = 4.0  # of one frame in the other
CANDIDATES, BELOW_BEST = 3, 0.3  # refined candidates, and by how much less they may correlate before that
APART, LARGEST_WALK = 3.0, 5.0  # nearer candidates are one; longest way from the grid to the exact position
ROUNDS, SETTLED = 15, 0.01
ROUNDS_BEFORE_HOPELESS, HOPELESS = 4, 0.5  # a correlation that is still so low will not converge
DISTORTION_SIGMA = 0.05  # of the given map
NOISE_AREA = 6.0  # pixels that share their noise after the blur: n of them count as n/6
LEAST_SIGMA, LARGEST_SIGMA = 0.02, 0.27


@dataclass(frozen=True, slots=True, eq=False)
class Snap:
    """The position of the point, in pixels of the moving frame; or the start of the search and why it failed."""

    found: bool
    point: NDArray[np.float64]  # (2,)
    correlation: float
    sigma_px: float  # of each coordinate
    reason: str


def snap(
    fixed: NDArray[np.uint8],
    moving: NDArray[np.uint8],
    fixed_point: NDArray[np.float64],
    moving_point: NDArray[np.float64],
    moving_from_fixed: Transforms,
    radius_px: float,
    fixed_mask: NDArray[np.bool_] | None = None,
    moving_mask: NDArray[np.bool_] | None = None,
) -> Snap:
    """Find the surroundings of `fixed_point` within `radius_px` of `moving_point`, to a fraction of a pixel.

    Frames are (h, w). Only the linear part of `moving_from_fixed` is used; it may be wrong by 5° and 5 %.
    """
    start = np.array(moving_point, dtype=np.float64)

    def refuse(reason: str, correlation: float = 0.0) -> Snap:
        return Snap(False, start, correlation, math.inf, reason)

    linear = np.array(moving_from_fixed, dtype=np.float64)[:, :2]
    longest, shortest = np.linalg.svd(linear, compute_uv=False)
    if np.linalg.det(linear) <= 0 or longest > LARGEST_STRETCH or shortest * LARGEST_STRETCH < 1.0:
        return refuse("the map between the frames is one that no camera makes; correct the landmarks first")
    # Sample both in the moving frame's pose, at the resolution of the coarser one, so that they look alike.
    pixel = max(1.0, math.sqrt(float(np.linalg.det(linear))))
    radius = radius_px / pixel
    fixed_from_grid = np.asarray(pixel * np.linalg.inv(linear), dtype=np.float64)
    patch = _choose_patch(_View(fixed, fixed_mask, np.array(fixed_point), fixed_from_grid, HALF_SIDES[-1]))
    if isinstance(patch, str):
        return refuse(patch)
    reach = patch.half + math.ceil(radius)
    view = _View(moving, moving_mask, start, pixel * np.eye(2), reach)
    surface = _correlate(patch, _Patch(reach, *view.sample(_grid(reach))))
    fits = [_refine(patch, view, position) for position in _peaks(surface, radius)]
    if not fits:
        return refuse("the place lies too near the rim of the other frame")
    best = max(fits, key=lambda fit: fit.correlation)
    if best.correlation < LEAST_CORRELATION:
        return refuse(f"nothing within {radius_px:.0f} px looks like the point", max(best.correlation, 0.0))
    rivals = [fit.correlation for fit in fits if np.linalg.norm(fit.shift - best.shift) > APART]
    if rivals and 1.0 - best.correlation > LARGEST_RIVALRY * (1.0 - max(rivals)):
        return refuse("two places look almost alike; choose another point", best.correlation)
    if pixel * float(np.linalg.norm(best.shift)) > radius_px:
        return refuse(f"the best place lies more than {radius_px:.0f} px away; click nearer to it", best.correlation)
    if best.sigma > LARGEST_SIGMA:
        return refuse("the place cannot be told to a fraction of a pixel", best.correlation)
    return Snap(True, start + pixel * best.shift, best.correlation, pixel * best.sigma, "")


@dataclass(frozen=True, slots=True, eq=False)
class _Patch:
    """A square of samples about the centre of a grid."""

    half: int
    values: NDArray[np.float64]  # (2 half + 1, 2 half + 1)
    visible: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The exact position near one on the grid; by default a failed one."""

    shift: NDArray[np.float64]  # (2,), in steps of the grid
    correlation: float = -1.0
    sigma: float = math.inf


class _View:
    """A frame around a point, interpolated; `frame_from_grid` (2, 2) maps a grid about the point to the frame."""

    def __init__(
        self,
        image: NDArray[np.uint8],
        mask: NDArray[np.bool_] | None,
        point: NDArray[np.float64],
        frame_from_grid: NDArray[np.float64],
        half: int,
    ) -> None:
        """Prepare a square from -half to half of the grid."""
        self._point, self._frame_from_grid, self._size = point, frame_from_grid, np.array(image.shape[::-1])
        step = math.sqrt(float(np.linalg.det(frame_from_grid)))
        blur = SMOOTHING * step
        margin = np.abs(frame_from_grid).sum(axis=1) * (half + 2 * LARGEST_WALK) + 4.0 * blur
        first = np.clip(np.floor(point - margin), 0, self._size - 1).astype(int)
        last = np.clip(np.ceil(point + margin), first, self._size - 1).astype(int)
        self._first, part = first, (slice(first[1], last[1] + 1), slice(first[0], last[0] + 1))
        pixels = image[part].astype(np.float32)
        soft = cv2.GaussianBlur(pixels, (0, 0), blur)
        self._spline = spline_filter(soft, order=3, output=np.float32, mode="mirror")
        self._visible = None
        if mask is not None:
            side = 2 * math.ceil(2.0 * blur) + 1  # as far as the blur carries pixels from outside the mask
            self._visible = cv2.erode(mask[part].astype(np.uint8), np.ones((side, side), np.uint8))
        # The mixed second difference is 0 in shading and along edges; the median ignores most of the detail.
        rough = cv2.filter2D(pixels, -1, np.outer((1.0, -2.0, 1.0), (1.0, -2.0, 1.0)))
        noise = float(np.median(np.abs(rough))) / 0.6745 / 6.0
        self.slope_of_noise_squared = noise**2 / (8.0 * math.pi * SMOOTHING**4 * step**2)

    def sample(self, grid: Points) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the values at points (..., 2) of the grid, and whether the scene is visible there."""
        at = self._point + grid @ self._frame_from_grid.T
        visible = np.asarray(((at >= 0) & (at <= self._size - 1)).all(axis=-1))
        row_column = np.moveaxis(at - self._first, -1, 0)[::-1]
        if self._visible is not None:
            visible &= map_coordinates(self._visible, row_column, order=0, mode="nearest") > 0
        values = map_coordinates(self._spline, row_column, order=3, mode="nearest", prefilter=False)
        return np.asarray(values, dtype=np.float64), visible


def _grid(half: int) -> Points:
    side = np.arange(-half, half + 1, dtype=np.float64)
    return np.stack(np.meshgrid(side, side), axis=-1)


def _choose_patch(view: _View) -> _Patch | str:
    """Return the smallest patch that varies in all directions, or why there is none."""
    reason = "the point lies too near the rim of its frame"
    for half in HALF_SIDES:
        patch = _Patch(half, *view.sample(_grid(half)))
        if patch.visible.mean() < LEAST_SHARE or not patch.visible[half, half]:
            break
        slope_x, slope_y = (np.gradient(patch.values, axis=axis) for axis in (1, 0))
        spread = np.atleast_2d(np.cov(slope_x[patch.visible], slope_y[patch.visible]))
        least, most = np.linalg.eigvalsh(spread) - view.slope_of_noise_squared
        if least >= LEAST_SLOPE**2 and least >= LEAST_RATIO**2 * most:
            return patch
        is_line = most >= (2.0 * LEAST_SLOPE) ** 2
        reason = "what surrounds the point is alike along a line" if is_line else "too little detail around the point"
    return reason


def _correlate(patch: _Patch, window: _Patch) -> NDArray[np.float64]:
    """Return the correlation of a patch at every position in a window; -inf where they do not share enough.

    Every position has its own means and variances, of the pixels visible in both.
    """
    places, side = 2 * (window.half - patch.half) + 1, next_fast_len(2 * window.half + 1, real=True)

    def transform(part: _Patch) -> list[NDArray[np.complex128]]:
        values = part.values - part.values.mean()
        return [rfft2(np.where(part.visible, values**power, 0.0), (side, side)) for power in (0, 1, 2)]

    powers, patch_powers = transform(window), transform(patch)

    def across(of_window: int, of_patch: int) -> NDArray[np.float64]:
        product = powers[of_window] * np.conj(patch_powers[of_patch])
        return np.asarray(irfft2(product, (side, side))[:places, :places])

    count = np.maximum(across(0, 0), 1.0)
    spread_of_window = across(2, 0) - across(1, 0) ** 2 / count
    spread_of_patch = across(0, 2) - across(0, 1) ** 2 / count
    varies = np.minimum(spread_of_window, spread_of_patch) > 1e-3 * count
    spread = np.sqrt(np.where(varies, spread_of_window * spread_of_patch, 1.0))
    correlation = np.where(varies, (across(1, 1) - across(1, 0) * across(0, 1) / count) / spread, 0.0)
    return np.where(count >= LEAST_SHARE * patch.visible.size - 0.5, correlation, -np.inf)


def _peaks(surface: NDArray[np.float64], radius: float) -> list[NDArray[np.float64]]:
    """Return the best local maxima (2,) of a surface, relative to its centre."""
    half = len(surface) // 2
    surface = np.where(np.linalg.norm(_grid(half), axis=-1) <= radius + 0.75, surface, -np.inf)
    is_peak = np.isfinite(surface) & (surface >= surface.max() - BELOW_BEST)
    rows, columns = np.nonzero(is_peak & (surface == cv2.dilate(surface, np.ones((3, 3), np.uint8))))
    best = np.argsort(-surface[rows, columns], kind="stable")[:CANDIDATES]
    return [np.array([columns[k] - half, rows[k] - half], dtype=np.float64) for k in best]


def _refine(patch: _Patch, view: _View, position: NDArray[np.float64]) -> _Fit:
    """Refine a position on the grid until the view equals the patch up to brightness, shading and contrast.

    Gauss-Newton iterates on shift and distortion. The distortion has a prior, as tight as the map is known. It keeps
    the map's error out of the shift.
    """
    grid = _grid(patch.half)
    slope_x, slope_y = (np.gradient(patch.values, axis=axis) for axis in (1, 0))
    u, v = grid[..., 0] / patch.half, grid[..., 1] / patch.half
    slopes = slope_x, slope_y, slope_x * u, slope_x * v, slope_y * u, slope_y * v
    design = np.stack([np.ones_like(u), u, v, *slopes, patch.values], axis=-1)
    moves, prior = np.concatenate([position, np.zeros(4)]), np.zeros(6)  # shift, then distortion at the patch's sides
    for count in range(ROUNDS):
        values, shared = view.sample(grid + moves[:2] + grid @ moves[2:].reshape(2, 2).T / patch.half)
        shared &= patch.visible
        if shared.mean() < LEAST_SHARE / 2:
            break
        rows = np.column_stack([design[shared], values[shared] - values[shared].mean()])
        normal = rows.T @ rows
        rest = normal[3:, 3:] - normal[3:, :3] @ np.linalg.solve(normal[:3, :3], normal[:3, 3:])
        of_slopes, of_patch, crossed, of_view = rest[:6], rest[6, 6], rest[6, 7], rest[7, 7]
        correlation = float(crossed / math.sqrt(max(of_patch * of_view, 1e-12)))
        if correlation < (HOPELESS if count >= ROUNDS_BEFORE_HOPELESS else 0.05):
            return _Fit(moves[:2], correlation)
        contrast = crossed / of_patch
        variance = NOISE_AREA * max(float(of_view / contrast**2 - of_patch), 1e-6) / len(rows)
        prior[2:] = variance / (DISTORTION_SIGMA * patch.half) ** 2
        information = of_slopes[:, :6] - np.outer(of_slopes[:, 6], of_slopes[:, 6]) / of_patch + np.diag(prior)
        information += 1e-9 * np.trace(information) * np.eye(6)  # where the shared part is a line
        step = np.linalg.solve(information, of_slopes[:, 6] - of_slopes[:, 7] / contrast - prior * moves)
        if np.abs(step).max() < SETTLED:
            variance_of_shift = variance * np.trace(np.linalg.inv(information)[:2, :2]) / 2
            return _Fit(moves[:2], correlation, math.sqrt(variance_of_shift + LEAST_SIGMA**2))
        moves = moves + step
        if np.linalg.norm(moves[:2] - position) > LARGEST_WALK or np.abs(moves[2:]).max() > LARGEST_WALK:
            break
    return _Fit(position)
