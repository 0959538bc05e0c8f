"""The folder of a project, before there is a project in it."""

from __future__ import annotations

from pathlib import Path

from smalti.errors import OutputError
from smalti.project.lock import LOCK_NAME
from smalti.project.store import FILE_NAME


def make_folder(folder: Path) -> None:
    """Make a folder for a project, or refuse one that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file, name a folder")
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    # A process that was killed as it began leaves nothing but its lock.
    if names - {LOCK_NAME} and FILE_NAME not in names:
        raise OutputError(f"{folder}: is not empty and not a project, name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}), name another folder") from None
