"""Frames that turn and grow or shrink from one to the next, with links that contradict each other."""

from __future__ import annotations

import numpy as np

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import fit_link
from smalti.geometry.affine import compose
from smalti.geometry.family import AFFINE, Family
from smalti.records import Pair, Transforms
from tests.worlds import OUTLINE, measured, spread_points


def turning(
    rng: np.random.Generator,
    frames: int,
    loops: int,
    family: Family = AFFINE,
    *,
    angle: float = np.pi / 2,
    scale: float = 0.3,
    contradiction: float = 5.0,
) -> Adjustment:
    """Make a camera that turns by up to `angle` and changes its height by up to `scale` a step, now and then.

    The places wander, so that they are passed again; loops are off by `contradiction` times the noise they tell.
    """
    truth = [np.eye(2, 3)]
    heading = 0.0
    for _ in range(frames - 1):
        heading += rng.normal(0.0, 0.4)
        shift = 30.0 * np.array([np.cos(heading), np.sin(heading)]) + rng.normal(0.0, 5.0, 2)
        sudden = family.name != "translation" and rng.random() < 0.2
        turn = rng.uniform(-angle, angle) if sudden else 0.0
        # Back towards one, or the sequence would end in a point.
        size = np.sqrt(abs(np.linalg.det(truth[-1][:, :2])))
        grown = np.exp(rng.uniform(-scale, scale)) / size**0.5 if sudden else 1.0
        linear = grown * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        truth.append(compose(truth[-1], np.column_stack([linear, shift])))
    places = np.array(truth)
    pairs = [Pair(n, n + 1) for n in range(frames - 1)]
    landmarks = [measured(rng, places, pair, spread_points(rng, 6), 1.0) for pair in pairs]
    apart = [Pair(i, j) for i in range(frames) for j in range(i + 2, frames)]
    for at in rng.choice(len(apart), size=loops, replace=False):
        elsewhere = moved(rng, places, apart[at].j, contradiction)
        landmarks.append(measured(rng, elsewhere, apart[at], spread_points(rng, 6), 1.0))
    return Adjustment(frames, OUTLINE, [fit_link(some, family) for some in landmarks], family=family)


def moved(rng: np.random.Generator, places: Transforms, frame: int, by: float) -> Transforms:
    """Return the places with one frame shifted by some pixels."""
    elsewhere = places.copy()
    elsewhere[frame, :, 2] += rng.normal(0.0, by, 2)
    return elsewhere
