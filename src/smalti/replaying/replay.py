"""What a project's answers would have been worth in the order in which other strategies ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from smalti.building.progress import Progress, Silence
from smalti.building.progress import Step as OnStep
from smalti.errors import UsageError
from smalti.experiments.methods import SMALTI, Loop, Method
from smalti.loop import ActiveLoop
from smalti.project.project import Project
from smalti.records import Answer, Pair
from smalti.replaying.difference import Difference
from smalti.replaying.order import AS_ASKED, Order, Replay, Step
from smalti.replaying.recollection import recollect
from smalti.suggestion.strategy import Strategy

DEFAULT_STRATEGIES = ("paper", SMALTI)


def replay(
    project: Project, strategies: Sequence[str | Strategy] = DEFAULT_STRATEGIES, *, progress: Progress | None = None
) -> Replay:
    """Ask the answered questions of a project again, one at a time, as each strategy would have asked them.

    `smalti`, or a strategy of your own, asks by the project's own loop, every other name by the paper's. Chain and
    looks are the project's own, candidates the pairs that have an answer in force, and the answers those that were
    given. There is no ground truth: the mosaic after all answers, as they were given, stands for it. What is compared
    with it is, whoever asks, the mosaic that the project's own loop makes of the same answers. Nothing is registered
    anew, and the project stays as it is.
    """
    names = [Method(strategy).strategy if isinstance(strategy, str) else strategy.name for strategy in strategies]
    if len(set(names)) < len(names):
        raise UsageError(f"strategies are given twice: {', '.join(names)}")
    progress = Silence() if progress is None else progress
    known = recollect(project)
    start, answers, count = known.start, known.answers, len(known.answers)
    with progress.stage("answers", count) as step:
        last = start
        for answer in answers:
            last = last.record(answer)
            step()
        difference = Difference(last.mosaic_from_frame, project.outline, last.part)

    def apart_px(state: Loop) -> float:
        mosaic = state if isinstance(state, ActiveLoop) else start.replay(state.answers)
        return difference.px(mosaic.mosaic_from_frame, mosaic.part)

    ways: dict[str, Iterable[Loop]] = {AS_ASKED: _take_in(start, answers)}
    for name, strategy in zip(names, strategies, strict=True):
        first = known.start_by(strategy)
        ways[name] = chain([first], first.run(known.agent))
    orders = []
    for name, states in ways.items():
        with progress.stage(name, count) as step:
            orders.append(Order(name, tuple(_measure(states, apart_px, known.used, step))))
    return Replay(tuple(orders))


def _take_in(state: ActiveLoop, answers: Iterable[Answer]) -> Iterator[ActiveLoop]:
    """Yield the states after every answer, the first before any."""
    yield state
    for answer in answers:
        state = state.record(answer)
        yield state


def _measure(
    states: Iterable[Loop], apart_px: Callable[[Loop], float], used: Sequence[int], on_step: OnStep
) -> Iterator[Step]:
    """Yield how far each state is from the last; the first is before any answer."""
    px = np.inf
    for state in states:
        answer = state.answers[-1] if state.answers else None
        if answer is None or answer.landmarks is not None:  # else no frame moves
            px = apart_px(state)
        if answer is None:
            yield Step(None, None, state.predicted_error_px, px)
        else:
            pair = Pair(used[answer.pair.i], used[answer.pair.j])
            yield Step(pair, answer.verdict, state.predicted_error_px, px)
            on_step()
