"""Files of format 4, which 0.2.0 wrote: the tables of today without their checksums."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from smalti.project import tables
from smalti.project.facts import DeliveredDigests, SourceDigests
from smalti.project.packing import LOG_COLUMNS

COLUMNS = {
    "fact": "name, value",
    "log": ", ".join(LOG_COLUMNS),
    "stage": "name, seconds",
    "frame": "*",
    "link": "*",
    "placement": "*",
}


def downgrade(path: Path) -> Path:
    """Rewrite a closed project's file in format 4, and delete what 0.2.0 did not write beside it."""
    old = path.with_name("old.sqlite")
    with closing(sqlite3.connect(path)) as new, closing(sqlite3.connect(old)) as file, file:
        for statement in tables._STATEMENTS[tables.WITHOUT_CHECKSUMS]:
            file.execute(statement)
        for table, columns in COLUMNS.items():
            for row in new.execute(f"SELECT {columns} FROM {table} ORDER BY rowid"):
                file.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        file.execute("UPDATE fact SET value = '4' WHERE name = 'version'")
        file.execute("DELETE FROM fact WHERE name IN (?, ?)", (SourceDigests.NAME, DeliveredDigests.NAME))
    old.replace(path)
    path.with_name("answers.jsonl").unlink(missing_ok=True)
    return path
