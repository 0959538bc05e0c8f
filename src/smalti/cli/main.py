"""`smalti`: parse, call, and turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from smalti import __version__
from smalti.cli import (
    annotate_command as annotate,
)
from smalti.cli import (
    build_command as build,
)
from smalti.cli import (
    project_commands as film,
)
from smalti.cli import (
    project_commands as project,
)
from smalti.cli import (
    project_commands as render,
)
from smalti.cli import (
    project_commands as undistort,
)
from smalti.errors import SmaltiError, UsageError
from smalti_lab import experiment_command as experiment
from smalti_lab import replay_command as replay

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for an error, 2 for a wrong call."""
    options = argparse.Namespace()
    try:
        options = _parser().parse_args(arguments)
        if options.command is None:
            raise UsageError(
                "name a command: build, annotate, info, evaluate, render, film, undistort, replay or experiment "
                "(smalti --help tells more)"
            )
        options.run(options)
    except SmaltiError as error:
        print(f"smalti: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted(options)
    except SystemError as error:
        # Ctrl-C while a compiled kernel is called comes out like this, wrapped once or more.
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, KeyboardInterrupt):
            return _interrupted(options)
        raise
    return 0


def _interrupted(options: argparse.Namespace) -> int:
    hope = "; the same command goes on where it stopped" if getattr(options, "resumes", True) else ""
    print(f"smalti: interrupted{hope}", file=sys.stderr)
    return INTERRUPTED


class _Parser(argparse.ArgumentParser):
    """Reports a wrong call as one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} ({self.prog} --help tells more)")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="smalti", description="Mosaics from video, with the fewest questions asked."
    )
    parser.add_argument("--version", action="version", version=f"smalti {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    build.add_to(commands)
    annotate.add_to(commands)
    project.add_to(commands)
    render.add_to(commands)
    film.add_to(commands)
    undistort.add_to(commands)
    replay.add_to(commands)
    experiment.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
