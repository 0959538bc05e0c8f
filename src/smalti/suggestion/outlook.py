"""Is it worth going on? The error now, a bound on it, and the error after some answers more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from smalti.suggestion.lessons import Lessons, draw, shared_points
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.prediction import Sample
from smalti.suggestion.prospect import Prospect
from smalti.suggestion.strategies.smalti import Smalti
from smalti.suggestion.survey import Seen
from smalti.suggestion.view import View

AHEAD = (5, 10, 20)
"""Answers after which the error is foretold."""

CONFIDENCE = 0.9

MODEL_VARIANCE, MISFIT_VARIANCE = 0.005, 0.2
"""Of the logarithm of the squared error: what a linear model and a sample of pairs leave out, some 4 % of the error;
and what is not known of the misfit, as far as the error is misfit."""

PAIRS_SAMPLED, PAIRS_OF_ERROR = 15_000, 2000
"""Pairs that stand for all others, and those drawn from them in proportion to what they add to the error."""

LEAST_PROGRESS = 0.1
"""Of the error, that the next twenty answers must be expected to remove to be worth their while."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the mosaic says of its own error, in px, without ground truth."""

    error_px: float  # RMS, over what frames that are likely to overlap both show
    bound_px: float  # above the real one nine times of ten
    misfit_px: float  # of the error, what no answer removes: the maps cannot follow what was measured
    lessons: Lessons | None  # None where no two frames are on one mosaic

    @classmethod
    def of(
        cls,
        view: View,
        part: NDArray[np.int64] | None = None,
        noise_variance: float = 0.0,
    ) -> Outlook:
        """Foretell; `noise_variance` is that of the logarithm of the links' variance, as far as it was learned."""
        prospect = Prospect.of(view, part)
        if not prospect.weight.any():
            return cls(0.0, 0.0, 0.0, None)
        lessons = prospect.lessons(view)
        square = squared_error(view, part)
        total = square + view.misfit_px**2
        # The square of the error is a sum of squared normal variables, much like a gamma variable of the same moments.
        of_noise = square / total
        unknown = MODEL_VARIANCE + MISFIT_VARIANCE * (1.0 - of_noise)
        shape = 1.0 / ((lessons.variation + noise_variance) * of_noise**2 + unknown)
        bound = math.sqrt(total * float(gammaincinv(shape, CONFIDENCE)) / shape)
        return cls(math.sqrt(total), bound, view.misfit_px, lessons)

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
        square = self.error_px**2 - self.misfit_px**2
        return {
            answers: math.sqrt(square * left[min(answers, len(left) - 1)] / left[0] + self.misfit_px**2)
            for answers in AHEAD
        }

    def is_worth(self, ahead_px: Mapping[int, float]) -> bool:
        """Tell whether answers that leave so large an error change much."""
        return ahead_px[max(AHEAD)] < (1.0 - LEAST_PROGRESS) * self.error_px


def squared_error(view: View, part: NDArray[np.int64] | None = None) -> float:
    """Return the mean squared error, px², over what pairs share that would get a yes, by the covariance of the maps.

    With `part` (N,), the mosaic of every frame, pairs of two mosaics do not count.
    """
    sample = Sample.of(view, view.steady, PAIRS_SAMPLED)
    seen = Seen.of(view, sample.pairs)
    points, share = shared_points(seen.centres, view.adjustment.outline)
    weight = sample.stands_for * Posterior.of(view).of_seen(seen) * share
    if part is not None:
        i, j = sample.pairs.T
        weight *= part[i] == part[j]
    chosen, factor = draw(weight * seen.centres.spread, weight, PAIRS_OF_ERROR)
    covariances = view.covariance.of_relations(view.covariance.relations(seen.pairs[chosen], points[chosen]))
    return float(np.sum(factor**2 * np.trace(covariances, axis1=1, axis2=2)))
