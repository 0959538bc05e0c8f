"""Is it worth going on? The error now, a bound on it, and the error after some answers more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincinv

from smalti.engine.covariance import Covariance
from smalti.engine.estimate import Estimate
from smalti.engine.noise import CHAIN, MATCHER, scatter
from smalti.engine.propagation import LEAST_CHECKED
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

MODEL_VARIANCE, OF_GROWTH = 0.005, 0.35
"""Of the logarithm of the squared error: what a linear model and a sample of pairs leave out, some 4 % of the error.
And where the chain errs by more than its neighbours tell, so much of the square of that logarithm: then something is
there that is not modelled, relief for instance. Of the misfit, which is told by the pairs that were matched and not by
all, the variance is as large as its square."""

PAIRS_SAMPLED, PAIRS_OF_ERROR = 15_000, 2000
"""Pairs that stand for all others, and those drawn from them in proportion to what they add to the error."""

LEAST_ERROR_PX = 0.1
"""However many landmarks agree: those of an interpolated image share an error of some hundredths of a pixel."""

AS_FORETOLD, LARGEST_SURPRISE = 5.0, 4.0
"""Loops that are taken to miss the mosaic by just as much as foretold, before any has told. Times that, what one loop
counts for at most."""

TINY = float(np.finfo(np.float64).tiny)

LEAST_PROGRESS = 0.1
"""Of the error, that the next twenty answers must be expected to remove to be worth their while."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the mosaic says of its own error, in px, without ground truth."""

    error_px: float  # RMS, over what frames that are likely to overlap both show
    bound_px: float  # above the real one nine times of ten
    lessons: Lessons | None  # None where no two frames are on one mosaic
    lasting_px: float = 0.0  # what is left of the error when every place is known

    @classmethod
    def of(cls, view: View) -> Outlook:
        """Foretell."""
        prospect, state = Prospect.of(view), view.estimate
        if not prospect.weight.any():
            return cls(0.0, 0.0, None)
        lessons = prospect.lessons(view)
        by_links, cautious = squared_errors(view)
        misfit = misfit_px(state) ** 2
        lasting = misfit + LEAST_ERROR_PX**2
        square = calibration(state) * by_links + lasting
        # The square of the error is a sum of squared normal variables, much like a gamma variable of the same moments.
        of_model = MODEL_VARIANCE + OF_GROWTH * math.log(state.knowledge.growth) ** 2 + misfit / square
        shape = 1.0 / (lessons.variation + state.noise_variance + of_model)
        bound = math.sqrt(square * float(gammaincinv(shape, CONFIDENCE)) / shape + cautious - by_links)
        return cls(math.sqrt(square), bound, lessons, math.sqrt(lasting))

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
        left = [self.error_px]
        for *_, after in Smalti().choose(self.lessons, max(AHEAD)):
            left.append(self.error_left_px(after.squared_error))
            pause()
        return {answers: left[min(answers, len(left) - 1)] for answers in AHEAD}

    def error_left_px(self, squared_error: float) -> float:
        """Return the error if answers leave so much of what the lessons say it is, px²."""
        share = 0.0 if self.lessons is None else squared_error / max(self.lessons.squared_error, TINY)
        return math.sqrt(self.lasting_px**2 + share * (self.error_px**2 - self.lasting_px**2))

    def is_worth(self, ahead_px: Mapping[int, float]) -> bool:
        """Tell whether answers that leave so large an error change much."""
        return ahead_px[max(AHEAD)] < (1.0 - LEAST_PROGRESS) * self.error_px


def calibration(state: Estimate) -> float:
    """Return by how many times as much as foretold loops miss the mosaic that the others make, squared.

    χ² counts all of a link's directions alike, and noise is learned by it. What people see are pixels: a landmark of a
    loop that is left out is off by (I - J C Jᵀ)⁻¹ r in units of its noise, of which the trace of that matrix is the
    expected square. Where neighbours err alike, errors are smooth, and places between loops are known better than
    independent noise of the same size would leave them.
    """
    loops = state.groups != CHAIN
    left = np.eye(state.check.known.shape[1]) - state.check.known[loops]
    values, vectors = np.linalg.eigh(left)
    checked = values > LEAST_CHECKED
    values = np.where(checked, values, 1.0)
    missed = np.einsum("lab,la->lb", vectors, state.solution.rows.residual[loops]) / values
    expected = np.sum(np.where(checked, 1.0 / values, 0.0), axis=1)
    squares = np.minimum(np.sum(np.where(checked, missed**2, 0.0), axis=1), LARGEST_SURPRISE * expected)
    # As if so many loops had missed it by just as much.
    usual = AS_FORETOLD * float(np.mean(expected)) if len(expected) else 1.0
    return float((squares.sum() + usual) / (expected.sum() + usual))


def misfit_px(state: Estimate) -> float:
    """Return by how much the maps of single pairs differ from each other beyond the scatter of their landmarks, RMS.

    Relief moves every pair's map by itself. However many links a mosaic has, its maps miss those of pairs by that.
    """
    system = state.system
    own = np.flatnonzero(state.groups == MATCHER)
    noise = state.knowledge.noise[MATCHER] if len(own) else state.local_noise
    chosen = [system.links[n] for n in (own if len(own) else system.every)]
    # Of a pair's map, where its landmarks are; some of a dense registration are hardly worth anything.
    variance = float(np.median([link.rank / np.sum(1.0 / link.sigma**2) for link in chosen]))
    return state.outline.unit * math.sqrt(max(noise**2 - scatter(system) ** 2, 0.0) * variance)


def squared_errors(view: View) -> tuple[float, float]:
    """Return the mean squared error, px², over what pairs share that would get a yes, by the covariance of the maps.

    The second number is that of the cautious one.
    """
    sample = Sample.of(view, view.steady, PAIRS_SAMPLED)
    seen = Seen.of(view, sample.pairs)
    points, share = shared_points(seen.centres, view.outline)
    weight = sample.stands_for * Posterior.of(view).of_seen(seen) * share
    weight *= view.are_joined(sample.pairs)
    if not weight.any():
        return 0.0, 0.0
    chosen, factor = draw(weight * seen.centres.spread, weight, PAIRS_OF_ERROR)

    def mean_square(covariance: Covariance) -> float:
        covariances = covariance.of_relations(covariance.relations(seen.pairs[chosen], points[chosen]))
        # Of four points, the mean.
        return float(np.sum(factor**2 * np.trace(covariances, axis1=1, axis2=2))) / POINTS

    square = mean_square(view.estimate.covariance)
    return square, square if view.estimate.doubt is None else mean_square(view.estimate.cautious_covariance)
