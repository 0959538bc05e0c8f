"""Files of an older format, brought to this one after a copy was made."""

from __future__ import annotations

import filecmp
import os
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

from smalti.errors import OutputError, ProjectError, SmaltiError
from smalti.project.database import LOG, VERSION, Database

_FROM_1 = (
    *LOG,
    # Counted without gaps: `finished_after` was a number of answers and is a place in the log.
    """INSERT INTO log (place, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time)
    SELECT ROW_NUMBER() OVER (ORDER BY place), 'give', i, j, role, verdict, reason, landmarks, 'matcher', '', seconds, 0
    FROM answer ORDER BY place""",
    "DROP TABLE answer",
    # A project was bound to the strategy that asked; now whoever asks goes on with what was answered.
    """INSERT INTO fact SELECT 'asked_by', json_quote(json_extract(value, '$.strategy')) FROM fact
    WHERE name = 'binding' AND json_extract(value, '$.strategy') IS NOT NULL""",
    "UPDATE fact SET value = json_remove(value, '$.strategy') WHERE name = 'binding'",
    "UPDATE fact SET value = '2' WHERE name = 'version'",
)
"""Format 1 had a table of answers, each given once and for all by the matcher."""

_FROM_2 = (
    "ALTER TABLE placement DROP COLUMN affine",
    # The engine is another one: it takes up all answers before it asks by itself.
    "UPDATE fact SET value = '\"several\"' WHERE name = 'asked_by'",
    # There were errors of every part and of two finishes, of which one was taken.
    """UPDATE fact SET value = coalesce(json_extract(value, '$[0].' ||
    (SELECT json_extract(value, '$[0]') FROM fact WHERE name = 'finish')), 'null') WHERE name = 'left_out_px'""",
    "DELETE FROM fact WHERE name IN ('finish', 'guesses', 'noise', 'noise_factors')",
    "UPDATE fact SET value = '3' WHERE name = 'version'",
)
"""Format 2 kept an affine mosaic beside the final one, and what was learned otherwise."""

_STEPS = {1: _FROM_1, 2: _FROM_2}


def bring_up_to_date(database: Database) -> None:
    """Bring a file to the format of this Smalti; refuse one that is newer."""
    version = _version(database)
    if version in _STEPS:
        _migrate(database)
        version = _version(database)
    if version > VERSION:
        raise ProjectError(
            f"{database.path}: was written by a newer Smalti (format {version}, this one knows {VERSION}); "
            "update Smalti"
        )
    if version != VERSION:
        raise database.damaged()


def _version(database: Database) -> int:
    rows = database.read("SELECT value FROM fact WHERE name = 'version'")
    try:
        return int(rows[0][0])
    except (LookupError, ValueError, TypeError):
        raise database.damaged() from None


def _migrate(database: Database) -> None:
    """Do it all or not at all; a copy of what the file was stays beside it."""
    backup: Path | None = None
    try:
        with database.writing() as connection:
            # Another process may have done it while this one waited.
            before = _version(database)
            if before not in _STEPS:
                return
            backup = _back_up(database.path, f"{database.path.name}.v{before}")
            for version in range(before, VERSION):
                for statement in _STEPS[version]:
                    connection.execute(statement)
    except (SmaltiError, sqlite3.Error) as error:
        if backup is None:
            raise
        raise ProjectError(
            f"{database.path}: cannot be brought to format {VERSION} ({error}); it was left as it is, and a copy of it "
            f"is {backup}"
        ) from None


def _back_up(path: Path, name: str) -> Path:
    """Return a copy of the file as it is, under that name or, where another copy has it, the name with a number."""
    unfinished = path.with_name(f"{name}.part")
    try:
        unfinished.unlink(missing_ok=True)
        # Not the connection that writes: this one sees what was there before.
        with closing(sqlite3.connect(path)) as before, closing(sqlite3.connect(unfinished)) as copy:
            before.backup(copy)
        _write_through(unfinished)
        names = (path.with_name(name if number == 1 else f"{name}.{number}") for number in count(1))
        backup = next(one for one in names if not one.exists() or filecmp.cmp(unfinished, one, shallow=False))
        unfinished.replace(backup)
        _write_through(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise OutputError(f"{unfinished}: cannot be written ({error}); make room or check the rights") from None
    return backup


def _write_through(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
