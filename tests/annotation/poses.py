"""Pairs with landmarks, and how they lie by mosaic and landmarks together, computed in another way than the page's.

`python -m tests.annotation.poses` writes them to the page's tests, which compare the page's own computation with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.optimize import brentq, least_squares, minimize_scalar

from smalti.annotation.landmark_messages import SIGMA_PX
from smalti.annotation.messages import Origin
from smalti.geometry.homographies import AFFINE, PROJECTIVE, apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline

FILE = Path(__file__).parents[2] / "web" / "src" / "model" / "pose.examples.json"
WIDTH, HEIGHT = 320, 240
OUTLINE = Outline.of_pixels(WIDTH, HEIGHT)
DEVIATIONS = np.array([0.03, 0.03, 0.008, 0.006, 0.003, 0.003, 0.001, 0.001])
PROBE = np.array([[40.0, 200.0]])

STEP = 0.02
"""Of the logarithm of a scale, for its slope."""


@dataclass(frozen=True)
class Case:
    """A pair: how many landmarks on which points of j, what family and lens, how far the mosaic is off."""

    name: str
    points: tuple[tuple[float, float], ...]
    affine: bool = False
    k1: float = 0.0
    off: float = 1.0
    """Times its own deviations, the mosaic's error."""


CASES = (
    Case("one landmark", ((220.0, 60.0),)),
    Case("two landmarks", ((220.0, 60.0), (90.0, 150.0))),
    Case("three nearly on a line", ((220.0, 60.0), (150.0, 100.5), (80.0, 140.0))),
    Case("six landmarks", ((220.0, 60.0), (90.0, 150.0), (300.0, 20.0), (20.0, 30.0), (250.0, 210.0), (130.0, 90.0))),
    Case("affine maps", ((220.0, 60.0), (90.0, 150.0), (20.0, 30.0)), affine=True),
    Case("through a lens", ((300.0, 20.0), (15.0, 220.0), (30.0, 25.0)), k1=0.06),
    Case("a mosaic that is far off", ((220.0, 60.0), (90.0, 150.0), (300.0, 200.0), (20.0, 30.0)), off=4.0),
)


def examples() -> list[dict[str, Any]]:
    """Return what the page is given, and what it should find."""
    return [_example(case, seed) for seed, case in enumerate(CASES)]


def _example(case: Case, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    lens, family = Lens(OUTLINE, case.k1), AFFINE if case.affine else PROJECTIVE
    root = rng.normal(size=(family.freedom, family.freedom)) * 0.15 + np.eye(family.freedom)
    by_entry = (root * DEVIATIONS[: family.freedom]) @ family.by_entry
    covariance = by_entry.T @ by_entry
    expected = expm(_matrix(np.array([0.02, -0.4, 0.3, 0.4, 0.05, -0.2, 0.0 if case.affine else 0.03, 0.0])))
    truth = expected @ expm(_matrix(case.off * rng.normal(size=family.freedom) @ by_entry))
    points_j = np.array(case.points)
    sigma = SIGMA_PX[Origin.CLICKED]
    points_i = lens.distort(apply_map(_in_pixels(truth), lens.undistort(points_j)))
    points_i = points_i + rng.normal(0.0, sigma, points_j.shape)
    units_i, units_j = (_in_units(lens.undistort(points)) for points in (points_i, points_j))
    best, posterior = _combine(expected, by_entry, units_i, units_j, sigma / OUTLINE.unit)

    def seen(along: NDArray[np.float64]) -> NDArray[np.float64]:
        i_from_j = expected @ expm(_matrix(along @ by_entry))
        return np.asarray(lens.distort(apply_map(_in_pixels(i_from_j), lens.undistort(PROBE)))[0])

    step = 1e-3 * np.eye(family.freedom)
    slopes = np.column_stack([(seen(best + one) - seen(best - one)) / 2e-3 for one in step])
    return {
        "name": case.name,
        "width": WIDTH,
        "height": HEIGHT,
        "lens": None if lens.is_undistorted else dict(zip(LENS_NAMES, lens.numbers, strict=True)),
        "i_from_j": _in_pixels(expected).ravel().tolist(),
        "covariance": covariance.ravel().tolist(),
        "points_i": points_i.tolist(),
        "points_j": points_j.tolist(),
        "probe": PROBE[0].tolist(),
        "seen": seen(best).tolist(),
        "spread": (slopes @ posterior @ slopes.T).ravel().tolist(),
    }


LENS_NAMES = ("centre_x", "centre_y", "unit_px", "k1", "k2")


def _combine(
    expected: NDArray[np.float64],
    by_entry: NDArray[np.float64],
    units_i: NDArray[np.float64],
    units_j: NDArray[np.float64],
    sigma: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where the posterior is largest, in directions of the mosaic's own uncertainty, and its covariance there.

    By how much the mosaic's variance is larger than it says is what makes the landmarks most likely.
    """

    def off(along: NDArray[np.float64]) -> NDArray[np.float64]:
        seen = apply_map(expected @ expm(_matrix(along @ by_entry)), units_j)
        return ((seen - units_i) / sigma).ravel()

    def fit(scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = least_squares(
            lambda x: np.append(off(x), x / np.sqrt(scale)),
            np.zeros(len(by_entry)),
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            jac="3-point",
        )
        return found.x, found.jac[: 2 * len(units_j)]

    def unlikelihood(log_scale: float) -> float:
        scale = float(np.exp(log_scale))
        along, rows = fit(scale)
        predicted = scale * rows @ rows.T + np.eye(len(rows))
        innovation = off(along) - rows @ along
        return float(innovation @ np.linalg.solve(predicted, innovation) + np.linalg.slogdet(predicted)[1])

    # By the slope, because rounding hides where a minimum is: machines would differ in the fourth digit.
    def slope(log_scale: float) -> float:
        off_by = [unlikelihood(log_scale + steps * STEP) for steps in (-2, -1, 1, 2)]
        return (off_by[0] - 8.0 * off_by[1] + 8.0 * off_by[2] - off_by[3]) / (12.0 * STEP)

    near = float(minimize_scalar(unlikelihood, bounds=(0.0, 12.0), method="bounded").x)
    scale = 1.0 if near < 0.01 else float(np.exp(brentq(slope, near - 0.1, near + 0.1)))
    along, rows = fit(scale)
    inside = np.linalg.inv(rows.T @ rows + np.eye(len(along)) / scale)
    freedom = len(rows) - np.trace(inside @ rows.T @ rows)
    # Two degrees are imagined to have shown that the noise is what it is said to be.
    excess = max(1.0, (float(off(along) @ off(along)) + 2.0) / (freedom + 2.0))
    return along, excess * inside


def _matrix(entries: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(entries, 0.0).reshape(3, 3)


def _in_units(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return (points - OUTLINE.centre) / OUTLINE.unit


def _in_pixels(units: NDArray[np.float64]) -> NDArray[np.float64]:
    to_unit = np.vstack([OUTLINE.unit_from_pixels, [0.0, 0.0, 1.0]])
    pixels = np.linalg.solve(to_unit, units @ to_unit)
    return np.asarray(pixels / pixels[2, 2])


if __name__ == "__main__":
    FILE.write_text(json.dumps(examples(), indent=1) + "\n")
