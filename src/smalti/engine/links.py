"""Links: the landmarks of a pair condensed to a map and a square root of its information.

With Ĝ fitted to the landmarks and M = Ĝ⁻¹ H_i⁻¹ H_j, normalised to a 1 in its corner, e are the eight entries of M - I.
To first order, a landmark x of j then has the residual J v(x; e) in frame i, where v is the velocity of a point
(`velocities`) and J is the derivative of Ĝ at x. A QR factorisation condenses the rows J v(·)/σ of all landmarks to
eight rows R. The pair costs |R e|², whatever the number of landmarks, and whichever directions they leave undetermined.
The same factorisation gives the derivatives of R e by the coefficients of the lens. One landmark gives a root of rank
2, two give 4, and four or more that are not on one line give 8. Where landmarks fit exactly, the quadratic form is
exact. Of a landmark on a curve, the part of its two rows along the curve is left out: it gives a root of rank 1. Noise
makes such landmarks determine some directions of the map to a frame's size only. The fit holds these directions by
their prior deviations; the root has them as the landmarks say.

Differs from the paper: its links are affine and need three landmarks; `smalti.paper` has those.

`fit_link` makes a link from landmarks; `relinearise` makes it again at another map. Helpers of the fit come last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.engine.link_prediction import velocities
from smalti.errors import LandmarkError
from smalti.geometry.homographies import ENTRIES, PROJECTIVE, Family, apply_map, exponential, normalise
from smalti.geometry.lens import Lens, undistort_directions
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Landmarks, Pair, Points, without_direction

MOST_LANDMARKS = 30
"""The most landmarks of a link that are used, spread over the frame. More would add little: the errors of neighbouring
landmarks are correlated."""

COEFFICIENTS = 2
"""The number of coefficients of a lens."""

MOST_STEPS = 20
SMALLEST_STEP = 1e-9
"""In units of a frame: a smaller step ends the fit."""

PRIOR_DEVIATIONS = (1.0, 1.0, 0.3, 0.3, 0.1, 0.1, 0.05, 0.05)
"""Prior deviations of a pair's map from its start, direction by direction. They matter only for directions that the
landmarks leave undetermined."""

REGULARISATION = 1e-3
"""The weight of this prior relative to the landmarks' rows: too small to move what they determine."""

SMALLEST_DEPTH = 0.05
"""The smallest depth of a landmark under the pair's map, relative to the frame's centre. Less is beyond the horizon."""


@dataclass(frozen=True, eq=False)
class Link:
    """A pair's landmarks, undistorted, in units of the frame (`Outline.unit_from_pixels`), and the map they give."""

    pair: Pair
    i_from_j: Homographies  # (3, 3): Ĝ
    root: NDArray[np.float64]  # (8, 8): R, in units of the landmarks' noise
    points_i: Points  # (n, 2): the landmarks that are used
    points_j: Points
    sigma: NDArray[np.float64]  # (n,), in units of the frame
    residual_px: float  # RMS residual of all landmarks to Ĝ
    landmarks: int  # how many landmarks were given
    lens_i: NDArray[np.float64]  # (n, 2, 2): derivatives of the points by the lens' coefficients
    lens_j: NDArray[np.float64]
    by_lens: NDArray[np.float64]  # (8, 2): derivatives of R e by the lens' coefficients
    lens_at: NDArray[np.float64]  # (2,): the change of the lens at which the link was fitted
    along: NDArray[np.float64] | None = None  # (n, 2): directions of curves in frame i, undistorted
    method: str = ""  # the registration method that found the landmarks; empty if unknown

    @cached_property
    def rank(self) -> int:
        """The number of directions that the landmarks determine."""
        values = np.linalg.svd(self.root, compute_uv=False)
        return int(np.sum(values > 1e-6 * values[0])) if values[0] > 0 else 0

    @cached_property
    def coordinates(self) -> NDArray[np.float64]:
        """(n,): how many coordinates each landmark determines: one on a curve, otherwise two."""
        on_curve = np.zeros(len(self.points_j)) if self.along is None else self.along.any(axis=1)
        return np.asarray(2.0 - on_curve)

    def without_along(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return two rows for each landmark (n, 2, k) without what they say along curves."""
        return rows if self.along is None else without_direction(rows, self.along)

    def across(self, off: Points) -> Points:
        """Return residuals (n, 2), of landmarks on curves those across them."""
        return self.without_along(off[:, :, None])[:, :, 0]

    def through(self, lens: NDArray[np.float64]) -> tuple[Points, Points]:
        """Return the points of i and j, undistorted by a lens whose coefficients are changed by `lens` (2,)."""
        return self.points_i + self.lens_i @ lens, self.points_j + self.lens_j @ lens


def fit_link(
    landmarks: Landmarks,
    outline: Outline,
    lens: Lens | None = None,
    family: Family = PROJECTIVE,
    near: Homographies | None = None,
) -> Link:
    """Fit the pair's map in a family; start at `near` (3, 3), in units, where undetermined directions stay."""
    if not len(landmarks):
        raise LandmarkError(
            f"pair {landmarks.pair}: a yes needs at least one landmark, mark a point that both frames show"
        )
    to_unit = outline.unit_from_pixels
    points_i, points_j = (
        (points if lens is None else lens.undistort(points)) @ to_unit[:, :2].T + to_unit[:, 2]
        for points in (landmarks.points_i, landmarks.points_j)
    )
    sigma = np.broadcast_to(landmarks.sigma, (len(landmarks),)) / outline.unit
    chosen = spread_out(points_j, MOST_LANDMARKS)
    lens_i, lens_j = (
        np.zeros((len(chosen), 2, COEFFICIENTS))
        if lens is None
        else lens.by_coefficients(points[chosen]) / outline.unit
        for points in (landmarks.points_i, landmarks.points_j)
    )
    along = landmarks.along if lens is None else undistort_directions(landmarks, lens)
    # A few landmarks stand for all; the residual below is that of all.
    link = Link(
        landmarks.pair,
        np.eye(3),
        np.zeros((ENTRIES, ENTRIES)),
        points_i[chosen],
        points_j[chosen],
        sigma[chosen],
        0.0,
        len(landmarks),
        lens_i,
        lens_j,
        np.zeros((ENTRIES, COEFFICIENTS)),
        np.zeros(COEFFICIENTS),
        along=None if along is None else along[chosen],
        method=landmarks.method,
    )
    fitted = _fit(link, family, _first_map(link, family) if near is None else near)
    if np.linalg.det(linear_part(fitted.i_from_j)) <= 0 or not np.isfinite(fitted.root).all():
        raise LandmarkError(
            f"pair {landmarks.pair}: the landmarks show frame {landmarks.pair.j} mirrored in frame "
            f"{landmarks.pair.i}, check whether two of them are swapped"
        )
    off = replace(landmarks, along=along).without_along(apply_map(fitted.i_from_j, points_j) - points_i)
    return replace(fitted, residual_px=float(np.sqrt(np.mean(np.sum(off**2, axis=1)))) * outline.unit)


def map_in_pixels(landmarks: Landmarks, outline: Outline, lens: Lens | None = None) -> Homographies:
    """Return the map (3, 3) from undistorted pixels of j to those of i that fits landmarks best."""
    to_unit = np.vstack([outline.unit_from_pixels, [0.0, 0.0, 1.0]])
    return normalise(np.linalg.inv(to_unit) @ fit_link(landmarks, outline, lens).i_from_j @ to_unit)


def relinearise(
    link: Link, i_from_j: Homographies, lens: NDArray[np.float64], tolerance: NDArray[np.float64] | float
) -> Link:
    """Return a link linearised at another map (3, 3); landmarks with residuals beyond `tolerance` (n,) lose weight.

    The lens' coefficients are changed by `lens` (2,).

    This is one Gauss-Newton step on the landmarks themselves. With residuals ρ and rows A, the link's map is the one
    after the step, and its root is that of the weighted rows.
    """
    points_i, points_j = link.through(lens)
    projected, rows = projected_and_rows(i_from_j, points_j)
    rows = link.without_along(rows)
    off = link.across(points_i - projected)
    weight = 1.0 / (1.0 + np.sum(off**2, axis=1) / tolerance**2)
    scale = np.sqrt(weight) / link.sigma
    a = (rows * scale[:, None, None]).reshape(-1, ENTRIES)
    b = (off * scale[:, None]).ravel()
    step = _solve(link, a @ PROJECTIVE.by_entry.T, b, PROJECTIVE, np.zeros(ENTRIES))
    root, by_lens = _condense(a, _lens_rows(link, i_from_j, points_j, scale))
    at = normalise(i_from_j @ exponential(step[None])[0])
    return replace(link, i_from_j=at, root=root, by_lens=by_lens, lens_at=lens)


def linear_part(i_from_j: Homographies) -> NDArray[np.float64]:
    """Return the derivatives (..., 2, 2) of maps at the centre of the frame."""
    scaled = normalise(i_from_j)
    linear: NDArray[np.float64] = scaled[..., :2, :2] - scaled[..., :2, 2:] * scaled[..., 2:, :2]
    return linear


def projected_and_rows(i_from_j: Homographies, points_j: Points) -> tuple[Points, NDArray[np.float64]]:
    """Return points (n, 2) under a map (3, 3), and their derivatives by the entries of its increment (n, 2, 8)."""
    projected, slopes = project_with_slopes(i_from_j, points_j)
    return projected, slopes @ velocities(points_j)


def project_with_slopes(i_from_j: Homographies, points_j: Points) -> tuple[Points, NDArray[np.float64]]:
    """Return points (..., n, 2) under maps (..., 3, 3), and the maps' derivatives there (..., n, 2, 2)."""
    mapped = points_j @ np.swapaxes(i_from_j[..., :, :2], -1, -2) + i_from_j[..., None, :, 2]
    depth = np.maximum(mapped[..., 2], SMALLEST_DEPTH * np.abs(i_from_j[..., None, 2, 2]))
    projected = mapped[..., :2] / depth[..., None]
    slopes = i_from_j[..., None, :2, :2] - projected[..., None] * i_from_j[..., None, 2:, :2]
    return projected, slopes / depth[..., None, None]


def spread_out(points: Points, count: int) -> NDArray[np.int64]:
    """Return the indices of at most `count` points far from each other: greedily the farthest from those chosen."""
    if len(points) <= count:
        return np.arange(len(points))
    distance = np.sum((points - points.mean(axis=0)) ** 2, axis=1)
    chosen = np.empty(count, dtype=np.int64)
    for n in range(count):
        chosen[n] = np.argmax(distance)
        to_chosen = np.sum((points - points[chosen[n]]) ** 2, axis=1)
        distance = to_chosen if n == 0 else np.minimum(distance, to_chosen)
    return np.sort(chosen)


def stacked(links: Iterable[Link]) -> tuple[Homographies, NDArray[np.float64]]:
    """Return the maps (n, 3, 3) and the roots (n, 8, 8) of links."""
    links = list(links)
    maps, roots = np.array([link.i_from_j for link in links]), np.array([link.root for link in links])
    return maps.reshape(-1, 3, 3), roots.reshape(-1, ENTRIES, ENTRIES)


def _first_map(link: Link, family: Family) -> Homographies:
    """Return the start of the fit: a shift, a rigid map, a similarity or an affine map, as the landmarks determine."""
    first = np.eye(3)
    middle_i, middle_j = link.points_i.mean(axis=0), link.points_j.mean(axis=0)
    offset_i, offset_j = link.points_i - middle_i, link.points_j - middle_j
    spread = np.linalg.svd(offset_j, compute_uv=False)
    if family.freedom >= 4 and len(link.points_j) >= 2 and spread[0] > 1e-9:
        along = float(np.sum(offset_i * offset_j))
        across = float(np.sum(offset_j[:, 0] * offset_i[:, 1] - offset_j[:, 1] * offset_i[:, 0]))
        square = float(np.sum(offset_j**2))
        a, b = along / square, across / square
        if a * a + b * b > 1e-6:
            first[:2, :2] = [[a, -b], [b, a]]
    if family.freedom == 3 and len(link.points_j) >= 2:
        angle = np.arctan2(
            np.sum(offset_j[:, 0] * offset_i[:, 1] - offset_j[:, 1] * offset_i[:, 0]), np.sum(offset_i * offset_j)
        )
        first[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    # Where points on a curve lie along it is only expected: no stretch can be read off them.
    if family.freedom >= 6 and link.along is None and len(link.points_j) >= 3 and spread[-1] > 0.05 * spread[0]:
        first[:2, :2] = np.linalg.lstsq(offset_j, offset_i, rcond=None)[0].T
    first[:2, 2] = middle_i - first[:2, :2] @ middle_j
    return first


def _fit(link: Link, family: Family, first: Homographies) -> Link:
    """Return the link with the map of the family that fits its landmarks best, by Gauss-Newton from `first`."""
    current = normalise(first)
    basis = family.by_entry
    cost, moved = np.inf, np.zeros(family.freedom)
    for _ in range(MOST_STEPS):
        projected, rows = projected_and_rows(current, link.points_j)
        a = (link.without_along(rows) / link.sigma[:, None, None]).reshape(-1, ENTRIES)
        b = (link.across(link.points_i - projected) / link.sigma[:, None]).ravel()
        now = float(b @ b)
        if link.along is not None:
            now += float(np.sum((moved / PRIOR_DEVIATIONS[: family.freedom]) ** 2))
        if now > cost:
            break
        best, cost = current, now
        step = _solve(link, a @ basis.T, b, family, moved)
        step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-12))
        moved = moved + step
        current = normalise(current @ exponential(step[None])[0])
        if np.abs(step).max() < SMALLEST_STEP:
            break
    _, rows = projected_and_rows(best, link.points_j)
    a = (link.without_along(rows) / link.sigma[:, None, None]).reshape(-1, ENTRIES)
    root, by_lens = _condense(a, _lens_rows(link, best, link.points_j, 1.0 / link.sigma))
    return replace(link, i_from_j=best, root=root, by_lens=by_lens)


def _solve(
    link: Link, rows: NDArray[np.float64], right: NDArray[np.float64], family: Family, moved: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve least squares for a step after the steps `moved`; landmarks on curves are held by the prior."""
    if link.along is None:
        return _solve_regularised(rows, right, family)
    deviations = np.array(PRIOR_DEVIATIONS[: family.freedom])
    held = np.concatenate([rows, np.diag(1.0 / deviations)]), np.concatenate([right, -moved / deviations])
    return np.asarray(np.linalg.lstsq(*held, rcond=None)[0])


def _solve_regularised(rows: NDArray[np.float64], right: NDArray[np.float64], family: Family) -> NDArray[np.float64]:
    """Solve least squares with a weak prior at 0, for directions that the rows leave undetermined."""
    stiffness = np.array(PRIOR_DEVIATIONS[: family.freedom])
    strength = REGULARISATION * float(np.sqrt(np.sum(rows**2) / rows.shape[1]))
    stacked_rows = np.concatenate([rows, strength * np.diag(stiffness.min() / stiffness)])
    solution, *_ = np.linalg.lstsq(stacked_rows, np.concatenate([right, np.zeros(len(stiffness))]), rcond=None)
    return np.asarray(solution)


def _lens_rows(link: Link, i_from_j: Homographies, points_j: Points, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivatives (2n, 2) of the landmarks' residuals by the lens' coefficients, times `scale` (n,)."""
    _, slopes = project_with_slopes(i_from_j, points_j)
    moved: NDArray[np.float64] = link.without_along(slopes @ link.lens_j - link.lens_i) * scale[:, None, None]
    return moved.reshape(-1, COEFFICIENTS)


def _condense(
    rows: NDArray[np.float64], lens_rows: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a square root (8, 8) of the information of rows (n, 8), and its columns for the lens (8, 2)."""
    if len(rows) < ENTRIES:
        missing = ENTRIES - len(rows)
        rows = np.concatenate([rows, np.zeros((missing, ENTRIES))])
        lens_rows = np.concatenate([lens_rows, np.zeros((missing, COEFFICIENTS))])
    condensed = np.asarray(np.linalg.qr(np.hstack([rows, lens_rows]), mode="r"))[:ENTRIES]
    return np.ascontiguousarray(condensed[:, :ENTRIES]), np.ascontiguousarray(condensed[:, ENTRIES:])
