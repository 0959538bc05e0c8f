"""Files that the page offers for download: landmarks, transforms, a picture of the mosaic, the project."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import cv2

from smalti.annotation.finished_mosaic import delivered_files
from smalti.building.between_frames import place_between
from smalti.building.delivery import RenderSettings, render, write_landmarks_of
from smalti.errors import OutputError, UnknownNameError, UsageError
from smalti.geometry.homographies import family_named
from smalti.geometry.lens import Lens
from smalti.interchange.atomic_files import naming
from smalti.interchange.transforms_json import FrameTransform, write_transforms
from smalti.progress import Silence
from smalti.project.answer_store import FILE_NAME
from smalti.project.database import BACKUP_NAME
from smalti.project.entries import AnswerEntry, Placement
from smalti.project.facts import LeftOutPlaces
from smalti.project.project import Project
from smalti.records import Homographies
from smalti.rendering.mosaic import Mosaic

LARGEST_SIDE = 2000
FINISHED_FORMATS = {
    "mosaic.png": "image/png",
    "mosaic.jpg": "image/jpeg",
    "mosaic.tif": "image/tiff",
    "mosaic.dzi.zip": "application/zip",
    "mosaic.zarr.zip": "application/zip",
}
"""The finished mosaic in every format that can be written; folders of tiles are zipped."""

RESULTS = ("mosaic*.png", "mosaic*.tif", "report.html", "transforms.json", "landmarks.csv")
"""Files of a project's folder, besides its database. The files of the cache can be computed again."""

COMPRESSED = {".png", ".tif"}

README = """{name}: a Smalti project of {frames} frames with {answers} answers.

To continue, unpack it and run: smalti annotate {quoted} --source {source}
To look at the numbers: smalti info {quoted}

project.sqlite holds all answers, and answers.jsonl the same in readable lines. The frames are not in this archive: say
with --source where they are.
{results}
"""
NOT_JOINED = "is not joined to this mosaic"
NOT_FINISHED = "No mosaic was computed yet."
FINISHED = "The mosaic, its report and its tables include all answers."
OUTDATED = "The mosaic, its report and its tables do not include the newest answers."


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The frames of one mosaic, by source number, and their maps."""

    maps: Mapping[int, Homographies]  # (3, 3), of undistorted pixels
    sigma_px: Mapping[int, float]  # of their centres relative to the reference
    reference: int
    lens: Lens
    unconfirmed: frozenset[int] = frozenset()  # frames that a single match joins to most of the others
    family: str = "projective"  # of the maps


def export(name: str, project: Project, placed: Placed) -> tuple[str, bytes | Path]:
    """Return media type and content of an export by name. A path is a file that the caller deletes."""
    exports: dict[str, tuple[str, Callable[[], bytes | Path]]] = {
        "landmarks.csv": ("text/csv", lambda: export_landmarks(project.answers, project.store.fact(LeftOutPlaces))),
        "transforms.json": ("application/json", lambda: export_transforms(project, with_between(project, placed))),
        "preview.png": ("image/png", lambda: export_preview(project, placed)),
        **{
            name: (media_type, partial(export_finished, project, name)) for name, media_type in FINISHED_FORMATS.items()
        },
        "project.zip": ("application/zip", lambda: export_project(project)),
    }
    if name not in exports:
        raise UnknownNameError("export", name, exports)
    media_type, make = exports[name]
    return media_type, make()


def export_landmarks(answers: Iterable[AnswerEntry], errors: LeftOutPlaces | None = None) -> bytes:
    """Return the landmarks of every yes, including the chain, as CSV; `errors` are those of left-out landmarks."""
    return _written(lambda path: write_landmarks_of(path, list(answers), errors))


def export_transforms(project: Project, placed: Placed) -> bytes:
    """Return the maps of the placed frames, and their lens, as JSON."""
    how_placed = project.how_placed
    frames = [
        FrameTransform(
            number,
            frame.label,
            0,
            placed.maps[number],
            placed.sigma_px[number],
            number not in placed.unconfirmed,
            how_placed[number],
        )
        for frame in project.frames
        if (number := frame.number) in placed.maps
    ]
    apart = {frame.number: frame.reason or NOT_JOINED for frame in project.frames if frame.number not in placed.maps}
    return _written(
        lambda path: write_transforms(
            path,
            frames,
            size=(project.width, project.height),
            references=[placed.reference],
            apart=apart,
            lens=placed.lens,
        )
    )


def with_between(project: Project, placed: Placed) -> Placed:
    """Return the same with the frames between keyframes."""
    keys = [Placement(number, 0, one, one, placed.sigma_px[number]) for number, one in sorted(placed.maps.items())]
    between = place_between(keys, project.tracks, placed.lens, family_named(placed.family))
    return replace(
        placed,
        maps={**placed.maps, **{one.number: one.final for one in between}},
        sigma_px={**placed.sigma_px, **{one.number: one.sigma_px for one in between}},
    )


def export_preview(project: Project, placed: Placed) -> bytes:
    """Return a preview of the placed frames as PNG. Nobody else may read the source meanwhile."""
    size = (project.width, project.height)
    mosaic = Mosaic(project.source, placed.maps, *size, project.mask, lens=placed.lens, finder=project.own_masks)
    image = mosaic.image(LARGEST_SIDE, blend="feather")
    done, encoded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGBA2BGRA))
    assert done, "an image of 8 bits can be encoded"
    return encoded.tobytes()


def export_project(project: Project) -> Path:
    """Return a new zip file with all that cannot be computed again, and with the results. The caller deletes it."""
    # Write beside the project and not to the usual temporary folder, which may be too small for a mosaic.
    with _new_file(project, ".zip") as path:
        with naming(path), ZipFile(path, "w", strict_timestamps=False) as archive:
            _fill(archive, project)
        return path


def export_finished(project: Project, name: str) -> Path:
    """Return a new file with the finished mosaic at full resolution, in a format. The caller deletes it."""
    if not project.placements:
        raise UsageError("there is no finished mosaic yet; press “stop here” first")
    inner = Path(name.removesuffix(".zip"))
    with _new_file(project, Path(name).suffix) as path:
        delivered = delivered_files(project).get(name)
        if delivered is not None:
            with naming(path):
                shutil.copyfile(delivered, path)
            return path
        with tempfile.TemporaryDirectory(prefix="export-", dir=project.cache.folder) as beside:
            made = Path(beside) / inner
            render(project, 0, made, RenderSettings(), Silence())
            if inner.name == name:
                with naming(path):
                    made.replace(path)
                return path
            with naming(path), ZipFile(path, "w", ZIP_STORED, strict_timestamps=False) as archive:
                for file in sorted(Path(beside).rglob("*")):
                    if file.is_file() and not file.name.startswith(".mosaic"):
                        archive.write(file, file.relative_to(beside))
        return path


@contextmanager
def _new_file(project: Project, suffix: str) -> Iterator[Path]:
    """Yield an empty file in the cache; delete it if it cannot be filled."""
    folder = project.cache.folder
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(suffix, "export-", folder)
        os.close(descriptor)
    path = Path(name)
    try:
        yield path
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _fill(archive: ZipFile, project: Project) -> None:
    folder = project.folder.resolve()

    def add(path: Path) -> None:
        kind = ZIP_STORED if path.suffix in COMPRESSED else ZIP_DEFLATED
        archive.write(path, f"{folder.name}/{path.name}", kind)

    # Before the database, which is written first: somebody may be answering.
    if (folder / BACKUP_NAME).is_file():
        add(folder / BACKUP_NAME)
    with tempfile.TemporaryDirectory(prefix="export-", dir=project.cache.folder) as beside:
        copy = Path(beside) / FILE_NAME
        _copy_database(folder / FILE_NAME, copy)
        add(copy)
    for path in sorted(path for pattern in RESULTS for path in folder.glob(pattern)):
        add(path)
    if not (folder / "landmarks.csv").exists():
        archive.writestr(
            f"{folder.name}/landmarks.csv",
            export_landmarks(project.answers, project.store.fact(LeftOutPlaces)),
            ZIP_DEFLATED,
        )
    archive.writestr(f"{folder.name}/README.txt", _introduce(project, folder.name), ZIP_DEFLATED)


def _introduce(project: Project, name: str) -> str:
    location = project.source_facts.location
    return README.format(
        name=name,
        frames=len(project.frames),
        answers=len(project.answers),
        quoted=shlex.quote(name),
        source=shlex.quote(Path(location).name if isinstance(location, str) else Path(location[0]).parent.name),
        results=FINISHED if project.is_finished else OUTDATED if project.placements else NOT_FINISHED,
    )


def _copy_database(path: Path, copy: Path) -> None:
    """Copy a database between two transactions, while others may write to it."""
    try:
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
            # The copy is one file, without the write-ahead log.
            target.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise OutputError(f"{path}: cannot be copied ({error}); free disk space or check the permissions") from None


def _written(write: Callable[[Path], None]) -> bytes:
    """Return the content of the file that `write` writes."""
    with tempfile.TemporaryDirectory(prefix="smalti-") as folder:
        path = Path(folder) / "export"
        write(path)
        return path.read_bytes()
