"""`smalti` against `paper` on the real sets that have landmarks for evaluation, with the real matcher.

    python benchmarks/flights.py [--sets brighton,copr,…] [--queries 60] [--seeds 1,2,3] [--keep DIR]

Like `smalti experiment caliterra`, on other sets of SMALTI_DATA: all pairs are matched once. Each seed resamples the
landmarks of every pair and learns its own words. The paper's method is literal. Its affine mosaics get the same finish
as Smalti's, homographies and lens from the same links, so that only the questions differ ("delivered"). Its own affine
error is printed too.

*Floor*: the error of the mosaic of all matching pairs, by the same engine. *Landmarks*: the noise of the evaluation
landmarks, from their distances to the homography of their own pair, corrected for degrees of freedom. "Real over
predicted" and the share below the bound subtract it: √(error² - noise²). The rest is the error of the mosaic's maps
against those of pairs, relief included, which is what is predicted. The error to reach, and stay below, is 1.5 times
the homography floor of the data's README (`sets.py`); for copr, which has none there, 1.5 times the floor measured
here. *Noise* is the variance of links by triangles and scatter; 1 is what landmarks state. *Beyond*: the ratio of the
errors of links of consecutive frames against the mosaic of all pairs to what that noise states, which is the error that
neighbours share.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from claims import print_table
from sets import FLOORS
from smalti.active_loop import ActiveLoop
from smalti.agents.agent import Agent
from smalti.engine.equations import System
from smalti.engine.estimate import begin
from smalti.engine.links import fit_link
from smalti.engine.robust_estimate import MEDIAN_CHI2
from smalti.geometry.homographies import AFFINE
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.loop_setup import StopRule
from smalti.records import Landmarks, Pair
from smalti_lab.experiments.methods import SMALTI, FrameMaps, Loop, Method
from smalti_lab.experiments.real_sequence import Caliterra, keep_matches, load_matches, match_all
from smalti_lab.experiments.study_summary import GOOD_ENOUGH, last_above

SETS = ("brighton", "dendritic_cols0-2", "copr", "obriens", "caliterra")
METHODS = (Method("paper"), Method(SMALTI, "projective"))
TABLED = (0, 3, 5, 10, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), metavar="NAME,…", help="folders of SMALTI_DATA")
    parser.add_argument("--queries", type=int, default=60, metavar="Q", help="questions a run (60)")
    parser.add_argument("--seeds", default="1,2,3", metavar="S,S,…", help="one run a seed (1,2,3)")
    parser.add_argument("--keep", type=Path, default=Path("studies/flights"), help="folder that keeps the matches")
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    options.keep.mkdir(parents=True, exist_ok=True)
    names = options.sets.split(",")
    found: dict[str, list[Comparison]] = {}
    for name in names:
        found[name] = []
        for seed in seeds:
            found[name].append(compare(load(name, seed, options.keep), FLOORS[name][1], seed, options.queries))
            print(f"{name}, seed {seed}: " + " and ".join(f"{n} answers" for n in found[name][-1].answers), flush=True)
    print_errors(found)
    print_predictions(found)
    print_effort(found)


@dataclass(frozen=True, slots=True, eq=False)
class StateHistory:
    """A run: numbers after every answer (queries + 1,), px. A run that ends early keeps its last."""

    delivered: NDArray[np.float64]
    own: NDArray[np.float64]
    predicted: NDArray[np.float64]
    bound: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Both methods on one set and seed."""

    paper: StateHistory
    smalti: StateHistory
    floor_px: float
    landmarks_px: float  # noise of the evaluation landmarks
    readme_floor_px: float | None
    noise: tuple[float, float]  # with affine maps, with homographies; variances
    beyond: float  # ratio of the errors of links of consecutive frames to those by triangles

    @property
    def answers(self) -> tuple[int, int]:
        """How many answers each method needs to come below the level, and stay there."""
        paper, own = (last_above(course.delivered, self.level_px) + 1 for course in (self.paper, self.smalti))
        return paper, own

    @property
    def level_px(self) -> float:
        """The error to reach."""
        return GOOD_ENOUGH * (self.floor_px if self.readme_floor_px is None else self.readme_floor_px)

    @property
    def real(self) -> NDArray[np.float64]:
        """The error of Smalti's mosaic without the noise of the evaluation landmarks."""
        squares: NDArray[np.float64] = np.maximum(self.smalti.delivered**2 - self.landmarks_px**2, 0.0)
        return np.sqrt(squares)


def compare(experiment: Caliterra, readme_floor_px: float | None, seed: int, queries: int) -> Comparison:
    """Run both methods, and measure the set."""
    agent = experiment.agent(seed, chain_noise=1.0)
    starts = [experiment.start(agent, experiment.external, method, StopRule(budget=queries)) for method in METHODS]
    paper, own = (follow(experiment, start, agent, queries) for start in starts)
    engine = starts[1]
    assert isinstance(engine, ActiveLoop)
    best = answer_all(engine, experiment, agent)
    floor_px = experiment.relative_rmsd(FrameMaps.delivered(best))
    affine = [fit_link(landmarks, experiment.outline, None, AFFINE) for landmarks in engine.chain.values()]
    by_affine = begin(System.of(experiment.frames, experiment.outline, AFFINE, affine)).local_noise
    return Comparison(
        paper,
        own,
        floor_px,
        noise_of_landmarks(experiment.judges, experiment.outline, best.lens),
        readme_floor_px,
        (by_affine**2, engine.estimate.local_noise**2),
        beyond_triangles(engine, best),
    )


def noise_of_landmarks(judges: Sequence[Landmarks], outline: Outline, lens: Lens) -> float:
    """Return the RMS distance, px, of landmarks to the homographies of their own pairs, corrected for their fit."""
    links = [fit_link(landmarks, outline, lens) for landmarks in judges]
    squares = sum(link.landmarks * link.residual_px**2 for link in links)
    free = sum(2 * link.landmarks - link.rank for link in links)
    return float(np.sqrt(2.0 * squares / free))


def beyond_triangles(start: ActiveLoop, best: ActiveLoop) -> float:
    """Return the ratio of the errors of consecutive links against the mosaic of all pairs to those by triangles."""
    system, maps = start.estimate.system, best.estimate.solution.maps
    i, j = system.ends[system.steps].T
    off = system.measured_back[system.steps] @ np.linalg.inv(maps[i]) @ maps[j]
    entries = (off / off[:, 2:, 2:] - np.eye(3)).reshape(-1, 9)[:, :8]
    squares = np.sum(np.einsum("nab,nb->na", system.roots[system.steps], entries) ** 2, axis=1)
    return float(np.sqrt(np.median(squares) / MEDIAN_CHI2)) / start.estimate.local_noise


def follow(experiment: Caliterra, start: Loop, agent: Agent, queries: int) -> StateHistory:
    """Ask, and measure the delivered mosaic after every answer."""
    finish = experiment.finish(start)
    rows: list[tuple[float, float, float, float]] = []
    before: Loop | None = None
    for state in (start, *start.run(agent)):
        if before is not None and state.links is before.links:
            errors = rows[-1][:2]  # a no moves no frame
        else:
            errors = experiment.relative_rmsd(finish(state)), experiment.relative_rmsd(FrameMaps.of(state))
        rows.append((errors[0], errors[1], state.predicted_error_px, state.error_bound_px))
        before = state
    rows += rows[-1:] * (queries + 1 - len(rows))
    return StateHistory(*np.array(rows).T)


def answer_all(start: ActiveLoop, experiment: Caliterra, agent: Agent) -> ActiveLoop:
    """Return the state with all matching pairs."""
    pairs = [Pair(int(i), int(j)) for i, j in experiment.overlapping]
    return start.replay(agent.answer(pair) for pair in pairs if not start.is_settled(pair))


def load(name: str, seed: int, keep: Path) -> Caliterra:
    """Return a set as an experiment. The positions of its frames are not needed."""
    folder = Path(os.environ.get("SMALTI_DATA", "../shared/data")) / name
    frames = len(list((folder / "frames").iterdir()))
    matches = load_matches(keep, name, frames)
    if matches is None:
        matches = match_all(folder / "frames", frames)
        keep_matches(keep, name, matches)
    return Caliterra(matches, read_landmarks(folder / "landmarks.csv"), np.zeros((frames, 2)), seed)


def print_errors(found: dict[str, list[Comparison]]) -> None:
    lines = []
    for name, runs in found.items():
        for title, courses in (
            ("`smalti`", [run.smalti.delivered for run in runs]),
            ("`paper`, the same finish", [run.paper.delivered for run in runs]),
            ("`paper`, its own affine mosaic", [run.paper.own for run in runs]),
        ):
            lines.append([name, title, *(spread([course[n] for course in courses]) for n in tabled(courses))])
    print_table(["error of the mosaic, px, mean (range) after", "", *map(str, TABLED)], lines)


def print_predictions(found: dict[str, list[Comparison]]) -> None:
    lines = []
    for name, runs in found.items():
        counts = tabled([run.smalti.delivered for run in runs])
        for title, values in (
            ("predicted, px", [run.smalti.predicted for run in runs]),
            ("90 % bound, px", [run.smalti.bound for run in runs]),
            ("real over predicted", [run.real / run.smalti.predicted for run in runs]),
            ("… paper, own over predicted", [run.paper.own / run.paper.predicted for run in runs]),
        ):
            lines.append([name, title, *(spread([course[n] for course in values]) for n in counts), ""])
        below = np.mean([run.real <= run.smalti.bound for run in runs])
        lines[-4][-1] = f"{below:.0%}"
    print_table(["`smalti`, mean (range) after", "", *map(str, TABLED), "states below the bound"], lines)


def print_effort(found: dict[str, list[Comparison]]) -> None:
    lines, means = [], []
    for name, runs in found.items():
        answers = np.mean([run.answers for run in runs], axis=0)
        means.append(answers)
        noise = np.mean([run.noise for run in runs], axis=0)
        measures = ("floor_px", "landmarks_px", "level_px")
        lines.append(
            [
                *(name, *(f"{np.mean([getattr(run, px) for run in runs]):.2f}" for px in measures)),
                *(f"{noise[0]:.1f}", f"{noise[1]:.1f}"),
                f"{np.mean([run.beyond for run in runs]):.1f}",
                *(f"{count:.1f}" for count in answers),
                f"{answers[1] / answers[0]:.2f}" if answers[0] else "-",
            ]
        )
    paper, own = np.mean(means, axis=0)
    lines.append(["mean", *[""] * 6, f"{paper:.1f}", f"{own:.1f}", f"{own / paper:.2f}" if paper else "-"])
    columns = [
        "floor, px",
        "landmarks, px",
        "to reach, px",
        "noise, affine",
        "noise, homographies",
        "beyond",
        "`paper`",
        "`smalti`",
        "ratio",
    ]
    print_table(["answers to reach it", *columns], lines)


def tabled(courses: Sequence[NDArray[np.float64]]) -> list[int]:
    return [min(n, len(courses[0]) - 1) for n in TABLED]


def spread(numbers: Sequence[float]) -> str:
    digits = 1 if np.mean(numbers) >= 10 else 2
    return f"{np.mean(numbers):.{digits}f} ({min(numbers):.{digits}f}-{max(numbers):.{digits}f})"


if __name__ == "__main__":
    main()
