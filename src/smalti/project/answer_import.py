"""Add the answers of an `answers.jsonl` to a project, or make a new project of them.

A project whose own log is the beginning of the file's gets the rest of it, entry by entry: it is then the same project,
undo and redo included. A project with another log gets the answers in force that it lacks. The project's own answers
stay: only the matcher's are replaced, by those of people.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from smalti.errors import ProjectError, SmaltiError
from smalti.frames.source import open_source
from smalti.project.answer_backup import BackedUpLog, read_backup
from smalti.project.answer_store import FILE_NAME
from smalti.project.entries import Act, AnswerEntry, History
from smalti.project.facts import SourceFacts
from smalti.project.packing import Row, pack_log_row, unpack_log_row
from smalti.project.project import Project
from smalti.project.project_lock import ProjectLock, make_folder
from smalti.records import Author

WHAT = "smalti import"


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import has done."""

    entries: int  # added to the log
    answers: int  # in force now
    kept: int  # answers of the file that were not taken, because people gave others here
    is_new: bool  # whether the project was made
    is_torn: bool  # whether the last line of the file is incomplete and was left out
    location: str | list[str]  # of the source


def import_answers(folder: str | Path, file: str | Path, *, source: str | Path | None = None) -> Imported:
    """Add the answers of a file to the project in a folder; make the project if there is none.

    A new project is one of the source and of the settings that the file names. `source` says where the frames are now,
    if they were moved.
    """
    folder, file = Path(folder), Path(file)
    log = read_backup(file)
    if log.source is None:
        raise ProjectError(f"{file}: does not say which frames its answers are about; give the file of a project")
    try:
        history = History.of(unpack_log_row(row) for row in log.rows)
    except SmaltiError as error:
        raise ProjectError(f"{file}: {error}; give the file as Smalti wrote it") from None
    is_new = not (folder / FILE_NAME).is_file()
    with _begin(folder, log.source, source, file) if is_new else _open(folder, source) as project:
        _refuse_other_frames(project.source_facts, log.source, folder, file)
        rows, kept = _choose(project, log, history)
        last = max((row[3] for row in rows if isinstance(row[3], int)), default=0)
        if project.frames and last >= len(project.frames):
            raise ProjectError(f"{file}: names frame {last}, but {folder} has frames 0 to {len(project.frames) - 1}")
        project.store.append_rows(rows)
        answers, location = len(project.answers), project.source_facts.location
    return Imported(len(rows), answers, kept, is_new, log.is_torn, location)


def _begin(folder: Path, facts: SourceFacts, source: str | Path | None, file: Path) -> Project:
    location = facts.location if source is None else str(source)
    with open_source(location, facts.binding.source) as frames:
        found = SourceFacts(location, frames.fingerprint, frames.width, frames.height, facts.binding)
        _refuse_other_frames(found, facts, frames.path, file)
        return Project.begin(folder, frames, location, facts.binding, WHAT)


def _open(folder: Path, source: str | Path | None) -> Project:
    make_folder(folder)
    with ExitStack() as stack:
        lock = stack.enter_context(ProjectLock(folder, WHAT))
        project = Project.open(folder, source=source, to_write=True)
        project.lock = lock
        stack.pop_all()
    return project


def _refuse_other_frames(own: SourceFacts, other: SourceFacts, name: Path, file: Path) -> None:
    if (own.width, own.height) != (other.width, other.height):
        raise ProjectError(
            f"{file}: its answers are about frames of {other.width}x{other.height} px, those of {name} have "
            f"{own.width}x{own.height}; give the answers of these frames"
        )
    if own.fingerprint != other.fingerprint:
        raise ProjectError(f"{file}: its answers are about other frames than those of {name}; give the same source")


def _choose(project: Project, log: BackedUpLog, history: History) -> tuple[Sequence[Row], int]:
    """Return the rows to add, and how many answers are not taken."""
    own, theirs = project.store.log_checksums(), list(log.checksums)
    if own == theirs[: len(own)]:
        return log.rows[len(own) :], 0
    if theirs == own[: len(theirs)]:
        return (), 0
    known = {entry.answer.pair: entry for entry in project.answers}
    wanted, kept = [], 0
    for entry in history.answers:
        here = known.get(entry.answer.pair)
        if here is None or (here.answer.author is Author.MATCHER and entry.answer.author is Author.PERSON):
            wanted.append(entry)
        elif entry.answer.author is Author.PERSON and not _say_the_same(here, entry):
            kept += 1
    # Answers to known pairs stand beside all others.
    measured = {(entry.answer.pair, entry.person, entry.time) for entry in project.store.history().controls}
    wanted += [entry for entry in history.controls if (entry.answer.pair, entry.person, entry.time) not in measured]
    return [
        pack_log_row(len(own) + n, Act.GIVE, entry.answer.pair, entry.time, entry) for n, entry in enumerate(wanted, 1)
    ], kept


def _say_the_same(one: AnswerEntry, other: AnswerEntry) -> bool:
    rows = (pack_log_row(0, Act.GIVE, e.answer.pair, 0.0, replace(e, seconds=0.0, details="")) for e in (one, other))
    return next(rows) == next(rows)
