"""How few answers could do: designs by exact linear theory, and the error that no design can go below.

    python benchmarks/design.py [--frames 300] [--level 1.41] [--wander SEED]
    python benchmarks/design.py --sets brighton,caliterra,raster:120 [--likely] [--after 20] [--keep DIR]

Without --sets, on the raster or that path, all overlapping pairs and their landmarks being known: the error (the
paper's, expected) after so many evenly spaced rungs, and after so many greedy ones.

With --sets, K questions are chosen together, at a state of Smalti's own engine: before any answer, or after as many
as --after says. Errors are those that Smalti lowers (`suggestion/expected_gain.py`), summed over all pairs that matter.

- *greedy* is Smalti's joint choice: each question is the best if those before it are answered. *Exact greedy* is the
  same without random loads.
- The relaxation may answer any question by a part, K in all. *Largest weights* are the K largest parts; *spaced* are K
  questions at even steps of the sum of its parts, in the order of their frames, because neighbours share an answer.
- *exchanged*: questions are replaced one by one while that lowers the error (Fedorov's exchange).
- *bound* is the error that no K answers can go below, by the duality gap of the relaxation.

The candidates are the pairs that would get a yes, and the pairs that matter those that overlap. With --likely nobody
knows: both are weighted by their probability, as Smalti sees them. *Real* is the error of the delivered mosaic with the
matcher's answers to the chosen questions, and *one by one* that of Smalti, which chooses each when it knows the last.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tqdm import tqdm

from claims import print_table
from flights import load, spread
from smalti.active_loop import ActiveLoop
from smalti.agents.agent import Agent
from smalti.loop_setup import StopRule
from smalti.records import Pair, PairNumbers, Transforms
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import ExpectedGain, shared_points
from smalti.suggestion.pair_survey import SurveyedPairs
from smalti.suggestion.state_view import View
from smalti.suggestion.strategy import Smalti
from smalti_lab.experiments.experiment import EXPERIMENTS, Experiment
from smalti_lab.experiments.methods import SMALTI, FrameMaps, Method
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import OUTLINE, World, raster

GAUGE_DIRECTIONS = 100.0
"""Information that holds the first frame."""

ENOUGH_GAP = 0.01
"""Of the squared error: the relaxation is solved when its duality gap is smaller."""

MOST_EXCHANGES = 3000
AFRESH = 50
"""Exchanges after which the covariance is computed anew, for the sake of its digits."""

STEPS = np.linspace(0.0, 1.0, 33)
SWEEPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known after some links: H, H M H, and tr(M H)."""

    covariance: NDArray[np.float64]
    swayed: NDArray[np.float64]
    squared_error: float

    @classmethod
    def of(cls, covariance: NDArray[np.float64], matter: csr_array) -> Known:
        return cls(covariance, covariance @ (matter @ covariance), float((matter * covariance).sum()))

    @property
    def error_px(self) -> float:
        """The expected RMS error."""
        return float(np.sqrt(self.squared_error))


@dataclass(frozen=True, eq=False)
class Design:
    """Candidates, and what a yes to each would measure, in a linear model."""

    pairs: PairNumbers  # (n, 2)
    rows: NDArray[np.float64]  # (n, rows, 2 f): A, by the increments of both frames, over the noise
    matter: csr_array  # M
    covariance: NDArray[np.float64]  # H, (N f, N f), before any of them

    @classmethod
    def of_world(cls, world: World) -> Design:
        """Take a world, and the paper's error: the chain and all landmarks are known, maps are affine."""
        pairs, moments = world.moments
        unit_from_pixels = np.vstack([OUTLINE.unit_from_pixels, [0.0, 0.0, 1.0]])
        roots = np.linalg.cholesky(unit_from_pixels @ moments @ unit_from_pixels.T)
        shifts = np.tile(np.eye(2, 3), (len(pairs), 1, 1))
        shifts[:, :, 2] = (world.positions[pairs[:, 1]] - world.positions[pairs[:, 0]]) / OUTLINE.unit
        rows = residual_rows(shifts, roots)
        loop = np.diff(pairs, axis=1)[:, 0] > 1
        known = information(pairs[~loop], rows[~loop], world.frames).toarray()
        known[:6, :6] += GAUGE_DIRECTIONS * np.eye(6)
        matter = information(pairs, rows / np.sqrt(np.sum(moments[:, 2, 2])), world.frames)
        return cls(pairs[loop], rows[loop], matter, np.linalg.inv(known))

    @classmethod
    def of_expected_gain(
        cls, expected_gain: ExpectedGain, error_pairs: SurveyedPairs, weight: NDArray[np.float64]
    ) -> Design:
        """Take what Smalti knows of candidates, and all pairs that matter (m,) instead of a sample."""
        links, known = expected_gain.links, expected_gain.covariance
        rows = np.concatenate([links.by_i, links.by_j], axis=2) * np.sqrt(expected_gain.yes_probability)[:, None, None]
        middles = shared_points(error_pairs.centres, known.outline)[0].mean(axis=1, keepdims=True)
        errors = known.predicted_links(error_pairs.pairs, middles, np.sqrt(weight / weight.sum())[:, None])
        matter = information(error_pairs.pairs, np.concatenate([errors.by_i, errors.by_j], axis=2), known.frames)
        size = matter.shape[0]
        covariance = known.carry(np.eye(size).reshape(known.frames, -1, size)).reshape(size, size)
        return cls(links.pairs, rows, matter, (covariance + covariance.T) / 2.0)

    @cached_property
    def start(self) -> Known:
        """What is known before any answer."""
        return Known.of(self.covariance, self.matter)

    def after(self, weights: NDArray[np.float64]) -> Known:
        """Return what is known after links, each by a part (n,)."""
        some = np.flatnonzero(weights)
        rows = self.rows[some] * np.sqrt(weights[some])[:, None, None]
        frames = len(self.covariance) // (self.rows.shape[2] // 2)
        added = information(self.pairs[some], rows, frames)
        # (I + H ΔS) is better conditioned than the inverse of H.
        covariance = np.linalg.solve(np.eye(len(self.covariance)) + self.covariance @ added, self.covariance)
        return Known.of((covariance + covariance.T) / 2.0, self.matter)

    def after_all(self, chosen: Sequence[int]) -> Known:
        """Return what is known after some links."""
        return self.after(np.bincount(chosen, minlength=len(self.pairs)).astype(np.float64))

    def add(self, known: Known, links: Sequence[int], parts: Sequence[float]) -> Known:
        """Return what is known if so large a part of links is added; a negative one is taken away."""
        crossed, told, own, sway = self._of_links(known, links)
        inner = _inner(own, np.repeat(parts, self.rows.shape[1]))
        lowered = crossed @ inner
        return Known(
            known.covariance - lowered @ crossed.T,
            known.swayed + lowered @ (sway @ lowered.T - told.T) - told @ lowered.T,
            known.squared_error - float(np.sum(inner * sway)),
        )

    def rates(self, known: Known) -> NDArray[np.float64]:
        """Return how fast the squared error falls with the part of each link (n,)."""
        rates: NDArray[np.float64] = np.trace(self._within(known.swayed), axis1=1, axis2=2)
        return rates

    def gains(self, known: Known) -> NDArray[np.float64]:
        """Return by how much each link would lower the squared error (n,)."""
        measured = self._within(known.covariance) + np.eye(self.rows.shape[1])
        taught = np.linalg.solve(measured, self._within(known.swayed))
        gains: NDArray[np.float64] = np.trace(taught, axis1=1, axis2=2)
        return gains

    def greedy(self, count: int, level_px: float = 0.0) -> tuple[list[int], list[float]]:
        """Return the best links one by one, until they are so many or reach a level, and the errors after each."""
        known, chosen = self.start, list[int]()
        errors = [known.error_px]
        while len(chosen) < min(count, len(self.pairs)) and errors[-1] > level_px:
            gains = self.gains(known)
            gains[chosen] = -np.inf
            chosen.append(int(np.argmax(gains)))
            # Little is left of large numbers: their products are computed anew.
            known = Known.of(self.add(known, chosen[-1:], [1.0]).covariance, self.matter)
            errors.append(known.error_px)
        return chosen, errors

    def exchanged(self, chosen: Sequence[int]) -> list[int]:
        """Return links of which none can be replaced by another to lower the error."""
        best, known = list(chosen), self.after_all(chosen)
        for _ in range(SWEEPS):
            changed = False
            for place, link in enumerate(best):
                without = self.add(known, [link], [-1.0])
                gains = self.gains(without)
                gains[best[:place] + best[place + 1 :]] = -np.inf
                other = int(np.argmax(gains))
                if other != link and gains[other] > (1.0 + 1e-6) * gains[link]:
                    best[place], changed = other, True
                    known = self.after_all(best)
            if not changed:
                break
        return best

    def relaxed(self, first: Sequence[int]) -> tuple[NDArray[np.float64], float]:
        """Return the parts (n,) of links, as many in all as those to begin with, and a bound of the error, px.

        f = tr(M (S + Σ w A^T A)⁻¹) is convex in w, so that it is nowhere below its tangent, whose lowest value, at the
        links of the largest rates, is a bound for every choice. Frank-Wolfe moves towards these; here it moves part of
        the link of the smallest rate to that of the largest (pairwise Frank-Wolfe, or vertex exchange), as far as that
        lowers f, which needs no new factor.
        """
        count = len(first)
        weights = np.bincount(first, minlength=len(self.pairs)).astype(np.float64)
        known, bound, stale = self.after(weights), 0.0, 0
        for _ in range(MOST_EXCHANGES):
            rates = self.rates(known)
            gap = float(np.sum(np.sort(rates)[-count:]) - weights @ rates)
            solved = gap <= ENOUGH_GAP * known.squared_error
            if stale and (solved or stale == AFRESH):
                known, stale = self.after(weights), 0
                continue
            if not stale:
                bound = max(bound, known.squared_error - gap)
            if solved:
                break
            gaining = int(np.argmax(np.where(weights < 1.0, rates, -np.inf)))
            losing = int(np.argmin(np.where(weights > 0.0, rates, np.inf)))
            part = self._exchange(known, gaining, losing, min(1.0 - weights[gaining], weights[losing]))
            weights[gaining] = min(weights[gaining] + part, 1.0)
            weights[losing] = max(weights[losing] - part, 0.0)
            known, stale = self.add(known, [gaining, losing], [part, -part]), stale + 1
        return weights, float(np.sqrt(bound))

    def evenly(self, count: int) -> float:
        """Return the error of a raster with so many rungs, evenly spaced."""
        half = len(self.covariance) // 12
        number = {(int(i), int(j)): n for n, (i, j) in enumerate(self.pairs)}
        rungs = np.unique(((np.arange(count) + 0.25) * half / count).astype(int).clip(max=half - 2))
        known = self.start
        for rung in rungs:
            known = self.add(known, [number[int(rung), 2 * half - 1 - int(rung)]], [1.0])
        return Known.of(known.covariance, self.matter).error_px

    @cached_property
    def _at(self) -> NDArray[np.int64]:
        return columns(self.pairs, self.rows.shape[2] // 2)

    def _within(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return A X A^T of every link (n, rows, rows)."""
        return np.asarray(self.rows @ matrix[self._at[:, :, None], self._at[:, None]] @ np.swapaxes(self.rows, 1, 2))

    def _of_links(self, known: Known, links: Sequence[int]) -> tuple[NDArray[np.float64], ...]:
        """Return H A^T, H M H A^T, A H A^T and A H M H A^T, A being the rows of all these links."""
        crossed, told = (
            np.hstack([matrix[:, self._at[n]] @ self.rows[n].T for n in links])
            for matrix in (known.covariance, known.swayed)
        )
        own, sway = (np.vstack([self.rows[n] @ matrix[self._at[n]] for n in links]) for matrix in (crossed, told))
        return crossed, told, own, sway

    def _exchange(self, known: Known, gaining: int, losing: int, most: float) -> float:
        """Return which part to move from one link to another, so that the error is lowest."""
        *_, own, sway = self._of_links(known, [gaining, losing])
        sign = np.repeat([1.0, -1.0], self.rows.shape[1])
        low, high = 0.0, most
        for _ in range(2):
            parts = low + (high - low) * STEPS
            drop = np.sum(_inner(own, parts[:, None] * sign) * sway, axis=(1, 2))
            best = int(np.argmax(drop))
            low, high = parts[max(best - 1, 0)], parts[min(best + 1, len(parts) - 1)]
        return float(parts[best])


def _inner(own: NDArray[np.float64], parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (J⁻¹ + Q)⁻¹ = J (I + Q J)⁻¹, J having parts (..., m) on its diagonal."""
    return np.asarray(parts[..., :, None] * np.linalg.inv(np.eye(len(own)) + own * parts[..., None, :]))


def columns(pairs: PairNumbers, freedom: int) -> NDArray[np.int64]:
    """Return where the increments of both frames are (n, 2 f)."""
    return np.asarray((freedom * pairs[:, :, None] + np.arange(freedom)).reshape(-1, 2 * freedom))


def information(pairs: PairNumbers, rows: NDArray[np.float64], frames: int) -> csr_array:
    """Return Σ A^T A of links."""
    count, height, width = rows.shape
    across = np.repeat(columns(pairs, width // 2), height, axis=0).ravel()
    down = np.repeat(np.arange(height * count), width)
    jacobian = csr_array((rows.ravel(), (down, across)), shape=(height * count, frames * width // 2))
    return csr_array(jacobian.T @ jacobian)


def residual_rows(i_from_j: Transforms, roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how the residuals (P - T̂) R of links change with δ of their frames, P δ_j - δ_i P: (n, 6, 12)."""
    mapped = np.concatenate([i_from_j @ roots, roots[:, 2:]], axis=1)
    by_i, by_j = np.zeros((2, len(roots), 2, 3, 2, 3))  # residual (row, point) by entry (row, column)
    for row in range(2):
        by_i[:, row, :, row] = -np.swapaxes(mapped, 1, 2)
    by_j[:] = i_from_j[:, :, None, :2, None] * np.swapaxes(roots, 1, 2)[:, None, :, None, :]
    return np.concatenate([by_i.reshape(-1, 6, 6), by_j.reshape(-1, 6, 6)], axis=2)


@dataclass(frozen=True, slots=True)
class Choice:
    """K questions chosen in each way at one state; errors in px, those of each way in the order of `WAYS`."""

    now_px: float
    expected_px: tuple[float, ...]
    bound_px: float
    real_px: tuple[float, ...]
    one_by_one_px: float
    seconds: float  # that the relaxation took


WAYS = ("greedy", "exact greedy", "exact greedy, exchanged", "largest weights", "spaced", "spaced, exchanged")


def compare(experiment: Experiment, seed: int, counts: Sequence[int], before: int, likely: bool) -> list[Choice]:
    """Choose questions in every way, after as many answers as told, and ask them."""
    agent = experiment.agent(seed, chain_noise=1.0)
    method = Method(SMALTI, "projective")
    start = experiment.start(agent, experiment.external, method, StopRule(budget=before + max(counts)))
    assert isinstance(start, ActiveLoop)
    course = [start, *start.run(agent)]
    state = course[min(before, len(course) - 1)]
    expected_gain, error_pairs, weight = look(state.view, None if likely else experiment.overlapping)
    design = Design.of_expected_gain(expected_gain, error_pairs, weight)
    exact, _ = design.greedy(max(counts))
    found = []
    for count in counts:
        greedy = [n for n, *_ in Smalti().choose(expected_gain, count)]
        began = time.perf_counter()
        weights, bound_px = design.relaxed(greedy)
        seconds = time.perf_counter() - began
        spaced = spaced_by(weights, len(greedy))
        ways = (
            *(greedy, exact[: len(greedy)], design.exchanged(exact[: len(greedy)])),
            *(largest(weights, len(greedy)), spaced, design.exchanged(spaced)),
        )
        found.append(
            Choice(
                design.start.error_px,
                tuple(design.after_all(chosen).error_px for chosen in ways),
                bound_px,
                tuple(real_error(experiment, state, design.pairs[chosen], agent) for chosen in ways),
                experiment.relative_rmsd(FrameMaps.delivered(course[min(before + count, len(course) - 1)])),
                seconds,
            )
        )
    return found


def look(view: View, overlapping: PairNumbers | None) -> tuple[ExpectedGain, SurveyedPairs, NDArray[np.float64]]:
    """Return what candidates would teach, and the pairs that matter with their weights.

    Where it is known which pairs overlap, candidates are those of them that may be asked.
    """
    if overlapping is None:
        found = CandidatePairs.of(view)
        return found.expected_gain(view), found.error_pairs, found.weight
    candidates = overlapping[view.may_be_asked(overlapping)]
    error_pairs, weight = SurveyedPairs.of(view, overlapping), np.ones(len(overlapping))
    expected_gain = ExpectedGain.of(
        view.estimate,
        view.covariance,
        SurveyedPairs.of(view, candidates),
        np.ones(len(candidates)),
        error_pairs,
        weight,
    )
    return expected_gain, error_pairs, weight


def largest(weights: NDArray[np.float64], count: int) -> list[int]:
    """Return the links of the largest weights."""
    chosen: list[int] = np.argsort(-weights, kind="stable")[:count].tolist()
    return chosen


def spaced_by(weights: NDArray[np.float64], count: int) -> list[int]:
    """Return links at even steps of the sum of weights, in the order of their frames: neighbours share one."""
    reached = np.cumsum(weights)
    chosen: list[int] = np.searchsorted(reached, (np.arange(count) + 0.5) * reached[-1] / count).tolist()
    return chosen


def real_error(experiment: Experiment, state: ActiveLoop, pairs: PairNumbers, agent: Agent) -> float:
    """Return the error of the mosaic that answers to these questions make."""
    answered = state.replay(agent.answer(Pair(int(i), int(j))) for i, j in pairs)
    return experiment.relative_rmsd(FrameMaps.delivered(answered))


def make(name: str, seed: int, keep: Path) -> Experiment:
    """Return a world, given as NAME:FRAMES, or a real set."""
    world, _, frames = name.partition(":")
    return EXPERIMENTS[world].make(int(frames), seed, keep) if frames else load(name, seed, keep)


def print_choices(found: dict[str, list[list[Choice]]], counts: Sequence[int]) -> None:
    """Print errors and their ratios to those of greedy, mean and range over seeds."""
    expected, real = [], []
    for name, runs in found.items():
        for n, count in enumerate(counts):
            choices = [run[n] for run in runs]
            by_way = np.array([(*choice.expected_px, choice.bound_px) for choice in choices])
            ratios = by_way[:, 1:] / by_way[:, :1]
            expected.append(
                [
                    *(name, str(count), spread([choice.now_px for choice in choices])),
                    *(spread(px.tolist()) for px in (by_way[:, 0], by_way[:, -1], *ratios.T)),
                    f"{np.mean([choice.seconds for choice in choices]):.1f}",
                ]
            )
            by_way = np.array([(*choice.real_px, choice.one_by_one_px) for choice in choices])
            ratios = by_way[:, 1:] / by_way[:, :1]
            real.append([name, str(count), *(spread(px.tolist()) for px in (by_way[:, 0], *ratios.T))])
    over = [f"{way} / greedy" for way in WAYS[1:]]
    print_table(["expected error, px", "K", "now", "greedy", "bound", *over, "bound / greedy", "s"], expected)
    print_table(["real error, px", "K", "greedy", *over, "one by one / greedy"], real)


def print_level(design: Design, level_px: float, with_rungs: bool) -> None:
    """Print how many answers reach the level."""
    if with_rungs:
        count = next(count for count in range(1, 10_000) if design.evenly(count) <= level_px)
        print(f"evenly spaced: {count} answers reach {design.evenly(count):.3f} px")
    chosen, errors = design.greedy(len(design.pairs), level_px)
    print(f"greedy: {len(chosen)} answers reach {errors[-1]:.3f} px")
    shown = [n for n in (1, 2, 5, *range(10, len(errors), 10)) if n < len(errors)]
    print(f"after {', '.join(map(str, shown))}: " + ", ".join(f"{errors[n]:.2f}" for n in shown))
    print("none below: " + ", ".join(f"{design.relaxed(chosen[:n])[1]:.2f}" for n in shown))


def main() -> None:
    """Print how few answers could do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, metavar="N", help="of the raster (300) or the path (600)")
    parser.add_argument("--level", type=float, default=1.41, metavar="PX", help="the error to reach (1.41)")
    parser.add_argument("--wander", type=int, metavar="SEED", help="take this path instead of the raster")
    parser.add_argument("--sets", metavar="NAME,…", help="folders of SMALTI_DATA, or worlds as NAME:FRAMES")
    parser.add_argument("--answers", default="3,5,10,20", metavar="K,K,…", help="questions chosen together (3,5,10,20)")
    parser.add_argument("--after", type=int, default=0, metavar="N", help="answers given before (0)")
    parser.add_argument("--likely", action="store_true", help="which pairs overlap is not known")
    parser.add_argument("--seeds", default="1,2,3", metavar="S,S,…", help="one run a seed (1,2,3)")
    parser.add_argument("--keep", type=Path, default=Path("studies/flights"), help="folder that keeps the matches")
    options = parser.parse_args()
    if options.sets is None:
        if options.wander is not None:
            print_level(Design.of_world(wander(options.frames or 600, options.wander)), options.level, False)
        else:
            print_level(Design.of_world(raster(options.frames or 300)), options.level, True)
        return
    counts = [int(count) for count in options.answers.split(",")]
    found = {
        name: [
            compare(make(name, int(seed), options.keep), int(seed), counts, options.after, options.likely)
            for seed in tqdm(options.seeds.split(","), desc=name, leave=False)
        ]
        for name in options.sets.split(",")
    }
    print_choices(found, counts)


if __name__ == "__main__":
    main()
