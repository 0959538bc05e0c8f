"""Replay a project's answers in the order in which other strategies would ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.agents.agent import Agent
from smalti.agents.registration_methods import PIXELS
from smalti.appearance.keypoint_likeness import unpack_likeness
from smalti.appearance.visual_words import signatures_of
from smalti.building.chain import register_chain
from smalti.building.preparation import LONGEST_BASELINE
from smalti.building.raster import Places, places_of
from smalti.building.source_questions import Questions, usable
from smalti.errors import ProjectError, UsageError
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import PROJECTIVE, apply_map, family_named
from smalti.geometry.outline import Outline
from smalti.overlap.external_model import ExternalModel
from smalti.overlap.pair_likeness import PairLikeness
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.progress import Progress, Silence, Step as OnStep
from smalti.project.entries import Role, number_usable
from smalti.project.facts import Outcome, RegistrationFacts
from smalti.project.project import Project
from smalti.records import Answer, Homographies, Pair, PairNumbers, Points, Verdict, as_numbers
from smalti.suggestion.strategy import Strategy
from smalti_lab.experiments.methods import SMALTI, Loop, Method

DEFAULT_STRATEGIES = ("paper", SMALTI)


def replay(
    project: Project, strategies: Sequence[str | Strategy] = DEFAULT_STRATEGIES, *, progress: Progress | None = None
) -> Replay:
    """Ask the answered questions of a project again, one at a time, in the order of each strategy.

    `smalti`, or a strategy of your own, asks with the project's own loop; every other name asks with the paper's. Chain
    and appearance are the project's own. The candidates are the pairs that have an answer in force, and the answers are
    those that were given. There is no ground truth: the mosaic after all answers takes its place. Whatever the
    strategy, the mosaic compared with it is the one that the project's own loop makes of the same answers. Nothing is
    registered again, and the project does not change.
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
            orders.append(Order(name, tuple(_measure(states, apart_px, known.numbers, step))))
    return Replay(tuple(orders))


def _take_in(state: ActiveLoop, answers: Iterable[Answer]) -> Iterator[ActiveLoop]:
    """Yield the states after every answer, the first before any."""
    yield state
    for answer in answers:
        state = state.record(answer)
        yield state


def _measure(
    states: Iterable[Loop], apart_px: Callable[[Loop], float], numbers: FrameNumbers, on_step: OnStep
) -> Iterator[Step]:
    """Yield the difference of each state to the last. The first state is before any answer."""
    px = np.inf
    for state in states:
        answer = state.answers[-1] if state.answers else None
        if answer is None or answer.landmarks is not None:  # else no frame moves
            px = apart_px(state)
        if answer is None:
            yield Step(None, None, state.predicted_error_px, px)
        else:
            yield Step(numbers.pair_in_source(answer.pair), answer.verdict, state.predicted_error_px, px)
            on_step()


AS_ASKED = "as asked"
"""The order in which the questions were really answered."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The same answers in several orders. The real order comes first."""

    orders: tuple[Order, ...]

    @property
    def as_asked(self) -> Order:
        """The order in which the answers were really given."""
        return self.orders[0]


@dataclass(frozen=True, slots=True)
class Order:
    """The answers in one order. A strategy that has no question left ends before the last."""

    name: str
    steps: tuple[Step, ...]  # the n-th after n answers

    def answers_until_predicted(self, px: float) -> int | None:
        """Return the number of answers from which on the predicted error stays at `px` or below; None if never."""
        return _stays_from([step.predicted_error_px for step in self.steps], px)

    def answers_until_alike(self, px: float) -> int | None:
        """Return the number of answers from which on the mosaic stays within `px` of the final one; None if never."""
        return _stays_from([step.difference_px for step in self.steps], px)


@dataclass(frozen=True, slots=True)
class Step:
    """The state after an answer, in numbers."""

    pair: Pair | None  # in source numbers; None before the first answer
    verdict: Verdict | None
    predicted_error_px: float
    difference_px: float  # to the final mosaic, see `Difference`


def _stays_from(values: Sequence[float], limit: float) -> int | None:
    above = np.flatnonzero(np.asarray(values) > limit)
    first = int(above[-1]) + 1 if len(above) else 0
    return first if first < len(values) else None


@dataclass(frozen=True, slots=True, eq=False)
class Recollection:
    """The state before the first question, and the answers since."""

    numbers: FrameNumbers
    start: ActiveLoop  # asks only about answered pairs
    words: ExternalModel  # for the paper's loop, which weighs words by the answers
    answers: tuple[Answer, ...]  # in the order in which they were given
    agent: Agent  # gives the same answers again

    def start_by(self, strategy: str | Strategy) -> Loop:
        """Return the start state for a strategy, with the loop that belongs to it."""
        if not isinstance(strategy, str):
            return replace(self.start, setup=replace(self.start.setup, strategy=strategy))
        if strategy == SMALTI:
            return self.start
        return Method(strategy).start(
            self.start.frames,
            self.start.outline,
            list(self.start.chain.values()),
            external=self.words,
            only=as_numbers(answer.pair for answer in self.answers),
        )


def recollect(project: Project) -> Recollection:
    """Prepare a project again from its log and its cache, or say what is missing there.

    The log is read once, because others may go on answering. Pairs that the chain's registration refused are no
    questions, although a build that comes upon them gives the same answer again.
    """
    numbers = number_usable(project.frames)
    appearance = _appearance(project, numbers)
    if appearance is None:
        raise ProjectError(
            f"{project.folder}: the appearance of its frames is not in its cache folder; run the same smalti build "
            "or smalti annotate command again, which computes it"
        )
    questions = Questions(project.store, lambda role: _Nobody(project.folder), numbers)
    registration = project.store.fact(RegistrationFacts)
    longest_baseline = LONGEST_BASELINE if registration is not None and registration.method == PIXELS else 0
    places = places_of([frame.label for frame in project.frames])
    used = Places([places[number] for number in numbers], places[-1] + 1)
    chain = register_chain(len(numbers), project.outline, questions.ask, 2 * len(numbers), longest_baseline, used)
    joined = {landmarks.pair for landmarks in chain.links}
    answers = tuple(questions.given_after(joined))
    if not answers:
        raise ProjectError(f"{project.folder}: no question was answered yet; there is nothing to replay")
    outcome = project.store.fact(Outcome)
    start = ActiveLoop.start(
        len(numbers),
        project.outline,
        chain.links,
        external=appearance,
        family=PROJECTIVE if outcome is None else family_named(outcome.family),
        only=as_numbers(answer.pair for answer in answers),
    )
    answers = tuple(usable(answer, start.link_of) for answer in answers)
    words = appearance if isinstance(appearance, WeightedSignatures) else _words(project, numbers)
    return Recollection(numbers, start, words, answers, questions.asking(Role.LOOP, start.link_of))


def _appearance(project: Project, numbers: FrameNumbers) -> PairLikeness | WeightedSignatures | None:
    """Return the appearance that the project's own loop used, or what an older Smalti has left."""
    packed = project.cache.array("likeness")
    likeness = None if packed is None else unpack_likeness(packed, len(numbers))
    if likeness is not None:
        return PairLikeness(likeness)
    signatures = project.cache.array("signatures")
    return None if signatures is None else WeightedSignatures(signatures)


def _words(project: Project, numbers: FrameNumbers) -> WeightedSignatures:
    seed = project.source_facts.binding.seed
    return WeightedSignatures(signatures_of(map(project.cache.keypoints, numbers), project.outline, seed))


@dataclass(frozen=True, slots=True)
class _Nobody:
    """Replaces the matcher: it answers nothing new."""

    folder: Path

    def answer(self, pair: Pair) -> Answer:
        raise ProjectError(
            f"{self.folder}: its chain is not registered to the end; go on with smalti build or smalti annotate first"
        )


GRID = 6
"""Points of a frame along either side. Two frames overlap if one of the points lies in both."""

MOST_PAIRS = 20_000
"""Pairs of frames that may overlap. If there are more, so many are used, spread evenly."""


class Difference:
    """The paper's relative error with a mosaic in the place of the truth.

    It is the RMS distance, in pixels of frame i, between the positions that two mosaics give to the points of frame j
    that i shows. It covers all pairs of frames that overlap on the mosaic in the place of the truth. Pairs of its
    different parts do not count. If the other mosaic has not joined two frames yet, their relative position is unknown:
    their points count with the diagonal of a frame, and larger distances count the same.
    """

    def __init__(self, mosaic_from_frame: Homographies, outline: Outline, part: NDArray[np.int64]) -> None:
        """Take the mosaic to compare with (N, 3, 3), and the part of every frame (N,)."""
        pairs = _near(mosaic_from_frame, outline, part)
        chosen = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_PAIRS)).round().astype(int)
        self._i, self._j = pairs[chosen].T
        self._points = _grid(outline)
        self._seen = self._map(mosaic_from_frame)  # (n, points, 2)
        self._shown = outline.contains(self._seen)
        self._farthest = 2.0 * outline.outer_half_side
        assert self._shown.any(), "linked frames overlap"

    def px(self, mosaic_from_frame: Homographies, part: NDArray[np.int64]) -> float:
        """Return the difference of a mosaic of the same frames, with its own parts, to the one to compare with."""
        off = np.linalg.norm(self._map(mosaic_from_frame) - self._seen, axis=2)
        off[part[self._i] != part[self._j]] = np.inf
        return float(np.sqrt(np.mean(np.minimum(off, self._farthest)[self._shown] ** 2)))

    def _map(self, mosaic_from_frame: Homographies) -> Points:
        return apply_map(np.linalg.inv(mosaic_from_frame)[self._i] @ mosaic_from_frame[self._j], self._points)


def _near(mosaic_from_frame: Homographies, outline: Outline, part: NDArray[np.int64]) -> PairNumbers:
    """Return the pairs i < j (n, 2) of a part whose circumscribed circles meet."""
    centres = apply_map(mosaic_from_frame, outline.centre[None])[:, 0]
    radius = np.linalg.norm(apply_map(mosaic_from_frame, outline.corners) - centres[:, None], axis=2).max(axis=1)
    found = []
    for i in range(len(part) - 1):
        distance = np.linalg.norm(centres[i + 1 :] - centres[i], axis=1)
        j = i + 1 + np.flatnonzero((distance < radius[i] + radius[i + 1 :]) & (part[i + 1 :] == part[i]))
        found.append(np.column_stack([np.full(len(j), i), j]))
    return np.concatenate(found)


def _grid(outline: Outline) -> Points:
    """Return the centres of GRID × GRID cells of a frame."""
    share = (np.arange(GRID) + 0.5) / GRID
    x, y = np.meshgrid(outline.left + share * outline.width, outline.top + share * outline.height)
    return np.column_stack([x.ravel(), y.ravel()])
