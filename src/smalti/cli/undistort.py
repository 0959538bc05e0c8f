"""`smalti undistort`: the frames without the lens' distortion, for programs that know no lens."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "undistort",
        help="write the frames without the lens' distortion",
        description="Write the frames of a project without the distortion of their lens, as PNG, with a mask and a "
        "transforms.json that needs no lens: for programs that know none.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="a project's folder")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="a new folder for the frames")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no closing words")
    parser.set_defaults(run=run, resumes=False)


def run(options: argparse.Namespace) -> None:
    """Write the frames, and say where they are."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.building.progress import Silence  # noqa: PLC0415
    from smalti.cli.bars import Bars  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415
    from smalti.project.undistorted_frames import write_undistorted_frames  # noqa: PLC0415

    progress = Silence() if options.quiet else Bars()
    with Project.open(options.project, source=options.source) as project:
        frames = len(project.placements)
        with progress.stage("frames", frames) as step:
            width, height = write_undistorted_frames(project, options.output, step)
        is_straight = project.lens.is_straight
    if not options.quiet:
        found = "; no lens was found: they are as they were" if is_straight else ""
        print(f"{options.output}: {frames} frames of {width} x {height} px{found}")
