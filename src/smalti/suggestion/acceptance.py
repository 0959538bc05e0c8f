"""What an agent says yes to: all that overlaps by half or more; how much of the rest is learned from its answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.engine.system import System
from smalti.suggestion.survey import REACHES

YES_IMAGINED = np.array([50.0, 0.5, 0.1, 0.0, 0.0])
NO_IMAGINED = np.array([1.0, 3.0, 3.0, 1.0, 1.0])
"""Answers of each kind of pair that are imagined to have been given before any was."""

ROUNDS = 3
"""In which refusals are put down to the kinds of pairs that they are likely to have been."""


def acceptance(system: System, refused: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how often each kind of pair (k,) gets a yes: by the links, and by what refused pairs may be (r, k)."""
    outline = system.outline
    offset = np.abs(system.offsets) * outline.unit
    furthest = (offset / (outline.width, outline.height)).max(axis=1)
    yes = YES_IMAGINED + np.bincount(np.searchsorted(REACHES / 2.0, furthest), minlength=len(YES_IMAGINED))
    rates: NDArray[np.float64] = yes / (yes + NO_IMAGINED)
    for _ in range(ROUNDS):
        blamed = refused * (1.0 - rates)
        no = (blamed / np.maximum(blamed.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)).sum(axis=0)
        rates = yes / (yes + NO_IMAGINED + no)
    return rates
