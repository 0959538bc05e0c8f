"""`smalti build`: from a video to a mosaic."""

from __future__ import annotations

import argparse
from pathlib import Path

# Named here too, so that help needs not import the engine; a test keeps them the same.
METHODS = ("smalti", "paper")
FAMILIES = ("translation", "rigid", "similarity", "affine", "projective")
REGISTRATIONS = ("auto", "keypoints", "dense")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "build",
        help="build the mosaic of a video or of images",
        description="Read the frames, register the chain, look for loops where they teach most, adjust, render and "
        "report. The same command goes on where an interrupted one stopped.",
    )
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a video, a folder, a pattern, or several images")
    add_choice_of_frames(parser)
    questions = parser.add_argument_group("questions")
    questions.add_argument("--budget", type=int, metavar="Q", help="questions of the loop (3 attempts a frame in all)")
    questions.add_argument(
        "--target-px",
        type=float,
        metavar="PX",
        help="stop when the error is below this nine times of ten, as far as can be told without ground truth",
    )
    questions.add_argument("--seed", type=int, default=0, metavar="S", help="of the visual words (0)")
    add_choice_of_engine(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bars, no closing words")
    parser.set_defaults(run=run)


def add_choice_of_frames(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare where a project goes and which frames are used, and return the group of the latter."""
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="the project's folder (INPUT's name.smalti)")
    frames = parser.add_argument_group("frames")
    frames.add_argument("--every", type=int, default=1, metavar="K", help="use every K-th frame (1)")
    frames.add_argument("--start", metavar="T", help="first frame: a number, or for videos a time (12.5s, 1:02)")
    frames.add_argument("--end", metavar="T", help="the frame after the last one, likewise")
    frames.add_argument("--max-size", type=int, metavar="PX", help="reduce frames to this longer side")
    frames.add_argument("--mask", default="auto", metavar="auto|none|FILE", help="where frames show the scene (auto)")
    frames.add_argument(
        "--registration",
        default="auto",
        metavar="|".join(REGISTRATIONS),
        help="of pairs: by keypoints, or dense, by all pixels, for low contrast (auto: what serves the frames)",
    )
    return frames


def add_choice_of_engine(parser: argparse.ArgumentParser) -> None:
    """Declare which maps, by which method, seen from where."""
    engine = parser.add_argument_group("engine")
    engine.add_argument(
        "--method",
        default="smalti",
        metavar="|".join(METHODS),
        help="smalti: homographies, noise and camera learned; paper: the published method, literally (smalti)",
    )
    engine.add_argument(
        "--family",
        default="projective",
        metavar="NAME",
        help=f"maps of frames: {', '.join(FAMILIES)} (projective; affine for the paper's method)",
    )
    engine.add_argument(
        "--reference", default="auto", metavar="FRAME|auto", help="the frame that the mosaic is seen from (auto)"
    )


def run(options: argparse.Namespace) -> None:
    """Build, and say where the mosaic is and how good."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.building.build import build  # noqa: PLC0415
    from smalti.building.progress import Silence  # noqa: PLC0415
    from smalti.cli.bars import Bars  # noqa: PLC0415
    from smalti.cli.information import closing_words  # noqa: PLC0415

    with build(
        options.input[0] if len(options.input) == 1 else options.input,
        options.output,
        progress=Silence() if options.quiet else Bars(),
        every=options.every,
        start=options.start,
        end=options.end,
        max_size=options.max_size,
        mask=options.mask,
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
