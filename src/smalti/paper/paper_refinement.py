"""Compute the mosaic for output (`refine`, Gauss-Newton in the frames' own pixels), and predict its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from smalti.compiled import compiled
from smalti.engine.relative_position import Centres
from smalti.geometry.linear_maps import IDENTITY, compose, invert, square
from smalti.overlap.external_model import combine
from smalti.overlap.position_bounds import quick_probability
from smalti.paper.linear_adjustment import LinearAdjustment
from smalti.records import PairNumbers, Transforms
from smalti.sparse.cholesky import ENOUGH_LEFT, LEAST_LEFT, BlockCholesky, NotPositiveDefiniteError
from smalti.sparse.orthogonal_factor import Rows, factorise_rows

MAX_STEPS = 50
SMALLEST_GAIN = 1e-10
"""A step that lowers the cost by less than this fraction ends the refinement."""

SMALLEST_COST = 1e-18
"""Links that agree up to rounding need no further step."""

FIRST_DAMPING = 1e-6
LARGEST_DAMPING = 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Refinement:
    """The refined mosaic and how the iteration ended."""

    mosaic_from_frame: Transforms  # (N, 2, 3), pixels of the reference frame
    cost: float  # Σ |(Θ_i⁻¹ Θ_j - T̂) R|²: squared residuals in units of the landmarks' noise
    steps: int
    converged: bool


def refine(adjustment: LinearAdjustment) -> Refinement:
    """Minimise Σ |(Θ_i⁻¹ Θ_j - T̂) R|² from the linear solution.

    Differs from the paper: the linear cost is measured on the mosaic, where a smaller mosaic has smaller residuals, and
    shrinks the frames far from the reference. Here each link's residual is measured in its own frame i, in units of its
    landmarks' noise. No question depends on it.

    In local increments Θ ← Θ (I + δ) a link's residual changes by (P δ_j - δ_i P) R with P = Θ_i⁻¹ Θ_j.
    """
    maps = _start(adjustment)
    tangent = adjustment.family.tangent
    cost, relative, residual = _residuals(adjustment, maps)
    damping = 0.0
    steps, converged = 0, False
    while steps < MAX_STEPS and not converged:
        jacobian_i, jacobian_j = _jacobians(adjustment, relative, tangent)
        steps += 1
        while True:
            moved = _step(adjustment, maps, jacobian_i, jacobian_j, residual, damping)
            new_cost, new_relative, new_residual = _residuals(adjustment, moved)
            if new_cost <= cost:
                converged = cost - new_cost <= SMALLEST_GAIN * cost or new_cost <= SMALLEST_COST
                maps, cost, relative, residual = moved, new_cost, new_relative, new_residual
                damping = damping / 10 if damping > FIRST_DAMPING else 0.0
                break
            damping = max(10 * damping, FIRST_DAMPING)
            if damping > LARGEST_DAMPING:
                # Not even a short step downhill lowers the cost: this is the minimum, up to rounding.
                converged = True
                break
    return Refinement(adjustment.in_pixels(maps), cost, steps, converged)


def predicted_error(
    centres: Centres, external: NDArray[np.float64], linked: PairNumbers, settled: PairNumbers
) -> float:
    """Return the RMS error, in pixels, that is predicted for the relative position of overlapping frames.

    It is √ of the mean of tr Σ_γ over all pairs, weighted by their probability of overlap. P^ext·P^pos ranks pairs but
    is no probability. Here P^pos is the prior. P^ext (N, N) is read as the probability of a pair without other
    information, and is evidence against the mean of P^pos over all pairs. Answered pairs (n, 2) are certain: the linked
    ones overlap, the other settled ones do not.
    """
    i, j = np.triu_indices(len(external), 1)
    directed = quick_probability(centres.mean, centres.cov, centres.outline)
    position, evidence = (directed[i, j] + directed[j, i]) / 2, external[i, j]
    weight = np.zeros_like(external)
    weight[i, j] = combine(position, evidence, float(position.mean()))
    for pairs, certain in ((settled, 0.0), (linked, 1.0)):
        weight[pairs[:, 0], pairs[:, 1]] = certain
    spread = (centres.spread_squared[i, j] + centres.spread_squared[j, i]) / 2
    return float(np.sqrt(np.sum(weight[i, j] * spread) / np.sum(weight)))


def _start(adjustment: LinearAdjustment) -> Transforms:
    """Return the linear solution, or maps composed along links if it mirrors a frame.

    Links that contradict each other by more than a right angle can make the linear solution, which averages matrices,
    collapse or mirror a frame.
    """
    maps = adjustment.unit_maps
    if (np.linalg.det(maps[:, :, :2]) > 0).all():
        return maps
    ends, i_from_j = adjustment.ends, adjustment.terms.measured[:, :2]
    link_of = {(int(i), int(j)): n for n, (i, j) in enumerate(ends)}
    order, parent = breadth_first_order(adjustment.graph, adjustment.reference, directed=False)
    composed = np.empty_like(maps)
    composed[adjustment.reference] = IDENTITY
    for frame in map(int, order[1:]):
        known = int(parent[frame])
        forth = i_from_j[link_of[min(known, frame), max(known, frame)]]
        composed[frame] = compose(composed[known], forth if known < frame else invert(forth))
    return composed


def _residuals(
    adjustment: LinearAdjustment, maps: Transforms
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the cost, P (L, 3, 3), and the residuals P R - T̂ R (L, 2, 3); a mirrored frame costs infinity."""
    if not (np.linalg.det(maps[:, :, :2]) > 0).all():
        nothing = np.empty((0, 3, 3))
        return np.inf, nothing, nothing
    relative = _relative_maps(adjustment, maps)
    residual = (relative @ adjustment.terms.side_j - adjustment.terms.side_i)[:, :2]
    # The adjustment's lengths are in units of the frame, the noise of a link is in pixels.
    cost = float(np.sum(residual**2)) * adjustment.outline.unit**2
    return cost, relative, residual


def _relative_maps(adjustment: LinearAdjustment, maps: Transforms) -> NDArray[np.float64]:
    """Return P = Θ_i⁻¹ Θ_j (L, 3, 3) of every link."""
    i, j = adjustment.ends.T
    return square(compose(invert(maps)[i], maps[j]))


def _jacobians(
    adjustment: LinearAdjustment, relative: NDArray[np.float64], tangent: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the derivatives (L, 6, freedom) of the residuals by δ_i and by δ_j."""
    side_j = adjustment.terms.side_j
    return _differentiate(relative, side_j, relative @ side_j, tangent)


def _information(
    adjustment: LinearAdjustment, jacobian_i: NDArray[np.float64], jacobian_j: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _multiply(adjustment.frames, adjustment.ends, jacobian_i, jacobian_j)


@compiled
def _differentiate(
    relative: NDArray[np.float64],
    side_j: NDArray[np.float64],
    mapped: NDArray[np.float64],
    tangent: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return -D P R and P D R for every link and every direction D in which a map can move."""
    links, freedom = len(relative), len(tangent)
    by_i, by_j = np.empty((links, 6, freedom)), np.empty((links, 6, freedom))
    for link in range(links):
        p = relative[link]
        for c in range(freedom):
            d = tangent[c]
            for column in range(3):
                x, y, one = side_j[link, 0, column], side_j[link, 1, column], side_j[link, 2, column]
                u, v = d[0, 0] * x + d[0, 1] * y + d[0, 2] * one, d[1, 0] * x + d[1, 1] * y + d[1, 2] * one
                for row in range(2):
                    by_j[link, 3 * row + column, c] = p[row, 0] * u + p[row, 1] * v
                    total = 0.0
                    for k in range(3):
                        total += d[row, k] * mapped[link, k, column]
                    by_i[link, 3 * row + column, c] = -total
    return by_i, by_j


@compiled
def _multiply(
    frames: int, ends: NDArray[np.int64], jacobian_i: NDArray[np.float64], jacobian_j: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return JᵀJ: blocks (N, f, f) on the diagonal and (L, f, f) per link, summed in the order of links."""
    freedom = jacobian_i.shape[2]
    diagonal = np.zeros((frames, freedom, freedom))
    off_diagonal = np.zeros((len(ends), freedom, freedom))
    for link in range(len(ends)):
        i, j = ends[link, 0], ends[link, 1]
        for row in range(6):
            of_i, of_j = jacobian_i[link, row], jacobian_j[link, row]
            for a in range(freedom):
                for b in range(freedom):
                    diagonal[i, a, b] += of_i[a] * of_i[b]
                    diagonal[j, a, b] += of_j[a] * of_j[b]
                    off_diagonal[link, a, b] += of_i[a] * of_j[b]
    return diagonal, off_diagonal


def _step(
    adjustment: LinearAdjustment,
    maps: Transforms,
    jacobian_i: NDArray[np.float64],
    jacobian_j: NDArray[np.float64],
    residual: NDArray[np.float64],
    damping: float,
) -> Transforms:
    """Return the maps after one damped step."""
    diagonal, off_diagonal = _information(adjustment, jacobian_i, jacobian_j)
    freedom = diagonal.shape[1]
    gradient = np.zeros((adjustment.frames, freedom, 1))
    for side, jacobian in ((0, jacobian_i), (1, jacobian_j)):
        np.add.at(gradient, adjustment.ends[:, side], np.swapaxes(jacobian, 1, 2) @ residual.reshape(-1, 6, 1))
    entries = np.arange(freedom)
    diagonal[:, entries, entries] *= 1.0 + damping
    inner = (adjustment.ends_free >= 0).all(axis=1)
    enough = LEAST_LEFT if damping else ENOUGH_LEFT
    try:
        factor = BlockCholesky(adjustment.pattern, diagonal[adjustment.free], off_diagonal[inner], least_left=enough)
        increments = -factor.solve(gradient[adjustment.free])[..., 0]
    except NotPositiveDefiniteError:
        nothing = np.zeros_like(maps)  # its cost is infinite, so that the next step is damped more
        if damping:
            return nothing
        rows = Rows(adjustment.ends_free, jacobian_i, jacobian_j, -residual.reshape(-1, 6, 1))
        try:
            increments = factorise_rows(adjustment.pattern, rows)[1][..., 0]
        except NotPositiveDefiniteError:
            return nothing
    moves = square(np.einsum("nc,cpa->npa", increments, adjustment.family.tangent) + np.eye(2, 3))
    moved = maps.copy()
    moved[adjustment.free] = (square(maps[adjustment.free]) @ moves)[:, :2]
    return moved
