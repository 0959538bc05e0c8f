"""Is it worth going on? The error now, a bound on it, and the error after some answers more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv

from smalti.suggestion.lessons import POINTS, Lessons, draw, shared_points
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.prospect import Prospect
from smalti.suggestion.sample import Sample
from smalti.suggestion.strategy import Smalti
from smalti.suggestion.survey import Seen
from smalti.suggestion.view import View

AHEAD = (5, 10, 20)
"""Answers after which the error is foretold."""

CONFIDENCE = 0.9

MODEL_VARIANCE = 0.005
"""Of the logarithm of the squared error: what a linear model and a sample of pairs leave out, some 4 % of the error."""

PAIRS_SAMPLED, PAIRS_OF_ERROR = 15_000, 2000
"""Pairs that stand for all others, and those drawn from them in proportion to what they add to the error."""

TINY = float(np.finfo(np.float64).tiny)

LEAST_PROGRESS = 0.1
"""Of the error, that the next twenty answers must be expected to remove to be worth their while."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the mosaic says of its own error, in px, without ground truth."""

    error_px: float  # RMS, over what frames that are likely to overlap both show
    bound_px: float  # above the real one nine times of ten
    lessons: Lessons | None  # None where no two frames are on one mosaic

    @classmethod
    def of(cls, view: View) -> Outlook:
        """Foretell."""
        prospect = Prospect.of(view)
        if not prospect.weight.any():
            return cls(0.0, 0.0, None)
        lessons = prospect.lessons(view)
        square = squared_error(view)
        # The square of the error is a sum of squared normal variables, much like a gamma variable of the same moments.
        shape = 1.0 / (lessons.variation + view.estimate.noise_variance + MODEL_VARIANCE)
        bound = math.sqrt(square * float(gammaincinv(shape, CONFIDENCE)) / shape)
        return cls(math.sqrt(square), bound, lessons)

    @cached_property
    def ahead_px(self) -> dict[int, float]:
        """The error after so many answers more, if they are the best ones and yes as often as is likely."""
        return self.look_ahead()

    @property
    def worth_going_on(self) -> bool:
        """Tell whether the next twenty answers are expected to change much."""
        return self.is_worth(self.ahead_px)

    def look_ahead(self, pause: Callable[[], None] = lambda: None) -> dict[int, float]:
        """Return `ahead_px`, which takes a while: `pause` is called after every answer that is supposed."""
        if self.lessons is None:
            return dict.fromkeys(AHEAD, self.error_px)
        left = [self.lessons.squared_error]
        for *_, after in Smalti().choose(self.lessons, max(AHEAD)):
            left.append(after.squared_error)
            pause()
        return {
            answers: self.error_px * math.sqrt(left[min(answers, len(left) - 1)] / max(left[0], TINY))
            for answers in AHEAD
        }

    def is_worth(self, ahead_px: Mapping[int, float]) -> bool:
        """Tell whether answers that leave so large an error change much."""
        return ahead_px[max(AHEAD)] < (1.0 - LEAST_PROGRESS) * self.error_px


def squared_error(view: View) -> float:
    """Return the mean squared error, px², over what pairs share that would get a yes, by the covariance of the maps."""
    sample = Sample.of(view, view.steady, PAIRS_SAMPLED)
    seen = Seen.of(view, sample.pairs)
    points, share = shared_points(seen.centres, view.outline)
    weight = sample.stands_for * Posterior.of(view).of_seen(seen) * share
    weight *= view.are_joined(sample.pairs)
    if not weight.any():
        return 0.0
    chosen, factor = draw(weight * seen.centres.spread, weight, PAIRS_OF_ERROR)
    covariances = view.covariance.of_relations(view.covariance.relations(seen.pairs[chosen], points[chosen]))
    # Of four points, the mean.
    return float(np.sum(factor**2 * np.trace(covariances, axis1=1, axis2=2))) / POINTS
