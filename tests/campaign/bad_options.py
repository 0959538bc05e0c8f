"""Hostile values for every option of every command, and damaged tables of landmarks, positions and answers."""

from __future__ import annotations

import argparse
import os
import socket
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np

from smalti.cli.main import main
from tests.campaign.commands import Trial, Worker, try_all
from tests.campaign.mutations import mutate
from tests.campaign.samples import build_project, copy_project
from tests.campaign.tally import Tally

NUMBERS = (
    *("-1", "0", "1", "7", "1e-300", "1e300", "-1e300", "nan", "inf", "-inf", "1e5s", "-0.0", "1_000", "0x10", "٣"),
    *("2147483648", "-9223372036854775809", "9" * 5000, "1e", "1,2,3", "1,1,nan,1", "0,0,1e9,1e9", "1:99:99", "-1:00"),
    *("nans", "infs", "1/0", "3" * 400 + "s"),
)
WORDS = (
    *(
        "",
        " ",
        "-",
        "--",
        "---",
        "--help",
        "-q",
        "None",
        "[]",
        "{}",
        "*",
        "[",
        "~",
        "%s%n",
        "$(id)",
        "a\nb",
        "\x1b[31m",
    ),
    *("é" * 200, "a" * 300, "a" * 5000, "\udcff", "東京", "auto", "none", "all", "x.png,", ",,,", "source,source"),
)
PLACES = ("/", ".", "..", "/dev/null", "/dev/zero", "/proc/self/mem", "/etc/passwd", "fifo", "loop", "nowhere/at/all")
OUTPUTS = (
    ".",
    "fifo",
    "loop",
    "nowhere/at/all",
    "walk",
    "a/" * 2000,
    "x.",
    ".png",
    "x.xyz",
    "x.PNG",
    "x.zarr",
    "x.dzi",
)
"""For what is written: nothing outside of the try's own folder."""

BACKUP = "answers.jsonl"


def attack(count: int, seed: int, folder: Path) -> Tally:
    """Give options and tables in turn."""
    project = build_project(folder)
    options = list_options()

    def try_one(number: int, rng: np.random.Generator, worker: Worker, place: Path) -> Trial:
        os.mkfifo(place / "fifo")
        (place / "loop").symlink_to("loop")
        if number % 4 == 0:
            return try_table(number, rng, worker, place, project)
        command, action = options[number * 7 % len(options)]  # neighbours are of different commands
        return try_option(command, action, rng, worker, place, project)

    return try_all("bad options", count, seed, folder, try_one)


def list_options() -> list[tuple[str, argparse.Action]]:
    """Return all options and arguments of all commands, also of those that will be added."""
    parsers = []

    def keep(parser: argparse.ArgumentParser, arguments: object = None) -> None:
        parsers.append(parser)
        raise SystemExit

    with patch.object(argparse.ArgumentParser, "parse_args", keep), suppress(SystemExit):
        main([])
    [commands] = [action for action in parsers[0]._actions if isinstance(action, argparse._SubParsersAction)]
    return [
        (name, action)
        for name, parser in commands.choices.items()
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction)
    ]


def try_option(
    command: str, action: argparse.Action, rng: np.random.Generator, worker: Worker, place: Path, project: Path
) -> Trial:
    values = _values(command, action)
    value = values[rng.integers(len(values))]
    if command == "annotate":
        project = copy_project(project, place)  # it may be changed, and another try may want it
    words, positional = _usual_words(command, place, project)
    words = [word for name, given in words.items() if name != action.dest for word in given]
    if action.option_strings:
        name = action.option_strings[-1]
        # Also as one word, where a value may begin with a dash.
        words += [name] if action.nargs == 0 else [f"{name}={value}"] if rng.random() < 0.5 else [name, value]
    else:
        positional[action.dest] = value
    ended = worker.run(command, *words, *positional.values(), place=place)
    return Trial(f"{command} {action.option_strings[-1:] or action.dest}", ended.outcome, _faults(ended))


def _values(command: str, action: argparse.Action) -> list[str]:
    values = [*NUMBERS, *WORDS]
    if action.dest in ("output", "out") or (command, action.dest) == ("import", "project"):
        return [value for value in [*values, *OUTPUTS] if not value.startswith(("/", "..", "~"))]
    if action.dest == "host":  # the attack is for this machine alone
        return [value for value in values if not _is_everywhere(value)]
    return [*values, *PLACES]


def _is_everywhere(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, 0, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False
    return any(place[4][0] in ("0.0.0.0", "::") for place in found)


def _usual_words(command: str, place: Path, project: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the options and arguments that make a command work, by their names."""
    output, quiet = {"output": ["-o", str(place / "out")]}, {"quiet": ["-q"]}
    options: dict[str, dict[str, list[str]]] = {
        "build": {**output, "registration": ["--registration", "keypoints"], "budget": ["--budget", "1"], **quiet},
        "annotate": {"no_browser": ["--no-browser"], **quiet},
        "evaluate": {"landmarks": ["--landmarks", str(project / "landmarks.csv")]},
        "render": {"output": ["-o", str(place / "out.png")], **quiet},
        "film": {
            "output": ["-o", str(place / "out.mp4")],
            "seconds": ["--seconds", "6"],
            "size": ["--size", "160"],
            **quiet,
        },
        "undistort": {**output, **quiet},
        "import": quiet,
        "replay": quiet,
        "experiment": {
            "frames": ["--frames", "30"],
            "queries": ["--queries", "1"],
            "seeds": ["--seeds", "1"],
            "out": ["--out", str(place / "study")],
            **quiet,
        },
    }
    arguments = {
        "build": {"input": str(project.parent / "walk")},
        "annotate": {"input": str(project)},
        "import": {"project": str(place / "new"), "file": str(project / BACKUP)},
        "experiment": {"experiments": "raster"},
    }
    return options.get(command, {}), arguments.get(command, {"project": str(project)})


def try_table(number: int, rng: np.random.Generator, worker: Worker, place: Path, project: Path) -> Trial:
    tables = {"landmarks.csv": project, "positions.csv": project.parent, BACKUP: project}
    name = list(tables)[number // 4 % len(tables)]
    path = place / name
    how, content = _damage_table((tables[name] / name).read_text(), rng)
    path.write_bytes(content)
    words = {
        "landmarks.csv": ["evaluate", project, "--landmarks", path],
        "positions.csv": ["render", "-q", project, "-o", place / "out.tif", "--positions", path],
        BACKUP: ["import", "-q", place / "new", path, "--source", project.parent / "walk"],
    }
    ended = worker.run(*words[name], place=place)
    faults = _faults(ended)
    if ended.code and not faults and str(path) not in ended.err:
        faults += (f"{ended.command}: does not name the table: {ended.err.strip()}",)
    return Trial(f"{name}, {how}", ended.outcome, faults)


def _damage_table(text: str, rng: np.random.Generator) -> tuple[str, bytes]:
    lines = text.splitlines()[:200]
    row, column = int(rng.integers(1, len(lines))), int(rng.integers(lines[0].count(",") + 1))
    how = str(rng.choice(["cell", "header", "columns", "rows", "encoding", "bytes", "long cell", "quotes"]))
    cells = lines[row].split(",")
    if how == "cell":
        cells[column] = str(rng.choice([*NUMBERS, *(word for word in WORDS if word.isascii())]))
    elif how == "long cell":
        cells[column] = "1" * int(rng.choice([200_000, 5_000_000]))
    elif how == "quotes":
        cells[column] = str(rng.choice(['"', '"1', "'1'", '"1""', '"1\n2"', "=1+1"]))
    elif how == "columns":
        cells = cells * 2 if rng.random() < 0.5 else cells[:column]
    lines[row] = ",".join(cells)
    if how == "header":
        names = lines[0].split(",")
        names[column] = str(rng.choice(["", "frame_i", "lat", "file", "x" * 1000, "\x00", names[column].upper()]))
        lines[0] = ",".join(names)
    if how == "rows":
        lines = lines[:1] + [lines[row]] * int(rng.choice([0, 2, 3000]))
    content = "\n".join(lines).encode(errors="surrogatepass")
    if how == "encoding":
        name = str(rng.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7", "cp037"]))
        return f"{name}", "\n".join(lines).encode(name)
    return (how, content) if how != "bytes" else mutate(content, rng, content[::-1])


def _faults(ended: object) -> tuple[str, ...]:
    return (ended.fault,) if ended.fault else ()
