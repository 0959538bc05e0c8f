"""What comes after the last answer: the finish, the files, the report."""

from __future__ import annotations

from smalti.building.finish import finish_parts
from smalti.building.groundwork import Groundwork, timed
from smalti.building.outputs import render_mosaics, write_tables
from smalti.building.progress import Progress
from smalti.building.results import chain_error_px, judge_links, keep_result, place_asides, place_parts, summarise
from smalti.building.settings import Finish
from smalti.loop import ActiveLoop
from smalti.project.project import Project
from smalti.report.page import write_report


def conclude(
    project: Project,
    groundwork: Groundwork,
    loop: ActiveLoop,
    finish: Finish,
    progress: Progress,
    revision: int | None = None,
) -> None:
    """Finish the mosaic of the loop's last state, keep it, render it and report.

    `revision` is that of the log when the loop was in this state, by default now: people may go on answering meanwhile.
    """
    revision = project.store.revision if revision is None else revision
    start, questions, used = groundwork.start, groundwork.questions, groundwork.used
    with timed(project, "finish"):
        landmarks = questions.landmarks()
        parts = finish_parts(loop, landmarks, finish)
        placements = place_parts(parts, start, used)
        placements += place_asides(groundwork.frames, placements, questions)
        keep_result(
            project,
            placements,
            judge_links(loop, parts, used),
            revision,
            chain_error_px=chain_error_px(start, loop, landmarks, parts),
            **summarise(groundwork.chain, start, loop, parts, used),
        )
        write_tables(project)
    with timed(project, "render"):
        mosaics = render_mosaics(project, progress)
    with timed(project, "report"):
        write_report(project, project.folder / "report.html", mosaics=mosaics)
