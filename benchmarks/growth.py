"""Time and memory against the number of frames, drawn from the output of engine.py (one answer) or builds.py (a build).

    python benchmarks/engine.py --json --frames 100,300,1000 > growth.jsonl
    python benchmarks/growth.py growth.jsonl growth.png

    python benchmarks/builds.py --json --sets flight:500,flight:1500,flight:4000,flight:7500,flight:20000 > builds.jsonl
    python benchmarks/growth.py builds.jsonl docs/images/long-sequences.png

`engine.py --plot` does both of the first at once. Of builds every kind of set is a line, by this tree and by the
baseline if there is one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from engine import Line
from smalti_lab.experiments.figures import COLOURS, OTHER_COLOUR

COLOUR_OF = {"yes": COLOURS["external-only"], "no": COLOURS["paper"]}
DENSE_MB = 6 * 6 * 8 / 2**20
"""Memory of a dense matrix over all maps, by frames squared."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw how time and memory of one answer, or of a build, grow.")
    parser.add_argument("lines", type=Path, help="what engine.py --json or builds.py --json printed")
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.lines.read_text().splitlines()]
    drawn = draw_builds(lines) if "set" in lines[0] else draw_growth(lines)
    drawn.savefig(options.picture, dpi=130)


def draw_growth(lines: Sequence[Line]) -> Figure:
    """Draw seconds and memory against frames, with the least that a dense implementation needs."""
    lines = sorted(lines, key=lambda line: line["frames"])
    frames = np.array(sorted({line["frames"] for line in lines}))
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9.5, 4.2), layout="constrained")
        seconds, memory = figure.subplots(1, 2)
        for answer, colour in COLOUR_OF.items():
            own = [line for line in lines if line["answer"] == answer]
            sizes = [line["frames"] for line in own]
            seconds.plot(sizes, [line["seconds"] for line in own], "o-", ms=4, color=colour, label=f"after a {answer}")
        _draw_yardstick(seconds, lines, frames)
        peaks = {line["frames"]: line["peak_mb"] for line in lines}
        memory.plot(list(peaks), list(peaks.values()), "o-", ms=4, color=COLOURS["elibol"], label="peak of the process")
        memory.plot(frames, DENSE_MB * (frames - 1.0) ** 2, "--", color=OTHER_COLOUR, lw=1.2, label="the dense matrix")
        seconds.set(ylabel="seconds", title="from an answer to the next suggestion")
        memory.set(ylabel="MB", title="memory")
        for ax in (seconds, memory):
            ax.set(xscale="log", yscale="log", xlabel="frames")
            ax.grid(alpha=0.3, which="major")
            ax.legend(frameon=False)
    return figure


VIDEO_FRAMES_A_SECOND = 25


def draw_builds(found: Sequence[dict[str, Any]]) -> Figure:
    """Draw seconds, processor seconds and memory of builds against the frames of their sets."""
    by_kind: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    for one in found:
        kind, _, size = one["set"].partition(":")
        for tree in ("today", "baseline"):
            if tree in one and size:
                by_kind.setdefault((kind, tree), []).append((int(size), one[tree]))
    frames = np.unique([size for rows in by_kind.values() for size, _ in rows])
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9.5, 4.2), layout="constrained")
        seconds, memory = figure.subplots(1, 2)
        for ((kind, tree), rows), colour in zip(sorted(by_kind.items()), COLOURS.values(), strict=False):
            sizes = [size for size, _ in sorted(rows, key=lambda row: row[0])]
            own = [row for _, row in sorted(rows, key=lambda row: row[0])]
            name = kind if tree == "today" else f"{kind}, {tree}"
            seconds.plot(sizes, [row["seconds"] for row in own], "o-", ms=4, color=colour, label=name)
            busy = [row["processor_seconds"] for row in own]
            seconds.plot(sizes, busy, "s:", ms=3, lw=1.2, color=colour, label=f"{name}, processor")
            memory.plot(sizes, [row["peak_mb"] for row in own], "o-", ms=4, color=colour, label=name)
        if any(kind == "flight" for kind, _ in by_kind):
            ends = np.array([frames[0], frames[-1]])
            seconds.plot(ends, ends / VIDEO_FRAMES_A_SECOND, "--", color=OTHER_COLOUR, lw=1.2, label="the video lasts")
        seconds.set(ylabel="seconds", title="time of a build")
        memory.set(ylabel="MB", title="largest memory")
        for ax in (seconds, memory):
            ax.set(xscale="log", yscale="log", xlabel="frames")
            ax.set_xticks(frames, [f"{size:,}" for size in frames])
            ax.set_xticks([], minor=True)
            ax.grid(alpha=0.3, which="major")
            ax.legend(frameon=False)
        memory.set(yscale="linear", ylim=(0, None))
    return figure


def _draw_yardstick(ax: Axes, lines: Sequence[Line], frames: NDArray[np.int64]) -> None:
    """Draw the measured dense factorisation, and its extrapolation by the cube of the size."""
    measured = {line["frames"]: line["yardstick_seconds"] for line in lines if line["yardstick_seconds"] is not None}
    if not measured:
        return
    ax.plot(list(measured), list(measured.values()), "s-", ms=3, color=OTHER_COLOUR, lw=1.2, label="dense Cholesky")
    last = max(measured)
    beyond = frames[frames >= last]
    cubed = measured[last] * ((beyond - 1.0) / (last - 1.0)) ** 3
    if len(beyond) > 1:
        ax.plot(beyond, cubed, "--", color=OTHER_COLOUR, lw=1.2, label="continued by N³")


if __name__ == "__main__":
    main()
