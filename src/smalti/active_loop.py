"""The active loop: suggest a pair, record what an agent says of it, suggest the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.agents.agent import Agent, ExpectingAgent, ask
from smalti.answered_loop import AnsweredLoop
from smalti.engine.covariance import Covariance
from smalti.engine.equations import System
from smalti.engine.estimate import Estimate, begin
from smalti.engine.lens_estimation import find_lens
from smalti.engine.link_confirmation import hanging_frames
from smalti.engine.links import Link, fit_link
from smalti.engine.robust_estimate import estimate
from smalti.engine.variance_components import MATCHER, PERSON
from smalti.errors import ModelError, PairError
from smalti.geometry.homographies import PROJECTIVE, Family, FamilyName, family_named
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.notebook_html import draw_card, say_answers, say_error
from smalti.overlap.external_model import ExternalModel, NoExternalModel, pairwise
from smalti.records import Answer, Author, Expectation, Homographies, Landmarks, Pair, PairNumbers, Suggestion, Verdict
from smalti.suggestion.appearance_evidence import pooled
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.predicted_error import Prediction
from smalti.suggestion.state_view import CLOSEST_ASKED, Answered, GivenUp, View
from smalti.suggestion.strategy import JointStrategy, Smalti, Strategy

FEWEST_REFUSALS, MOST_REFUSALS = 6, 60
"""Refusals, two more for every frame it has, after which a part that nothing joins is not asked about any more, nor
frames that hang on a doubted link."""

ALIKE_WITHIN = 3
"""Pairs whose frames are this near teach much the same."""

CANDIDATES_OF_BATCH = 50

Reference = int | Literal["auto"]


class StopReason(StrEnum):
    """Why the loop asks no more."""

    BUDGET = "budget"
    TARGET = "target"
    NO_CANDIDATE = "no candidate"


@dataclass(frozen=True, slots=True)
class StopRule:
    """When to stop asking; None means never for that reason."""

    budget: int | None = None
    target_px: float | None = None


@dataclass(frozen=True, eq=False)
class Ground:
    """What is there before the first answer, and does not change."""

    chain: Mapping[Pair, Landmarks]
    first: Estimate  # of the chain alone
    lens: Lens  # through which the landmarks of links are straightened
    untrained: ExternalModel
    pooled: ExternalModel  # the same by what is seen around frames
    strategy: Strategy
    stop_rule: StopRule
    least_part: int = 1
    only: PairNumbers | None = None

    @cached_property
    def chain_order(self) -> list[Pair]:
        """The pairs of the chain, in their order."""
        return sorted(self.chain)

    @cached_property
    def chain_pairs(self) -> PairNumbers:
        """The same as numbers."""
        return as_numbers(self.chain_order)


@dataclass(frozen=True, eq=False)
class ActiveLoop(AnsweredLoop[Link]):
    """The state after some answers.

    A value: `record` returns the next state and leaves this one as it is. It is the same loop for a program and for a
    person; only who answers differs. The mosaic is computed when somebody looks at it, from the set of answers, so that
    answers that come together are taken in together, and their order does not matter, to the last bit.
    """

    ground: Ground
    answers: tuple[Answer, ...] = ()
    links: Mapping[Pair, Link] = field(default_factory=dict)  # of every yes
    known: Estimate | None = None  # that of these links, if it was computed before

    @classmethod
    def start(
        cls,
        frames: int,
        outline: Outline,
        chain: Iterable[Landmarks],
        *,
        external: ExternalModel | None = None,
        strategy: Strategy | None = None,
        family: Family | FamilyName = PROJECTIVE,
        lens: Lens | None = None,
        reference: Reference = "auto",
        stop_rule: StopRule | None = None,
        least_part: int = 1,
        only: PairNumbers | None = None,
    ) -> ActiveLoop:
        """Begin with the pairs registered so far.

        Frames that nothing joins are mosaics of their own until an answer joins them; those of fewer than `least_part`
        frames are not asked about, unless most frames are in such parts. Where only some pairs can be answered, `only`
        (n, 2) are they. The `lens` is found unless it is given. The mosaic is seen from the `reference`
        frame, by default the middle one of every part.
        """
        family = family_named(family) if isinstance(family, str) else family
        by_pair: dict[Pair, Landmarks] = {}
        for landmarks in chain:
            landmarks.pair.check_within(frames)
            if landmarks.pair in by_pair:
                raise PairError(f"pair {landmarks.pair} is given twice: forget the earlier answer first")
            by_pair[landmarks.pair] = landmarks
        if external is None:
            external = NoExternalModel(frames)
        known = pairwise(external).frames
        if known != frames:
            raise ModelError(f"the external model speaks of {known} frames, the sequence has {frames}")
        lens_root = None
        if lens is None:
            lens = Lens(outline)
            if family is PROJECTIVE:
                lens, lens_root = find_lens(list(by_pair.values()), outline)
        links = [fit_link(landmarks, outline, lens, family) for landmarks in by_pair.values()]
        seen_from = None if reference == "auto" else reference
        system = System.of(frames, outline, family, links, seen_from, None if lens_root is None else lens)
        first = begin(system, lens_root)
        ground = Ground(
            chain=by_pair,
            first=first,
            lens=lens,
            untrained=external,
            pooled=pooled(external, first, as_numbers(sorted(by_pair))),
            strategy=Smalti() if strategy is None else strategy,
            stop_rule=StopRule() if stop_rule is None else stop_rule,
            least_part=least_part,
            only=only,
        )
        return cls(ground)

    @cached_property
    def estimate(self) -> Estimate:
        """The mosaic: maps, covariance, noise, camera, and what is rejected."""
        return self.known or estimate(self.ground.first, list(self.links.values()), self.insisted)

    @property
    def frames(self) -> int:
        """N."""
        return self.ground.first.frames

    @property
    def outline(self) -> Outline:
        """Of every frame."""
        return self.ground.first.outline

    @property
    def lens(self) -> Lens:
        """Through which the frames were seen, as far as answers have told."""
        return self.estimate.lens or self.ground.lens

    @property
    def strategy(self) -> Strategy:
        """Who ranks the pairs."""
        return self.ground.strategy

    @property
    def stop_rule(self) -> StopRule:
        """When to stop asking."""
        return self.ground.stop_rule

    @property
    def chain(self) -> Mapping[Pair, Landmarks]:
        """The pairs that were registered before the first question."""
        return self.ground.chain

    @property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): from straight pixels of a frame to those of its part's reference frame, levelled."""
        return self.estimate.mosaic_from_frame

    @property
    def part(self) -> NDArray[np.int64]:
        """(N,): the mosaic of every frame, the largest first."""
        return self.estimate.part

    @property
    def covariance(self) -> Covariance:
        """How surely frames lie to each other."""
        return self.estimate.covariance

    @property
    def rejected(self) -> Mapping[Pair, Link]:
        """The links that contradict the others: kept, not used."""
        return self.estimate.rejected

    @property
    def external(self) -> ExternalModel:
        """The external model, trained on the chain and the answers so far."""
        return self.view.external

    @cached_property
    def view(self) -> View:
        """What the strategy sees."""
        ground = self.ground
        settled = np.concatenate([ground.chain_pairs, as_numbers(answer.pair for answer in self.answers)])
        answered = Answered(settled, self._refused, self._pairs(Verdict.YES), self._pairs(Verdict.NO))
        return View(
            self.estimate,
            ground.untrained,
            answered,
            self._given_up,
            ground.only,
            ground.pooled,
            conservative=self._confirms(answered.apart),
        )

    @property
    def predicted_error_px(self) -> float:
        """The error of the mosaic, predicted without ground truth; of every part where nothing joins them."""
        return self.prediction.error_px

    @property
    def error_bound_px(self) -> float:
        """What the error is below nine times of ten."""
        return self.prediction.bound_px

    @cached_property
    def prediction(self) -> Prediction:
        """The error now and after the next answers, and whether these are worth while."""
        return Prediction.of(self.view)

    @cached_property
    def posterior(self) -> Posterior:
        """How likely any pair is to be answered yes."""
        return Posterior.of(self.view)

    def likely(self, pair: Pair) -> Suggestion:
        """Say of any pair how likely it is to overlap, by what, and how well it is known."""
        pair.check_within(self.frames)
        return Suggestion(pair, 0.0, reasons=self.posterior.reasons(pair))

    def expect(self, pair: Pair) -> Expectation:
        """Say where a pair's frames are thought to lie to each other, in pixels as they are seen, and how surely."""
        pair.check_within(self.frames)
        if self.part[pair.i] != self.part[pair.j]:
            return Expectation(np.eye(3), np.inf)
        i_from_j, _ = self.covariance.expect(pair.i, pair.j)
        _, (xx, xy, yy) = self.covariance.of_pairs(as_numbers([pair])).cov[0]
        largest = float(np.linalg.eigvalsh([[xx, xy], [xy, yy]])[-1])
        return Expectation(i_from_j, float(np.sqrt(max(largest, 0.0))))

    def link_of(self, landmarks: Landmarks) -> Link:
        """Return landmarks as the engine takes them."""
        return fit_link(landmarks, self.outline, self.ground.lens, self.ground.first.family)

    def surprise(self, landmarks: Landmarks, author: Author) -> float:
        """Return χ² of 8 degrees of a yes against what is known; 0 where nothing is."""
        group = PERSON if author is Author.PERSON else MATCHER
        return self.estimate.surprise(self.link_of(landmarks), group)

    def stop_reason(self) -> StopReason | None:
        """Say why to stop now, or None to go on."""
        rule = self.stop_rule
        if rule.budget is not None and len(self.answers) >= rule.budget:
            return StopReason.BUDGET
        if rule.target_px is not None and self.error_bound_px <= rule.target_px and not self._joinable():
            return StopReason.TARGET
        return None if self.best is not None else StopReason.NO_CANDIDATE

    def _after(self, answers: tuple[Answer, ...], links: Mapping[Pair, Link]) -> ActiveLoop:
        known = self.known or self.__dict__.get("estimate") if links is self.links else None
        return replace(self, answers=answers, links=links, known=known)

    def run(self, agent: Agent, batch: int = 1) -> Iterator[ActiveLoop]:
        """Ask `agent` until there is a reason to stop; yield the state after every answer.

        With a `batch`, so many questions that are not alike are asked before the next are chosen.
        """
        state = self
        while state.stop_reason() is None:
            chosen_by = state
            budget = state.stop_rule.budget
            left = batch if budget is None else min(batch, budget - len(state.answers))
            for suggestion in chosen_by._unlike(left):
                expected = chosen_by.expect(suggestion.pair) if isinstance(agent, ExpectingAgent) else None
                state = state.record(ask(agent, suggestion.pair, expected))
                yield state

    def _repr_html_(self) -> str:
        """Show the numbers that matter in a notebook."""
        verdicts = [answer.verdict for answer in self.answers]
        best, reason = self.best, self.stop_reason()
        rows = [
            ("frames", str(self.frames)),
            ("parts", str(int(self.part.max()) + 1)),
            ("predicted error", say_error(self.predicted_error_px, self.error_bound_px)),
            ("questions asked", say_answers(*(verdicts.count(verdict) for verdict in Verdict))),
            ("rejected links", str(len(self.rejected))),
            ("best next pair", "none is left" if best is None else f"{best.pair.i} and {best.pair.j}"),
            ("reason to stop", "none" if reason is None else reason.value),
        ]
        return draw_card("Active loop", rows)

    def _unlike(self, count: int) -> list[Suggestion]:
        """Return the best suggestions of which no two join the same neighbourhoods."""
        if count == 1:
            return [] if self.best is None else [self.best]
        if isinstance(self.strategy, JointStrategy) and self.strategy.joint:
            return self.suggest(count)
        chosen: list[Suggestion] = []
        for suggestion in self.suggest(CANDIDATES_OF_BATCH * count):
            pair = suggestion.pair
            alike = any(max(abs(pair.i - other.pair.i), abs(pair.j - other.pair.j)) <= ALIKE_WITHIN for other in chosen)
            if not alike:
                chosen.append(suggestion)
            if len(chosen) == count:
                break
        return chosen

    @cached_property
    def _refused(self) -> PairNumbers:
        """The pairs that got no yes."""
        return as_numbers(answer.pair for answer in self.answers if answer.landmarks is None)

    def _joinable(self) -> bool:
        """Tell whether parts that nothing joins may still be asked about."""
        if self._given_up is None:
            return False
        part = np.where(self._given_up.given_up[self._given_up.part], -1, self._given_up.part)
        sizes = np.bincount(part[part >= 0])
        between = (np.sum(sizes) ** 2 - np.sum(sizes**2)) // 2  # pairs of frames of different parts
        known = np.unique(np.concatenate([self.view.settled, self.view.linked]), axis=0)
        consecutive = np.column_stack([np.arange(len(part) - 1), np.arange(1, len(part))])
        barred = np.concatenate([known[known[:, 1] - known[:, 0] >= CLOSEST_ASKED], consecutive])
        first, second = part[barred].T
        return bool(between > np.sum((first != second) & (first >= 0) & (second >= 0)))

    def _confirms(self, refused: PairNumbers) -> bool:
        """Tell whether to ask about frames that hang on a doubted link: until they were refused often enough."""
        if self.estimate.doubt is None:
            return False
        hanging = hanging_frames(self.frames, self.estimate.system.ends)
        in_vain = int(np.sum(hanging[refused].any(axis=1)))
        return in_vain < min(FEWEST_REFUSALS + 2 * int(np.sum(hanging)), MOST_REFUSALS)

    @cached_property
    def _given_up(self) -> GivenUp | None:
        """The parts that are too small or were refused often enough, None if there is one mosaic.

        Nothing is as uncertain as what nothing joins: without an end to it, frames that match nothing would be asked
        about for ever.
        """
        part = self.part
        if not part.any():
            return None
        sizes = np.bincount(part)
        refused = np.zeros(len(sizes), dtype=np.int64)
        for i, j in self._pairs(Verdict.NO):
            if part[i] != part[j]:
                refused[[part[i], part[j]]] += 1
        given_up = refused >= np.minimum(FEWEST_REFUSALS + 2 * sizes, MOST_REFUSALS)
        small = sizes < self.ground.least_part
        if 2 * sizes[small].sum() <= len(part):
            given_up |= small
        given_up[np.argmax(sizes)] = False
        return GivenUp(part, given_up)

    def _pairs(self, verdict: Verdict) -> PairNumbers:
        """Return the pairs of a verdict; of a yes, those that are accepted, and the chain."""
        rejected = self.rejected
        pairs = as_numbers(
            answer.pair for answer in self.answers if answer.verdict is verdict and answer.pair not in rejected
        )
        if verdict is not Verdict.YES:
            return pairs
        accepted = [pair not in rejected for pair in self.ground.chain_order]
        return np.concatenate([pairs, self.ground.chain_pairs[accepted]])


def as_numbers(pairs: Iterable[Pair]) -> PairNumbers:
    """Return pairs as an array (n, 2)."""
    return np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)
