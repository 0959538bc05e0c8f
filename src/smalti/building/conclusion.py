"""What comes after the last answer: the landmarks looked at once more, the files, the report."""

from __future__ import annotations

from smalti.building.groundwork import Groundwork, timed
from smalti.building.outputs import render_mosaics, write_tables
from smalti.building.progress import Progress
from smalti.building.results import (
    Delivered,
    chain_error_px,
    judge_links,
    keep_result,
    left_out_px,
    place_asides,
    place_frames,
    summarise,
)
from smalti.loop import ActiveLoop
from smalti.paper.paper_loop import PaperLoop
from smalti.project.project import Project
from smalti.report.page import write_report


def conclude(
    project: Project,
    groundwork: Groundwork,
    loop: ActiveLoop | PaperLoop,
    progress: Progress,
    revision: int | None = None,
) -> None:
    """Finish the mosaic of the loop's last state, keep it, render it and report.

    `revision` is that of the log when the loop was in this state, by default now: people may go on answering meanwhile.
    """
    revision = project.store.revision if revision is None else revision
    start, questions, used = groundwork.start, groundwork.questions, groundwork.used
    with timed(project, "finish"):
        delivered = Delivered.of(loop)
        placements = place_frames(start.mosaic_from_frame, delivered, used)
        placements += place_asides(groundwork.frames, placements, questions, delivered.lens)
        keep_result(
            project,
            placements,
            judge_links(delivered, loop.landmarks, used),
            revision,
            chain_error_px=chain_error_px(start, loop, delivered),
            left_out_px=left_out_px(loop),
            **summarise(start, loop, delivered, used),
        )
        write_tables(project)
    with timed(project, "render"):
        mosaics = render_mosaics(project, progress)
    with timed(project, "report"):
        write_report(project, project.folder / "report.html", mosaics=mosaics)
