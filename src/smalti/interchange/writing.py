"""Whole files or none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from smalti.errors import OutputError


def write_text(path: Path, text: str) -> None:
    """Write a text file beside its place and move it there."""
    unfinished = path.with_name(path.name + ".part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise OutputError(f"{path}: cannot be written ({error.strerror}); make room or check the rights") from None
