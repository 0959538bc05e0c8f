"""Write the pages that no person writes: commands, API, and the project's own files.

MkDocs calls the functions `on_…`. The rest works without MkDocs, so that the tests can use it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import smalti
import smalti_lab
from smalti.cli.command_line import make_parser as command_parser

ROOT = Path(__file__).resolve().parents[2]

API_GROUPS = {
    "Build a mosaic": ("build", "Project", "Mosaic", "Uncertainty", "make_film", "Matcher"),
    "Annotate": ("annotate", "Session"),
    "Ask questions": ("ActiveLoop", "StopRule", "StopReason", "Strategy", "Suggestion", "View"),
    "Answer questions": ("Agent", "PrecomputedAgent", "Answer", "Verdict", "Author", "Landmarks", "Pair"),
    "Predict overlap": ("ExternalModel", "WeightedSignatures", "PositionSensor", "FixedProbabilities"),
    "Frames and lens": ("Outline", "Lens"),
    "Errors": ("SmaltiError",),
}
"""The order of the API page: every public name of `smalti` once."""

LAB_GROUPS = {
    "Lab: synthetic sequences": (
        *("SyntheticSequence", "EndoscopeSequence", "procedural_scene", "load_scene", "raster", "circle", "wander"),
        *("Handling", "Degradation", "write_video", "write_frames"),
    ),
    "Lab: simulated agents": ("OracleAgent", "SimulatedPerson"),
    "Lab: replay": ("replay", "Replay"),
}
"""The same for `smalti_lab`."""

MEMBERS = {
    "Project": (
        *("open", "info", "mosaic", "evaluate", "georeference", "parts", "is_finished", "frames", "answers", "links"),
        *("placements", "not_placed", "unconfirmed", "source", "width", "height", "outline", "lens", "mask", "close"),
    ),
    "Session": (
        *("open", "question", "look", "record", "propose", "state", "mosaic", "answers", "revision", "finish", "close"),
    ),
    "ActiveLoop": (
        *("start", "suggest", "best", "record", "forget", "replay", "run", "stop_reason", "is_settled", "answers"),
        *("chain", "landmarks", "links", "rejected", "mosaic_from_frame", "part", "lens", "frames", "outline"),
        *("predicted_error_px", "error_bound_px", "prediction", "posterior", "likely", "expect", "surprise"),
        *("covariance", "estimate", "external", "strategy", "stop_rule", "view"),
    ),
}
"""Classes that no user calls by name, and whose other members only Smalti itself uses: what users need of them."""

PROJECT_FILES = ("CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")


def on_files(files: Any, config: Any) -> Any:
    """Add the written pages to the site."""
    from mkdocs.structure.files import File  # noqa: PLC0415

    for path, write in GENERATED.items():
        files.append(File.generated(config, path, content=write()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that leave docs/ to the page of the site, if there is one."""
    return redirect_links(markdown, page.file.src_uri)


def on_page_content(content: str, **_: Any) -> str:
    r"""Show `a\|b` of a table as a|b: code hosts want the backslash, Python-Markdown shows it."""
    return re.sub(r"<code>[^<]*</code>", lambda code: code[0].replace("\\|", "|"), content)


def write_commands() -> str:
    """Return the reference of the command line, from its parser."""
    lines = [
        "# Commands",
        "",
        "This page is written by the program itself. `smalti COMMAND --help` prints the same.",
        "",
        "A command exits with 0 if all went well, 1 after an error, 2 after a wrong call, 130 after Ctrl-C, and 141 "
        "if the program that reads its output has ended.",
        "",
        "| command | what it does |",
        "| --- | --- |",
    ]
    commands = dict(subcommands(command_parser()))
    lines += [f"| [`smalti {name}`](#smalti-{name}) | {_cell(what)} |" for name, (what, _) in commands.items()]
    for name, (_, parser) in commands.items():
        lines += ["", f"## smalti {name}", "", parser.description or "", "", "```text", _usage(parser), "```"]
        for group in parser._action_groups:
            actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
            if actions:
                title = {"positional arguments": "arguments"}.get(group.title or "", group.title)
                lines += ["", f"| {title} | meaning |", "| --- | --- |"]
                lines += [f"| {_spelling(action)} | {_cell(_help(action))} |" for action in actions]
    return "\n".join(lines) + "\n"


def subcommands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, tuple[str, argparse.ArgumentParser]]]:
    """Yield every sub-command: its name, its help and its parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            what = {choice.dest: choice.help or "" for choice in action._choices_actions}
            yield from ((name, (what.get(name, ""), one)) for name, one in action.choices.items())


def write_api() -> str:
    """Return the page of the public names, for mkdocstrings to fill."""
    lines = [
        "# Python API",
        "",
        f"These {len(smalti.__all__)} names of `smalti` and {len(smalti_lab.__all__)} names of `smalti_lab` are public."
        " All other names may change at any time.",
    ]
    for package, groups in ((smalti, API_GROUPS), (smalti_lab, LAB_GROUPS)):
        for title, names in groups.items():
            lines += ["", f"## {title}"]
            for name in names:
                lines += ["", f"::: {package.__name__}.{name}"]
                if name in MEMBERS:
                    lines += ["    options:", "      merge_init_into_class: false"]
                    lines += [f"      members: [{', '.join(MEMBERS[name])}]"]
    return "\n".join(lines) + "\n"


def redirect_links(markdown: str, page: str) -> str:
    """Return the text of the page `page` of docs/ with links into the repository led to pages, or removed."""
    # A file of the repository's root is shown under project/, but its links start from the root.
    name = PurePosixPath(page).name
    origin = PurePosixPath("..") if page in GENERATED and name in PROJECT_FILES else PurePosixPath(page).parent

    def redirect(match: re.Match[str]) -> str:
        text, target, anchor = match["text"], match["target"], match["anchor"] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        place = _normal(origin / target)
        if place.parts[:1] != ("..",):
            # Inside docs/: MkDocs checks it. Only pages that stand elsewhere than their file need another path.
            return match[0] if origin == PurePosixPath(page).parent else f"[{text}]({_relative(place, page)}{anchor})"
        outside = PurePosixPath(*place.parts[1:])
        if outside.parts[:1] == ("docs",):
            return f"[{text}]({_relative(PurePosixPath(*outside.parts[1:]), page)}{anchor})"
        if str(outside) in PROJECT_FILES:
            return f"[{text}]({_relative(PurePosixPath('project') / outside, page)}{anchor})"
        # The overview stands for the README; its sections are others.
        return f"[{text}]({_relative(PurePosixPath('index.md'), page)})" if str(outside) == "README.md" else text

    return LINK.sub(redirect, markdown)


LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")


def _of_project(name: str) -> Callable[[], str]:
    return lambda: (ROOT / name).read_text(encoding="utf-8")


GENERATED: dict[str, Callable[[], str]] = {
    "reference/commands.md": write_commands,
    "reference/api.md": write_api,
    **{f"project/{name}": _of_project(name) for name in PROJECT_FILES},
}
"""The pages that are not in the repository under docs/, and what writes them."""


def _normal(path: PurePosixPath) -> PurePosixPath:
    """Return the path without `.` and inner `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def _relative(place: PurePosixPath, page: str) -> str:
    return "../" * (len(PurePosixPath(page).parts) - 1) + str(place)


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the call in short: options stand in the tables below it, but for those that must be given."""
    words = [parser.prog, "[OPTIONS]"]
    for action in parser._actions:
        value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        if not action.option_strings:
            words.append(f"{value} [{value} …]" if action.nargs == "+" else value)
        elif action.required:
            words.append(f"{action.option_strings[0]} {value}")
    return " ".join(words)


def _spelling(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"`{_cell(value)}`"
    names = ", ".join(action.option_strings)
    return f"`{names}`" if action.nargs == 0 else f"`{_cell(names)} {_cell(value)}`"


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": "smalti"} if action.help else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
