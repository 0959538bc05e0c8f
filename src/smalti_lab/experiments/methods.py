"""The methods that are compared: Smalti's, and the paper's with each strategy that the paper names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.engine.robust_estimate import final_estimate
from smalti.errors import UnknownNameError
from smalti.geometry.homographies import family_named
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import linear_family_named
from smalti.geometry.outline import Outline
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import ExternalModel
from smalti.paper.paper_loop import PaperLoop
from smalti.records import Homographies, Landmarks, PairNumbers
from smalti_lab.comparison_strategies import PAPER_STRATEGIES, paper_strategy_named

Loop = ActiveLoop | PaperLoop

SMALTI = "smalti"
STRATEGIES = (SMALTI, *PAPER_STRATEGIES)
"""The first is a method of its own. With every other name, everything except the strategy is the paper's, literally."""


@dataclass(frozen=True, slots=True)
class Method:
    """A strategy, by its name, with the loop that belongs to it."""

    strategy: str
    family: str = "affine"  # of the maps

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise UnknownNameError("strategy", self.strategy, STRATEGIES)
        if self.strategy == SMALTI:
            family_named(self.family)
        else:
            linear_family_named(self.family)

    def start(
        self,
        frames: int,
        outline: Outline,
        chain: Iterable[Landmarks],
        *,
        external: ExternalModel | None = None,
        stop_rule: StopRule | None = None,
        only: PairNumbers | None = None,
    ) -> Loop:
        """Return the state before the first question."""
        if self.strategy == SMALTI:
            family = family_named(self.family)
            return ActiveLoop.start(
                frames, outline, chain, external=external, family=family, stop_rule=stop_rule, only=only
            )
        return PaperLoop.start(
            frames,
            outline,
            chain,
            external=external,
            strategy=paper_strategy_named(self.strategy),
            family=linear_family_named(self.family),
            stop_rule=stop_rule,
            only=only,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FrameMaps:
    """The maps of all frames."""

    mosaic_from_frame: Homographies  # (N, 3, 3), of undistorted pixels
    part: NDArray[np.int64]  # (N,): the mosaic of every frame
    lens: Lens

    @classmethod
    def of(cls, state: Loop) -> FrameMaps:
        """Take a method's own mosaic."""
        return cls(state.mosaic_from_frame, state.part, state.lens)

    @classmethod
    def delivered(cls, state: ActiveLoop) -> FrameMaps:
        """Take the mosaic that a build ends with: refined on all landmarks."""
        final = final_estimate(state.estimate)
        return cls(final.mosaic_from_frame, final.part, final.lens or state.lens)


Finish = Callable[[Loop], FrameMaps]
"""From a state to the mosaic that people get."""


def finish_each_its_own_way(state: Loop) -> FrameMaps:
    """Return the mosaic that a build of either method ends with."""
    return FrameMaps.delivered(state) if isinstance(state, ActiveLoop) else FrameMaps.of(state)


def finish_all_alike(start: Loop) -> Finish:
    """Return a finish that depends only on which pairs were answered: that of Smalti, for every strategy.

    The paper's mosaic is affine. To compare the questions alone, its answers are given to the engine of homographies,
    with the same links, lens, rejection and refinement as for Smalti's.
    """
    engine = (
        start
        if isinstance(start, ActiveLoop)
        else ActiveLoop.start(start.frames, start.outline, list(start.chain.values()))
    )

    def finish(state: Loop) -> FrameMaps:
        return FrameMaps.delivered(state if isinstance(state, ActiveLoop) else engine.replay(state.answers))

    return finish
