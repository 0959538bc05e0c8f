"""A project of a sequence with known truth, prepared once a session, and a careful person who answers about it."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from smalti.annotation.messages import GiveAnswer, Landmark, Queue, RemoveAnswer, Step
from smalti.annotation.session import Session
from smalti.geometry.linear_maps import apply, compose, invert
from smalti_lab.synthetic.camera_path import raster
from smalti_lab.synthetic.synthetic_files import write_frames
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.building.filmed import HANDLING, SCENE_SIZE, TINY, TrueMatcher, copied, scene

CARE_PX = 1.0


@cache
def walk() -> SyntheticSequence:
    """28 frames in strips forth and back; the chain alone drifts."""
    camera = raster(SCENE_SIZE, 28, TINY, handling=HANDLING, sidelap=0.5, step=0.25, seed=5)
    return SyntheticSequence(scene(), camera)


@cache
def prepared(base: Path) -> Path:
    """The folder of a project that nobody has answered about, with a chain as poor as that of a hard video."""
    write_frames(walk(), base / "walk", ".png")
    Session.open(base / "walk", base / "walk.smalti", matcher=TrueMatcher(walk(), noise_px=1.2)).close()
    return base / "walk.smalti"


@contextmanager
def opened(folder: Path, *, queue: Queue = Queue.ALL, **settings):
    session = Session.open(folder, queue=queue.value, **settings)
    try:
        yield session
    finally:
        session.close()


def fresh(base: Path, to: Path) -> Path:
    """A copy of the prepared project."""
    return copied(prepared(base), to / "walk.smalti")


def marks(i: int, j: int, count: int = 6, *, seed: int = 0, by=(0.0, 0.0), noise: float = CARE_PX) -> list[Landmark]:
    """Landmarks as a careful person would click them, none where the frames hardly overlap; all off by `by`."""
    rng = np.random.default_rng((seed, i, j))
    truth, outline = walk().mosaic_from_frame, walk().outline
    i_from_j = compose(invert(truth[i]), truth[j])
    points_j = rng.uniform([0, 0], np.array(TINY) - 1.0, (4000, 2))
    points_j = points_j[outline.contains(apply(i_from_j, points_j))]
    if len(points_j) < 400:
        return []
    # Spread out, as one would: the points farthest from each other.
    chosen = [0]
    while len(chosen) < count:
        distances = np.linalg.norm(points_j[:, None] - points_j[chosen][None], axis=2).min(axis=1)
        chosen.append(int(np.argmax(distances)))
    side_j = points_j[chosen]
    side_i = apply(i_from_j, side_j) + rng.normal(0.0, noise, side_j.shape) + by
    return [
        Landmark(x_i=a, y_i=b, x_j=c, y_j=d) for (a, b), (c, d) in zip(side_i.tolist(), side_j.tolist(), strict=True)
    ]


def answer(session: Session, i: int, j: int, *, person: str = "", **how):
    """Answer as a careful person: yes with landmarks where the frames overlap, no where they do not."""
    landmarks = marks(i, j, **how)
    return give(session, i, j, "yes" if landmarks else "no", landmarks, person=person)


def give(session: Session, i: int, j: int, verdict: str, landmarks=(), seen_revision: int | None = None, **more):
    seen_revision = session.revision if seen_revision is None else seen_revision
    return session.give(
        GiveAnswer(i=i, j=j, verdict=verdict, landmarks=list(landmarks), seen_revision=seen_revision, **more)
    )


def answer_next(session: Session, times: int = 1) -> list[tuple[int, int]]:
    """Answer what is asked; return the pairs."""
    asked = []
    for _ in range(times):
        question = session.question()
        answer(session, question.i, question.j)
        asked.append((question.i, question.j))
    return asked


def remove(session: Session, i: int, j: int):
    return session.remove(RemoveAnswer(i=i, j=j, seen_revision=session.revision))


def undo(session: Session):
    return session.undo(Step(seen_revision=session.revision))


def redo(session: Session):
    return session.redo(Step(seen_revision=session.revision))


def error_px(session: Session) -> float:
    """RMS of the live mosaic against the truth."""
    mosaic = session.mosaic()
    return walk().truth_error(np.array(mosaic.maps).reshape(-1, 3, 3), mosaic.numbers).rms
