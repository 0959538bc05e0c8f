"""Minimise the cost over all maps by damped Gauss-Newton steps, and factorise the information at the minimum.

Steps are damped until they lower the cost. No step leads to maps that no camera makes: mirrored ones, or ones with a
horizon in the frame. So the maps stay finite, whatever the links measure.

`Solution` is the result and `solve` the iteration. `reweighted` changes weights without moving maps. Steps, and the
factorisation by rows for long sequences, come last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.engine.camera_priors import ATTITUDES, MOTIONS
from smalti.engine.equations import LENS, TURN, System
from smalti.engine.linearisation import (
    Rowset,
    Weights,
    are_possible,
    extrapolate,
    lens_change,
    linearise,
    turn_alone,
)
from smalti.engine.links import COEFFICIENTS
from smalti.engine.normal_equations import GAUGE_DIRECTIONS, WEAK_DEVIATIONS, fix_gauge, normal_equations
from smalti.geometry.homographies import ENTRIES, move
from smalti.geometry.lens import Lens
from smalti.records import Homographies
from smalti.sparse.block_products import Blocks
from smalti.sparse.cholesky import ACCURATE_PIVOT_SHARE, LEAST_PIVOT_SHARE, BlockCholesky, NotPositiveDefiniteError
from smalti.sparse.orthogonal_factor import Rows, factorise_rows

MOST_STEPS = 40
SMALLEST_GAIN = 1e-9
"""As a share of the cost: a step that gains less ends the iteration."""

SMALLEST_COST = 1e-14

LONGEST_STEP = 0.7
"""The largest change of turn, logarithm of scale, stretch and perspective in one step."""

SHARES = (1.0, 0.4, 0.15, 0.05)
"""Shares of a step that are tried one after the other: where frames must turn by a radian, a whole step is too long."""

FIRST_DAMPING, LARGEST_DAMPING = 1e-6, 1e8


@dataclass(frozen=True, eq=False)
class Solution:
    """Maps at the minimum of the cost, and the linearised rows there."""

    system: System
    weights: Weights
    node_maps: Homographies  # (n, 3, 3): the frames, in units, then the shared node if there is one
    rows: Rowset
    steps: int
    converged: bool
    known_factor: BlockCholesky | None = None  # the factor of the last step, if it is still valid

    @property
    def maps(self) -> Homographies:
        """(N, 3, 3): from every frame to the mosaic, in units."""
        return self.node_maps[: self.system.frames]

    @property
    def lens_change(self) -> NDArray[np.float64]:
        """(2,): the difference of the lens' coefficients from those that links were first fitted with."""
        return np.zeros(COEFFICIENTS) if self.system.lens is None else lens_change(self.node_maps[-1])

    @property
    def lens(self) -> Lens | None:
        """The estimated lens; None if it was not estimated."""
        lens = self.system.lens
        return None if lens is None else lens.moved(*self.lens_change.tolist())

    @cached_property
    def factor(self) -> BlockCholesky:
        """The Cholesky factor of the information on all nodes' increments; one frame of each part is fixed."""
        if self.known_factor is not None:
            return self.known_factor
        diagonal, off_diagonal, _ = normal_equations(self.system, self.rows)
        fix_gauge(self.system, diagonal)
        try:
            return BlockCholesky(self.system.pattern, diagonal, off_diagonal, least_pivot_share=ACCURATE_PIVOT_SHARE)
        except NotPositiveDefiniteError:
            pass
        try:
            return _factorise_by_rows(self.system, self.rows)[0]
        except NotPositiveDefiniteError:
            pass
        # Very badly beside very well determined frames: raise the diagonal until a factor exists.
        own = np.einsum("nkk->nk", diagonal)
        for raised in (1e-9, 1e-6, 1e-3):
            own *= 1.0 + raised
            try:
                return BlockCholesky(self.system.pattern, diagonal, off_diagonal, least_pivot_share=0.0)
            except NotPositiveDefiniteError:
                pass
        own *= 2.0
        return BlockCholesky(self.system.pattern, diagonal, off_diagonal, least_pivot_share=0.0)


def solve(system: System, weights: Weights, start: Homographies, smallest_gain: float = SMALLEST_GAIN) -> Solution:
    """Minimise the cost from possible maps of frames (N, 3, 3), or of all nodes.

    A step with a negligible predicted gain is the last one. Its rows are extrapolated to first order and its factor is
    kept. So nothing is linearised and factorised again at the solution.
    """
    maps = _with_shared(system, start)
    rows = linearise(system, weights, maps)
    if rows is None:
        maps = _with_shared(system, system.first_maps())
        rows = linearise(system, weights, maps)
    assert rows is not None, "level maps are always possible"
    damping, steps, converged = 0.0, 0, False
    while steps < MOST_STEPS and not converged:
        steps += 1
        equations = normal_equations(system, rows)
        fix_gauge(system, equations[0])
        while True:
            step = _find_step(system, rows, equations, damping)
            if step is not None and not damping and step.predicted_gain <= smallest_gain * rows.cost:
                moved = _moved(system, maps, step.increments)
                if moved is not None and are_possible(system, moved):
                    return Solution(
                        system, weights, moved, extrapolate(system, rows, step.increments), steps, True, step.factor
                    )
            taken = None if step is None else _take(system, weights, maps, rows.cost, step.increments)
            if taken is not None:
                gained = rows.cost - taken[1].cost
                maps, rows = taken
                converged = gained <= smallest_gain * (rows.cost + gained) or rows.cost <= SMALLEST_COST
                damping = damping / 10.0 if damping > FIRST_DAMPING else 0.0
                break
            damping = max(10.0 * damping, FIRST_DAMPING)
            if damping > LARGEST_DAMPING:
                converged = True  # even the shortest step gains nothing
                break
    return Solution(system, weights, maps, rows, steps, converged)


def reweighted(solution: Solution, factors: NDArray[np.float64]) -> Solution:
    """Return the same maps with the weights of links times `factors` (L,), and the information that follows."""
    weights = replace(solution.weights, links=factors * solution.weights.links)
    rows = linearise(solution.system, weights, solution.node_maps)
    assert rows is not None, "these maps were possible before"
    return replace(solution, weights=weights, rows=rows, known_factor=None)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A step to the minimum of the linearised cost."""

    increments: NDArray[np.float64]  # (n, f)
    predicted_gain: float  # by how much it would lower the linearised cost
    factor: BlockCholesky


def _find_step(
    system: System, rows: Rowset, equations: tuple[Blocks, Blocks, NDArray[np.float64]], damping: float
) -> _Step | None:
    """Return a damped step; None if the equations cannot be factorised."""
    diagonal, off_diagonal, gradient = equations
    if damping:
        diagonal = diagonal.copy()
        own = np.einsum("nkk->nk", diagonal)
        own *= 1.0 + damping
    try:
        least_pivot_share = LEAST_PIVOT_SHARE if damping else ACCURATE_PIVOT_SHARE
        factor = BlockCholesky(system.pattern, diagonal, off_diagonal, least_pivot_share=least_pivot_share)
        increments = -factor.solve(gradient[..., None])[..., 0]
    except NotPositiveDefiniteError:
        if damping:
            return None
        try:
            factor, increments = _factorise_by_rows(system, rows)
        except NotPositiveDefiniteError:
            return None
    if not np.isfinite(increments).all():
        return None
    return _Step(increments, -float(np.sum(gradient * increments)), factor)


def _take(
    system: System, weights: Weights, maps: Homographies, cost: float, increments: NDArray[np.float64]
) -> tuple[Homographies, Rowset] | None:
    """Return maps and rows after the largest share of a step that lowers the cost; None if no share does."""
    for share in SHARES:
        moved = _moved(system, maps, share * increments)
        rows = None if moved is None else linearise(system, weights, moved)
        if moved is not None and rows is not None and rows.cost <= cost:
            return moved, rows
    return None


def _moved(system: System, maps: Homographies, increments: NDArray[np.float64]) -> Homographies | None:
    """Return the maps after a step, shortened to LONGEST_STEP; None if they are not finite."""
    turned = float(np.abs(increments[:, TURN:]).max(initial=0.0))
    if turned > LONGEST_STEP:
        increments = increments * (LONGEST_STEP / turned)
    if system.lens is None:
        moved = move(maps, increments)
    else:
        turning = increments.copy()
        turning[-1, LENS] = 0.0
        moved = move(np.concatenate([maps[:-1], turn_alone(maps[-1])[None]]), turning)
        moved[-1, 2, :2] = lens_change(maps[-1]) + increments[-1, LENS]
    # A long shift together with strong perspective may overflow.
    return moved if np.isfinite(moved).all() else None


def _with_shared(system: System, maps: Homographies) -> Homographies:
    """Return the maps of all nodes, with the identity for a shared node that has no map yet."""
    if len(maps) < system.nodes:
        maps = np.concatenate([maps, np.eye(3)[None]])
    return np.ascontiguousarray(maps[: system.nodes])


def _factorise_by_rows(system: System, rows: Rowset) -> tuple[BlockCholesky, NDArray[np.float64]]:
    """Factorise the rows themselves: for sequences so long that the normal equations have no digits left."""
    if system.shares_error:
        raise NotPositiveDefiniteError(0)  # a row of three nodes is not supported here; such sequences are short enough
    freedom, frames = system.family.freedom, system.frames
    ends, first, second, right = [system.ends], [rows.by_i], [rows.by_j], [rows.residual]
    if len(rows.motion):
        ends.append(system.ends[system.steps])
        first.append(_padded(rows.motion_by_i))
        second.append(_padded(rows.motion_by_j))
        right.append(np.pad(rows.motion, ((0, 0), (0, ENTRIES - MOTIONS))))
    alone = np.column_stack([np.arange(frames), np.full(frames, -1)])
    ends.append(alone)
    first.append(_padded(rows.by_frame))
    second.append(np.zeros((frames, ENTRIES, freedom)))
    right.append(np.pad(rows.attitude, ((0, 0), (0, ENTRIES - ATTITUDES))))
    own = np.zeros((frames, ENTRIES, freedom))
    strength = np.tile(1.0 / WEAK_DEVIATIONS[:freedom], (frames, 1))
    fixed = np.arange(min(GAUGE_DIRECTIONS, freedom))
    typical = np.sqrt(np.median(np.sum(rows.by_j**2, axis=1), axis=0)) if len(rows.by_j) else np.ones(freedom)
    strength[system.references[:, None], fixed] = np.maximum(typical[fixed], 1.0)
    own[:, np.arange(freedom), np.arange(freedom)] = strength
    ends.append(alone)
    first.append(own)
    second.append(np.zeros_like(own))
    right.append(np.zeros((frames, ENTRIES)))
    factor, solution = factorise_rows(
        system.pattern,
        Rows(np.concatenate(ends), np.concatenate(first), np.concatenate(second), -np.concatenate(right)[..., None]),
    )
    return factor, solution[..., 0]


def _padded(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.pad(rows, ((0, 0), (0, ENTRIES - rows.shape[1]), (0, 0)))
