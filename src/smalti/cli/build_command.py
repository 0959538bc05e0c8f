"""`smalti build`, and a project in words as `info` prints it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smalti.project.project import Project
    from smalti.project.project_info import LensNumbers, ProjectInfo

# Named here too, so that help needs not import the engine; a test keeps them the same.
METHODS = ("smalti", "paper")
FAMILIES = ("translation", "rigid", "similarity", "affine", "projective")
REGISTRATIONS = ("auto", "keypoints", "learned", "dense")


def add_build(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "build",
        help="build a mosaic from a video or from images",
        description="Read the frames and register each one to the next. Match the pairs of frames that reduce the "
        "error most. Adjust all frames, render the mosaic and write a report. After an interruption, run the same "
        "command to continue.",
    )
    parser.add_argument(
        "input", nargs="+", metavar="INPUT", help="a video, a folder of images, a pattern, or several images"
    )
    add_choice_of_frames(parser)
    questions = parser.add_argument_group("questions")
    questions.add_argument(
        "--budget",
        type=int,
        metavar="Q",
        help="match at most Q pairs after the chain (as long as it pays, at most 3 attempts per frame, chain included)",
    )
    questions.add_argument(
        "--target-px",
        type=float,
        metavar="PX",
        help="stop when the predicted error is below PX with 90 %% probability",
    )
    questions.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of the random numbers for appearance (0)"
    )
    add_choice_of_engine(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bars and no summary")
    parser.set_defaults(run=run_build)


def add_choice_of_frames(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare where a project goes and which frames are used, and return the group of the latter."""
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="project folder (name of INPUT with .smalti)")
    frames = parser.add_argument_group("frames")
    frames.add_argument("--every", type=int, default=1, metavar="K", help="use every K-th frame (1)")
    frames.add_argument(
        "--keyframes",
        default="auto",
        metavar="auto|all|SHARE",
        help="of a video, use the frames in which a SHARE of the view is new, and place the others between them; auto: "
        "0.25 for videos, all for images (auto)",
    )
    frames.add_argument(
        "--start", metavar="T", help="first frame: a number, or a time in a video such as 12.5s or 1:02"
    )
    frames.add_argument("--end", metavar="T", help="stop before this frame: a number or a time")
    frames.add_argument(
        "--max-size", type=int, metavar="PX", help="reduce frames until their longer side has PX pixels"
    )
    frames.add_argument(
        "--mask",
        default="auto",
        metavar="auto|none|FILE|FOLDER",
        help="part of a frame that shows the scene: found, all, white in FILE, or white in the image in FOLDER with "
        "the name or the place of the frame (auto)",
    )
    frames.add_argument(
        "--registration",
        default="auto",
        metavar="|".join(REGISTRATIONS),
        help="match frames by keypoints, by learned keypoints (needs their weights, see the README), or by all pixels "
        "(dense); auto tries what suits the contrast (auto)",
    )
    return frames


def add_choice_of_engine(parser: argparse.ArgumentParser) -> None:
    """Declare which maps, by which method, seen from where."""
    engine = parser.add_argument_group("engine")
    engine.add_argument(
        "--method",
        default="smalti",
        metavar="|".join(METHODS),
        help="smalti: homographies, with noise and camera estimated; paper: the published method, unchanged (smalti)",
    )
    engine.add_argument(
        "--family",
        default="projective",
        metavar="NAME",
        help=f"how a frame may move and deform: {', '.join(FAMILIES)} (projective; affine with --method paper)",
    )
    engine.add_argument(
        "--reference",
        default="auto",
        metavar="FRAME|auto",
        help="frame that stays fixed; the mosaic is seen from it (auto)",
    )


def run_build(options: argparse.Namespace) -> None:
    """Build, and say where the mosaic is and how good."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.building.build import build  # noqa: PLC0415
    from smalti.progress import Bars, Silence  # noqa: PLC0415

    with build(
        options.input[0] if len(options.input) == 1 else options.input,
        options.output,
        progress=Silence() if options.quiet else Bars(),
        every=options.every,
        start=options.start,
        end=options.end,
        max_size=options.max_size,
        mask=options.mask,
        keyframes=options.keyframes,
        registration=options.registration,
        budget=options.budget,
        target_px=options.target_px,
        method=options.method,
        family=options.family,
        reference=options.reference,
        seed=options.seed,
    ) as project:
        if not options.quiet:
            print(closing_words(project))


def closing_words(project: Project) -> str:
    """Say where things are, how good, and what would help."""
    from smalti.building.matcher_choice import missing_method  # noqa: PLC0415

    info = project.info()
    frames = info.frames
    mosaics = "one mosaic" if info.parts == 1 else f"{info.parts} mosaics"
    lines = [f"{frames.placed} of {frames.read} frames on {mosaics}: {project.folder / 'mosaic.png'}"]
    if not frames.placed:
        lines = [f"no two of the {frames.read} frames could be matched: there is no mosaic"]
    lines += [f"  frame {number} is not placed: {reason}" for number, reason in list(project.not_placed.items())[:10]]
    if len(project.not_placed) > 10:
        lines.append(f"  … and {len(project.not_placed) - 10} more, see the report")
    if frames.by_neighbours:
        blank = _count(
            frames.by_neighbours, "tile lies where its neighbours say", "tiles lie where their neighbours say"
        )
        lines.append(f"{blank}: no match joins them to the others")
    lines += _errors(info)
    if info.rejected:
        rejected = _count(info.rejected, "match was", "matches were")
        lines.append(f"{rejected} rejected because of a contradiction with the others; see the report")
    if info.unconfirmed:
        unconfirmed = _count(info.unconfirmed, "frame depends", "frames depend")
        lines.append(f"{unconfirmed} on a single match that no other match confirms; see the report")
    missing = missing_method(project)
    if missing:
        lines.append(missing)
    lines.append(f"report: {project.folder / 'report.html'}")
    return "\n".join(lines)


def _say_near(info: ProjectInfo) -> list[str]:
    near = info.matched_near
    said = [f"near        {near} pairs that surely overlap, matched near their expected place"] if near else []
    again = info.tried_again
    return (
        [*said, f"retried     {_count(again, 'pair', 'pairs')} near the place that was not known before"]
        if again
        else said
    )


def described(info: ProjectInfo) -> str:
    """Say everything that `info` knows, a line each."""
    frames, chain = info.frames, info.chain
    matched = frames.placed - frames.by_neighbours
    lines = [
        f"source      {info.source}",
        f"frames      {frames.read} read, {frames.placed} placed, {frames.set_aside} set aside, "
        f"{frames.not_placed} not placed",
        *([] if frames.keyframes is None else [f"keyframes   {frames.keyframes}, the others are placed between them"]),
        *_say_raster(info),
        f"parts       {info.parts}",
        f"registered  by {_say_methods(info)}",
        f"chain       {chain.links} links, {chain.bridges} bridges, {chain.checks} checks",
        f"questions   {info.asked}: {info.yes} yes, {info.no} no, {info.unsure} cannot tell; "
        f"{info.rejected} rejected; {info.attempts} pairs tried in all",
        *_say_near(info),
        "state       not finished: these are the frames that the answers so far join"
        if info.is_provisional
        else f"confirmed   {matched - info.unconfirmed} of {matched} matched frames"
        + ("; the others depend on a single match" if info.unconfirmed else ""),
    ]
    if info.family is not None:
        lines.append(f"maps        {info.family}")
    if info.lens is not None:
        lines.append(f"lens        {_say_lens(info.lens)}")
    lines += _errors(info)
    lines.append("seconds     " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in info.seconds.items()))
    return "\n".join(lines)


def _say_methods(info: ProjectInfo) -> str:
    found = info.links_by_method
    counts = [f"{name} ({_count(links, 'pair', 'pairs')})" for name, links in found.items()]
    return ", ".join(counts) if len(counts) > 1 else info.registered_by or "keypoints"


def _say_raster(info: ProjectInfo) -> list[str]:
    if info.raster is None:
        return []
    shape = info.raster
    way = "there and back" if shape.order == "snake" else "all the same way"
    by_neighbours = info.frames.by_neighbours
    placed = (
        f"; {_count(by_neighbours, 'frame', 'frames')} placed by neighbours, not by matches" if by_neighbours else ""
    )
    return [f"raster      {shape.lines} lines of {shape.length} tiles, {way}{placed}"]


def _errors(info: ProjectInfo) -> list[str]:
    lines = []
    if info.chain_error_px is not None:
        lines.append(f"before      {info.chain_error_px:.2f} px error of the chain alone, measured on the loops")
    if info.left_out_px is not None:
        lines.append(f"now         {info.left_out_px:.2f} px error on matches not used for the fit")
    if info.predicted_error_px is not None:
        lines.append(f"predicted   {info.predicted_error_px:.2f} px error{_say_prediction(info)}")
    return lines


def _say_lens(lens: LensNumbers) -> str:
    second = f", k2 = {lens.k2:.4g}" if lens.k2 else ""
    return f"radial distortion k1 = {lens.k1:.4g}{second} ({abs(lens.corner_percent):.2g} % at the corners)"


def _say_prediction(info: ProjectInfo) -> str:
    """Return the bound on the error, and what further answers would bring; nothing of projects that do not know."""
    if info.error_bound_px is None or info.ahead_px is None:
        return ""
    ahead = " / ".join(f"{px:.2f}" for px in info.ahead_px.values())
    answers = " / ".join(info.ahead_px)
    advice = "more answers would help" if info.worth_going_on else "more answers would change little"
    return (
        f", below {info.error_bound_px:.2f} px with 90 % probability\n"
        f"next        {ahead} px after {answers} more answers: {advice}"
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
