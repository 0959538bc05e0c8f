"""What a project's answers would have been worth in the order in which other strategies ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain

import numpy as np

from smalti.building.progress import Progress, Silence
from smalti.building.progress import Step as OnStep
from smalti.building.settings import BuildSettings
from smalti.errors import UsageError
from smalti.loop import ActiveLoop
from smalti.project.project import Project
from smalti.records import Pair
from smalti.replaying.difference import Difference
from smalti.replaying.order import AS_ASKED, Order, Replay, Step
from smalti.replaying.recollection import recollect
from smalti.suggestion.strategies import Strategy, strategy_named

DEFAULT_STRATEGIES = ("paper", BuildSettings().strategy)


def replay(
    project: Project, strategies: Sequence[str | Strategy] = DEFAULT_STRATEGIES, *, progress: Progress | None = None
) -> Replay:
    """Ask the answered questions of a project again, one at a time, as each strategy would have asked them.

    Chain, looks and noise are the project's own, candidates the pairs that have an answer in force, and the answers
    those that were given. There is no ground truth: the mosaic after all answers, as they were given, stands for it.
    Nothing is registered anew, and the project stays as it is.
    """
    chosen = [strategy_named(strategy) if isinstance(strategy, str) else strategy for strategy in strategies]
    names = [strategy.name for strategy in chosen]
    if len(set(names)) < len(names):
        raise UsageError(f"strategies are given twice: {', '.join(names)}")
    progress = Silence() if progress is None else progress
    known = recollect(project)
    start, answers, count = known.start, known.answers, len(known.answers)
    last = start
    with progress.stage("answers", count) as step:
        for answer in answers:
            last = last.record(answer)
            step()
    part = last.adjustment.parts_without(last.priors)
    difference = Difference(last.refined.mosaic_from_frame, project.outline, part)
    ways: dict[str, Iterable[ActiveLoop]] = {AS_ASKED: accumulate(answers, ActiveLoop.record, initial=start)}
    for strategy in chosen:
        ways[strategy.name] = chain([start], replace(start, strategy=strategy).run(known.agent))
    orders = []
    for name, states in ways.items():
        with progress.stage(name, count) as step:
            orders.append(Order(name, tuple(_measure(states, difference, known.used, step))))
    return Replay(tuple(orders))


def _measure(
    states: Iterable[ActiveLoop], difference: Difference, used: Sequence[int], on_step: OnStep
) -> Iterator[Step]:
    """Yield how far each state is from the last; the first is before any answer."""
    apart_px = np.inf
    for state in states:
        answer = state.answers[-1] if state.answers else None
        if answer is None or answer.landmarks is not None:  # else no frame moves
            apart_px = difference.px(state.refined.mosaic_from_frame)
        if answer is None:
            yield Step(None, None, state.predicted_error_px, apart_px)
        else:
            pair = Pair(used[answer.pair.i], used[answer.pair.j])
            yield Step(pair, answer.verdict, state.predicted_error_px, apart_px)
            on_step()
