"""The value of the motion prior: the drift of chains whose camera turns in several ways.

    python benchmarks/turning.py [--frames 300] [--worlds 10]

Every link measures its map by nine landmarks with noise of 1 px in a frame of 100 px. Its turn then has a deviation of
one unit. A camera turns by `rate` units from frame to frame: always the same way, to and fro twice over the sequence,
or randomly. Printed is the error of the frames' turn, RMS over frames and worlds, with the motion prior, as a ratio to
the same engine without. Below it is the ratio that the covariance states.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from claims import print_table
from smalti.engine.equations import System
from smalti.engine.estimate import Estimate, begin
from smalti.engine.link_prediction import PredictedLinks
from smalti.engine.links import Link, fit_link
from smalti.geometry.homographies import AFFINE, ROTATION
from smalti.records import Landmarks, Pair
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, RASTER_STEP

RATES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
WAYS = ("always the same way", "to and fro", "each time anew")
CENTRED = CONTROL_POINTS - OUTLINE.centre
UNIT = 1.0 / np.sqrt(np.sum(CENTRED**2))
"""Radians: the deviation of a turn that nine landmarks of 1 px measure."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=300, metavar="N", help="length of the chain (300)")
    parser.add_argument("--worlds", type=int, default=10, metavar="N", help="noise drawn so many times (10)")
    options = parser.parse_args()
    lines = []
    for way in WAYS:
        ratios, stated = [], []
        for rate in RATES:
            rng = np.random.default_rng(0)
            found = [drifts(turns(way, rate, options.frames, rng), rng) for _ in range(options.worlds)]
            real, said = np.mean(found, axis=0)
            ratios.append(f"{np.sqrt(real[1] / real[0]):.2f}")
            stated.append(f"{np.sqrt(said[1] / said[0]):.2f}")
        lines += [[way, *ratios], ["… as stated", *stated]]
    print_table([f"turning, {options.frames} frames", *(f"{rate:g}" for rate in RATES)], lines)


def turns(way: str, rate: float, frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the angle (n,) of every step, radians."""
    steps = frames - 1
    if way == "each time anew":
        return rng.normal(0.0, rate * UNIT, size=steps)
    course = np.ones(steps) if way == "always the same way" else np.sin(np.arange(steps) / steps * 4.0 * np.pi)
    turned: NDArray[np.float64] = rate * UNIT * course
    return turned


def drifts(angles: NDArray[np.float64], rng: np.random.Generator) -> tuple[list[float], list[float]]:
    """Return the mean squared error of the frames' turn without and with the motion prior, and the stated ones."""
    system = System.of(len(angles) + 1, OUTLINE, AFFINE, [link(n, angle, rng) for n, angle in enumerate(angles)])
    truth = np.concatenate([[0.0], np.cumsum(angles)])
    real, said = [], []
    for learns in (False, True):
        estimate = begin(system, learns_camera=learns)
        maps = estimate.mosaic_from_frame
        angle = np.unwrap(np.arctan2(maps[:, 1, 0] - maps[:, 0, 1], maps[:, 0, 0] + maps[:, 1, 1])) - truth
        reference = int(system.references[0])
        real.append(float(np.mean((angle - angle[reference]) ** 2)))
        said.append(stated_variance(estimate, reference))
    return real, said


def stated_variance(estimate: Estimate, reference: int) -> float:
    """Return the mean variance of the turn of frames against the reference, by the covariance."""
    others = np.delete(np.arange(estimate.frames), reference)
    pairs = np.sort(np.column_stack([others, np.full(len(others), reference)]), axis=1)
    maps = estimate.solution.maps
    relative = np.linalg.inv(maps[pairs[:, 0]]) @ maps[pairs[:, 1]]
    moved = PredictedLinks.of_increments(pairs, relative, np.linalg.inv(relative))
    # The turn of an increment is half of the difference of its entries below and above the diagonal.
    turn = AFFINE.by_entry[ROTATION][None] / 2.0
    rows = PredictedLinks(pairs, turn @ moved.by_i, turn @ moved.by_j)
    return float(np.mean(estimate.covariance.of_predicted_links(rows)))


def link(n: int, angle: float, rng: np.random.Generator) -> Link:
    """Return the measurement of a step: a third of a frame further, and turned."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    exact = CENTRED @ turn.T + OUTLINE.centre + (RASTER_STEP, 0.0)
    landmarks = Landmarks(Pair(n, n + 1), exact + rng.normal(size=exact.shape), CONTROL_POINTS)
    return fit_link(landmarks, OUTLINE, None, AFFINE)


if __name__ == "__main__":
    main()
