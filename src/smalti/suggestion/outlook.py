"""Is it worth going on? The error now, a bound on it, and the error after some answers more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from smalti.suggestion.lessons import Lessons, shared_points
from smalti.suggestion.prediction import predicted_error
from smalti.suggestion.prospect import Prospect
from smalti.suggestion.strategies.smalti import Smalti
from smalti.suggestion.view import View

AHEAD = (5, 10, 20)
"""Answers after which the error is foretold."""

CONFIDENCE = 0.9

MODEL_VARIANCE = 0.06
"""Of the logarithm of the squared error: what a linear model and a sample of pairs leave out, a tenth of the error."""

LEAST_PROGRESS = 0.1
"""Of the error, that the next twenty answers must be expected to remove to be worth their while."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the mosaic says of its own error, in px, without ground truth."""

    error_px: float  # RMS, over what frames that are likely to overlap both show
    bound_px: float  # above the real one nine times of ten
    lessons: Lessons | None  # None where no two frames are on one mosaic

    @classmethod
    def of(cls, view: View, part: NDArray[np.int64] | None = None, noise_variance: float = 0.0) -> Outlook:
        """Foretell; `noise_variance` is that of the logarithm of the links' variance, as far as it was learned."""
        prospect = Prospect.of(view, part)
        if not prospect.weight.any():
            return cls(0.0, 0.0, None)
        lessons = prospect.lessons(view)
        square = predicted_error(view, part) ** 2 * _beside_the_middle(view, prospect)
        # The square of the error is a sum of squared normal variables, much like a gamma variable of the same moments.
        shape = 1.0 / (lessons.variation + noise_variance + MODEL_VARIANCE)
        bound = math.sqrt(square * float(gammaincinv(shape, CONFIDENCE)) / shape)
        return cls(math.sqrt(square), bound, lessons)

    @cached_property
    def ahead_px(self) -> dict[int, float]:
        """The error after so many answers more, if they are the best ones and yes as often as is likely."""
        if self.lessons is None:
            return dict.fromkeys(AHEAD, self.error_px)
        left = [self.lessons.squared_error]
        left += [after.squared_error for *_, after in Smalti().choose(self.lessons, max(AHEAD))]
        return {answers: self.error_px * math.sqrt(left[min(answers, len(left) - 1)] / left[0]) for answers in AHEAD}

    @property
    def worth_going_on(self) -> bool:
        """Tell whether the next twenty answers are expected to change much."""
        return self.ahead_px[max(AHEAD)] < (1.0 - LEAST_PROGRESS) * self.error_px


def _beside_the_middle(view: View, prospect: Prospect) -> float:
    """Return how much larger the squared error is over all of what pairs share than at the centres of their frames.

    Over a grid of three by three points, the corners among them, as in the paper's error.
    """
    counted = np.flatnonzero(prospect.weight)
    seen, weight = prospect.mattering[counted], prospect.weight[counted]
    points = shared_points(seen.centres, view.adjustment.outline)[0]
    points[:, [0, 1], [0, 1]] *= math.sqrt(2.0)  # so much farther than points from anywhere such a grid spreads
    covariances = view.covariance.of_relations(view.covariance.relations(seen.pairs, points))
    at_centres = seen.centres.cov[:, :, ::2].sum(axis=(1, 2)) / 2.0
    return float(np.sum(weight * np.trace(covariances, axis1=1, axis2=2)) / np.sum(weight * at_centres))
