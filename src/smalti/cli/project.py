"""`smalti info`, `smalti evaluate`: look at what a build has left."""

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


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, run: object
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    parser.add_argument("project", type=Path, metavar="DIR", help="a project's folder")
    parser.set_defaults(run=run)
    return parser
