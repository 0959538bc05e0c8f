"""The finished mosaic to be looked at: DeepZoom tiles of it and of the mosaic by the chain alone, and its files.

The tiles are in `cache/finished/`. Each one ends with its checksum. `index.z` is written last, so without it there are
no tiles.
"""

from __future__ import annotations

import math
import shutil
import zlib
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from smalti.annotation.messages import DeliveredFile, FinishedMosaic, Message, MosaicVersion, TilePyramid
from smalti.building.delivery import show_rendering
from smalti.errors import DamageError, UsageError
from smalti.interchange.atomic_files import naming, replacing
from smalti.interchange.checksums import checksum_of, file_digest, seal, unseal
from smalti.interchange.regular_files import kind_of
from smalti.progress import Progress
from smalti.project.facts import DeliveredDigests, Outcome
from smalti.project.project import Project
from smalti.rendering.formats.bands import level_sizes
from smalti.rendering.formats.format_table import OVERLAP, SIDE, write_deepzoom
from smalti.rendering.mosaic import Mosaic

FOLDER = "finished"
INDEX = "index.z"
REPORT = "report.html"

LARGEST_BEFORE = 2.0
"""Pixels of the mosaic by the chain alone, relative to the finished one. Drift can make it huge; then it is reduced."""

WRITE_PNG = partial(write_deepzoom, tiles="png")
"""Unchanged pixels, and transparent where no frame is."""


class _Index(Message):
    revision: int  # of the log that the mosaic was finished after
    now: TilePyramid
    before: TilePyramid | None


def write_views(project: Project, progress: Progress) -> None:
    """Write the tiles of the largest finished mosaic, and of the same frames by the chain alone."""
    folder = project.cache.folder / FOLDER
    with naming(folder):
        (folder / INDEX).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    if not project.placements:
        return
    with naming(folder):
        folder.mkdir(parents=True)
    now = _write_tiles(project.mosaic(say=progress.say), folder, MosaicVersion.NOW, math.inf, progress)
    by_chain = project.mosaic(by_chain=True, say=progress.say)
    before = _write_tiles(by_chain, folder, MosaicVersion.BEFORE, LARGEST_BEFORE * now.width * now.height, progress)
    revision = project.outcome.finished_after
    index = _Index(revision=revision, now=now, before=before)
    with replacing(folder / INDEX) as file:
        file.write(seal(zlib.compress(index.model_dump_json().encode())))


def _write_tiles(
    mosaic: Mosaic, folder: Path, version: MosaicVersion, most_pixels: float, progress: Progress
) -> TilePyramid:
    canvas = mosaic.canvas()
    if canvas.width * canvas.height > most_pixels:
        canvas = mosaic.canvas(math.sqrt(most_pixels / (canvas.width * canvas.height)))
    path = folder / f"{version}.dzi"
    with show_rendering(progress) as show:
        mosaic.save(path, scale=canvas.scale, on_progress=show, writer=WRITE_PNG)
    for tile in path.with_name(f"{version}_files").glob("*/*.png"):
        with naming(tile):
            tile.write_bytes(seal(tile.read_bytes()))
    return TilePyramid(
        left=canvas.left,
        top=canvas.top,
        scale=canvas.scale,
        width=canvas.width,
        height=canvas.height,
        levels=len(level_sizes(canvas.width, canvas.height, 1)),
        side=SIDE,
        overlap=OVERLAP,
    )


def describe_finished(project: Project) -> FinishedMosaic | None:
    """Return what there is to look at; None if no mosaic was finished, or its tiles were deleted or damaged."""
    index = _read_index(project.cache.folder)
    outcome = project.store.fact(Outcome)
    if index is None or outcome is None or outcome.finished_after != index.revision:
        return None
    return FinishedMosaic(
        edition=f"{index.revision}-{checksum_of(index.model_dump_json().encode()).hex()[:8]}",
        now=index.now,
        before=index.before,
        frames=sum(placement.part == 0 for placement in project.placements),
        error_px=_known(outcome.predicted_error_px),
        before_px=_known(outcome.chain_predicted_px),
        is_newest=project.is_finished,
        files=[DeliveredFile(name=name, bytes=path.stat().st_size) for name, path in delivered_files(project).items()],
        folder=str(project.folder.resolve()),
    )


def read_tile(cache: Path, version: MosaicVersion, level: int, column: int, row: int) -> bytes:
    """Return a tile as PNG. Its numbers are compared with the index before anything is opened."""
    index = _read_index(cache)
    pyramid = None if index is None else {MosaicVersion.NOW: index.now, MosaicVersion.BEFORE: index.before}[version]
    if pyramid is None:
        raise UsageError("no mosaic was finished; press “stop here” first")
    if not 0 <= level < pyramid.levels:
        raise UsageError(f"level {level}: the mosaic has levels 0 to {pyramid.levels - 1} only")
    width, height = level_sizes(pyramid.width, pyramid.height, 1)[pyramid.levels - 1 - level]
    if not (0 <= column * SIDE < width and 0 <= row * SIDE < height):
        raise UsageError(f"tile {column}, {row}: level {level} has {width} × {height} pixels only")
    path = cache / FOLDER / f"{version}_files" / str(level) / f"{column}_{row}.png"
    content = unseal(path.read_bytes()) if kind_of(path) == "file" else None
    if content is None:
        raise UsageError(f"{path}: is missing or damaged; press “stop here” to make it again")
    return content


def find_result(project: Project, name: str) -> Path:
    """Return a delivered file by its name. The report runs in the browser: it must be as it was delivered."""
    files = delivered_files(project)
    if name not in files:
        raise UsageError("there is no such file; the finished mosaic has " + (", ".join(files) or "none yet"))
    path = files[name]
    if name == REPORT and file_digest(path) != _digests(project)[REPORT]:
        raise DamageError(f"{path}: is not as it was delivered; press “stop here” to write it again")
    return path


def _read_index(cache: Path) -> _Index | None:
    path = cache / FOLDER / INDEX
    content = unseal(path.read_bytes()) if kind_of(path) == "file" else None
    if content is None:
        return None
    try:
        return _Index.model_validate_json(zlib.decompress(content))
    except (ValidationError, zlib.error):
        return None  # of another version


def delivered_files(project: Project) -> dict[str, Path]:
    """Return the delivered files that are there, by name."""
    paths = {name: project.folder / Path(name).name for name in _digests(project)}
    return {name: path for name, path in paths.items() if kind_of(path) == "file"}


def _digests(project: Project) -> dict[str, str]:
    delivered = project.store.fact(DeliveredDigests)
    return {} if delivered is None else dict(delivered.files)


def _known(error_px: float) -> float | None:
    return error_px if math.isfinite(error_px) else None
