"""The paper's fetoscopy study on a synthetic endoscope: dense registration for the chain, a simulated person for loops.

    python benchmarks/low_contrast.py OUT [--seeds 1,2,3,4,5] [--frames 600] [--disturbed 0,0.3] [--answers 20]

Frames are cut from the large images of SMALTI_DATA: retina, crater and terrain in turns. Everything before the first
question is the product's: fields of view, chain, parts, appearance. Then every strategy asks a simulated person, who
errs by 1.5 px and cannot tell once in twenty times. Where the camera was lost, the person is not asked about frames
that nothing joins, as in `smalti annotate`. `smalti` is the product's loop. Every other strategy asks with the paper's,
literally. That loop needs a chain that joins all frames, so it gets those of the largest part. Errors are against the
exact truth, over all pairs of placed frames that overlap by a tenth.

OUT gets `chain.csv`, `curves.csv`, `attempts.csv`, the curves as a picture, and the mosaics of the first seed before
and after ten answers. Tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from smalti.active_loop import ActiveLoop
from smalti.annotation.opening import LEAST_PART
from smalti.building.build_settings import BuildSettings
from smalti.building.preparation import Preparation, prepare
from smalti.engine.links import fit_link, projected_and_rows
from smalti.errors import UsageError
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import PROJECTIVE
from smalti.geometry.lens import Lens
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import pairwise
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.progress import Silence
from smalti.project.project import Project
from smalti.records import Answer, Homographies, Landmarks, Pair, Verdict
from smalti.rendering.mosaic import Mosaic
from smalti_lab.endoscopy.disturbance import Disturbance
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings
from smalti_lab.experiments.methods import SMALTI, FrameMaps, Loop, Method, finish_each_its_own_way
from smalti_lab.simulated_agents import SimulatedPerson
from smalti_lab.synthetic.scene import load_scene
from smalti_lab.synthetic.truth import measure_common_points

DATA = Path(os.environ.get("SMALTI_DATA", "../shared/data"))
SCENES = ("IDRiD_10.jpg", "nasa_Apollo_8__Lunar_Crater.jpg", "nasa_bluemarble_ng_5400x2700.jpg")
STRATEGIES = ("smalti", "paper", "external-only", "position-only", "elibol", "sawhney")
COLOURS = dict(zip(STRATEGIES, ("#30343f", "#2c5f8a", "#d1495b", "#00798c", "#edae49", "#8d6a9f"), strict=True))
TABLED = (0, 1, 2, 3, 5, 7, 10, 15, 20)
PICTURED = 10
"""Answers after which the mosaic is drawn."""

PICTURE_PX = 900
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True, eq=False)
class Recorded(EndoscopeSequence):
    """A sequence whose frames stay in memory."""

    @cached_property
    def _kept(self) -> dict[int, NDArray[np.uint8]]:
        return {}

    def frame(self, n: int) -> NDArray[np.uint8]:
        """Return frame n, rendered once."""
        if n not in self._kept:
            self._kept[n] = super().frame(n)
        return self._kept[n]

    def error_px(self, maps: Homographies, frames: Sequence[int], lens: Lens) -> float:
        """Return the RMS error against the truth, in undistorted pixels of frame i."""
        common_points = self._common_points[1]
        straight = replace(
            common_points,
            points_i=lens.undistort(common_points.points_i),
            points_j=lens.undistort(common_points.points_j),
        )
        return float(measure_common_points(maps, straight, len(self), frames).rms)


@dataclass(frozen=True, slots=True)
class ChainRow:
    """The quality of the chain."""

    seed: int
    disturbed: float
    usable: int  # frames that are not disturbed
    used: int  # frames that were not set aside
    pairs: int  # consecutive, neither disturbed
    registered: int
    median_px: float
    worst_px: float
    ratio: float  # of the errors' RMS to their stated σ
    wrong: int  # links worse than 5 px, bridges included
    parts: int  # of LEAST_PART frames or more
    noise: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """The state of one strategy after some answers."""

    seed: int
    disturbed: float
    strategy: str
    answers: int
    yes: int
    error_px: float
    placed: float  # share of the usable frames on the largest mosaic
    parts: int


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the study of low contrast.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=_numbers(int), default=[1, 2, 3, 4, 5])
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--disturbed", type=_numbers(float), default=[0.0, 0.3])
    parser.add_argument("--answers", type=int, default=20)
    parser.add_argument("--strategies", type=_numbers(str), default=list(STRATEGIES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chains: list[ChainRow] = []
    rows: list[Row] = []
    attempts: list[dict[str, float]] = []
    for disturbed in options.disturbed:
        for seed in options.seeds:
            sequence = record(seed, options.frames, disturbed)
            with tempfile.TemporaryDirectory() as folder:
                begin = time.perf_counter()
                preparation, project = prepare_recorded(sequence, Path(folder))
                chains.append(judge_chain(sequence, preparation, seed, time.perf_counter() - begin))
                print(chains[-1], file=sys.stderr, flush=True)
                for strategy in options.strategies:
                    numbers, states = perform(strategy, sequence, preparation, project, seed, options.answers)
                    tabled = [state for state in states if len(state.answers) in TABLED]
                    rows += [measure(sequence, numbers, state, strategy, seed) for state in tabled]
                    print(rows[-1], file=sys.stderr, flush=True)
                    if strategy == SMALTI and seed == options.seeds[0]:
                        for answers in (0, PICTURED):
                            name = f"mosaic-{disturbed:g}-{answers}.jpg"
                            draw_mosaic(sequence, numbers, states[min(answers, len(states) - 1)], options.out / name)
                attempts += count_attempts(sequence, preparation, seed)
                project.close()
            write_csv(options.out / "chain.csv", [asdict(row) for row in chains])
            write_csv(options.out / "curves.csv", [asdict(row) for row in rows])
            write_csv(options.out / "attempts.csv", attempts)
    print_tables(chains, rows, attempts)
    draw_curves(rows).savefig(options.out / "curves.png", dpi=130)


def record(seed: int, frames: int, disturbed: float) -> Recorded:
    """Render all frames of one of the scenes, on both cores."""
    path = DATA / "large_images" / SCENES[seed % len(SCENES)]
    if not path.exists():
        raise UsageError(f"{path}: no such file; set SMALTI_DATA to the folder of the data")
    sequence = Recorded(load_scene(path), replace(EndoscopeSettings(), frames=frames, disturbed=disturbed), seed)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(sequence.frame, range(frames)))
    return sequence


def prepare_recorded(sequence: Recorded, folder: Path) -> tuple[Preparation, Project]:
    """Prepare a project as the product does before the first question."""
    settings = BuildSettings()
    project = Project.begin(folder / "project", sequence, "synthetic", settings.binding())
    project.source = sequence
    return prepare(project, sequence, settings, None, Silence(), LEAST_PART), project


def own_start(preparation: Preparation) -> ActiveLoop:
    """Return the product's loop before the first question."""
    assert isinstance(preparation.start, ActiveLoop)
    return preparation.start


def judge_chain(sequence: Recorded, preparation: Preparation, seed: int, seconds: float) -> ChainRow:
    """Compare every link of the chain with the truth."""
    clear = sequence.disturbance == Disturbance.NONE
    by_pair = {}
    for landmarks in preparation.chain.links:
        pair = preparation.numbers.pair_in_source(landmarks.pair)
        by_pair[pair] = link_error(sequence, landmarks.of_pair(pair))
    consecutive = [Pair(n, n + 1) for n in range(len(sequence) - 1) if clear[n] and clear[n + 1]]
    errors = np.array([by_pair[pair] for pair in consecutive if pair in by_pair])
    parts = np.bincount(preparation.start.part)
    return ChainRow(
        seed=seed,
        disturbed=sequence.settings.disturbed,
        usable=int(clear.sum()),
        used=len(preparation.numbers),
        pairs=len(consecutive),
        registered=len(errors),
        median_px=float(np.median(errors[:, 0])),
        worst_px=float(max(error for error, _ in by_pair.values())),
        ratio=float(np.sqrt(np.mean(errors[:, 0] ** 2) / np.mean(errors[:, 1] ** 2))),
        wrong=sum(error > 5.0 for error, _ in by_pair.values()),
        parts=int((parts >= LEAST_PART).sum()),
        noise=own_start(preparation).estimate.local_noise,
        seconds=seconds,
    )


def link_error(sequence: Recorded, landmarks: Landmarks) -> tuple[float, float]:
    """Return the RMS distance of a link's map from the truth over its landmarks, and the one that their σ states."""
    outline = sequence.outline
    link = fit_link(landmarks, outline)
    centre = np.array(outline.centre)
    true = sequence.points_in(landmarks.pair.i, landmarks.pair.j, landmarks.points_j)
    seen, rows = projected_and_rows(link.i_from_j, (landmarks.points_j - centre) / outline.unit)
    off = seen * outline.unit + centre - true
    # RᵀR is the information of the map's entries. `rows` say how these move a point.
    basis = PROJECTIVE.by_entry.T
    covariance = np.linalg.inv(basis.T @ link.root.T @ link.root @ basis)
    moved = rows @ basis
    spread = np.einsum("nak,kl,nal->n", moved, covariance, moved) * outline.unit**2
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1)))), float(np.sqrt(np.mean(spread)))


class InEngine:
    """A person who is asked in engine numbers."""

    def __init__(self, person: SimulatedPerson, numbers: FrameNumbers) -> None:
        self._person, self._numbers = person, numbers

    def answer(self, pair: Pair) -> Answer:
        """Return the person's answer."""
        return self._person.answer(self._numbers.pair_in_source(pair)).of_pair(pair)


def perform(
    strategy: str, sequence: Recorded, preparation: Preparation, project: Project, seed: int, answers: int
) -> tuple[FrameNumbers, list[Loop]]:
    """Return the frames that a strategy knows, by source number, and the states after every answer."""
    disturbed = np.flatnonzero(sequence.disturbance != Disturbance.NONE)
    person = SimulatedPerson(sequence.points_in, sequence.field, disturbed.tolist(), seed=seed)
    numbers = preparation.numbers
    start: Loop
    if strategy == SMALTI:
        own = own_start(preparation)
        start = replace(own, setup=replace(own.setup, stop_rule=StopRule(answers)))
    else:
        joined = np.flatnonzero(preparation.start.part == 0).tolist()
        among = FrameNumbers(tuple(joined))
        chain = [
            landmarks.of_pair(among.pair_in_engine(landmarks.pair))
            for landmarks in preparation.chain.links
            if among.knows(landmarks.pair)
        ]
        looks = project.cache.array("signatures")
        assert looks is not None
        start = Method(strategy).start(
            len(joined),
            project.outline,
            chain,
            external=WeightedSignatures(looks[joined]),
            stop_rule=StopRule(answers),
        )
        numbers = FrameNumbers(tuple(numbers.in_source(frame) for frame in joined))
    return numbers, [start, *start.run(InEngine(person, numbers))]


def measure(sequence: Recorded, numbers: FrameNumbers, state: Loop, strategy: str, seed: int) -> Row:
    """Compare a state's largest mosaic, as delivered, with the truth."""
    frames, delivered = largest_mosaic(numbers, state)
    clear = sequence.disturbance == Disturbance.NONE
    return Row(
        seed=seed,
        disturbed=sequence.settings.disturbed,
        strategy=strategy,
        answers=len(state.answers),
        yes=sum(answer.verdict is Verdict.YES for answer in state.answers),
        error_px=sequence.error_px(delivered.mosaic_from_frame, frames, delivered.lens),
        placed=float(clear[frames].sum() / clear.sum()),
        parts=int((np.bincount(state.part) >= LEAST_PART).sum()),
    )


def largest_mosaic(numbers: FrameNumbers, state: Loop) -> tuple[list[int], FrameMaps]:
    """Return the frames of the largest part, in source numbers, and their final maps."""
    delivered = finish_each_its_own_way(state)
    inside = np.flatnonzero(delivered.part == 0)
    maps = FrameMaps(delivered.mosaic_from_frame[inside], delivered.part[inside], delivered.lens)
    return [numbers.in_source(n) for n in inside.tolist()], maps


def count_attempts(sequence: Recorded, preparation: Preparation, seed: int) -> list[dict[str, float]]:
    """Return how many pairs look more alike than a threshold, and how many of them overlap."""
    probability = pairwise(preparation.start.external).of_pairs
    frames = len(preparation.numbers)
    pairs = np.argwhere(np.triu(np.ones((frames, frames), dtype=bool), 2))
    likely = probability(pairs)
    numbers = np.array(preparation.numbers.used)[pairs]
    overlapping = {tuple(pair) for pair in sequence.overlapping_pairs(0.15).tolist()}
    truth = np.array([tuple(pair) in overlapping for pair in numbers.tolist()])
    return [
        {
            "seed": seed,
            "disturbed": sequence.settings.disturbed,
            "threshold": threshold,
            "attempts": int((likely >= threshold).sum()),
            "overlapping": int((truth & (likely >= threshold)).sum()),
            "all_overlapping": int(truth.sum()),
        }
        for threshold in THRESHOLDS
    ]


def draw_mosaic(sequence: Recorded, numbers: FrameNumbers, state: Loop, path: Path) -> None:
    """Write a small picture of the largest mosaic, white where no frame is."""
    frames, delivered = largest_mosaic(numbers, state)
    placed = dict(zip(frames, delivered.mosaic_from_frame, strict=True))
    mosaic = Mosaic(sequence, placed, sequence.width, sequence.height, sequence.field(0), lens=delivered.lens)
    seen = Image.fromarray(mosaic.image(PICTURE_PX), "RGBA")
    flat = Image.new("RGB", seen.size, "white")
    flat.paste(seen, mask=seen.getchannel("A"))
    flat.save(path, quality=88, optimize=True)


def print_tables(chains: Sequence[ChainRow], rows: Sequence[Row], attempts: Sequence[dict[str, float]]) -> None:
    """Print all as tables of Markdown."""
    names = [field.name for field in fields(ChainRow)]
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    for chain in chains:
        print("| " + " | ".join(_short(value) for value in asdict(chain).values()) + " |")
    for disturbed in sorted({row.disturbed for row in rows}):
        some = [row for row in rows if row.disturbed == disturbed]
        print(f"\n{disturbed:.0%} disturbed: relative RMSD in px, mean of the seeds (the worst)\n")
        tabled = [count for count in TABLED if count <= max(row.answers for row in some)]
        print("| answers | " + " | ".join(map(str, tabled)) + " |\n|" + " --- |" * (len(tabled) + 1))
        for strategy in dict.fromkeys(row.strategy for row in some):
            cells = []
            for count in tabled:
                errors = [row.error_px for row in some if row.strategy == strategy and row.answers == count]
                cells.append(f"{np.mean(errors):.2f} ({max(errors):.2f})" if errors else "-")
            print(f"| {strategy} | " + " | ".join(cells) + " |")
        joined = [row for row in some if row.strategy == SMALTI and row.answers == PICTURED]
        for row in joined:
            print(f"seed {row.seed}: after {PICTURED} answers {row.placed:.1%} of the clear frames, {row.parts} parts")
    print("\n| disturbed | pairs more alike than | of the seeds on average | of them overlapping |\n|" + " --- |" * 4)
    for disturbed in sorted({row["disturbed"] for row in attempts}):
        for threshold in THRESHOLDS:
            of_it = [row for row in attempts if (row["disturbed"], row["threshold"]) == (disturbed, threshold)]
            pairs, overlapping = (sum(row[name] for row in of_it) for name in ("attempts", "overlapping"))
            share = f"{overlapping / pairs:.0%}" if pairs else "-"
            print(f"| {disturbed:.0%} | {threshold} | {pairs / len(of_it):.0f} | {share} |")


def draw_curves(rows: Sequence[Row]) -> Figure:
    """Draw the error against the answers, one line for each strategy, geometric mean of the seeds."""
    shares = sorted({row.disturbed for row in rows})
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(4.2 * len(shares) + 1.5, 3.8), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(shares), sharey=True))
        for ax, disturbed in zip(axes, shares, strict=True):
            some = [row for row in rows if row.disturbed == disturbed]
            for strategy in dict.fromkeys(row.strategy for row in some):
                counts = sorted({row.answers for row in some if row.strategy == strategy})
                errors = [
                    np.exp(
                        np.mean([np.log(row.error_px) for row in some if (row.strategy, row.answers) == (strategy, n)])
                    )
                    for n in counts
                ]
                ax.plot(counts, errors, label=strategy, color=COLOURS.get(strategy), lw=1.6)
            ax.axhline(3.0, color="#999999", ls=":", lw=1.2)
            ax.set(yscale="log", xlabel="answers of the person", title=f"{disturbed:.0%} of the frames disturbed")
            ax.grid(alpha=0.3, which="major")
        axes[0].set_ylabel("relative RMSD, px")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows with equal names."""
    lines = [",".join(rows[0]), *(",".join(_short(value) for value in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _numbers(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: [kind(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
