"""What the film tells: the mosaic by the chain alone, after an answer and after more, and finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.consensus import SMALLEST_WEIGHT
from smalti.adjustment.link import Link, fit_link
from smalti.errors import ProjectError
from smalti.film.misses import Misses
from smalti.film.replay import replay
from smalti.geometry.outline import Outline
from smalti.project.entries import LinkState, Placement, Role
from smalti.project.project import Project
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
    outline: Outline
    answers: int
    states: tuple[State, ...]


def tell_story(project: Project, part: int, most_steps: int) -> Story:
    """Adjust a part of a finished project again: with the links of the chain, then with those of ever more answers."""
    placements = _read_placements(project, part)
    place = {placement.number: n for n, placement in enumerate(placements)}
    chain, loops = _read_believed(project, place)
    links = [link for _, link in (*chain, *loops)]
    misses = Misses([landmarks for landmarks, _ in loops])
    given = [0, *spread_answers(len(loops), most_steps)]
    adjusted = replay(
        [links[: len(chain) + count] for count in given],
        list(place),
        np.array([placement.affine for placement in placements]),
        project.outline,
        place[project.store.fact("references")[part]],
    )
    states = [
        State(maps, is_placed, count, loops[count - 1][0].pair if count else None, misses.rms_px(maps, is_placed))
        for count, (maps, is_placed) in zip(given, adjusted, strict=True)
    ]
    finished = np.array([placement.final for placement in placements])
    everywhere = np.ones(len(finished), dtype=np.bool_)
    states.append(State(finished, everywhere, len(loops), None, misses.rms_px(finished, everywhere)))
    return Story(tuple(place), project.outline, len(loops), tuple(states))


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


def _read_believed(
    project: Project, place: Mapping[int, int]
) -> tuple[list[tuple[Landmarks, Link]], list[tuple[Landmarks, Link]]]:
    """Return the believed links of the chain and of the loops in the order of the answers, weighted as in the finish.

    Their pairs are places among the frames of the part.
    """
    weights = {
        entry.pair: max(entry.weight, SMALLEST_WEIGHT)
        for entry in project.links
        if entry.state is LinkState.BELIEVED and entry.pair.i in place and entry.pair.j in place
    }
    chain: list[tuple[Landmarks, Link]] = []
    loops: list[tuple[Landmarks, Link]] = []
    for entry in project.placed_by:
        record = entry.answer.landmarks
        if record is None or record.pair not in weights:
            continue
        landmarks = record.of_pair(Pair(place[record.pair.i], place[record.pair.j]))
        link = fit_link(landmarks)
        weighted = replace(link, root=link.root * np.sqrt(weights[record.pair]))
        (loops if entry.role is Role.LOOP else chain).append((landmarks, weighted))
    return chain, loops
