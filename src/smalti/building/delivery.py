"""Everything after the last answer: final refinement, files, report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from threadpoolctl import threadpool_limits

from smalti.active_loop import ActiveLoop
from smalti.building.between_frames import place_between
from smalti.building.build_results import (
    Delivered,
    judge_links,
    keep_result,
    place_asides,
    place_frames,
    summarise,
)
from smalti.building.preparation import NOT_DECODED, Preparation, timed
from smalti.building.tile_placement import Tiles, place_tiles
from smalti.geometry.homographies import family_named, invert_homographies
from smalti.geometry.lens import Lens
from smalti.georeference.georeferencing import Georeference
from smalti.interchange.atomic_files import check_place, naming
from smalti.interchange.checksums import file_digest
from smalti.interchange.landmarks_csv import LeftOutRecord, write_landmarks
from smalti.interchange.transforms_json import FrameTransform, write_transforms
from smalti.loop_setup import StopReason
from smalti.paper.paper_loop import PaperLoop
from smalti.progress import Progress
from smalti.project.entries import AnswerEntry, LinkState, Placement, Role
from smalti.project.evaluation import hold_left_out
from smalti.project.facts import DeliveredDigests, LeftOutPlaces, Outcome, RasterShape
from smalti.project.project import Project
from smalti.project.uncertainty import FinishedMosaics, Uncertainty
from smalti.rendering.blends.blend_table import check_blend
from smalti.rendering.canvas import Canvas, Window
from smalti.rendering.mosaic import DEFAULT_MEMORY, Blend, Caption, MapKind, Mosaic, OnProgress, Region
from smalti.rendering.mosaic_overview import MosaicOverview
from smalti.rendering.pixel_maps import check_map_kind
from smalti.report.report_page import write_report
from smalti.report.report_pictures import View, share_page


def deliver(
    project: Project,
    preparation: Preparation,
    loop: ActiveLoop | PaperLoop,
    progress: Progress,
    revision: int | None = None,
) -> None:
    """Finish the mosaic of the loop's last state: refine, store, render, report.

    `revision` is that of the log when the loop was in this state; by default the current one. People may go on
    answering meanwhile.
    """
    revision = project.store.revision if revision is None else revision
    # Other threads of BLAS spin while they wait. For matrices of this size they take more time than they save.
    with threadpool_limits(limits=1, user_api="blas"):
        with timed(project, "finish"):
            finished, tables = _finish(project, preparation, loop, revision)
        with timed(project, "render"):
            mosaics, views = render_mosaics(project, finished, progress)
        with timed(project, "report"):
            report = project.folder / "report.html"
            write_report(project, report, mosaics=mosaics, views=views)
            project.store.keep_fact(
                DeliveredDigests({path.name: file_digest(path) for path in (*mosaics, *tables, report)})
            )


def _finish(
    project: Project, preparation: Preparation, loop: ActiveLoop | PaperLoop, revision: int
) -> tuple[FinishedMosaics | None, tuple[Path, Path]]:
    """Keep the result, and write the tables. The paper's method has no estimate to be used again."""
    start, questions, numbers = preparation.start, preparation.questions, preparation.numbers
    delivered = Delivered.of(loop)
    placements = place_frames(start.mosaic_from_frame, delivered, numbers)
    outcome = summarise(start, loop, delivered, numbers, revision)
    placements += place_between(placements, project.tracks, delivered.lens, family_named(outcome.family))
    if preparation.chain.raster is None:
        placements += place_asides(preparation.frames, placements, questions, delivered.lens)
    else:
        if not loop.answers and outcome.stopped == StopReason.BUDGET:
            outcome = replace(outcome, stopped="raster")
        placements, outcome = _complete_raster(project, preparation, placements, outcome, delivered.lens)
    links = judge_links(delivered, loop.landmarks, numbers)
    keep_result(project, placements, links, outcome)
    left_out = hold_left_out(project.placed_by, placements, project.lens, delivered.final, numbers)
    if left_out.rows or project.store.fact(LeftOutPlaces) is not None:
        project.store.keep_fact(left_out)
    # The files are replaced one by one from here on: until all are there, nothing is known of them.
    project.store.keep_fact(DeliveredDigests({}))
    tables = write_tables(project)
    asides = tuple(entry.answer for entry in project.placed_by if entry.role is Role.ASIDE)
    return None if delivered.final is None else FinishedMosaics(numbers, delivered.final, asides), tables


def _complete_raster(
    project: Project,
    preparation: Preparation,
    placements: Sequence[Placement],
    outcome: Outcome,
    lens: Lens,
) -> tuple[list[Placement], Outcome]:
    """Place the tiles that nothing matches by their neighbours; all then lie on one mosaic."""
    found = preparation.chain.raster
    assert found is not None
    shown = [frame for frame in preparation.frames if frame.reason != NOT_DECODED]
    tiles = place_tiles(
        Tiles(found.raster, preparation.places),
        shown,
        placements,
        preparation.questions,
        lambda number: len(project.cache.keypoints(number)),
        preparation.stars_of,
        lens,
    )
    placed = tiles.placements
    shape = RasterShape(found.raster.lines(preparation.places[-1] + 1), found.raster.length, found.raster.order)
    outcome = replace(outcome, raster=shape, by_neighbours=tuple(tiles.by_neighbours), by_spots=tuple(tiles.by_spots))
    if not any(placement.part for placement in placed):
        outcome = replace(outcome, references=outcome.references[:1], breaks=(), unjoined=())
    return placed, outcome


AVERAGING: tuple[Blend, ...] = ("median", "feather")
"""Blends that draw several frames at a place: the more, the less noise."""

LARGEST_PNG = 250_000_000
"""Pixels. Larger mosaics are written as tiled TIFF, which viewers open piece by piece."""


def write_tables(project: Project) -> tuple[Path, Path]:
    """Write the transforms and the landmarks of the accepted links, and return the two files."""
    tables = project.folder / "transforms.json", project.folder / "landmarks.csv"
    frames, unconfirmed, how_placed = project.frames, project.unconfirmed, project.how_placed
    transforms = [
        FrameTransform(
            p.number,
            frames[p.number].label,
            p.part,
            p.final,
            p.sigma_px,
            how_placed[p.number] != "neighbours" and p.number not in unconfirmed,
            how_placed[p.number],
        )
        for p in project.placements
    ]
    write_transforms(
        tables[0],
        transforms,
        size=(project.width, project.height),
        references=project.outcome.references,
        apart=project.not_placed,
        lens=project.lens,
    )
    accepted = {link.pair for link in project.links if link.state is LinkState.ACCEPTED}
    entries = [entry for entry in project.placed_by if entry.answer.pair in accepted]
    write_landmarks_of(tables[1], entries, project.store.fact(LeftOutPlaces))
    return tables


def write_landmarks_of(path: Path, answers: Sequence[AnswerEntry], errors: LeftOutPlaces | None = None) -> None:
    """Write the landmarks of every yes among the answers, with those who gave them.

    Those that were left out have their `errors` on the finished mosaic, if there is one.
    """
    records = [entry.answer.landmarks for entry in answers if entry.answer.landmarks is not None]
    known = {} if errors is None else {row[:2]: row[2:] for row in errors.rows}
    left_out = [
        LeftOutRecord(marks, tuple(known.get((entry.place, number), (None, None)) for number in range(len(marks))))
        for entry in answers
        if entry.answer.landmarks is not None and (marks := entry.left_out) is not None
    ]
    write_landmarks(path, records, {entry.answer.pair: entry.author_name for entry in answers}, left_out)


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """How to render a mosaic, and which maps to write beside it."""

    blend: Blend = "multiband"
    scale: float = 1.0
    region: Region | None = None
    even_light: bool = True
    memory_bytes: int = DEFAULT_MEMORY
    maps: tuple[MapKind, ...] = ()
    relative_to: int | None = None  # frame of the uncertainty; None: the mosaic's reference

    def __post_init__(self) -> None:
        check_blend(self.blend)
        for kind in self.maps:
            check_map_kind(kind)


def render_mosaics(
    project: Project, finished: FinishedMosaics | None, progress: Progress
) -> tuple[list[Path], list[View]]:
    """Render the mosaic of every part. The largest is `mosaic.png`, the others are numbered.

    Return the files, and the views for the report: they are of the same pass over the frames.
    """
    placed = Counter(placement.part for placement in project.placements)
    shares = share_page([placed[part] for part in range(len(placed))])
    files, views = [], []
    for part in range(len(placed)):
        mosaic = project.mosaic(part, say=progress.say)
        canvas = mosaic.canvas()
        suffix = "png" if canvas.width * canvas.height <= LARGEST_PNG else "tif"
        path = project.folder / (f"mosaic.{suffix}" if part == 0 else f"mosaic-{part + 1}.{suffix}")
        overview = mosaic.begin_overview() if part < len(shares) else None
        _save(mosaic, path, RenderSettings(), Caption(name=path.stem), progress, overview)
        files.append(path)
        if overview is not None:
            views.append(View.of(overview, Uncertainty.of(project, part, mosaics=finished), shares[part]))
    return files, views


def render(
    project: Project,
    part: int,
    path: Path,
    settings: RenderSettings,
    progress: Progress,
    place: Georeference | None = None,
) -> tuple[Window, list[Path]]:
    """Render one mosaic and its maps to files, and show progress. Return its pixels and the files."""
    with _working_folder(project, path) as folder:
        mosaic = project.mosaic(
            part,
            all_frames=settings.blend in AVERAGING,
            memory_bytes=settings.memory_bytes,
            folder=folder,
            say=progress.say,
        )
        canvas = mosaic.canvas(settings.scale)
        window = canvas.window if settings.region is None else canvas.part(settings.region)
        # Check before the picture is rendered, because a wrong frame number would be found only after an hour.
        uncertain = "uncertainty" in settings.maps
        spread = Uncertainty.of(project, part, settings.relative_to).spread if uncertain else None
        caption = _describe(path, canvas, window, place)
        _save(mosaic, path, settings, caption, progress)
        maps = mosaic.save_maps(
            path,
            settings.maps,
            scale=settings.scale,
            region=settings.region,
            even_light=settings.even_light,
            spread=spread,
            caption=caption,
        )
    return window, [path, *maps]


def _save(
    mosaic: Mosaic,
    path: Path,
    settings: RenderSettings,
    caption: Caption,
    progress: Progress,
    overview: MosaicOverview | None = None,
) -> None:
    with show_rendering(progress) as show:
        mosaic.save(
            path,
            blend=settings.blend,
            scale=settings.scale,
            region=settings.region,
            even_light=settings.even_light,
            caption=caption,
            on_progress=show,
            overview=overview,
        )


@contextmanager
def show_rendering(progress: Progress) -> Iterator[OnProgress]:
    """Begin a stage, and yield what shows the steps of a rendering in it."""
    done = 0
    with progress.stage("rendering", 100) as step:

        def show(steps: int, of: int) -> None:
            nonlocal done
            percent = 100 * steps // of
            step(percent - done)
            done = percent

        yield show


@contextmanager
def _working_folder(project: Project, path: Path) -> Iterator[Path | None]:
    """Yield where working files of a rendering go: None for the project's cache, where it can be written.

    Otherwise a folder beside the output, which has space for a mosaic; a folder of the system may have none.
    """
    if project.is_writable:
        yield None
        return
    check_place(path)
    with ExitStack() as stack:
        with naming(path):
            folder = stack.enter_context(TemporaryDirectory(prefix=".smalti-", dir=path.parent))
        yield Path(folder)


def _describe(path: Path, canvas: Canvas, window: Window, place: Georeference | None) -> Caption:
    if place is None:
        return Caption(name=path.stem)
    mosaic_from_pixel = invert_homographies(canvas.canvas_from_mosaic) @ window.canvas_from_window
    (a, b, c), (d, e, f) = place.world_from(mosaic_from_pixel).tolist()
    return Caption(name=path.stem, world_from_pixel=((a, b, c), (d, e, f)), epsg=place.epsg)
