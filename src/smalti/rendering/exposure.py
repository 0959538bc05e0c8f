"""Solve for the exposure of every frame and the shading of the field of view, jointly.

The model is log I = log g_n + Σ a_k φ_k(x, y) + log (light of the scene). In the difference of two frames at one scene
point, the scene cancels. The rest is linear: a gain for each frame and channel, and a shading that all frames share
(lens, lamp, dirt on the sensor). The shading is a polynomial about the centre of the field of view. Points are weighted
robustly, because highlights, moving things and relief do not follow the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from smalti.geometry.homographies import invert_homographies, project_points
from smalti.geometry.outline import Outline
from smalti.rendering.frame_survey import CLEAR, WORTH, Survey
from smalti.rendering.light_comparison import BRIGHTEST, DARKEST, STEPS, Comparison, Light, grid_of
from smalti.rendering.tone_curve import KNEE, WHITE

DEGREE = 4
"""Degree of the polynomial. It also has the sixth power of the distance, which lenses need."""

ROUNDS = 12
LEAST_SCALE = 0.01
"""The smallest scale of the residuals, logarithmic. 0.01 is less than two grey levels."""

GAIN_SPREAD = 0.2
SHADE_SPREAD = 0.3
TILT_SPREAD = 0.02
"""Standard deviations of the priors, logarithmic: gains about 1, shading about 0, its linear part about 0.

Overlaps cannot separate a tilted shading from gains that change with the position. These priors do. On a small mosaic
the gains explain the tilt, on a large one the shading. If gains explained it there, a slight tilt would become a ramp
over the mosaic, ever steeper with its size.
"""

LAMP_SPREAD = 0.1
"""Standard deviation of the tilt if frames have a round field of view: a scope has a lamp beside its lens."""

COLOUR_PRIOR = 0.05
"""Weight of the prior that all channels of a frame change alike, relative to the weight of the frame's own points.

Clipped highlights violate it.
"""

BRIGHT_SHARE = 0.02
"""The share of the compared points that counts as bright.

No overlap tells how bright the mosaic is as a whole. It is as bright as the frames are in their centres on average,
unless its bright points would be brighter than those of the frames, and above `KNEE`; then all frames are dimmed. A
scope needs much dimming, because its rim gets only a third of the light.
"""


@dataclass(frozen=True, eq=False)
class Exposure:
    """The light of every frame, by index, and the sharpness of each relative to frames that show the same."""

    log_gains: NDArray[np.float64]  # (n, 3)
    shade: NDArray[np.float64]  # (k,): coefficients of the logarithm of the shading
    centre: tuple[float, float]
    radius: float
    sharpness: NDArray[np.float64]  # (n,): logarithmic, mean 0
    residual: float  # median residual of the model, logarithmic; 0.01 is one percent of the light
    white: float  # unclipped pixels are at most so bright after the correction

    def light(self, index: int) -> Light:
        """Return the light correction of a frame."""
        gains = np.exp(-self.log_gains[index])
        return Light(gains.astype(np.float32), self._flatness, self.centre, self.radius)

    @cached_property
    def _flatness(self) -> NDArray[np.float32]:
        return _flatness(self.shade)


def plain_exposure(frames: int, mask: NDArray[np.bool_]) -> Exposure:
    """Return the exposure that leaves the frames as they are."""
    centre, radius = _field(mask)
    return Exposure(np.zeros((frames, 3)), np.zeros(TERMS), centre, radius, np.zeros(frames), 0.0, WHITE)


def estimate_exposure(frames: int, comparison: Comparison, average: AverageView, mask: NDArray[np.bool_]) -> Exposure:
    """Solve for all frames at once.

    Frames that share only narrow strips compare only their rims. The average view then determines the shading in the
    middle of the field. Its weight depends on the variety of the scene.
    """
    centre, radius = _field(mask)
    if len(comparison.pair) == 0:
        return plain_exposure(frames, mask)
    equations = _Equations.of(frames, comparison, centre, radius)
    weights = np.ones(len(equations.differences))
    shade, gains, sharpness = np.zeros(TERMS), np.zeros((frames, 3)), np.zeros(frames)
    spread = np.zeros(len(weights))
    average_terms = _terms((average.points - centre) / radius)
    # Remove level and tilt. A scene may have both, and they would become a ramp over the mosaic.
    plane = np.column_stack([np.ones(len(average_terms)), average.points - centre])
    average_terms -= plane @ np.linalg.lstsq(plane, average_terms, rcond=None)[0]
    average_normal = average_terms.T @ average_terms, average_terms.T @ average.logs.sum(axis=1)
    spreads = np.full(TERMS, SHADE_SPREAD)
    # A moving lamp is not noise of single points. It changes all points of a frame alike, so they count as one point
    # against the priors.
    points_as_one = 1.0 if mask.all() else len(weights) / frames
    spreads[:2] = TILT_SPREAD if mask.all() else LAMP_SPREAD / np.sqrt(points_as_one)
    scale = LEAST_SCALE
    for _ in range(ROUNDS):
        share = (scale / average.sigma) ** 2
        of_shade = 3 * share * average_normal[0] + np.diag((scale / spreads) ** 2), share * average_normal[1]
        of_gains = points_as_one * (scale / GAIN_SPREAD) ** 2
        gains, sharpness, shade = equations.solve(weights, of_shade, of_gains)
        spread = equations.residuals(gains, shade)
        scale = max(1.4826 * float(np.median(spread)), LEAST_SCALE)
        # Cauchy weights: outliers have little influence, even if they are a tenth of all points.
        weights = 1.0 / (1.0 + (spread / scale) ** 2)
    terms = _terms((comparison.points[:, 0] - centre) / radius)
    corrected = comparison.logs[:, 0, :3] - gains[comparison.pair[:, 0]] - (terms @ shade)[:, None]
    in_mosaic, in_frames = (
        float(np.quantile(logs.max(axis=1), 1.0 - BRIGHT_SHARE)) for logs in (corrected, comparison.logs[:, 0, :3])
    )
    gains += max(in_mosaic - max(in_frames, np.log(KNEE)), 0.0)
    largest = _flatness(shade)[_nodes(mask, centre, radius)].max()
    white = WHITE * max(float(np.exp(-gains.min()) * largest), 1.0)
    return Exposure(gains, shade, centre, radius, sharpness, float(np.median(spread)), white)


@dataclass(frozen=True, slots=True, eq=False)
class _Equations:
    """The differences of two frames at points, sorted by pairs of frames.

    All points of a pair have the same two gains. So sums over the points of each pair make the equations of the gains,
    and there are far fewer pairs than points.
    """

    pairs: NDArray[np.int64]  # (p, 2): the indices of the frames
    starts: NDArray[np.int64]  # (p,): the first point of each pair
    by_frame: sparse.csr_matrix  # (p, n): 1 for the first frame of a pair, -1 for the second
    terms: NDArray[np.float64]  # (m, k): differences of the terms of the shading
    differences: NDArray[np.float64]  # (m, 4): of the logarithms of colours and sharpness

    @classmethod
    def of(cls, frames: int, comparison: Comparison, centre: tuple[float, float], radius: float) -> _Equations:
        """Sort the points."""
        key = comparison.pair[:, 0] * frames + comparison.pair[:, 1]
        order = np.argsort(key, kind="stable")
        _, starts = np.unique(key[order], return_index=True)
        pairs = comparison.pair[order[starts]]
        signs = np.tile([1.0, -1.0], len(pairs))
        by_frame = sparse.csr_matrix((signs, pairs.ravel(), np.arange(0, len(signs) + 1, 2)), (len(pairs), frames))
        first, second = (_terms((comparison.points[order, side] - centre) / radius) for side in (0, 1))
        logs = comparison.logs[order]
        return cls(pairs, starts, by_frame, first - second, logs[:, 0] - logs[:, 1])

    def solve(
        self,
        weights: NDArray[np.float64],
        of_shade: tuple[NDArray[np.float64], NDArray[np.float64]],
        of_gains: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return gains (n, 3), sharpness (n,) and shade (k,) of the weighted least squares problem.

        `of_shade` are the matrix and the right side of further normal equations of the shade. `of_gains` is the weight
        of the prior "gain 1", in points. All channels have the same matrix over the frames, so one factor serves them.
        They share the shade.
        """
        frames = self.by_frame.shape[1]
        weighted_terms, weighted = weights[:, None] * self.terms, weights[:, None] * self.differences
        of_pairs = np.add.reduceat(weights, self.starts)
        of_points = self.by_frame.T @ sparse.diags(of_pairs) @ self.by_frame
        mean_weight = float(of_points.diagonal().mean())
        matrix = (of_points + of_gains * sparse.identity(frames)).tocsc()
        factor = splu(matrix)
        with_shade = np.asarray(self.by_frame.T @ np.add.reduceat(weighted_terms, self.starts))
        right = np.asarray(self.by_frame.T @ np.add.reduceat(weighted, self.starts))
        shade_solved, right_solved = factor.solve(with_shade), factor.solve(right)
        square = 3 * (self.terms.T @ weighted_terms - with_shade.T @ shade_solved)
        from_points = self.terms.T @ weighted[:, :3]
        target = (from_points - with_shade.T @ right_solved[:, :3]).sum(axis=1)
        shade = np.linalg.solve(square + of_shade[0], target + of_shade[1])
        unshaded = right_solved - (shade_solved @ shade)[:, None]
        common = unshaded[:, :3].mean(axis=1, keepdims=True)
        with_colour_prior = splu((matrix + COLOUR_PRIOR * mean_weight * sparse.identity(frames)).tocsc())
        gains = common + with_colour_prior.solve(matrix @ (unshaded[:, :3] - common))
        # Brighter frames have larger differences between pixels. That does not make them sharper.
        sharpness = unshaded[:, 3] - gains.mean(axis=1)
        return gains - gains.mean(axis=0), sharpness - sharpness.mean(), shade

    def residuals(self, gains: NDArray[np.float64], shade: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (m,): how much the colours of each point differ from the model, the mean over the channels."""
        points = np.diff(self.starts, append=len(self.differences))
        of_gains = np.repeat(gains[self.pairs[:, 0]] - gains[self.pairs[:, 1]], points, axis=0)
        left = self.differences[:, :3] - of_gains - (self.terms @ shade)[:, None]
        return np.asarray(np.abs(left).mean(axis=1))


def _terms(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (..., k): the terms of the shading at points (..., 2). The centre of the field is 0, its rim at 1."""
    x, y = points[..., 0], points[..., 1]
    # Products, because powers take twenty times as long.
    of_x, of_y = [np.ones_like(x)], [np.ones_like(y)]
    for _ in range(DEGREE):
        of_x.append(of_x[-1] * x)
        of_y.append(of_y[-1] * y)
    powers = [of_x[k] * of_y[degree - k] for degree in range(1, DEGREE + 1) for k in range(degree + 1)]
    squared = of_x[2] + of_y[2]
    return np.stack([*powers, squared * squared * squared], axis=-1)


TERMS = sum(degree + 1 for degree in range(1, DEGREE + 1)) + 1


def _flatness(shade: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return (STEPS, STEPS): the factors that undo the shading, over the square around the centre."""
    axis = np.linspace(-1.0, 1.0, STEPS)
    field = _terms(np.stack(np.meshgrid(axis, axis), axis=-1)) @ shade
    return np.asarray(np.exp(-field), dtype=np.float32)


def _nodes(mask: NDArray[np.bool_], centre: tuple[float, float], radius: float) -> NDArray[np.bool_]:
    """Return (STEPS, STEPS): the points of that table between which the pixels of the mask lie."""
    rows, columns = np.nonzero(mask)
    half = (STEPS - 1) / 2
    of_x, of_y = (
        np.clip((half * ((axis - middle) / radius + 1)).astype(int), 0, STEPS - 2)
        for axis, middle in zip((columns, rows), centre, strict=True)
    )
    nodes = np.zeros((STEPS, STEPS), dtype=np.bool_)
    for down in (0, 1):
        for right in (0, 1):
            nodes[of_y + down, of_x + right] = True
    return nodes


def _field(mask: NDArray[np.bool_]) -> tuple[tuple[float, float], float]:
    """Return centre and radius of the field of view, frame pixels."""
    rows, columns = np.nonzero(mask)
    x, y = float(columns.mean()), float(rows.mean())
    return (x, y), float(np.sqrt(((columns - x) ** 2 + (rows - y) ** 2).max())) + 0.5


MOST_FRAMES = 256
FEWEST_VIEWS = 8
"""The least number of views that do not overlap. With fewer, the scene does not average out."""

CORRELATED_POINTS = 4.0
"""Neighbouring points of a scene are correlated: so many of them count as one."""


@dataclass(frozen=True, slots=True, eq=False)
class AverageView:
    """The median of all frames at points of the field of view."""

    points: NDArray[np.float64]  # (k, 2): frame pixels
    logs: NDArray[np.float64]  # (k, 3): logarithms of the colours, minus the level of each frame
    sigma: float  # standard deviation, logarithmic; infinite if the frames show too little of the scene


def average_view(survey: Survey, mosaic_from_frame: NDArray[np.float64], valid: NDArray[np.bool_]) -> AverageView:
    """Take the median of the frames, point by point."""
    cells = grid_of(valid, survey)
    indices = np.unique(np.linspace(0, len(mosaic_from_frame) - 1, MOST_FRAMES).round().astype(int))
    views = _count_views(mosaic_from_frame, Outline.of_pixels(survey.width, survey.height))
    points = project_points(invert_homographies(survey.cell_from_frame), cells)
    if views < FEWEST_VIEWS or len(cells) == 0:
        return AverageView(points, np.zeros((len(points), 3)), np.inf)
    colours = np.empty((len(indices), len(cells), 3))
    clear = np.ones((len(indices), len(cells), 1), dtype=np.bool_)
    for n, index in enumerate(indices):
        seen = survey.frames([int(index)])[0][cells[:, 1].astype(int), cells[:, 0].astype(int)]
        colours[n] = seen[:, :3]
        clear[n] = np.all(seen[:, WORTH:] == CLEAR, axis=1, keepdims=True)
    measured = clear & (colours >= DARKEST) & (colours <= BRIGHTEST)
    logs = np.where(measured, np.log(np.maximum(colours, 1.0)), np.nan)
    valid_frames = np.isfinite(logs).mean(axis=(1, 2)) > 0.5
    if valid_frames.sum() < FEWEST_VIEWS:
        return AverageView(points, np.zeros((len(points), 3)), np.inf)
    logs = logs[valid_frames] - np.nanmedian(logs[valid_frames], axis=1, keepdims=True)
    logs = np.where(np.isfinite(logs), logs, 0.0)
    middle = np.median(logs, axis=0)
    scatter = 1.4826 * float(np.median(np.abs(logs - middle)))
    # The median of n values has a smaller standard deviation than one value, by the factor √(π / 2n).
    return AverageView(points, middle, scatter * float(np.sqrt(np.pi / 2 * CORRELATED_POINTS / views)))


def _count_views(mosaic_from_frame: NDArray[np.float64], outline: Outline) -> int:
    """Return approximately how many frames would lie side by side on the area of the mosaic."""
    centres = project_points(mosaic_from_frame, outline.centre[None])[:, 0]
    corners = project_points(mosaic_from_frame, outline.corners)
    side = float(np.median(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)))
    return len(np.unique(np.floor(centres / side), axis=0))
