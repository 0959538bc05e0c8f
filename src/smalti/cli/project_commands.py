"""`smalti info`, `evaluate`, `render`, `film` and `undistort`: commands on a finished project."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from smalti.errors import UsageError

if TYPE_CHECKING:
    from smalti.georeference.georeferencing import Georeference


def add_info_and_evaluate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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

    from smalti.cli.build_command import described  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415

    with Project.open(options.project) as project:
        info = project.info()
    print(json.dumps(info.as_json()) if options.json else described(info))


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


# Named here too, so that help needs not import the renderer; a test keeps them the same.
BLENDS = ("multiband", "feather", "median", "none")
MAPS = ("source", "uncertainty", "coverage")


def add_render(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "render",
        help="render a mosaic again",
        description="Render a mosaic in another way, size or format, in bounded memory. A large one that was "
        "interrupted goes on where it stopped.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="a project's folder")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=".png, .jpg, .tif, .dzi or .zarr"
    )
    parser.add_argument("--part", type=int, default=1, metavar="P", help="which mosaic, the largest being 1 (1)")
    picture = parser.add_argument_group("picture")
    picture.add_argument("--blend", default="multiband", metavar="NAME", help=f"of {', '.join(BLENDS)} (multiband)")
    picture.add_argument("--scale", type=float, default=1.0, metavar="S", help="pixels per pixel of the frames (1)")
    picture.add_argument("--region", metavar="X,Y,W,H", help="a part of it, in pixels of the whole at scale 1")
    picture.add_argument("--raw-light", action="store_true", help="leave exposure and vignetting as they are")
    picture.add_argument("--memory", type=int, default=1024, metavar="MB", help="not to be exceeded (1024)")
    maps = parser.add_argument_group("maps")
    maps.add_argument("--maps", default="", metavar="NAME,…", help=f"rasters beside it, of {', '.join(MAPS)}")
    maps.add_argument("--relative-to", type=int, metavar="FRAME", help="of the uncertainty (the mosaic's reference)")
    world = parser.add_argument_group("world")
    world.add_argument(
        "--positions", type=Path, metavar="CSV", help="where frames were taken: lat,lon or east_m,north_m"
    )
    world.add_argument("--epsg", type=int, metavar="CODE", help="of positions in metres")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar, no closing words")
    parser.set_defaults(run=run_render)


def run_render(options: argparse.Namespace) -> None:
    """Render to a file, and say what there is now."""
    from dataclasses import replace  # noqa: PLC0415

    from smalti.building.delivery import RenderSettings, render  # noqa: PLC0415
    from smalti.progress import Bars, Silence  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415

    kinds = tuple(name for name in options.maps.split(",") if name)
    if options.relative_to is not None and "uncertainty" not in kinds:
        raise UsageError("--relative-to is of the uncertainty: add --maps uncertainty")
    if options.epsg is not None and options.positions is None:
        raise UsageError("--epsg is of positions: add --positions")
    settings = RenderSettings(
        blend=options.blend,
        scale=options.scale,
        region=None if options.region is None else _parse_region(options.region),
        even_light=not options.raw_light,
        memory_bytes=options.memory * 2**20,
        maps=kinds,
        relative_to=options.relative_to,
    )
    with Project.open(options.project, source=options.source) as project:
        place = None
        if options.positions is not None:
            place = project.georeference(options.positions, options.part - 1)
            if options.epsg is not None:
                if place.epsg is not None:
                    raise UsageError(f"--epsg: {options.positions} has latitudes, which are EPSG {place.epsg} already")
                place = replace(place, epsg=options.epsg)
        progress = Silence() if options.quiet else Bars()
        window, written = render(project, options.part - 1, options.output, settings, progress, place)
    if not options.quiet:
        print(f"{written[0]}: {window.width} x {window.height} px")
        for path in written[1:]:
            print(path)
        if place is not None:
            print(_say_place(place))


def _parse_region(text: str) -> tuple[float, float, float, float]:
    try:
        x, y, width, height = (float(number) for number in text.split(","))
    except ValueError:
        raise UsageError(f"--region {text}: give four numbers, x,y,width,height") from None
    return x, y, width, height


def _say_place(place: Georeference) -> str:
    system = "local metres" if place.epsg is None else f"EPSG {place.epsg}"
    left_out = f", {len(place.outliers)} left out" if place.outliers else ""
    return (
        f"{system}: {place.metres_per_pixel:.4f} m a pixel at scale 1, up is {place.rotation_deg:.1f}° from north; "
        f"positions agree to {place.residual_m:.2f} m RMS over {len(place.residuals_m) - len(place.outliers)} "
        f"frames{left_out}"
    )


def add_film(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
    parser.set_defaults(run=run_film, resumes=False)


def run_film(options: argparse.Namespace) -> None:
    """Make the film, and say where it is."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.film.film import make_film  # noqa: PLC0415
    from smalti.progress import Bars, Silence  # noqa: PLC0415
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


def add_undistort(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
    parser.set_defaults(run=run_undistort, resumes=False)


def run_undistort(options: argparse.Namespace) -> None:
    """Write the frames, and say where they are."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.progress import Bars, Silence  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415
    from smalti.project.undistorted_frames import write_undistorted_frames  # noqa: PLC0415

    progress = Silence() if options.quiet else Bars()
    with Project.open(options.project, source=options.source) as project:
        frames = len(project.placements)
        with progress.stage("frames", frames) as step:
            width, height = write_undistorted_frames(project, options.output, step)
        is_undistorted = project.lens.is_undistorted
    if not options.quiet:
        found = "; no lens was found: they are as they were" if is_undistorted else ""
        print(f"{options.output}: {frames} frames of {width} x {height} px{found}")
