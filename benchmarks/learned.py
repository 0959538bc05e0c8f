"""Learned keypoints against SIFT's: which pairs each registers, how well, what each accepts wrongly, what it costs.

    python benchmarks/learned.py [--pairs 20] [--apart 2000] [--frames 24] [--sets endoscope,corneal,…] [--seed 1]

The weights must be installed (`make test-learned`). True pairs of the synthetic endoscope are 20, 30 and 45 frames
apart and share a tenth of their fields at least; the error is against the exact truth. True pairs of real sets are
those of their landmarks, and the error is that at the landmarks. Pairs of different places are frames of the endoscope
that share nothing, of one scene and of two. Times are processor seconds.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.agents.matcher import KeypointAgent
from smalti.engine.links import map_in_pixels
from smalti.frames.pixels import in_gray
from smalti.frames.source import open_source
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.records import Pair, Points
from smalti.registration.keypoints import Keypoints, find_keypoints
from smalti.registration.learned_keypoints import LEARNED_FIT, LEARNED_MATCHES, find_learned_keypoints
from smalti.registration.learned_weights import require_weights
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings
from smalti_lab.synthetic.scene import load_scene

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCENES = ("IDRiD_10", "nasa_Apollo_8__Lunar_Crater", "nasa_bluemarble_ng_5400x2700")
GAPS = (20, 30, 45)
SHARED = 0.1
REAL = {"corneal": "research_only/corneal_80", "brighton": "brighton", "dendritic": "dendritic_cols0-2"}
CORRECT_PX = 5.0

Frame = tuple[NDArray[np.uint8], NDArray[np.bool_] | None]
Truth = Callable[[Pair], tuple[Points, Points]]
"""Returns points (n, 2) of j, and their true positions in i."""


@dataclass
class Method:
    """One kind of keypoints, with what it cost."""

    name: str
    find: Callable[[NDArray[np.uint8], NDArray[np.bool_] | None], Keypoints]
    agent: Callable[[Callable[[int], Keypoints], Outline], KeypointAgent]
    frame_seconds: list[float] = field(default_factory=list)
    pair_seconds: list[float] = field(default_factory=list)


class Frames:
    """Frames by number, with the keypoints of each method, found once."""

    def __init__(self, read: Callable[[int], Frame], outline: Outline, methods: Sequence[Method]) -> None:
        self._read, self.outline, self._methods = read, outline, methods
        self._found: dict[int, list[Keypoints]] = {}

    def agents(self) -> list[KeypointAgent]:
        return [
            method.agent(lambda number, n=n: self.found(number)[n], self.outline)  # type: ignore[misc]
            for n, method in enumerate(self._methods)
        ]

    def found(self, number: int) -> list[Keypoints]:
        if number not in self._found:
            frame, found = self._read(number), []
            for method in self._methods:
                began = time.process_time()
                found.append(method.find(*frame))
                method.frame_seconds.append(time.process_time() - began)
            self._found[number] = found
        return self._found[number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=20, metavar="N", help="true pairs of every row")
    parser.add_argument("--apart", type=int, default=2000, metavar="N", help="pairs of different places")
    parser.add_argument("--frames", type=int, default=24, metavar="N", help="frames of each scene for these")
    parser.add_argument("--sets", default="endoscope,corneal,brighton,dendritic")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    options = parser.parse_args()
    weights, rng = require_weights(), np.random.default_rng(options.seed)
    methods = [
        Method("SIFT", find_keypoints, KeypointAgent),
        Method(
            "learned",
            lambda gray, mask: find_learned_keypoints(gray, mask, weights),
            lambda keypoints_of, outline: KeypointAgent(keypoints_of, outline, LEARNED_FIT, LEARNED_MATCHES),
        ),
    ]
    for method in methods:  # compile
        method.find(np.zeros((64, 64), np.uint8), None)
    print("| pairs | of them | by | registered | wrong by 5 px | median matches | median error, px |\n|" + " --- |" * 7)
    for name in options.sets.split(","):
        if name == "endoscope":
            measure_endoscope(methods, options.pairs, options.apart, options.frames, rng)
        else:
            measure_real(name, methods, options.pairs, rng)
    for method in methods:
        each = [1e3 * float(np.median(seconds)) for seconds in (method.frame_seconds, method.pair_seconds)]
        print(f"\n{method.name}: {each[0]:.0f} ms a frame, {each[1]:.0f} ms a pair (median, processor time)")


def measure_endoscope(methods: Sequence[Method], count: int, apart: int, frames: int, rng: np.random.Generator) -> None:
    """Print the rows of the synthetic endoscope."""
    sequences = [
        EndoscopeSequence(load_scene(DATA / "large_images" / f"{name}.jpg"), EndoscopeSettings(), 1) for name in SCENES
    ]
    length = len(sequences[0])
    outline = Outline.of_pixels(sequences[0].width, sequences[0].height)

    def read(number: int) -> Frame:
        sequence, n = sequences[number // length], number % length
        return in_gray(sequence.frame(n)), sequence.field(n)

    seen = Frames(read, outline, methods)
    x, y = np.meshgrid(np.linspace(0, outline.width - 1, 24), np.linspace(0, outline.height - 1, 24))
    grid = np.column_stack([x.ravel(), y.ravel()])

    def common(pair: Pair) -> tuple[Points, Points]:
        sequence, i, j = sequences[pair.i // length], pair.i % length, pair.j % length
        if pair.i // length != pair.j // length:
            return np.empty((0, 2)), np.empty((0, 2))
        truth = sequence.points_in(i, j, grid)
        shown = within(sequence.field(j), grid) & within(sequence.field(i), truth)
        return grid[shown], truth[shown]

    for gap in GAPS:
        for scene, name in enumerate(SCENES):
            starts = scene * length + rng.permutation(length - gap)
            pairs = (Pair(int(start), int(start) + gap) for start in starts)
            chosen = first(count, (pair for pair in pairs if len(common(pair)[0]) >= SHARED * len(grid)))
            report(f"endoscope, {name}, {gap} frames apart", chosen, seen, methods, common)
    some = [scene * length + int(n) for scene in range(len(SCENES)) for n in rng.choice(length, frames, replace=False)]
    candidates = [Pair(*two) for two in combinations(sorted(some), 2)]
    order = (candidates[n] for n in rng.permutation(len(candidates)))
    different = first(apart, (pair for pair in order if not len(common(pair)[0])))
    report("endoscope, different places", different, seen, methods, None)


def measure_real(name: str, methods: Sequence[Method], count: int, rng: np.random.Generator) -> None:
    """Print the row of a real set."""
    folder = DATA / REAL[name]
    with open_source(str(folder / "frames")) as source:

        def read(number: int) -> Frame:
            return in_gray(source.read(number)), None

        seen = Frames(read, Outline.of_pixels(source.width, source.height), methods)
        known = {record.pair: record for record in read_landmarks(folder / "landmarks.csv")}
        pairs = sorted(known)
        chosen = [pairs[n] for n in rng.permutation(len(pairs))[: 2 * count]]
        report(f"{name}, pairs with landmarks", chosen, seen, methods, lambda p: (known[p].points_j, known[p].points_i))


def report(name: str, pairs: Sequence[Pair], seen: Frames, methods: Sequence[Method], truth: Truth | None) -> None:
    """Print a row for each method."""
    for method, agent in zip(methods, seen.agents(), strict=True):
        counts, errors = [], []
        for pair in pairs:
            seen.found(pair.i), seen.found(pair.j)
            began = time.process_time()
            landmarks = agent.answer(pair).landmarks
            method.pair_seconds.append(time.process_time() - began)
            if landmarks is not None:
                counts.append(len(landmarks))
                off = math.inf if truth is None else rms(map_in_pixels(landmarks, seen.outline), *truth(pair))
                errors.append(off)
        wrong = sum(error > CORRECT_PX for error in errors)
        cells = (f"{np.median(counts):.0f}", f"{np.median(errors):.2f}") if counts else ("-", "-")
        print(
            f"| {name} | {len(pairs)} | {method.name} | {len(counts)} | {wrong} | {cells[0]} | {cells[1]} |", flush=True
        )


def rms(i_from_j: NDArray[np.float64], points_j: Points, truth: Points) -> float:
    return float(np.sqrt(np.mean(np.sum((apply_map(i_from_j, points_j) - truth) ** 2, axis=1))))


def within(field: NDArray[np.bool_], points: Points) -> NDArray[np.bool_]:
    """Tell for each point (n, 2) whether it lies in the field (h, w)."""
    height, width = field.shape
    x, y = np.rint(points).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    return np.asarray(inside & field[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)], np.bool_)


def first(count: int, pairs: Iterator[Pair]) -> list[Pair]:
    return [pair for _, pair in zip(range(count), pairs, strict=False)]


if __name__ == "__main__":
    main()
