"""Small finished projects of eight frames, whose chain curls by three degrees a link while loops tell the truth.

The frames lie in two rows: 0 to 3 to the right, 4 to 7 back below them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import project_points
from smalti.geometry.outline import Outline
from smalti.project.entries import AnswerEntry, FrameEntry, LinkEntry, LinkState, Placement, Role
from smalti.project.facts import Binding
from smalti.project.project import Project
from smalti.records import Answer, Landmarks, Pair
from tests.project.entries import forget_outcome, outcome
from tests.rendering.scene import frame_of, shift, tilt, turn

WIDTH, HEIGHT = 80, 60
OUTLINE = Outline.of_pixels(WIDTH, HEIGHT)
REFERENCE = 3
CURL = turn(3)
BINDING = Binding(SourceSettings(), mask="auto", seed=0, matcher="keypoints")
CHAIN = [(n, n + 1) for n in range(7)]
LOOPS = [(0, 7), (1, 6), (2, 5)]

TRUTH = np.array([shift(50.0 * min(n, 7 - n), 45.0 * (n > 3)) for n in range(8)])
"""(8, 3, 3), to the scene."""

FINAL = np.array(
    [np.linalg.inv(TRUTH[REFERENCE]) @ matrix @ tilt(2e-5 * n - 6e-5, 1e-5) for n, matrix in enumerate(TRUTH)]
)
"""The same to the reference frame, by homographies that tilt a little."""


@dataclass
class Plan:
    """What a project is to hold."""

    answers: list[tuple[int, int, Role]] = field(
        default_factory=lambda: [*((i, j, Role.CHAIN) for i, j in CHAIN), *((i, j, Role.LOOP) for i, j in LOOPS)]
    )
    refused: list[tuple[int, int]] = field(default_factory=lambda: [(0, 3)])
    lies: dict[tuple[int, int], np.ndarray] = field(default_factory=lambda: dict.fromkeys(CHAIN, CURL))
    held: set[tuple[int, int]] = field(default_factory=set)
    parts: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(8), 0))
    references: list[int] = field(default_factory=lambda: [REFERENCE])
    asides: set[int] = field(default_factory=set)
    is_finished: bool = True


def landmarks_of(plan: Plan, i: int, j: int) -> Landmarks:
    """Sixteen points of j and where i sees them, or would if the lie were true."""
    grid = np.stack(np.meshgrid(np.linspace(4, 75, 4), np.linspace(4, 55, 4)), axis=-1).reshape(-1, 2)
    i_from_j = np.linalg.inv(TRUTH[i]) @ TRUTH[j] @ plan.lies.get((i, j), np.eye(3))
    return Landmarks(Pair(i, j), project_points(i_from_j, grid), grid, 0.5)


def make_project(folder: Path, plan: Plan | None = None) -> Project:
    plan = Plan() if plan is None else plan
    images = folder / "frames"
    images.mkdir(parents=True)
    for n, matrix in enumerate(TRUTH):
        assert cv2.imwrite(str(images / f"{n}.png"), frame_of(matrix, WIDTH, HEIGHT)[:, :, ::-1])
    with open_source(images) as source:
        made = Project.begin(folder / "out", source, str(images), BINDING)
    store = made.store
    store.keep_frames(FrameEntry(n, f"{n}.png", "too blurred" if n in plan.asides else "") for n in range(8))
    for i, j, role in plan.answers:
        store.keep_answer(AnswerEntry(Answer.yes(landmarks_of(plan, i, j)), role, 0.1))
    for i, j in plan.refused:
        store.keep_answer(AnswerEntry(Answer.no(Pair(i, j)), Role.LOOP, 0.1))
    placements = []
    for n, part in plan.parts.items():
        true = np.linalg.inv(TRUTH[plan.references[part]]) @ TRUTH[n]
        final = np.linalg.inv(FINAL[plan.references[part]]) @ FINAL[n]
        placements.append(Placement(n, part, true, final / final[2, 2], 0.5))
    links = [
        LinkEntry(
            Pair(i, j),
            LinkState.REJECTED if (i, j) in plan.held else LinkState.ACCEPTED,
            5.0,
            1.0,
            0.5,
        )
        for i, j, role in plan.answers
        if role is not Role.ASIDE
    ]
    store.keep_result(placements, links, outcome(finished_after=len(made.answers), references=tuple(plan.references)))
    if not plan.is_finished:
        forget_outcome(store)
    return made
