"""`smalti`: parse, call, and turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from smalti import __version__
from smalti.cli import annotate_command, build_command, project_commands, safekeeping_commands
from smalti.errors import SmaltiError, UsageError

INTERRUPTED = 130
READER_GONE = 141
LAB_COMMANDS = ("smalti_lab.replay_command", "smalti_lab.experiment_command")
"""Commands for studies, from the second package of the same distribution: the only place that names it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for an error, 2 for a wrong call."""
    options = argparse.Namespace()
    try:
        options = _parser().parse_args(arguments)
        if options.command is None:
            raise UsageError(
                "name a command: build, annotate, info, evaluate, render, film, undistort, check, import, replay or "
                "experiment (see smalti --help)"
            )
        options.run(options)
        sys.stdout.flush()
    except SmaltiError as error:
        print(f"smalti: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted(options)
    except BrokenPipeError:
        # `smalti info DIR | head`: the reader has seen enough. Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
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
    hope = "; run the same command to continue" if getattr(options, "resumes", True) else ""
    print(f"smalti: interrupted{hope}", file=sys.stderr)
    return INTERRUPTED


class _Parser(argparse.ArgumentParser):
    """Reports a wrong call as one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="smalti", description="Build mosaics from videos and images. Values in brackets are defaults."
    )
    parser.add_argument("--version", action="version", version=f"smalti {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    build_command.add_build(commands)
    annotate_command.add_annotate(commands)
    project_commands.add_info_and_evaluate(commands)
    project_commands.add_render(commands)
    project_commands.add_film(commands)
    project_commands.add_undistort(commands)
    safekeeping_commands.add_check(commands)
    safekeeping_commands.add_import(commands)
    for module in LAB_COMMANDS:
        import_module(module).add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
