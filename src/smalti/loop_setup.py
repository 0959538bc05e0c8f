"""What a loop starts with: the chain, what it says by itself, the models, and when to stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from smalti.engine.equations import System
from smalti.engine.estimate import Estimate, begin
from smalti.engine.lens_estimation import find_lens
from smalti.engine.links import Link, fit_link
from smalti.geometry.homographies import PROJECTIVE, Family
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.overlap.external_model import ExternalModel
from smalti.records import Author, Landmarks, Pair, PairNumbers, as_numbers
from smalti.suggestion.strategy import Strategy

RELEARNED_SHARE = 0.05
"""If so large a share of the chain is rejected, its noise, camera and lens are learned again without these links."""


class StopReason(StrEnum):
    """Why the loop stops asking."""

    BUDGET = "budget"
    TARGET = "target"
    KNOWN = "known"
    ENOUGH = "enough"
    NOTHING_FOUND = "nothing found"
    NO_CANDIDATE = "no candidate"


@dataclass(frozen=True, slots=True)
class StopRule:
    """When to stop asking; None means never for that reason."""

    budget: int | None = None
    target_px: float | None = None
    when_enough: bool = False  # stop when further questions are not worth their time
    known_px: float | None = None  # stop when the 90 % bound is below this, even if parts may still be joined


@dataclass(frozen=True, eq=False)
class ChainEstimate:
    """What links of the chain say by themselves: their mosaic and the lens. Links of answers are fitted with it."""

    first: Estimate
    lens: Lens  # undistorts the landmarks of links
    _latest: dict[str, tuple[Landmarks, Link]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        frames: int,
        outline: Outline,
        chain: Iterable[Landmarks],
        family: Family,
        lens: Lens | None,
        reference: int | None,
    ) -> ChainEstimate:
        """Estimate the mosaic, and the lens unless it is given."""
        chain, lens_root = list(chain), None
        if lens is None:
            lens = Lens(outline)
            if family is PROJECTIVE:
                lens, lens_root = find_lens(chain, outline)
        links = [fit_link(landmarks, outline, lens, family) for landmarks in chain]
        system = System.of(frames, outline, family, links, reference, None if lens_root is None else lens)
        return cls(begin(system, lens_root), lens)

    def link_of(self, landmarks: Landmarks) -> Link:
        """Return the link of landmarks. The latest is kept, because answers are checked before they are recorded."""
        latest = self._latest.get("link")
        if latest is None or latest[0] is not landmarks:
            latest = landmarks, fit_link(landmarks, self.first.outline, self.lens, self.first.family)
            self._latest["link"] = latest
        return latest[1]


@dataclass(frozen=True, eq=False)
class LoopSetup:
    """Everything that is fixed before the first answer."""

    chain: Mapping[Pair, Landmarks]
    of_chain: ChainEstimate  # of the whole chain
    given_lens: Lens | None  # None if the lens is estimated
    untrained: ExternalModel
    pooled: ExternalModel  # `untrained`, pooled over neighbouring frames
    strategy: Strategy
    stop_rule: StopRule
    least_part: int = 1  # parts of fewer frames get no questions
    only: PairNumbers | None = None  # (n, 2): the only pairs that can be answered
    asked: Author = Author.MATCHER  # who is asked: a person can answer what the matcher could not
    relearned: dict[frozenset[Pair], ChainEstimate] = field(default_factory=dict)  # without some links, as needed

    @property
    def first(self) -> Estimate:
        """The estimate of the chain alone."""
        return self.of_chain.first

    def without(self, rejected: frozenset[Pair]) -> ChainEstimate:
        """Return the estimate of the chain without rejected links, so that nothing is learned from these.

        A few links in a long chain teach next to nothing; with so few, return the estimate of the whole chain.
        """
        if len(rejected) < RELEARNED_SHARE * len(self.chain):
            return self.of_chain
        if rejected not in self.relearned:
            kept = [landmarks for pair, landmarks in self.chain.items() if pair not in rejected]
            system = self.first.system
            self.relearned[rejected] = ChainEstimate.of(
                system.frames, system.outline, kept, system.family, self.given_lens, system.reference
            )
        return self.relearned[rejected]

    @cached_property
    def chain_order(self) -> list[Pair]:
        """The pairs of the chain, sorted."""
        return sorted(self.chain)

    @cached_property
    def chain_pairs(self) -> PairNumbers:
        """(n, 2): the pairs of the chain, sorted."""
        return as_numbers(self.chain_order)
