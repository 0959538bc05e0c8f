"""What a replay tells: the same answers in several orders, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smalti.records import Pair, Verdict

AS_ASKED = "as asked"
"""The order in which the questions were really answered."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The same answers in several orders, the one in which they were really given first."""

    orders: tuple[Order, ...]

    @property
    def as_asked(self) -> Order:
        """The order in which the answers were really given."""
        return self.orders[0]


@dataclass(frozen=True, slots=True)
class Order:
    """The answers in one order; a strategy that has nothing more to ask ends before the last."""

    name: str
    steps: tuple[Step, ...]  # the n-th after n answers

    def answers_until_predicted(self, px: float) -> int | None:
        """Return after how many answers the predicted error stays at `px` or below, None if it never does."""
        return _stays_from([step.predicted_error_px for step in self.steps], px)

    def answers_until_alike(self, px: float) -> int | None:
        """Return after how many answers the mosaic stays within `px` of the final one, None if it never does."""
        return _stays_from([step.difference_px for step in self.steps], px)


@dataclass(frozen=True, slots=True)
class Step:
    """Where things stand after an answer."""

    pair: Pair | None  # in the numbers of the source; None before the first answer
    verdict: Verdict | None
    predicted_error_px: float
    difference_px: float  # to the final mosaic, see `Difference`


def _stays_from(values: Sequence[float], limit: float) -> int | None:
    above = np.flatnonzero(np.asarray(values) > limit)
    first = int(above[-1]) + 1 if len(above) else 0
    return first if first < len(values) else None
