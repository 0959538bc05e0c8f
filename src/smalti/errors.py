"""What can go wrong, as a tree.

    SmaltiError                 one line for the user; the command line exits with 1
    ├── LandmarkError           the landmarks of a pair are too few, collinear or not finite
    ├── PairError               a pair is out of range, reversed, given twice, or has no answer to remove
    ├── SingularSystemError     a frame hangs on no link, so nothing says where it is
    ├── ModelError              an external model does not fit the sequence
    ├── InputError              a video, an image or a mask cannot be used; names the file
    ├── ProjectError            a project cannot be opened, or is not the one that is asked for
    │   └── DamageError         a project's file does not hold what was written
    ├── ChangedMeanwhileError   somebody else changed what is to be changed, since it was looked at
    ├── NothingToUndoError      there is nothing to undo, or nothing to redo
    ├── TableError              a table of landmarks or positions cannot be used; names the file, and the line
    ├── OutputError             a result cannot be written
    └── UsageError              the call itself is wrong; the command line exits with 2
        └── UnknownNameError    no strategy, family or experiment of that name; lists those there are

Every message names the thing that is wrong and what to do about it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

INTERRUPTED = 130
"""Exit code after Ctrl-C; every error has its own."""


class SmaltiError(Exception):
    """Base of every error that Smalti raises on purpose."""

    exit_code = 1


class LandmarkError(SmaltiError):
    """The landmarks of a pair determine no map."""


class PairError(SmaltiError):
    """A pair is out of range, reversed, given twice, or has no answer to remove."""


class SingularSystemError(SmaltiError):
    """A frame hangs on no link."""


class ModelError(SmaltiError):
    """An external model does not fit the sequence."""


class InputError(SmaltiError):
    """A video, an image or a mask cannot be used."""


class ProjectError(SmaltiError):
    """A project cannot be opened, or is not the one that is asked for."""


class DamageError(ProjectError):
    """A project's file does not hold what was written."""


class ChangedMeanwhileError(SmaltiError):
    """Somebody else changed what is to be changed, since it was looked at."""

    def __init__(self, pair: Any) -> None:
        """`pair` is the `Pair` whose answer changed; its type stands after this file in the order of the house."""
        super().__init__(f"pair {pair}: its answer was changed in the meantime; look at it again")
        self.pair = pair


class NothingToUndoError(SmaltiError):
    """There is nothing to undo, or nothing to redo."""


class TableError(SmaltiError):
    """A table of landmarks or positions cannot be used."""


class OutputError(SmaltiError):
    """A result cannot be written."""


class UsageError(SmaltiError):
    """The call itself is wrong."""

    exit_code = 2


class UnknownNameError(UsageError):
    """Nothing of that kind has that name."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} '{name}': choose from {', '.join(known)}")


LONGEST_LINE = 2000
"""Characters. The middle of a longer line is left out."""


def as_one_line(text: str) -> str:
    """Return text that can be printed and stored as one line.

    File names may hold line breaks, and bytes that are no text: these become escapes such as `\\n` and `\\xff`.
    """
    if not text.isprintable():
        text = "".join(map(_escaped, text))
    if len(text) > LONGEST_LINE:
        text = f"{text[: LONGEST_LINE // 2]} … {text[-LONGEST_LINE // 2 :]}"
    return text


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # Python's stand-in for a byte
        return f"\\x{ord(character) - 0xDC00:02x}"
    if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return character.encode("unicode_escape").decode()
    return character
