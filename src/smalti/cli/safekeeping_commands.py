"""`smalti check` and `smalti import`: find damage in a project, and get its answers back."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "check",
        help="tell whether a project is as it was written",
        description="Compare everything in a project with its checksums: the database, the copy of the answers, the "
        "cache, the delivered files and every byte of the source. Nothing is changed, and a read-only disk will do. "
        "The exit code is 1 if anything is damaged.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_check, resumes=False)


def run_check(options: argparse.Namespace) -> None:
    """Print what is damaged, one line each."""
    import json  # noqa: PLC0415

    from smalti.errors import DamageError  # noqa: PLC0415
    from smalti.project.integrity import check_project, say_findings  # noqa: PLC0415

    found = check_project(options.project, source=options.source)
    if options.json:
        print(json.dumps(found.as_json()))
    else:
        for line in say_findings(found):
            print(line)
    if found.damaged:
        count = len(found.damaged)
        raise DamageError(f"{options.project}: {count} {'thing is' if count == 1 else 'things are'} damaged, see above")


def add_import(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "import",
        help="add the answers of a file to a project, or make a new project of them",
        description="Add the answers of an answers.jsonl, which every project has, to a project of the same frames. If "
        "there is no such project, make it. Then run smalti build to get the mosaic again.",
    )
    parser.add_argument("project", type=Path, metavar="DIR", help="project folder, new or not")
    parser.add_argument("file", type=Path, metavar="FILE", help="answers.jsonl of a project")
    parser.add_argument("--source", type=Path, metavar="PATH", help="where the frames are now, if they were moved")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary")
    parser.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> None:
    """Add the answers, and say what to do next."""
    import shlex  # noqa: PLC0415

    # Imported here: help and usage errors do not wait for the engine.
    from smalti.project.answer_import import import_answers  # noqa: PLC0415

    done = import_answers(options.project, options.file, source=options.source)
    if options.quiet:
        return
    print(f"{options.project}: {done.entries} entries added, {done.answers} answers in force")
    if done.kept:
        print(f"not taken: {done.kept} answers, because people answered otherwise in {options.project}")
    if done.is_torn:
        print(f"not taken: the last line of {options.file}, which is incomplete")
    if done.entries:
        location = [done.location] if isinstance(done.location, str) else done.location
        named = shlex.join(location) if len(location) == 1 else f"{shlex.quote(location[0])} …"
        print(f"for the mosaic, run: smalti build {named} -o {shlex.quote(str(options.project))}, with its old options")
