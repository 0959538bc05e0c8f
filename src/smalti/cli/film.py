"""`smalti film`: show how the mosaic straightens, answer by answer."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "film",
        help="film how the mosaic straightens",
        description="Show the mosaic of a project by the chain alone, then as every answer straightens it, then "
        "finished.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="a project's folder")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=".mp4 or .gif")
    parser.add_argument("--part", type=int, default=1, metavar="P", help="which mosaic, the largest being 1 (1)")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="length of the film, at most (20)")
    parser.add_argument("--size", type=int, default=960, metavar="PX", help="longer side; of a .gif at most 640 (960)")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no closing words")
    parser.set_defaults(run=run, resumes=False)


def run(options: argparse.Namespace) -> None:
    """Make the film, and say where it is."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.building.progress import Silence  # noqa: PLC0415
    from smalti.cli.bars import Bars  # noqa: PLC0415
    from smalti.film.film import make_film  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415

    progress = Silence() if options.quiet else Bars()
    with Project.open(options.project, source=options.source) as project, progress.stage("film", 100) as step:
        shown = 0

        def show(done: int, total: int) -> None:
            nonlocal shown
            percent = 100 * done // total
            step(percent - shown)
            shown = percent

        make_film(
            project,
            options.output,
            part=options.part - 1,
            seconds=options.seconds,
            size=options.size,
            on_progress=show,
        )
    if not options.quiet:
        print(options.output)
