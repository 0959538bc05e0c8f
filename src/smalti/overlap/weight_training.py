"""Fit the word weights to the answers: minimise a convex loss under the bounds w ≥ 1 by Newton's method.

Few words end above the bound, hardly more than there are "no" answers. So only a small set of weights is free. The set
grows by the words with the most negative gradient. The optimum of each set takes a few Newton steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from smalti.compiled import compiled

FEWEST_NEW = 8
"""Words freed at a time, or as many as are free already if those are more."""

TOLERANCE = 1e-11
"""Of a word's gradient, as a share of its value where every answer is contradicted."""

SMALLEST_GAIN = 1e-18
"""Twice the smallest drop of the loss by a Newton step: a further step would change nothing."""

UNRESOLVED_GAIN = 1e-10
"""Below this drop, rounding of the loss hides whether a step is good. Near the optimum the full step is right."""

MOST_STEPS = 100
RIDGE = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """How pairs differ: (s_d^i - s_d^j)² by word, for some words, and the sum over all words."""

    words: NDArray[np.int64]  # (m,): the words
    start: NDArray[np.int64]  # (m + 1,): where each word begins in `pair` and `squared`
    pair: NDArray[np.uint32]  # the pairs that differ in the word
    squared: NDArray[np.float64]  # (s_d^i - s_d^j)²
    distance: NDArray[np.float64]  # (n,) of the pairs, under weights of one


def fit_weights(
    differences: Differences, label: NDArray[np.float64], importance: NDArray[np.float64], sharpness: float
) -> NDArray[np.float64]:
    """Return the weights (m,) of the given words that minimise the log loss (Eq. log_loss_2); all other weights are
    one.

    `label` (n,) is 1 for overlapping pairs and -1 for others. A word in which no refused pair differs need not be
    given: its gradient is never negative, and its weight stays at one.
    """
    columns = differences.start, differences.pair, differences.squared
    weights = np.ones(len(differences.words))
    distance = differences.distance.copy()
    largest = sharpness * _sum_columns(*columns, importance)
    free = np.empty(0, dtype=np.int64)
    for _ in range(MOST_STEPS):
        slope = sharpness * importance * label * expit(sharpness * label * (distance - 1.0))
        gradient = _sum_columns(*columns, slope)
        wanted = np.flatnonzero((weights == 1.0) & (gradient < -TOLERANCE * largest))
        if np.isin(wanted, free).all():
            break
        moved = np.flatnonzero(weights > 1.0)
        order = np.argsort(gradient[wanted], kind="stable")
        free = np.sort(np.concatenate([moved, wanted[order[: max(FEWEST_NEW, len(moved))]]]))
        values, table = weights[free], _gather_columns(*columns, free, len(distance))
        _minimise(table, values, distance, label, importance, sharpness, largest[free])
        weights[free] = values
    return weights


@compiled
def _sum_columns(
    start: NDArray[np.int64], pair: NDArray[np.uint32], squared: NDArray[np.float64], factor: NDArray[np.float64]
) -> NDArray[np.float64]:
    sums = np.zeros(len(start) - 1)
    for d in range(len(sums)):
        for n in range(start[d], start[d + 1]):
            sums[d] += factor[pair[n]] * squared[n]
    return sums


@compiled
def _gather_columns(
    start: NDArray[np.int64],
    pair: NDArray[np.uint32],
    squared: NDArray[np.float64],
    chosen: NDArray[np.int64],
    pairs: int,
) -> NDArray[np.float64]:
    table = np.zeros((pairs, len(chosen)))
    for a in range(len(chosen)):
        for n in range(start[chosen[a]], start[chosen[a] + 1]):
            table[pair[n], a] = squared[n]
    return table


@compiled
def _minimise(
    table: NDArray[np.float64],
    weights: NDArray[np.float64],
    distance: NDArray[np.float64],
    label: NDArray[np.float64],
    importance: NDArray[np.float64],
    sharpness: float,
    largest: NDArray[np.float64],
) -> None:
    """Move `weights` (m,) to the optimum of these words alone, and update the pairs' `distance` (n,).

    This is Bertsekas' projected Newton method. Weights at the bound with a non-negative gradient stay. The others take
    their Newton step, cut off at the bound and halved until the loss falls.
    """
    size = len(weights)
    loss = _loss(distance, label, importance, sharpness)
    for _ in range(MOST_STEPS):
        gradient, hessian = _derivatives(table, distance, label, importance, sharpness)
        converged = True
        for a in range(size):
            at_bound = weights[a] == 1.0 and gradient[a] >= 0.0
            if at_bound:
                gradient[a] = 0.0
                hessian[a, :] = 0.0
                hessian[:, a] = 0.0
                hessian[a, a] = 1.0
            converged = converged and abs(gradient[a]) <= TOLERANCE * largest[a]
        if converged:
            return
        step = _solve(hessian, gradient)
        gain = 0.0
        for a in range(size):
            gain += gradient[a] * step[a]
        part = 1.0
        while True:
            moved = np.maximum(weights - part * step, 1.0)
            further = _moved_distance(table, distance, moved - weights)
            reached = _loss(further, label, importance, sharpness)
            expected = 0.0
            for a in range(size):
                expected += gradient[a] * (moved[a] - weights[a])
            if gain < UNRESOLVED_GAIN or reached <= loss + 1e-4 * expected or part < 1e-9:
                break
            part *= 0.5
        weights[:] = moved
        distance[:] = further
        loss = reached
        if gain < SMALLEST_GAIN:
            return


@compiled
def _loss(
    distance: NDArray[np.float64], label: NDArray[np.float64], importance: NDArray[np.float64], sharpness: float
) -> float:
    total = 0.0
    for n in range(len(distance)):
        margin = sharpness * label[n] * (distance[n] - 1.0)
        total += importance[n] * (max(margin, 0.0) + np.log1p(np.exp(-abs(margin))))
    return total


@compiled
def _moved_distance(
    table: NDArray[np.float64], distance: NDArray[np.float64], change: NDArray[np.float64]
) -> NDArray[np.float64]:
    moved = distance.copy()
    for n in range(len(distance)):
        for a in range(len(change)):
            moved[n] += table[n, a] * change[a]
    return moved


@compiled
def _derivatives(
    table: NDArray[np.float64],
    distance: NDArray[np.float64],
    label: NDArray[np.float64],
    importance: NDArray[np.float64],
    sharpness: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return gradient (m,) and Hessian (m, m) of the loss."""
    size = table.shape[1]
    gradient, hessian = np.zeros(size), np.zeros((size, size))
    for n in range(len(distance)):
        wrong = 1.0 / (1.0 + np.exp(-sharpness * label[n] * (distance[n] - 1.0)))
        slope = sharpness * importance[n] * label[n] * wrong
        curvature = sharpness * sharpness * importance[n] * wrong * (1.0 - wrong)
        for a in range(size):
            if table[n, a] != 0.0:
                gradient[a] += slope * table[n, a]
                scale = curvature * table[n, a]
                for b in range(a + 1):
                    hessian[a, b] += scale * table[n, b]
    for a in range(size):
        hessian[:a, a] = hessian[a, :a]
    return gradient, hessian


@compiled
def _solve(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with the Cholesky factor of the matrix, scaled to a unit diagonal plus a ridge, as it may be singular."""
    size = len(right)
    scale = np.empty(size)
    for a in range(size):
        scale[a] = 1.0 / np.sqrt(matrix[a, a]) if matrix[a, a] > 0.0 else 1.0
    lower = np.zeros((size, size))
    solved = np.empty(size)
    for a in range(size):
        for b in range(a + 1):
            total = matrix[a, b] * scale[a] * scale[b]
            if a == b:
                total += RIDGE * size
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            lower[a, b] = np.sqrt(max(total, RIDGE)) if a == b else total / lower[b, b]
        total = right[a] * scale[a]
        for c in range(a):
            total -= lower[a, c] * solved[c]
        solved[a] = total / lower[a, a]
    for a in range(size - 1, -1, -1):
        total = solved[a]
        for c in range(a + 1, size):
            total -= lower[c, a] * solved[c]
        solved[a] = total / lower[a, a]
    return solved * scale
