"""What most links agree on, although some are wrong: graduated non-convexity.

Least squares spreads what is wrong over what is right, and weights by residuals then take the wrong for the usual. So
links lose weight with their residual, and what is tolerated shrinks step by step, from a limit that tolerates all: the
many decide.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from smalti.engine.noise import Knowledge
from smalti.engine.solution import Solution, solve
from smalti.engine.system import System
from smalti.records import Homographies

TOLERATED_CHI2, SHRINKING, LEAST_TRUST = 50.0, 2.0, 1e-6
"""Squared residual of a link that is tolerated at last, and by which factor what is tolerated shrinks with every step;
what is left of a link's weight at least."""

ENOUGH_GAIN = 1e-4
"""Of the cost, while weights still change."""


def anneal(
    system: System, knowledge: Knowledge, groups: NDArray[np.int64], start: Homographies
) -> tuple[Solution, NDArray[np.float64]]:
    """Return the maps that most links agree on, and the squared residuals (L,) of all links at full weight."""
    solution = solve(system, knowledge.weights(groups), start, ENOUGH_GAIN)
    squares = np.asarray(np.sum(solution.rows.residual**2, axis=1)) / knowledge.trust
    tolerated = float(squares.max(initial=0.0))
    while tolerated > TOLERATED_CHI2:
        tolerated = max(tolerated / SHRINKING, TOLERATED_CHI2)
        trust = np.maximum((tolerated / (tolerated + squares)) ** 2, LEAST_TRUST)
        weights = replace(knowledge, trust=trust).weights(groups)
        solution = solve(system, weights, solution.node_maps, ENOUGH_GAIN)
        squares = np.asarray(np.sum(solution.rows.residual**2, axis=1)) / trust
    return solution, squares
