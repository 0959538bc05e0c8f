"""The paper's aerial study on a public sequence: error against matching attempts, by strategy.

    python benchmarks/aerial.py [--set caliterra] [--queries 150] [--seed 0] [--out studies/aerial]

The chain is registered once, and each pair is matched once. `smalti` is the loop of a build. Every other strategy asks
with the paper's loop, literally, and its answers get the same finish: homographies. The landmarks of the set are used
only to measure errors. Writes curves.csv, aerial-error.png, aerial-chain.jpg and aerial-mosaic.jpg into the folder, and
prints the tables of docs/aerial.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from sets import DATA, FLOORS
from smalti.agents.agent import Agent
from smalti.agents.matcher import KeypointAgent
from smalti.appearance.visual_words import signatures_of
from smalti.building.chain import register_chain
from smalti.building.frame_views import FrameViews
from smalti.frames.pixels import in_gray
from smalti.frames.source import FrameSource, open_source
from smalti.geometry.outline import Outline
from smalti.interchange.atomic_files import write_text
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.loop_setup import StopRule
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.project.entries import Placement, Role
from smalti.project.evaluation import Evaluation, evaluate
from smalti.records import Answer, Expectation, Landmarks, Pair, Verdict
from smalti.registration.keypoints import find_keypoints
from smalti.rendering.mosaic import Mosaic
from smalti_lab.experiments.figures import COLOURS, OTHER_COLOUR
from smalti_lab.experiments.methods import SMALTI, STRATEGIES, Finish, FrameMaps, Loop, Method, finish_all_alike

TABLED = (0, 1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150)
"""Attempts of the loop, without those of the chain."""

PICTURE_PX = 1200
JPEG_QUALITY = 75


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--set", default="caliterra", choices=FLOORS, metavar="NAME", help="a folder of frames")
    parser.add_argument("--queries", type=int, default=150, metavar="Q", help="attempts of the loop")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the visual words")
    parser.add_argument("--out", type=Path, default=Path("studies/aerial"), metavar="DIR")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    judges = read_landmarks(DATA / options.set / "landmarks.csv")
    with open_source(DATA / options.set / "frames") as source:
        prepared, agent = prepare(source, options.seed)
        runs = [perform(name, prepared, agent, judges, options.queries) for name in STRATEGIES]
        write_text(options.out / "curves.csv", curves_csv(runs))
        print_tables(runs, options.queries)
        print(f"\npairs that were matched for all strategies together, the chain included: {agent.matched}")
        floor = FLOORS[options.set][1]
        draw_curves(runs, floor, options.set).savefig(options.out / "aerial-error.png", dpi=130)
        own = next(run for run in runs if run.strategy == SMALTI)
        for name, maps in (("chain", own.finish(own.first)), ("mosaic", own.finish(own.last))):
            draw_mosaic(source, maps, options.out / f"aerial-{name}.jpg")


class Remembering:
    """Asks an agent about each pair once."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._answers: dict[Pair, Answer] = {}

    @property
    def matched(self) -> int:
        return len(self._answers)

    def answer(self, pair: Pair) -> Answer:
        if pair not in self._answers:
            self._answers[pair] = self._agent.answer(pair)
        return self._answers[pair]


@dataclass(frozen=True, slots=True)
class Row:
    """The state after some attempts. 0 is the chain alone."""

    attempts: int
    yes: int
    rejected: int
    error_px: float  # of the mosaic that a build delivers
    own_px: float  # of the method's own mosaic while it asks
    median_px: float


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    strategy: str
    rows: list[Row]
    first: Loop
    last: Loop
    finish: Finish

    def error_px(self, attempt: int) -> float:
        """Return the error after so many attempts. A run that ended early keeps its last error."""
        return next(row.error_px for row in reversed(self.rows) if row.attempts <= attempt)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The common start of all strategies."""

    frames: int
    outline: Outline
    chain: Sequence[Landmarks]
    external: WeightedSignatures


def prepare(source: FrameSource, seed: int) -> tuple[Prepared, Remembering]:
    """Register the chain and learn the words, as a build does. All frames of the set are used."""
    frames, outline = len(source), Outline.of_pixels(source.width, source.height)
    sight = FrameViews(source, "auto")
    keypoints = [
        find_keypoints(in_gray(image), sight.mask(number, image)) for number, image in source.read_many(range(frames))
    ]
    agent = Remembering(KeypointAgent(keypoints.__getitem__, outline))
    roles: Counter[Role] = Counter()

    def ask(pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
        roles[role] += 1
        return agent.answer(pair)

    chain = register_chain(frames, outline, ask, 2 * frames)
    print(f"{frames} frames; the chain: {roles.total()} attempts, ", end="")
    print(", ".join(f"{count} {role}" for role, count in roles.items()), end="")
    print(f"; {len(chain.links)} links")
    looks = WeightedSignatures(signatures_of(keypoints, outline, seed))
    return Prepared(frames, outline, chain.links, looks), agent


def perform(strategy: str, prepared: Prepared, agent: Agent, judges: Sequence[Landmarks], queries: int) -> Run:
    """Ask with one strategy until the attempts are used up or no question is left."""
    first = last = Method(strategy, "projective" if strategy == SMALTI else "affine").start(
        prepared.frames,
        prepared.outline,
        prepared.chain,
        external=prepared.external,
        stop_rule=StopRule(queries),
    )
    finish = finish_all_alike(first)
    rows = [_measure(last, finish, judges)]
    for state in last.run(agent):
        last = state
        if len(last.answers) in TABLED:
            rows.append(_measure(last, finish, judges))
    if len(last.answers) not in TABLED:
        rows.append(_measure(last, finish, judges))
    print(f"{strategy}: {len(last.answers)} attempts, {rows[-1].error_px:.2f} px", file=sys.stderr, flush=True)
    return Run(strategy, rows, first, last, finish)


def curves_csv(runs: Sequence[Run]) -> str:
    """Return one line for each state."""
    lines = ["strategy,attempts,yes,rejected,relative_rmsd_px,own_rmsd_px,median_px"]
    lines += [
        f"{run.strategy},{row.attempts},{row.yes},{row.rejected},{row.error_px:.4f},{row.own_px:.4f},"
        f"{row.median_px:.4f}"
        for run in runs
        for row in run.rows
    ]
    return "\n".join(lines) + "\n"


def print_tables(runs: Sequence[Run], queries: int) -> None:
    """Print errors and answers as tables of Markdown."""
    tabled = [attempt for attempt in TABLED if attempt <= queries]
    print("\n| relative RMSD, px, after | " + " | ".join(map(str, tabled)) + " |")
    print("| --- |" + " --- |" * len(tabled))
    for run in runs:
        print(f"| {run.strategy} | " + " | ".join(_in_three_digits(run.error_px(attempt)) for attempt in tabled) + " |")
    print("\n| strategy | attempts | yes | in the first 20 | rejected | median gap | delivered | before the finish |")
    print("| --- |" + " --- |" * 7)
    for run in runs:
        answers = run.last.answers
        gap = np.median([answer.pair.j - answer.pair.i for answer in answers]) if answers else np.nan
        print(
            f"| {run.strategy} | {len(answers)} | {_share_of_yes(answers)} | {_share_of_yes(answers[:20])} | "
            f"{run.rows[-1].rejected} | {gap:.0f} | {run.rows[-1].error_px:.2f} | {run.rows[-1].own_px:.2f} |"
        )


def draw_curves(runs: Sequence[Run], floor_px: float | None, name: str) -> Figure:
    """Draw the error against the attempts, one line for each strategy."""
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(7.5, 4.4), layout="constrained")
        ax = figure.subplots()
        for run in runs:
            ax.plot(
                [row.attempts for row in run.rows],
                [row.error_px for row in run.rows],
                color=COLOURS.get(run.strategy, OTHER_COLOUR),
                label=run.strategy,
                marker=".",
                lw=2.2 if run.strategy == SMALTI else 1.5,
            )
        if floor_px is not None:
            ax.axhline(floor_px, color="#999999", ls=":", lw=1.2, label="every pair")
        ax.set(yscale="log", xlabel="matching attempts after the chain", ylabel="relative RMSD, px", title=name)
        ax.grid(alpha=0.3, which="major")
        figure.legend(*ax.get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def draw_mosaic(source: FrameSource, maps: FrameMaps, path: Path) -> None:
    """Write a small picture of all frames, white where no frame is."""
    placed = {n: final for n, final in enumerate(maps.mosaic_from_frame) if maps.part[n] == 0}
    mosaic = Mosaic(source, placed, source.width, source.height, lens=maps.lens)
    seen = Image.fromarray(mosaic.image(PICTURE_PX), "RGBA")
    flat = Image.new("RGB", seen.size, "white")
    flat.paste(seen, mask=seen.getchannel("A"))
    flat.save(path, quality=JPEG_QUALITY, optimize=True)


def _measure(state: Loop, finish: Finish, judges: Sequence[Landmarks]) -> Row:
    delivered, own = (_evaluate(maps, judges) for maps in (finish(state), FrameMaps.of(state)))
    return Row(
        len(state.answers),
        _count_yes(state.answers),
        len(state.rejected),
        delivered.relative_rmsd_px,
        own.relative_rmsd_px,
        delivered.median_px,
    )


def _evaluate(maps: FrameMaps, judges: Sequence[Landmarks]) -> Evaluation:
    placements = [
        Placement(n, int(part), final, final, 0.0)
        for n, (part, final) in enumerate(zip(maps.part, maps.mosaic_from_frame, strict=True))
    ]
    return evaluate(placements, judges, maps.lens)


def _share_of_yes(answers: Sequence[Answer]) -> str:
    return f"{_count_yes(answers) / len(answers):.0%}" if answers else "-"


def _count_yes(answers: Sequence[Answer]) -> int:
    return sum(answer.verdict is Verdict.YES for answer in answers)


def _in_three_digits(px: float) -> str:
    return f"{px:.0f}" if px >= 100 else f"{px:.1f}"


if __name__ == "__main__":
    main()
