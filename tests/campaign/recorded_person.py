"""A person at work in a process of its own, who writes into the record of the disk what was acknowledged.

    python -m tests.campaign.recorded_person INPUT FOLDER SEED ACTS

INPUT is the video of `tiny`; without a project in FOLDER one is begun. After ACTS acts the process ends without closing
anything, as if it were killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from smalti.annotation.messages import GiveAnswer, Landmark, RemoveAnswer, Step
from smalti.annotation.session import Session
from smalti.errors import NothingToUndoError, PairError, SmaltiError
from smalti.records import Landmarks
from tests.building.filmed import tiny, true_landmarks
from tests.campaign.forgetful_disk import mark

APART = 3
"""Frames nearer than this are of the chain."""


def main(source: str, folder: str, seed: str, acts: str) -> None:
    rng = np.random.default_rng(int(seed))
    is_there = (Path(folder) / "project.sqlite").exists()
    session = Session.open(folder) if is_there else Session.open(source, folder)
    numbers = np.arange(len(tiny()))
    pairs = np.array([(i, j) for i in numbers for j in numbers[i + APART :]])
    truth = true_landmarks(tiny(), pairs)
    mark(session.revision)
    for _ in range(int(acts)):
        try:
            act(session, truth[rng.integers(len(truth))], rng)
        except (NothingToUndoError, PairError):
            continue
        mark(session.revision)
    os._exit(0)


def act(session: Session, landmarks: Landmarks, rng: np.random.Generator) -> None:
    """Answer, correct, remove, undo or redo, by chance."""
    i, j, seen = landmarks.pair.i, landmarks.pair.j, session.revision
    what = rng.choice(["yes", "yes", "no", "unsure", "remove", "undo", "redo"])
    if what == "remove":
        session.remove(RemoveAnswer(i=i, j=j, seen_revision=seen))
    elif what in ("undo", "redo"):
        getattr(session, what)(Step(seen_revision=seen))
    else:
        rows = np.hstack([landmarks.points_i, landmarks.points_j]) if what == "yes" else np.empty((0, 4))
        marks = [Landmark(x_i=a, y_i=b, x_j=c, y_j=d) for a, b, c, d in rows.tolist()]
        reason = f"said at {rng.integers(10**9)}"
        session.give(GiveAnswer(i=i, j=j, verdict=what, landmarks=marks, reason=reason, seen_revision=seen))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SmaltiError as error:
        print(f"smalti: {error}", file=sys.stderr)
        sys.exit(1)
