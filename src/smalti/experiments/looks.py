"""What a strategy is told about looks: what the experiment has, nothing, or things that mislead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UnknownNameError
from smalti.experiments.experiment import Experiment
from smalti.overlap.external import ExternalModel, FixedProbabilities, NoExternalModel
from smalti.records import PairNumbers

SURE = 0.999
MISSED, MISTAKEN = 0.15, 0.03
"""Of the pairs that overlap, and of those that do not: what an overconfident model is wrong about."""


def looks_named(name: str) -> Callable[[Experiment, np.random.Generator], ExternalModel]:
    """Look up what makes the external model of an experiment."""
    if name not in LOOKS:
        raise UnknownNameError("kind of looks", name, LOOKS)
    return LOOKS[name]


def _own(experiment: Experiment, _rng: np.random.Generator) -> ExternalModel:
    return experiment.external


def _none(experiment: Experiment, _rng: np.random.Generator) -> ExternalModel:
    return NoExternalModel(experiment.frames)


def _uninformative(experiment: Experiment, rng: np.random.Generator) -> ExternalModel:
    """Any number for any pair."""
    return FixedProbabilities(_drawn_by_pair(experiment.frames, rng))


def _adversarial(experiment: Experiment, _rng: np.random.Generator) -> ExternalModel:
    """A frame looks exactly like those it overlaps, and exactly like those half the sequence on."""
    overlap = _matrix(experiment.overlapping, experiment.frames)
    twin = np.roll(overlap, experiment.frames // 2, axis=1)
    return FixedProbabilities(np.where(overlap | twin | twin.T, SURE, 1.0 - SURE))


def _overconfident(experiment: Experiment, rng: np.random.Generator) -> ExternalModel:
    """Always sure, and wrong about some pairs at random."""
    overlap = _matrix(experiment.overlapping, experiment.frames)
    wrong = _drawn_by_pair(experiment.frames, rng) < np.where(overlap, MISSED, MISTAKEN)
    return FixedProbabilities(np.where(overlap ^ wrong, SURE, 1.0 - SURE))


LOOKS: dict[str, Callable[[Experiment, np.random.Generator], ExternalModel]] = {
    "own": _own,
    "none": _none,
    "uninformative": _uninformative,
    "adversarial": _adversarial,
    "overconfident": _overconfident,
}


def _drawn_by_pair(frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a number from 0 to 1 for every pair (N, N), symmetric."""
    above = np.triu(rng.random((frames, frames)), 1)
    drawn: NDArray[np.float64] = above + above.T
    return drawn


def _matrix(pairs: PairNumbers, frames: int) -> NDArray[np.bool_]:
    matrix = np.eye(frames, dtype=bool)
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = True
    return matrix
