"""`smalti annotate`: a person answers, in a web page."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from smalti.cli.build_command import add_choice_of_engine, add_choice_of_frames
from smalti.errors import INTERRUPTED, UsageError

if TYPE_CHECKING:
    from smalti.server.serving import Ending

# Named here too, so that help needs not import the engine; a test keeps them the same.
QUEUES = ("all", "doubtful")


DEMO = "smalti-demo"


def add_annotate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "annotate",
        help="answer questions about a video in a web page",
        description="Prepare the frames and open a web page. The page asks about the pairs of frames that reduce the "
        "error most. Every answer is saved at once. Ctrl-C ends the program. The same command continues.",
    )
    parser.add_argument(
        "input",
        nargs="*",
        default=(),
        metavar="INPUT",
        help="a video, a folder of images, a pattern, several images, or a project folder",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help=f"try it without data: draw a small flight, and ask about it; everything goes to {DEMO}/",
    )
    frames = add_choice_of_frames(parser)
    frames.add_argument("--source", type=Path, metavar="PATH", help="where the frames of a project are now, if moved")
    questions = parser.add_argument_group("questions")
    questions.add_argument(
        "--queue",
        default="all",
        choices=QUEUES,
        metavar="|".join(QUEUES),
        help="all: you answer all questions; doubtful: the matcher answers those that it is sure of, and you answer "
        "those that it cannot tell (all)",
    )
    questions.add_argument(
        "--known-share",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="about this share of each person's questions is about pairs whose answer is known, to measure the person; "
        "0.05 to 0.15 are usual (0)",
    )
    questions.add_argument(
        "--check-landmarks",
        action="store_true",
        help="leave the last of four or more landmarks of an answer out of the link, and report its error",
    )
    questions.add_argument(
        "--target-px",
        type=float,
        metavar="PX",
        help="stop when the predicted error is below PX with 90 %% probability",
    )
    add_choice_of_engine(parser)
    page = parser.add_argument_group("page")
    page.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="listen on this address; other computers need the printed token (127.0.0.1)",
    )
    page.add_argument("--port", type=int, default=0, metavar="P", help="listen on this port; 0 takes a free one (0)")
    page.add_argument("--no-browser", action="store_true", help="print the address of the page, but open no browser")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress bars and no summary")
    parser.set_defaults(run=run_annotate)


def run_annotate(options: argparse.Namespace) -> None:
    """Ask until Ctrl-C, and say how to go on."""
    # Imported here: help and usage errors do not wait for the engine.
    from smalti.annotation.known_pairs import Measures  # noqa: PLC0415
    from smalti.annotation.messages import Queue  # noqa: PLC0415
    from smalti.building.build_settings import BuildSettings  # noqa: PLC0415
    from smalti.building.compile_ahead import compiling_ahead  # noqa: PLC0415
    from smalti.frames.source_settings import SourceSettings  # noqa: PLC0415
    from smalti.progress import Bars, Silence  # noqa: PLC0415
    from smalti.server.serving import serve_page  # noqa: PLC0415

    if options.demo == bool(options.input):
        raise UsageError("give INPUT, a video, images or a project folder; or --demo alone, which needs none")
    if options.demo:
        from smalti.annotation.demonstration import write_demonstration  # noqa: PLC0415

        options.input = [str(write_demonstration(Path(DEMO) / "frames"))]
        options.output = options.output or Path(DEMO) / "demonstration"
    location = options.input[0] if len(options.input) == 1 else options.input
    with compiling_ahead():
        ending = serve_page(
            location,
            options.output,
            settings=BuildSettings(
                SourceSettings(options.every, options.start, options.end, options.max_size),
                mask=options.mask,
                keyframes=options.keyframes,
                registration=options.registration,
                method=options.method,
                family=options.family,
                reference=options.reference,
                target_px=options.target_px,
            ),
            queue=Queue(options.queue),
            measures=Measures(options.known_share, options.check_landmarks),
            moved_to=options.source,
            host=options.host,
            port=options.port,
            browser=not options.no_browser,
            progress=Silence() if options.quiet else Bars(),
        )
    _leave(ending, options.quiet)


def _leave(ending: Ending, quiet: bool) -> None:
    if ending.folder is not None and not quiet:
        print(f"all answers are in {ending.folder}; continue with: smalti annotate {shlex.quote(str(ending.folder))}")
    if not ending.at_rest:
        # A thread is deep in something that cannot be interrupted, and Python would wait for it. Whatever is not on
        # disk yet can be computed again.
        if ending.folder is None:
            print("smalti: interrupted; run the same command to continue", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED if ending.folder is None else 0)
    if ending.folder is None:
        raise KeyboardInterrupt
