"""The states that the film shows: the chain alone, after each answer, finished; and the residuals at loops."""

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
from smalti.records import Homographies, Landmarks, Pair, without_direction


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The mosaic after some answers, in the coordinates of the part's reference frame."""

    maps: Homographies  # (n, 3, 3), in the order of the story's frames
    is_placed: NDArray[np.bool_]  # (n,): whether links join the frame to the reference by now
    answers: int  # number of answers so far
    newest: Pair | None  # of the latest answer, by index of the story's frames; None for chain and finished mosaic
    loop_error_px: float | None  # RMS residual of the landmarks of all loops; None without loops


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """The states in order: the chain alone, after answers, finished."""

    frames: tuple[int, ...]  # ascending, numbers of the source
    lens: Lens
    answers: int
    states: tuple[State, ...]


def tell_story(project: Project, part: int, most_steps: int) -> Story:
    """Compute a part of a finished project again: the chain alone, then with more and more answers."""
    placements = _read_placements(project, part)
    numbers = tuple(placement.number for placement in placements)
    finished = np.array([placement.final for placement in placements])
    state = state_of(project)
    engine = state.numbers
    own = {engine.in_engine(number) for number in numbers if number in engine}
    loop = state.loop
    accepted = [
        answer
        for answer in state.answers
        if answer.landmarks is not None
        and answer.pair not in loop.rejected
        and answer.pair.i in own
        and answer.pair.j in own
    ]
    index_of = {engine.in_engine(number): n for n, number in enumerate(numbers) if number in engine}
    pairs = [Pair(index_of[answer.pair.i], index_of[answer.pair.j]) for answer in accepted]
    records = [answer.of_pair(pair).landmarks for answer, pair in zip(accepted, pairs, strict=True)]
    residuals = LoopResiduals([record for record in records if record is not None], project.lens)
    reference = engine.in_engine(project.outcome.references[part])
    states = []
    for count in [0, *spread_answers(len(accepted), most_steps)]:
        estimate = state.start.replay(accepted[:count]).estimate
        maps, is_placed = _maps_in_finished(estimate, reference, numbers, engine, finished)
        newest = pairs[count - 1] if count else None
        states.append(State(maps, is_placed, count, newest, residuals.rms_px(maps, is_placed)))
    everywhere = np.ones(len(finished), dtype=np.bool_)
    states.append(State(finished, everywhere, len(accepted), None, residuals.rms_px(finished, everywhere)))
    return Story(numbers, project.lens, len(accepted), tuple(states))


def spread_answers(answers: int, most_steps: int) -> list[int]:
    """Return the number of answers after each of at most `most_steps` steps.

    If there are more answers than steps, the last ones share steps. The engine asks the most useful questions first.
    """
    if answers <= most_steps:
        return list(range(1, answers + 1))
    # With this power the first step has one answer and the last one ends with all.
    power = np.log(answers) / np.log(max(most_steps, 2))
    given = np.unique(np.round(np.arange(1, most_steps + 1) ** power).astype(np.int64))
    given[-1] = answers
    return [int(count) for count in given]


def _read_placements(project: Project, part: int) -> list[Placement]:
    frames, placements = project.frames, project.placements
    # Frames between keyframes move with them, and would only hide each other.
    own = [one for one in placements if one.part == part and not frames[one.number].is_between]
    if not own:
        parts = len({placement.part for placement in placements})
        known = f"it has parts 0 to {parts - 1}" if parts else "nothing was placed"
        raise ProjectError(f"{project.folder}: has no mosaic of part {part}; {known}")
    return own


def _maps_in_finished(
    estimate: Estimate,
    reference: int,
    numbers: Sequence[int],
    engine: FrameNumbers,
    finished: Homographies,
) -> tuple[Homographies, NDArray[np.bool_]]:
    """Return the maps (n, 3, 3) of frames in coordinates of the finished mosaic, and whether each joins the reference.

    A frame that was set aside moves with the nearest one that was not.
    """
    used = [n for n, number in enumerate(numbers) if number in engine]
    used_numbers = np.array([numbers[n] for n in used])
    reference_index = used[[engine.in_engine(numbers[n]) for n in used].index(reference)]
    maps, is_placed = finished.copy(), np.zeros(len(numbers), dtype=np.bool_)
    to_finished = finished[reference_index] @ np.linalg.inv(estimate.mosaic_from_frame[reference])
    for n, number in enumerate(numbers):
        nearest = used[int(np.argmin(np.abs(used_numbers - number)))]
        frame = engine.in_engine(numbers[nearest])
        own = to_finished @ estimate.mosaic_from_frame[frame]
        maps[n] = own @ np.linalg.inv(finished[nearest]) @ finished[n]
        is_placed[n] = estimate.part[frame] == estimate.part[reference]
    return normalise(maps), is_placed


class LoopResiduals:
    """The landmarks of all loops in one array, to compute their residuals in several mosaics."""

    def __init__(self, loops: Sequence[Landmarks], lens: Lens) -> None:
        self._lens = lens
        self._ends = np.array([(record.pair.i, record.pair.j) for record in loops], dtype=np.int64).reshape(-1, 2)
        self._loop = np.repeat(np.arange(len(loops)), [len(record) for record in loops])
        self._points_i = np.concatenate([np.empty((0, 2)), *(record.points_i for record in loops)])
        self._points_j = np.concatenate([np.empty((0, 2)), *(record.points_j for record in loops)])
        self._along = np.concatenate([np.empty((0, 2)), *(record.directions for record in loops)])

    def rms_px(self, maps: Homographies, is_placed: NDArray[np.bool_]) -> float | None:
        """Return the RMS residual of loops between placed frames, in pixels of frame i; None without such loops.

        Every loop has the same weight, as in the project's `chain_error_px`.
        """
        is_counted = is_placed[self._ends].all(axis=1)
        if not is_counted.any():
            return None
        i, j = self._ends.T
        i_from_j = (np.linalg.inv(maps)[i] @ maps[j])[self._loop]
        mapped = project_points(i_from_j, self._lens.undistort(self._points_j)[:, None])[:, 0]
        distances = self._lens.distort(mapped) - self._points_i
        distances = without_direction(distances[:, :, None], self._along)[:, :, 0]
        squares = np.bincount(self._loop, np.sum(distances**2, axis=1)) / np.bincount(self._loop)
        return float(np.sqrt(np.mean(squares[is_counted])))
