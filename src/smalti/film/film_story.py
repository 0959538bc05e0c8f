"""What the film shows: the mosaic by the chain alone, after each answer, and finished; and the residuals of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.engine.estimate import Estimate
from smalti.errors import ProjectError
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import normalise, project_points
from smalti.geometry.lens import Lens
from smalti.project.entries import Placement
from smalti.project.project import Project
from smalti.project.uncertainty import state_of
from smalti.records import Homographies, Landmarks, Pair


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The mosaic after some answers, in the coordinates of the part's reference frame."""

    maps: Homographies  # (n, 3, 3), in the order of the story's frames
    is_placed: NDArray[np.bool_]  # (n,): the frames that hang together with the reference by now
    answers: int  # given so far
    newest: Pair | None  # of the latest answer, by places among the story's frames; None for the chain and at last
    off_px: float | None  # RMS by which the landmarks of all loops are missed; None where there is none to miss


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """The states in their order: by the chain alone, after answers, finished."""

    frames: tuple[int, ...]  # ascending, numbers of the source
    lens: Lens
    answers: int
    states: tuple[State, ...]


def tell_story(project: Project, part: int, most_steps: int) -> Story:
    """Compute a part of a finished project again: by the chain alone, then with ever more answers."""
    placements = _read_placements(project, part)
    numbers = tuple(placement.number for placement in placements)
    finished = np.array([placement.final for placement in placements])
    state = state_of(project)
    own = {state.numbers.in_engine(number) for number in numbers if number in state.numbers}
    loop = state.loop
    accepted = [
        answer
        for answer in state.answers
        if answer.landmarks is not None
        and answer.pair not in loop.rejected
        and answer.pair.i in own
        and answer.pair.j in own
    ]
    among = {state.numbers.in_engine(number): n for n, number in enumerate(numbers) if number in state.numbers}
    told = [Pair(among[answer.pair.i], among[answer.pair.j]) for answer in accepted]
    records = [answer.of_pair(pair).landmarks for answer, pair in zip(accepted, told, strict=True)]
    residuals = LoopResiduals([record for record in records if record is not None], project.lens)
    reference = state.numbers.in_engine(project.outcome.references[part])
    states = []
    for count in [0, *spread_answers(len(accepted), most_steps)]:
        estimate = state.start.replay(accepted[:count]).estimate
        maps, is_placed = _seen_from(estimate, reference, numbers, state.numbers, finished)
        newest = told[count - 1] if count else None
        states.append(State(maps, is_placed, count, newest, residuals.rms_px(maps, is_placed)))
    everywhere = np.ones(len(finished), dtype=np.bool_)
    states.append(State(finished, everywhere, len(accepted), None, residuals.rms_px(finished, everywhere)))
    return Story(numbers, project.lens, len(accepted), tuple(states))


def spread_answers(answers: int, most_steps: int) -> list[int]:
    """Return how many answers are given after each of at most so many steps.

    Where not every answer can have a step of its own, the last ones share: the engine asks first what teaches most.
    """
    if answers <= most_steps:
        return list(range(1, answers + 1))
    # The power by which the first step is one answer and the last one ends with all.
    power = np.log(answers) / np.log(max(most_steps, 2))
    given = np.unique(np.round(np.arange(1, most_steps + 1) ** power).astype(np.int64))
    given[-1] = answers
    return [int(count) for count in given]


def _read_placements(project: Project, part: int) -> list[Placement]:
    placements = project.placements
    own = [placement for placement in placements if placement.part == part]
    if not own:
        parts = len({placement.part for placement in placements})
        known = f"it has parts 0 to {parts - 1}" if parts else "nothing was placed"
        raise ProjectError(f"{project.folder}: has no mosaic of part {part}; {known}")
    return own


def _seen_from(
    estimate: Estimate,
    reference: int,
    numbers: Sequence[int],
    usable: FrameNumbers,
    finished: Homographies,
) -> tuple[Homographies, NDArray[np.bool_]]:
    """Return the maps (n, 3, 3) of frames in the finished mosaic's coordinates, and which are joined to the reference.

    A frame that was set aside goes with the nearest one that is not.
    """
    known = [n for n, number in enumerate(numbers) if number in usable]
    at = np.array([numbers[n] for n in known])
    at_reference = known[[usable.in_engine(numbers[n]) for n in known].index(reference)]
    maps, is_placed = finished.copy(), np.zeros(len(numbers), dtype=np.bool_)
    to_finished = finished[at_reference] @ np.linalg.inv(estimate.mosaic_from_frame[reference])
    for n, number in enumerate(numbers):
        nearest = known[int(np.argmin(np.abs(at - number)))]
        frame = usable.in_engine(numbers[nearest])
        own = to_finished @ estimate.mosaic_from_frame[frame]
        maps[n] = own @ np.linalg.inv(finished[nearest]) @ finished[n]
        is_placed[n] = estimate.part[frame] == estimate.part[reference]
    return normalise(maps), is_placed


class LoopResiduals:
    """The landmarks of loops below each other, to be held against one mosaic after the other."""

    def __init__(self, loops: Sequence[Landmarks], lens: Lens) -> None:
        self._lens = lens
        self._ends = np.array([(record.pair.i, record.pair.j) for record in loops], dtype=np.int64).reshape(-1, 2)
        self._loop = np.repeat(np.arange(len(loops)), [len(record) for record in loops])
        self._points_i = np.concatenate([np.empty((0, 2)), *(record.points_i for record in loops)])
        self._points_j = np.concatenate([np.empty((0, 2)), *(record.points_j for record in loops)])

    def rms_px(self, maps: Homographies, is_placed: NDArray[np.bool_]) -> float | None:
        """Return the RMS over the loops between frames that are placed, in pixels of frame i; None if there is none.

        Every loop counts alike, as in the project's `chain_error_px`.
        """
        held = is_placed[self._ends].all(axis=1)
        if not held.any():
            return None
        i, j = self._ends.T
        i_from_j = (np.linalg.inv(maps)[i] @ maps[j])[self._loop]
        mapped = project_points(i_from_j, self._lens.straighten(self._points_j)[:, None])[:, 0]
        distances = self._lens.bend(mapped) - self._points_i
        squares = np.bincount(self._loop, np.sum(distances**2, axis=1)) / np.bincount(self._loop)
        return float(np.sqrt(np.mean(squares[held])))
