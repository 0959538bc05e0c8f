"""Whether everything in a project's folder, and its source, is as it was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from smalti.errors import DamageError, ProjectError, SmaltiError
from smalti.interchange.checksums import CHECKSUM_BYTES, file_digest, unseal
from smalti.project.answer_backup import read_backup
from smalti.project.answer_store import Store
from smalti.project.array_cache import read_arrays
from smalti.project.database import BACKUP_NAME
from smalti.project.facts import DeliveredDigests, SourceDigests, SourceFacts
from smalti.project.project import Project
from smalti.rendering.frame_survey import is_whole

SEALED = {".jpg", ".png", ".unreadable", ".z"}
"""Cached files that end with their checksum."""


@dataclass(frozen=True, slots=True)
class Integrity:
    """What a check has found, one line each: what is damaged and what to do, and what could not be compared."""

    project: str
    damaged: tuple[str, ...]
    not_compared: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return the findings as `smalti check --json` prints them."""
        return asdict(self)


def check_project(folder: str | Path, *, source: str | Path | None = None) -> Integrity:
    """Compare everything with its checksum, and the source with its digests. Nothing is changed.

    `source` says where the frames are now, if they were moved. What is missing from the cache is no damage.
    """
    folder = Path(folder)
    notes: list[str] = []
    try:
        with Project.open(folder, source=source) as project:
            damaged = [
                *project.store.problems(),
                *_check_backup(project.store, notes),
                *_check_cache(project.cache.folder),
                *_check_delivered(project, notes),
                *_check_source(project, source, notes),
            ]
    except DamageError as error:  # so damaged that it cannot be opened
        damaged = [str(error), *_check_cache(folder / "cache")]
    return Integrity(str(folder), tuple(damaged), tuple(notes))


def _check_backup(store: Store, notes: list[str]) -> Iterator[str]:
    path = store.path.with_name(BACKUP_NAME)
    again = "the next smalti build or annotate writes it again"
    if not store.has_checksums:
        notes.append(f"{store.path}: has no checksums yet (Smalti 0.2.0); smalti build or annotate adds them")
        return
    try:
        own = store.log_checksums()
    except DamageError:  # told already
        own = None
    if not path.is_file():
        if own:
            yield f"{path}: is missing; {again}"
        return
    try:
        kept = read_backup(path)
    except ProjectError as error:
        yield f"{str(error).partition(';')[0]}; move it away, {again}"
        return
    if own is None:
        return
    if list(kept.checksums) != own[: len(kept.checksums)]:
        yield f"{path}: holds answers that {store.path.name} lacks; add them with: smalti import {path.parent} {path}"
    elif len(kept.checksums) < len(own) or kept.is_torn:
        notes.append(f"{path}: lacks the last answers, because a program was ended; {again}")


def _check_cache(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            try:
                whole = _is_whole(path)
            except OSError as error:
                yield f"{path}: cannot be read ({error.strerror}); check the disk and the permissions"
                continue
            if not whole:
                yield f"{path}: is damaged; it is computed again when it is needed"


def _is_whole(path: Path) -> bool:
    """Tell whether a cached file is as it was written; True for others, which nobody reads."""
    if path.suffix == ".npz":
        try:
            return bool(read_arrays(path))
        except ValueError:
            return False
    if path.suffix in SEALED:
        return unseal(path.read_bytes()) is not None
    name, _, record = path.stem.rpartition("-")
    if path.suffix == ".bin" and name.startswith("survey-") and record.isdecimal():
        bytes_of_record = min(int(record[:9]), path.stat().st_size + 1)
        return bytes_of_record > CHECKSUM_BYTES and is_whole(path, bytes_of_record)
    return True


def _check_delivered(project: Project, notes: list[str]) -> Iterator[str]:
    delivered = _fact_of(project, DeliveredDigests)
    if not isinstance(delivered, DeliveredDigests) or not delivered.files:
        notes.append(f"{project.folder}: no mosaic was delivered, or its digests are not known; run smalti build")
        return
    again = "run the same smalti build command to write it again"
    for name, digest in delivered.files.items():
        path = project.folder / Path(name).name
        if not path.is_file():
            yield f"{path}: is missing; {again}"
        elif file_digest(path) != digest:
            yield f"{path}: is not as it was delivered; {again}"


def _check_source(project: Project, moved_to: str | Path | None, notes: list[str]) -> Iterator[str]:
    known, facts = _fact_of(project, SourceDigests), _fact_of(project, SourceFacts)
    if not isinstance(facts, SourceFacts):
        return  # damaged, and told already
    if not isinstance(known, SourceDigests):
        notes.append(f"{project.folder}: no digests of the source are known yet; smalti build or annotate adds them")
        return
    try:
        files = project.source.files
    except SmaltiError as error:
        if _is_there(facts.location if moved_to is None else str(moved_to)):
            yield str(error)
        else:
            notes.append(f"{error}; or say with --source where the frames are")
        return
    if len(files) != len(known.files):  # the names may differ: a video may be renamed
        yield f"{project.source.path}: has other files than the project was built from; restore it from a backup"
        return
    for file, (_, digest) in zip(files, known.files, strict=True):
        if file_digest(file) != digest:
            yield f"{file}: has changed since the project was built from it; restore it from a backup"


def _is_there(location: str | list[str]) -> bool:
    """Tell whether there is something at the place of the frames; a pattern counts if its folder is there."""
    places = [location] if isinstance(location, str) else location
    return all(Path(one).exists() or ("*" in one and Path(one).parent.exists()) for one in places)


def _fact_of(project: Project, kind: type[DeliveredDigests] | type[SourceDigests] | type[SourceFacts]) -> object:
    try:
        return project.store.fact(kind)
    except DamageError:  # told already
        return None


def say_findings(integrity: Integrity) -> Iterable[str]:
    """Yield the lines that `smalti check` prints."""
    yield from (f"damaged: {line}" for line in integrity.damaged)
    yield from (f"not compared: {line}" for line in integrity.not_compared)
    if not integrity.damaged:
        rest = "all else" if integrity.not_compared else "everything"
        yield f"{integrity.project}: {rest} is as it was written"
