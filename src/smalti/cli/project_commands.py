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
    info = _command(commands, "info", "print what is known about a project", run_info)
    info.add_argument("--json", action="store_true", help="print JSON")

    evaluate = _command(
        commands, "evaluate", "measure the error of a mosaic on landmarks that were not used to build it", run_evaluate
    )
    evaluate.add_argument(
        "--landmarks",
        type=Path,
        required=True,
        metavar="CSV",
        help="table with the columns frame_i,frame_j,x_i,y_i,x_j,y_j",
    )
    evaluate.add_argument("--json", action="store_true", help="print JSON")


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
        print(f"not counted: {found['pairs_apart']} pairs ({found['landmarks_apart']} landmarks) on separate mosaics")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, run: object
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder")
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
        description="Render a mosaic with another blend, size or format, in bounded memory. After an interruption, "
        "run the same command to continue.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="file to write: .png, .jpg, .tif, .dzi or .zarr",
    )
    parser.add_argument("--part", type=int, default=1, metavar="P", help="number of the mosaic; 1 is the largest (1)")
    picture = parser.add_argument_group("picture")
    picture.add_argument(
        "--blend", default="multiband", metavar="NAME", help=f"how frames are blended: {', '.join(BLENDS)} (multiband)"
    )
    picture.add_argument("--scale", type=float, default=1.0, metavar="S", help="mosaic pixels per frame pixel (1)")
    picture.add_argument(
        "--region", metavar="X,Y,W,H", help="render only this part, in pixels of the whole mosaic at scale 1"
    )
    picture.add_argument("--raw-light", action="store_true", help="do not correct exposure and vignetting")
    picture.add_argument("--memory", type=int, default=1024, metavar="MB", help="largest memory to use (1024)")
    maps = parser.add_argument_group("maps")
    maps.add_argument("--maps", default="", metavar="NAME,…", help=f"also write these rasters: {', '.join(MAPS)}")
    maps.add_argument(
        "--relative-to", type=int, metavar="FRAME", help="give uncertainty relative to this frame (reference frame)"
    )
    world = parser.add_argument_group("world")
    world.add_argument(
        "--positions",
        type=Path,
        metavar="CSV",
        help="where the frames were taken, in columns lat,lon or east_m,north_m",
    )
    world.add_argument("--epsg", type=int, metavar="CODE", help="coordinate system of positions in metres")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bar and no summary")
    parser.set_defaults(run=run_render)


def run_render(options: argparse.Namespace) -> None:
    """Render to a file, and say what there is now."""
    from dataclasses import replace  # noqa: PLC0415

    from smalti.building.delivery import RenderSettings, render  # noqa: PLC0415
    from smalti.progress import Bars, Silence  # noqa: PLC0415
    from smalti.project.project import Project  # noqa: PLC0415

    kinds = tuple(name for name in options.maps.split(",") if name)
    if options.relative_to is not None and "uncertainty" not in kinds:
        raise UsageError("--relative-to works only with a map of the uncertainty: add --maps uncertainty")
    if options.epsg is not None and options.positions is None:
        raise UsageError("--epsg works only with positions: add --positions")
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
                    raise UsageError(
                        f"--epsg: {options.positions} has latitudes, which give EPSG {place.epsg}; leave out --epsg"
                    )
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
    left_out = f", {len(place.outliers)} outliers left out" if place.outliers else ""
    return (
        f"{system}: {place.metres_per_pixel:.4f} m per pixel at scale 1, up is {place.rotation_deg:.1f}° from north; "
        f"positions fit to {place.residual_m:.2f} m RMS over {len(place.residuals_m) - len(place.outliers)} "
        f"frames{left_out}"
    )


def add_film(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "film",
        help="make a film of how the answers improve the mosaic",
        description="Make a film of a mosaic. It begins with the chain alone, shows how each answer moves the frames, "
        "and ends with the finished mosaic.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="file to write: .mp4 or .gif")
    parser.add_argument("--part", type=int, default=1, metavar="P", help="number of the mosaic; 1 is the largest (1)")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="largest length of the film (20)")
    parser.add_argument(
        "--size", type=int, default=960, metavar="PX", help="longer side of the film; at most 640 for .gif (960)"
    )
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bar and no summary")
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
        help="write the frames without lens distortion",
        description="Write the frames of a project without lens distortion, as PNG files, with a mask and a "
        "transforms.json for these frames. Use them in programs that cannot correct a lens.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="new folder for the frames")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bar and no summary")
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
        found = "; no lens distortion was found, the frames are unchanged" if is_undistorted else ""
        print(f"{options.output}: {frames} frames of {width} x {height} px{found}")
