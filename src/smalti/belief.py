"""Which links to believe: each is held against what the others predict before it may bend the mosaic.

A link that fails is *held*: kept, not used. It is believed as soon as it agrees, or once a second held link agrees with
it where both contradict the mosaic: two strangers do not tell the same lie. From time to time all links, believed and
held, are judged anew by all of them at once. What a person says is believed at once and never held: it is for people to
question it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.consensus import find_consensus
from smalti.adjustment.innovation import Agreement
from smalti.adjustment.link import Link
from smalti.adjustment.refinement import refine
from smalti.records import Landmarks, Pair

LARGEST_CHI2 = 200.0
"""χ² of 6 degrees that a link may show where the median is as it should be. Far out, because honest links have heavy
tails: on the real sets, where relief bends them, the worst honest one shows 33 times the median. A wrong map that
matters is off by ten times what the right ones are, or a hundred times their χ²."""

MEDIAN_CHI2 = 5.348
"""Of 6 degrees of freedom."""

SURPRISES_REMEMBERED = 15
FIRST_SURPRISES = 4 * (20 * MEDIAN_CHI2,)
"""What a link may be expected to show before any has: a chain drifts by more than its noise where perspective or relief
bends every link the same way."""

ENOUGH_GAIN = 1e-4
"""To judge by, a mosaic need not be refined to the last digit."""

WITNESSES_TRIED = 12
"""Held links, latest first, that a new one is held against."""


@dataclass(frozen=True, eq=False)
class Belief:
    """A set of believed links, adjusted, and of held ones. A value, like the adjustment in it."""

    adjustment: Adjustment
    held: Mapping[Pair, Link] = field(default_factory=dict)
    largest_chi2: float = LARGEST_CHI2
    surprises: tuple[float, ...] = FIRST_SURPRISES  # χ² of the latest links when they came
    near: Agreement | None = None  # of these very links, or of those before the latest ones, to begin from

    @cached_property
    def agreement(self) -> Agreement:
        """The refined mosaic of the believed links, to hold links against."""
        near = self.near
        if near is not None and near.adjustment is self.adjustment:
            return near
        start = None if near is None else near.refined.mosaic_from_frame
        return Agreement(self.adjustment, refine(self.adjustment, start, smallest_gain=ENOUGH_GAIN))

    def receive(self, link: Link) -> Belief:
        """Return the state with a new link believed, or held."""
        latest = (*self.surprises, self.agreement.of_new(link))[-SURPRISES_REMEMBERED:]
        state = replace(self, surprises=latest, near=self.agreement)
        if state._agrees(link):
            return state._believe(link)._reconsider()
        for witness in list(state.held.values())[: -WITNESSES_TRIED - 1 : -1]:
            with_witness = state._believe(witness)
            if with_witness._agrees(link):
                return with_witness._believe(link)._reconsider()
        return replace(state, held={**state.held, link.pair: link})

    def insist(self, link: Link) -> Belief:
        """Return the state with a link believed, whatever the others say."""
        latest = (*self.surprises, self.agreement.of_new(link))[-SURPRISES_REMEMBERED:]
        return replace(self, surprises=latest)._believe(link)._reconsider()

    def forget(self, pair: Pair) -> Belief:
        """Return the state without a link, believed or held."""
        if pair in self.held:
            return replace(self, held={other: link for other, link in self.held.items() if other != pair})
        return replace(self, adjustment=self.adjustment.remove(pair))

    def settle(self, landmarks: Mapping[Pair, Landmarks], insisted: Set[Pair] = frozenset()) -> Belief:
        """Judge all links anew, believed and held, by all of them at once; frames stay connected.

        Those insisted on are believed even if they contradict the others.
        """
        everything = self.adjustment
        for link in self.held.values():
            everything = everything.add(link)
        consensus = find_consensus(everything, landmarks)
        held: dict[Pair, Link] = {}
        for pair in consensus.contradicting:
            if pair not in insisted and not everything.needed_of([pair]):
                held[pair] = everything.links[pair]
                everything = everything.remove(pair)
        return replace(self, adjustment=everything, held=held)

    def chi2(self) -> dict[Pair, float]:
        """Return how strongly each link, believed or held, contradicts the others."""
        believed = {pair: self.agreement.of_part(pair) for pair in self.adjustment.links}
        return {**believed, **{pair: self.agreement.of_new(link) for pair, link in self.held.items()}}

    def _agrees(self, link: Link) -> bool:
        return self.agreement.of_new(link) <= self._limit(self.surprises)

    def _limit(self, seen: Sequence[float]) -> float:
        """Return the χ² that may pass, where links are as surprising as those seen; the median ignores the lies."""
        return self.largest_chi2 * max(1.0, float(np.median(seen)) / MEDIAN_CHI2)

    def _believe(self, link: Link) -> Belief:
        held = {pair: other for pair, other in self.held.items() if pair != link.pair}
        return replace(self, adjustment=self.adjustment.add(link), held=held, near=self.agreement)

    def _reconsider(self) -> Belief:
        """Believe the held links that agree by now."""
        state = self
        for link in self.held.values():
            if state._agrees(link):
                state = state._believe(link)
        return state
