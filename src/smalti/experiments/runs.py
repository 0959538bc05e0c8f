"""One run of an experiment: a world, a strategy, a seed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.experiments.metrics import relative_rmsd, shape_rmsd, smallest_area
from smalti.experiments.worlds import OUTLINE, World, world_named
from smalti.geometry.affine import apply
from smalti.geometry.family import family_named
from smalti.loop import ActiveLoop, StopRule
from smalti.records import Points, Transforms
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


@dataclass(frozen=True, slots=True)
class Row:
    """The state after one answer; query 0 is the state before any."""

    query: int
    i: int | None
    j: int | None
    answer: str
    relative_rmsd_px: float
    shape_rmsd_px: float
    predicted_rmsd_px: float
    seconds: float  # from the answer before to this one's mosaic, its prediction included


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run found."""

    settings: RunSettings
    rows: list[Row]
    stopped: str
    smallest_area: float
    initial_centres: Points  # (N, 2), refined mosaic
    final_centres: Points
    pictures: dict[str, NDArray[np.float32]]  # matrices (N, N) by name, of a pictured run


def perform(settings: RunSettings, pictured: bool, on_answer: Callable[[], None]) -> Run:
    """Ask until the queries are used up or the strategy has nothing left to ask."""
    world = world_named(settings.experiment, settings.frames)
    agent = world.agent(settings.seed)
    begin = time.perf_counter()
    state = ActiveLoop.start(
        settings.frames,
        OUTLINE,
        world.chain(agent),
        external=world.external,
        strategy=strategy_named(settings.strategy),
        family=family_named(settings.family),
        stop_rule=StopRule(budget=settings.queries),
    )
    mosaic = state.refined.mosaic_from_frame
    rows = [_measure(world, state, mosaic, begin)]
    initial = _centres(mosaic)
    pictures = _first_pictures(state) if pictured else {}
    if pictured:
        pictures |= _pictures_of_answer(state)
    begin = time.perf_counter()
    for latest in state.run(agent):
        # A refusal adds no link: the mosaic, and how far it is from the truth, stay as they are.
        same = rows[-1] if latest.adjustment is state.adjustment else None
        state = latest
        if same is None:
            mosaic = state.refined.mosaic_from_frame
        rows.append(_measure(world, state, mosaic, begin, same))
        if pictured and len(state.answers) in PICTURED_QUERIES:
            pictures |= _pictures_of_answer(state)
        on_answer()
        begin = time.perf_counter()
    return Run(
        settings=settings,
        rows=rows,
        stopped=str(state.stop_reason()),
        smallest_area=smallest_area(mosaic),
        initial_centres=initial,
        final_centres=_centres(mosaic),
        pictures=pictures,
    )


def _measure(world: World, state: ActiveLoop, mosaic: Transforms, begin: float, same: Row | None = None) -> Row:
    """Return the row of a state; `same` is one of the same mosaic, if there is one."""
    predicted = state.predicted_error_px
    seconds = time.perf_counter() - begin
    last = state.answers[-1] if state.answers else None
    return Row(
        query=len(state.answers),
        i=None if last is None else last.pair.i,
        j=None if last is None else last.pair.j,
        answer="" if last is None else str(last.verdict),
        relative_rmsd_px=relative_rmsd(world, mosaic) if same is None else same.relative_rmsd_px,
        shape_rmsd_px=shape_rmsd(world, mosaic) if same is None else same.shape_rmsd_px,
        predicted_rmsd_px=predicted,
        seconds=seconds,
    )


def _centres(mosaic: Transforms) -> Points:
    return apply(mosaic, OUTLINE.centre[None])[:, 0]


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
