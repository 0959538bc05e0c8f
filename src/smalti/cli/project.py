"""`smalti info`, `smalti evaluate`, `smalti render`: look at what a build has left."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the commands."""
    info = _command(commands, "info", "tell what is known of a project", run_info)
    info.add_argument("--json", action="store_true", help="as JSON")

    evaluate = _command(commands, "evaluate", "measure a mosaic by landmarks that were not part of it", run_evaluate)
    evaluate.add_argument(
        "--landmarks", type=Path, required=True, metavar="CSV", help="frame_i,frame_j,x_i,y_i,x_j,y_j, frames from 0"
    )
    evaluate.add_argument("--json", action="store_true", help="as JSON")

    render = _command(commands, "render", "render a mosaic again", run_render)
    render.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=".png or .tif")
    render.add_argument("--part", type=int, default=1, metavar="P", help="which mosaic, the largest being 1 (1)")
    render.add_argument("--scale", type=float, default=1.0, metavar="S", help="pixels per pixel of the frames (1)")
    render.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    render.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no closing words")


def run_info(options: argparse.Namespace) -> None:
    """Print what is known."""
    import json  # noqa: PLC0415

    from smalti.cli.information import described  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415

    with Project.open(options.project) as project:
        info = project.info()
    print(json.dumps(info) if options.json else described(info))


def run_evaluate(options: argparse.Namespace) -> None:
    """Print the error by landmarks."""
    import json  # noqa: PLC0415
    from dataclasses import asdict  # noqa: PLC0415

    from smalti.project.project import Project  # noqa: PLC0415

    with Project.open(options.project) as project:
        found = asdict(project.evaluate(options.landmarks))
    if options.json:
        print(json.dumps(found))
        return
    print(f"{found['relative_rmsd_px']:.2f} px RMS, {found['median_px']:.2f} px median")
    print(f"over {found['landmarks']} landmarks of {found['pairs']} pairs; {found['frames_placed']} frames placed")
    if found["pairs_apart"]:
        print(f"{found['pairs_apart']} pairs ({found['landmarks_apart']} landmarks) are not on one mosaic: not counted")


def run_render(options: argparse.Namespace) -> None:
    """Render to a file."""
    from smalti.building.outputs import render  # noqa: PLC0415
    from smalti.building.progress import Silence  # noqa: PLC0415
    from smalti.cli.bars import Bars  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415

    with Project.open(options.project, source=options.source) as project:
        mosaic = project.mosaic(options.part - 1)
        render(mosaic, options.output, Silence() if options.quiet else Bars(), scale=options.scale)
        canvas = mosaic.canvas(options.scale)
    if not options.quiet:
        print(f"{options.output}: {canvas.width} x {canvas.height} px")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, run: object
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    parser.add_argument("project", type=Path, metavar="DIR", help="a project's folder")
    parser.set_defaults(run=run)
    return parser
