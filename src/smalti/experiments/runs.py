"""One run of an experiment: frames, a strategy, a seed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.experiments.experiment import Experiment, experiment_named
from smalti.experiments.looks import looks_named
from smalti.experiments.metrics import smallest_area
from smalti.geometry.affine import apply
from smalti.geometry.family import family_named
from smalti.geometry.outline import Outline
from smalti.loop import ActiveLoop, StopRule
from smalti.records import Pair, Points, Transforms
from smalti.suggestion.reward import (
    expected_informativeness,
    informativeness,
    position_probability,
    position_probability_bounds,
)
from smalti.suggestion.strategies import strategy_named

PICTURED_QUERIES = (0, 1, 2, 5, 10, 20, 50)
"""The answers after which the matrices of a pictured run are kept."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run depends on."""

    experiment: str
    frames: int
    queries: int
    family: str
    strategy: str
    seed: int
    looks: str = "own"
    chain_noise: float = 1.0  # the chain's real noise, in units of what its landmarks say
    batch: int = 1
    learned: bool = False  # noise and camera, whatever the strategy


@dataclass(frozen=True, slots=True)
class Row:
    """The state after one answer; query 0 is the state before any."""

    query: int
    i: int | None
    j: int | None
    answer: str
    relative_rmsd_px: float
    shape_rmsd_px: float  # NaN where the truth does not tell
    predicted_rmsd_px: float
    probability: float  # of overlap, as the strategy thought before it asked; NaN where it thinks of none
    bound_px: float  # stated to be above the error nine times of ten; NaN where nothing is stated
    seconds: float  # from the answer before to this one's mosaic, its prediction included


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run found."""

    settings: RunSettings
    rows: list[Row]
    stopped: str
    smallest_area: float
    true_centres: Points  # (N, 2), in any unit
    initial_centres: Points  # (N, 2), refined mosaic
    final_centres: Points
    pictures: dict[str, NDArray[np.float32]]  # matrices (N, N) by name, of a pictured run


def perform(settings: RunSettings, pictured: bool, on_answer: Callable[[], None], folder: Path | None = None) -> Run:
    """Ask until the queries are used up or the strategy has nothing left to ask.

    In `folder`, if there is one, an experiment keeps what takes long to find.
    """
    experiment = experiment_named(settings.experiment).make(settings.frames, settings.seed, folder)
    agent = experiment.agent(settings.seed, chain_noise=settings.chain_noise)
    external = looks_named(settings.looks)(experiment, np.random.default_rng([settings.seed, 2]))
    begin = time.perf_counter()
    state = experiment.start(
        agent,
        external,
        strategy_named(settings.strategy),
        family_named(settings.family),
        StopRule(budget=settings.queries),
        learns=True if settings.learned else None,
    )
    mosaic = state.refined.mosaic_from_frame
    rows = [_measure(experiment, state, mosaic, begin)]
    initial = _centres(mosaic, experiment.outline)
    pictures = _first_pictures(state) if pictured else {}
    if pictured:
        pictures |= _pictures_of_answer(state)
    begin = time.perf_counter()
    for latest in state.run(agent, settings.batch):
        # A refusal adds no link: the mosaic, and how far it is from the truth, stay as they are.
        same = rows[-1] if latest.adjustment is state.adjustment else None
        if same is None:
            mosaic = latest.refined.mosaic_from_frame
        row = _measure(experiment, latest, mosaic, begin, same)
        rows.append(replace(row, probability=_probability(state, latest.answers[-1].pair, settings.batch)))
        state = latest
        if pictured and len(state.answers) in PICTURED_QUERIES:
            pictures |= _pictures_of_answer(state)
        on_answer()
        begin = time.perf_counter()
    return Run(
        settings=settings,
        rows=rows,
        stopped=str(state.stop_reason()),
        smallest_area=smallest_area(mosaic),
        true_centres=experiment.positions,
        initial_centres=initial,
        final_centres=_centres(mosaic, experiment.outline),
        pictures=pictures,
    )


def _measure(
    experiment: Experiment, state: ActiveLoop, mosaic: Transforms, begin: float, same: Row | None = None
) -> Row:
    """Return the row of a state; `same` is one of the same mosaic, if there is one."""
    predicted = state.predicted_error_px
    seconds = time.perf_counter() - begin
    last = state.answers[-1] if state.answers else None
    return Row(
        query=len(state.answers),
        i=None if last is None else last.pair.i,
        j=None if last is None else last.pair.j,
        answer="" if last is None else str(last.verdict),
        relative_rmsd_px=experiment.relative_rmsd(mosaic) if same is None else same.relative_rmsd_px,
        shape_rmsd_px=experiment.shape_rmsd(mosaic) if same is None else same.shape_rmsd_px,
        predicted_rmsd_px=predicted,
        probability=math.nan,
        bound_px=state.error_bound_px if state.learns else math.nan,
        seconds=seconds,
    )


def _probability(before: ActiveLoop, pair: Pair, batch: int) -> float:
    """Return what was thought of a pair before it was answered, NaN if the strategy thinks of no probability."""
    # Of a batch only the first is the best one of the state before it.
    suggestion = before.best if batch == 1 else before.likely(pair)
    assert suggestion is not None
    reasons = suggestion.reasons
    if "overlap" in reasons:
        return reasons["overlap"]
    return reasons.get("position", math.nan) * reasons.get("external", math.nan)


def _centres(mosaic: Transforms, outline: Outline) -> Points:
    return apply(mosaic, outline.centre[None])[:, 0]


def _first_pictures(state: ActiveLoop) -> dict[str, NDArray[np.float32]]:
    centres = state.view.centres
    lower, upper = position_probability_bounds(centres)
    return {
        "lower": lower.astype(np.float32),
        "exact": position_probability(centres).astype(np.float32),
        "upper": upper.astype(np.float32),
        "external": state.view.external_probabilities.astype(np.float32),
    }


def _pictures_of_answer(state: ActiveLoop) -> dict[str, NDArray[np.float32]]:
    centres, query = state.view.centres, len(state.answers)
    external = np.triu(state.view.external_probabilities, 1)
    i, j = np.nonzero(external)  # where P^ext is 0 there is nothing to expect
    reward = np.zeros_like(external)
    reward[i, j] = external[i, j] * expected_informativeness(centres, np.column_stack([i, j]))
    return {
        f"informativeness-{query}": informativeness(centres).astype(np.float32),
        f"reward-{query}": (reward + reward.T).astype(np.float32),
    }
