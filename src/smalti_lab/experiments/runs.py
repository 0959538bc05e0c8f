"""One run of an experiment: frames, a strategy, a seed, and an external model of appearance."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.errors import UnknownNameError
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import ExternalModel, FixedProbabilities, NoExternalModel
from smalti.paper.paper_loop import PaperLoop
from smalti.paper.paper_strategy import (
    expected_informativeness,
    informativeness,
    position_probability,
    position_probability_bounds,
)
from smalti.records import Pair, PairNumbers, Points
from smalti_lab.experiments.experiment import Experiment, experiment_named
from smalti_lab.experiments.methods import FrameMaps, Loop, Method
from smalti_lab.synthetic.truth import smallest_area

PICTURED_QUERIES = (0, 1, 2, 5, 10, 20, 50)
"""The numbers of answers after which the matrices of a pictured run are kept."""

ERRORS = ("relative_rmsd_px", "own_rmsd_px", "shape_rmsd_px")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run depends on."""

    experiment: str
    frames: int
    queries: int
    family: str
    strategy: str
    seed: int
    appearance: str = "own"
    chain_noise: float = 1.0  # the chain's real noise, in units of the stated noise
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """The state after one answer. Query 0 is the state before any."""

    query: int
    i: int | None
    j: int | None
    answer: str
    relative_rmsd_px: float  # of the mosaic that people get
    own_rmsd_px: float  # of the method's own mosaic while it asks
    shape_rmsd_px: float  # NaN if the truth does not determine it
    predicted_rmsd_px: float
    probability: float  # of overlap, stated before the question; NaN if the strategy has none
    bound_px: float  # the error is below it with a stated probability of 0.9; NaN without a statement
    seconds: float  # from the previous answer to this one's mosaic, with its prediction, without its finish


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The result of a run."""

    settings: RunSettings
    rows: list[Row]
    stopped: str
    smallest_area: float
    true_centres: Points  # (N, 2), in any unit
    initial_centres: Points  # (N, 2), of the mosaic that people get
    final_centres: Points
    pictures: dict[str, NDArray[np.float32]]  # matrices (N, N) by name, of a pictured run by the paper's loop


def perform(settings: RunSettings, pictured: bool, on_answer: Callable[[], None], folder: Path | None = None) -> Run:
    """Ask until the queries are used up or the strategy has no question left.

    An experiment stores slow results in `folder`, if there is one.
    """
    experiment = experiment_named(settings.experiment).make(settings.frames, settings.seed, folder)
    agent = experiment.agent(settings.seed, chain_noise=settings.chain_noise)
    external = appearance_named(settings.appearance)(experiment, np.random.default_rng([settings.seed, 2]))
    method = Method(settings.strategy, settings.family)
    begin = time.perf_counter()
    state = experiment.start(agent, external, method, StopRule(budget=settings.queries))
    finish = experiment.finish(state)
    row = _row_of(state, begin)
    maps = finish(state)
    rows = [_with_errors(row, experiment, state, maps)]
    initial = _centres(maps, experiment.outline)
    pictures = _first_pictures(state) | _pictures_of_answer(state) if pictured and isinstance(state, PaperLoop) else {}
    begin = time.perf_counter()
    for latest in state.run(agent, settings.batch):
        row = _row_of(latest, begin)
        if latest.links is state.links:
            # A no adds no link, so the mosaic and its errors stay as they are.
            row = replace(row, **{name: getattr(rows[-1], name) for name in ERRORS})
        else:
            maps = finish(latest)
            row = _with_errors(row, experiment, latest, maps)
        rows.append(replace(row, probability=_probability(state, latest.answers[-1].pair, settings.batch)))
        state = latest
        if pictures and isinstance(state, PaperLoop) and len(state.answers) in PICTURED_QUERIES:
            pictures |= _pictures_of_answer(state)
        on_answer()
        begin = time.perf_counter()
    return Run(
        settings=settings,
        rows=rows,
        stopped=str(state.stop_reason()),
        smallest_area=smallest_area(maps.mosaic_from_frame, experiment.outline),
        true_centres=experiment.positions,
        initial_centres=initial,
        final_centres=_centres(maps, experiment.outline),
        pictures=pictures,
    )


def _row_of(state: Loop, begin: float) -> Row:
    """Return the row of a state, without its errors."""
    predicted = state.predicted_error_px
    seconds = time.perf_counter() - begin
    last = state.answers[-1] if state.answers else None
    return Row(
        query=len(state.answers),
        i=None if last is None else last.pair.i,
        j=None if last is None else last.pair.j,
        answer="" if last is None else str(last.verdict),
        relative_rmsd_px=math.nan,
        own_rmsd_px=math.nan,
        shape_rmsd_px=math.nan,
        predicted_rmsd_px=predicted,
        probability=math.nan,
        # The paper states no bound.
        bound_px=state.error_bound_px if isinstance(state, ActiveLoop) else math.nan,
        seconds=seconds,
    )


def _with_errors(row: Row, experiment: Experiment, state: Loop, maps: FrameMaps) -> Row:
    return replace(
        row,
        relative_rmsd_px=experiment.relative_rmsd(maps),
        own_rmsd_px=experiment.relative_rmsd(FrameMaps.of(state)),
        shape_rmsd_px=experiment.shape_rmsd(maps),
    )


def _probability(before: Loop, pair: Pair, batch: int) -> float:
    """Return the stated probability of a pair before it was answered; NaN if the strategy has none."""
    # Only the first pair of a batch is the best of the state before it. The paper's loop asks one at a time.
    alone = batch == 1 or isinstance(before, PaperLoop)
    suggestion = before.best if alone else before.likely(pair)
    assert suggestion is not None
    return suggestion.reasons.get("overlap", math.nan)


def _centres(maps: FrameMaps, outline: Outline) -> Points:
    return apply_map(maps.mosaic_from_frame, outline.centre[None])[:, 0]


def _first_pictures(state: PaperLoop) -> dict[str, NDArray[np.float32]]:
    centres = state.view.centres
    lower, upper = position_probability_bounds(centres)
    return {
        "lower": lower.astype(np.float32),
        "exact": position_probability(centres).astype(np.float32),
        "upper": upper.astype(np.float32),
        "external": state.view.external_probabilities.astype(np.float32),
    }


def _pictures_of_answer(state: PaperLoop) -> dict[str, NDArray[np.float32]]:
    centres, query = state.view.centres, len(state.answers)
    external = np.triu(state.view.external_probabilities, 1)
    i, j = np.nonzero(external)  # where P^ext is 0 there is nothing to expect
    reward = np.zeros_like(external)
    reward[i, j] = external[i, j] * expected_informativeness(centres, np.column_stack([i, j]))
    return {
        f"informativeness-{query}": informativeness(centres).astype(np.float32),
        f"reward-{query}": (reward + reward.T).astype(np.float32),
    }


SURE = 0.999
MISSED, MISTAKEN = 0.15, 0.03
"""Error rates of an overconfident model: on pairs that overlap, and on pairs that do not."""


def appearance_named(name: str) -> Callable[[Experiment, np.random.Generator], ExternalModel]:
    """Return the maker of an experiment's external model by its name."""
    if name not in APPEARANCES:
        raise UnknownNameError("kind of appearance", name, APPEARANCES)
    return APPEARANCES[name]


def _own(experiment: Experiment, _rng: np.random.Generator) -> ExternalModel:
    return experiment.external


def _none(experiment: Experiment, _rng: np.random.Generator) -> ExternalModel:
    return NoExternalModel(experiment.frames)


def _uninformative(experiment: Experiment, rng: np.random.Generator) -> ExternalModel:
    """A random number for every pair."""
    return FixedProbabilities(_drawn_by_pair(experiment.frames, rng))


def _adversarial(experiment: Experiment, _rng: np.random.Generator) -> ExternalModel:
    """A frame looks exactly like those it overlaps, and exactly like those half the sequence later."""
    overlap = _matrix(experiment.overlapping, experiment.frames)
    twin = np.roll(overlap, experiment.frames // 2, axis=1)
    return FixedProbabilities(np.where(overlap | twin | twin.T, SURE, 1.0 - SURE))


def _overconfident(experiment: Experiment, rng: np.random.Generator) -> ExternalModel:
    """Always certain, and wrong about some pairs at random."""
    overlap = _matrix(experiment.overlapping, experiment.frames)
    wrong = _drawn_by_pair(experiment.frames, rng) < np.where(overlap, MISSED, MISTAKEN)
    return FixedProbabilities(np.where(overlap ^ wrong, SURE, 1.0 - SURE))


APPEARANCES: dict[str, Callable[[Experiment, np.random.Generator], ExternalModel]] = {
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
