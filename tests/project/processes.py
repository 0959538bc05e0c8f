"""Other processes that write a project's file, and a look at what they left."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from smalti.project.answer_store import Store
from smalti.records import Pair
from tests.project.entries import yes

ROOT = Path(__file__).parents[2]


def run(script: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def whole_answers(path: Path) -> int:
    """How many answers there are; each must be the one that was given."""
    with closing(Store.open(path)) as store:
        entries = store.answers()
    for n, entry in enumerate(entries):
        given = yes(n, n + 1, landmarks=len(entry.answer.landmarks)).answer.landmarks
        assert entry.answer.pair == Pair(n, n + 1)
        assert entry.answer.landmarks.points_i.tobytes() == given.points_i.tobytes()
        assert entry.answer.landmarks.points_j.tobytes() == given.points_j.tobytes()
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return len(entries)
