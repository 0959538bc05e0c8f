"""An agent that knows the truth, and blurs it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.affine import apply, compose, invert
from smalti.geometry.outline import Outline
from smalti.records import Answer, Landmarks, Pair, Points, Transforms

TOLERANCE = 1e-9
"""A control point that is on the border in exact arithmetic counts as inside."""


class OracleAgent:
    """Answers from the true maps, with normal noise of `sigma` pixels on the points of i.

    Two frames overlap when at least three control points of j that are not on one line fall inside i. The noise of
    a pair is drawn from (seed, i, j) alone: whoever asks, and whenever, gets the same landmarks.
    """

    def __init__(
        self,
        mosaic_from_frame: Transforms,
        outline: Outline,
        control_points: Points,
        *,
        sigma: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.mosaic_from_frame = mosaic_from_frame
        self.outline = outline
        self.control_points = control_points
        self.sigma = sigma
        self.seed = seed

    def answer(self, pair: Pair) -> Answer:
        """Say yes with noisy landmarks, or no."""
        exact = self.exact_landmarks(pair)
        if exact is None:
            return Answer.no(pair)
        rng = np.random.default_rng([self.seed, pair.i, pair.j])
        noise: NDArray[np.float64] = rng.normal(0.0, self.sigma, size=exact.points_i.shape)
        return Answer.yes(Landmarks(pair, exact.points_i + noise, exact.points_j, self.sigma))

    def exact_landmarks(self, pair: Pair) -> Landmarks | None:
        """Return the control points that both frames show, without noise, or None if they do not overlap."""
        maps = self.mosaic_from_frame
        i_from_j = compose(invert(maps[pair.i]), maps[pair.j])
        points_i = apply(i_from_j, self.control_points)
        inside = self.outline.contains(points_i, TOLERANCE)
        landmarks = Landmarks(pair, points_i[inside], self.control_points[inside], self.sigma)
        if not landmarks.determine_affine:
            return None
        return landmarks
