"""The project's file: SQLite, one transaction an answer, on disk before anything else happens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, ProjectError
from smalti.project.entries import AnswerEntry, FrameEntry, LinkEntry, LinkState, Placement, Role
from smalti.records import Answer, Landmarks, Pair, Verdict

VERSION = 1
FILE_NAME = "project.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS frame (number INTEGER PRIMARY KEY, label TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answer (
    place INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER NOT NULL, j INTEGER NOT NULL, role TEXT NOT NULL,
    verdict TEXT NOT NULL, reason TEXT NOT NULL, landmarks BLOB, seconds REAL NOT NULL, UNIQUE (i, j));
CREATE TABLE IF NOT EXISTS link (
    i INTEGER NOT NULL, j INTEGER NOT NULL, state TEXT NOT NULL, chi2 REAL NOT NULL, weight REAL NOT NULL,
    residual_px REAL NOT NULL, PRIMARY KEY (i, j));
CREATE TABLE IF NOT EXISTS placement (
    number INTEGER PRIMARY KEY, part INTEGER NOT NULL, chain BLOB NOT NULL, affine BLOB NOT NULL, final BLOB NOT NULL,
    sigma_px REAL NOT NULL);
CREATE TABLE IF NOT EXISTS stage (name TEXT PRIMARY KEY, seconds REAL NOT NULL);
"""


class Store:
    """What was learned of a sequence. Every method that writes is one transaction."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make the file, or open the one that is there."""
        store = cls(path, _connect(path))
        try:
            if store._read("SELECT name FROM sqlite_master"):
                store._check_version()
                return store
            with store._writing() as connection:
                # One transaction: a file that has tables has its version too.
                connection.executescript(f"BEGIN; {_TABLES} INSERT INTO fact VALUES ('version', '{VERSION}'); COMMIT;")
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open a file that is there."""
        if not path.is_file():
            raise ProjectError(f"{path.parent}: is not a Smalti project, {path.name} is missing; build one first")
        store = cls(path, _connect(path))
        try:
            store._check_version()
        except BaseException:
            store.close()
            raise
        return store

    def _check_version(self) -> None:
        version = self.fact("version")
        if not isinstance(version, int):
            raise self._damaged()
        if version > VERSION:
            raise ProjectError(
                f"{self.path}: was written by a newer Smalti (format {version}, this one knows {VERSION}); "
                "update Smalti"
            )

    def fact(self, name: str, default: Any = None) -> Any:
        """Return a fact as it was kept."""
        rows = self._read("SELECT value FROM fact WHERE name = ?", name)
        try:
            return json.loads(rows[0][0]) if rows else default
        except ValueError:
            raise self._damaged() from None

    def keep_facts(self, **facts: Any) -> None:
        """Keep facts that can be written as JSON."""
        with self._writing() as connection:
            for name, value in facts.items():
                connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, json.dumps(value)))

    def frames(self) -> list[FrameEntry]:
        """Return the frames in their order."""
        rows = self._read("SELECT number, label, reason FROM frame ORDER BY number")
        return [FrameEntry(*row) for row in rows]

    def keep_frames(self, frames: Iterable[FrameEntry]) -> None:
        """Keep all frames at once, in the place of those before."""
        with self._writing() as connection:
            connection.execute("DELETE FROM frame")
            rows = [(frame.number, frame.label, frame.reason) for frame in frames]
            connection.executemany("INSERT INTO frame VALUES (?, ?, ?)", rows)

    def answers(self) -> list[AnswerEntry]:
        """Return the answers in the order in which they were given."""
        rows = self._read("SELECT i, j, role, verdict, reason, landmarks, seconds FROM answer ORDER BY place")
        return [_answer_entry(*row) for row in rows]

    def keep_answer(self, entry: AnswerEntry) -> None:
        """Keep an answer; when this returns it is on disk."""
        answer = entry.answer
        landmarks = None if answer.landmarks is None else _pack(answer.landmarks)
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO answer (i, j, role, verdict, reason, landmarks, seconds) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    answer.pair.i,
                    answer.pair.j,
                    entry.role,
                    answer.verdict,
                    answer.reason,
                    landmarks,
                    entry.seconds,
                ),
            )

    def links(self) -> list[LinkEntry]:
        """Return what the finished mosaic says of every yes."""
        rows = self._read("SELECT i, j, state, chi2, weight, residual_px FROM link ORDER BY i, j")
        return [LinkEntry(Pair(i, j), LinkState(state), *numbers) for i, j, state, *numbers in rows]

    def placements(self) -> list[Placement]:
        """Return where the frames lie, in their order."""
        rows = self._read("SELECT number, part, chain, affine, final, sigma_px FROM placement ORDER BY number")
        return [
            Placement(number, part, _unpack(chain, (2, 3)), _unpack(affine, (2, 3)), _unpack(final, (3, 3)), sigma_px)
            for number, part, chain, affine, final, sigma_px in rows
        ]

    def keep_result(self, placements: Iterable[Placement], links: Iterable[LinkEntry], **facts: Any) -> None:
        """Keep the finished mosaic, in the place of the one before, all or nothing."""
        with self._writing() as connection:
            connection.execute("DELETE FROM placement")
            connection.execute("DELETE FROM link")
            connection.executemany(
                "INSERT INTO placement VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (p.number, p.part, _bytes(p.chain), _bytes(p.affine), _bytes(p.final), p.sigma_px)
                    for p in placements
                ],
            )
            connection.executemany(
                "INSERT INTO link VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (entry.pair.i, entry.pair.j, entry.state, entry.chi2, entry.weight, entry.residual_px)
                    for entry in links
                ],
            )
            for name, value in facts.items():
                connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, json.dumps(value)))

    def stages(self) -> dict[str, float]:
        """Return the seconds spent in every stage, over all sessions."""
        return dict(self._read("SELECT name, seconds FROM stage ORDER BY rowid"))

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Add to the time spent in a stage."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO stage VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seconds = seconds + excluded.seconds",
                (stage, seconds),
            )

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _read(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError:
            raise self._damaged() from None

    def _damaged(self) -> ProjectError:
        return ProjectError(f"{self.path}: is damaged or not a project's file; restore it, or build anew")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._connection:
                yield self._connection
        except sqlite3.OperationalError as error:
            raise OutputError(f"{self.path}: cannot be written ({error}); make room or check the rights") from None
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise self._damaged() from None


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.DatabaseError as error:
        raise ProjectError(f"{path}: is damaged or not a project's file ({error}); restore it, or build anew") from None
    return connection


def _pack(landmarks: Landmarks) -> bytes:
    sigma = np.broadcast_to(np.asarray(landmarks.sigma), (len(landmarks),))
    return _bytes(np.column_stack([landmarks.points_i, landmarks.points_j, sigma]))


def _answer_entry(
    i: int, j: int, role: str, verdict: str, reason: str, landmarks: bytes | None, seconds: float
) -> AnswerEntry:
    pair = Pair(i, j)
    kept = None
    if landmarks is not None:
        rows = _unpack(landmarks, (-1, 5))
        kept = Landmarks(pair, rows[:, :2], rows[:, 2:4], rows[:, 4])
    return AnswerEntry(Answer(pair, Verdict(verdict), kept, reason), Role(role), seconds)


def _bytes(numbers: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<f8").tobytes()


def _unpack(packed: bytes, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.frombuffer(packed, dtype="<f8").reshape(shape).astype(np.float64)
