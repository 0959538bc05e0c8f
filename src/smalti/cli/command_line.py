"""Parse a call, run its command, and turn errors into one line and an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import NoReturn

from smalti import __version__
from smalti.cli import annotate_command, build_command, project_commands, safekeeping_commands
from smalti.errors import INTERRUPTED, OutputError, SmaltiError, UsageError, as_one_line

READER_GONE = 141
LAB_COMMANDS = ("smalti_lab.replay_command", "smalti_lab.experiment_command")
"""Commands for studies, from the second package of the same distribution: the only place that names it."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = argparse.Namespace()
    try:
        with _one_line_warnings(), _safe_output():
            options = make_parser().parse_args(arguments)
            _check_values(options)
            options.run(options)
    except SmaltiError as error:
        print(f"smalti: {as_one_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted(options)
    except BrokenPipeError:
        _drop_output()  # `smalti info DIR | head`: the reader has seen enough
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


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and options."""
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


class _Parser(argparse.ArgumentParser):
    """Reports a wrong call as one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def _check_values(options: argparse.Namespace) -> None:
    if options.command is None:
        raise UsageError(
            "name a command: build, annotate, info, evaluate, render, film, undistort, check, import, replay or "
            "experiment (see smalti --help)"
        )
    for name, value in vars(options).items():
        if value == []:  # what argparse makes of `--every=--`
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"argument {option}: expected one argument (see smalti {options.command} --help)")


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show a warning of Python as one line, without the place in our code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"smalti: {as_one_line(str(message))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _safe_output() -> Iterator[None]:
    """Print everything that can be printed, and name standard output where it cannot be written."""
    before = sys.stdout
    if not isinstance(before, io.TextIOWrapper):  # closed, or a notebook's
        yield
        return
    before.flush()
    # Names of files need not be text, and a terminal need not have all characters.
    sys.stdout = _Output(
        before.buffer, before.encoding, "backslashreplace", None, before.line_buffering, before.write_through
    )
    try:
        yield
        sys.stdout.flush()
    finally:
        with suppress(OSError, OutputError):
            sys.stdout.detach()
        sys.stdout = before


class _Output(io.TextIOWrapper):
    """Standard output whose errors are ours, so that they are not taken for those of other files."""

    def write(self, text: str, /) -> int:
        with _naming_output():
            return super().write(text)

    def flush(self) -> None:
        with _naming_output():
            super().flush()


@contextmanager
def _naming_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise OutputError(f"standard output: cannot be written ({error.strerror}); free disk space") from None


def _drop_output() -> None:
    """Send what is left to nowhere. Python would complain again when it flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _interrupted(options: argparse.Namespace) -> int:
    hope = "; run the same command to continue" if getattr(options, "resumes", True) else ""
    print(f"smalti: interrupted{hope}", file=sys.stderr)
    return INTERRUPTED
