"""The active loop: suggest a pair, record what an agent says of it, suggest the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment, Reference
from smalti.adjustment.link import fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import Refinement, refine
from smalti.agents.agent import Agent
from smalti.errors import ModelError, PairError
from smalti.geometry.family import AFFINE, Family
from smalti.geometry.outline import Outline
from smalti.overlap.external import ExternalModel, NoExternalModel
from smalti.records import Answer, Landmarks, Pair, Suggestion, Verdict
from smalti.suggestion.prediction import predicted_error
from smalti.suggestion.strategies import Strategy
from smalti.suggestion.strategies.paper import Paper
from smalti.suggestion.view import View


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
class ActiveLoop:
    """The state after some answers.

    A value: `record` returns the next state and leaves this one as it is. It is the same loop for a program and for a
    person; only who answers differs. Equal answers in equal order give equal states, to the last bit.
    """

    covariance: LocalCovariance
    untrained: ExternalModel
    strategy: Strategy
    stop_rule: StopRule
    chain: frozenset[Pair]
    answers: tuple[Answer, ...] = ()

    @classmethod
    def start(
        cls,
        frames: int,
        outline: Outline,
        chain: Iterable[Landmarks],
        *,
        external: ExternalModel | None = None,
        strategy: Strategy | None = None,
        family: Family = AFFINE,
        reference: Reference = 0,
        stop_rule: StopRule | None = None,
    ) -> ActiveLoop:
        """Begin with the pairs registered so far, each frame in one of them at least."""
        links = [fit_link(landmarks, family) for landmarks in chain]
        adjustment = Adjustment(frames, outline, links, family=family, reference=reference)
        if external is None:
            external = NoExternalModel(frames)
        shape = external.probabilities().shape
        if shape != (frames, frames):
            raise ModelError(f"the external model speaks of {shape[0]} frames, the sequence has {frames}")
        return cls(
            covariance=LocalCovariance(adjustment),
            untrained=external,
            strategy=Paper() if strategy is None else strategy,
            stop_rule=StopRule() if stop_rule is None else stop_rule,
            chain=frozenset(adjustment.links),
        )

    @property
    def adjustment(self) -> Adjustment:
        """The links and the linear mosaic, which asks."""
        return self.covariance.adjustment

    @cached_property
    def refined(self) -> Refinement:
        """The mosaic that people see."""
        return refine(self.adjustment)

    @cached_property
    def external(self) -> ExternalModel:
        """The external model, trained on the chain and the answers so far."""
        return self.untrained.learn(self._pairs(Verdict.YES), self._pairs(Verdict.NO))

    @cached_property
    def view(self) -> View:
        """What the strategy sees."""
        settled = frozenset(answer.pair for answer in self.answers)
        return View(self.covariance, self.external, settled)

    @cached_property
    def predicted_error_px(self) -> float:
        """The error of the mosaic, predicted without ground truth."""
        return predicted_error(self.view)

    def suggest(self, top: int = 1) -> list[Suggestion]:
        """Return the `top` pairs most worth asking, best first; none where no candidate is left."""
        return self.strategy.rank(self.view, top)

    def stop_reason(self) -> StopReason | None:
        """Say why to stop now, or None to go on."""
        rule = self.stop_rule
        if rule.budget is not None and len(self.answers) >= rule.budget:
            return StopReason.BUDGET
        if rule.target_px is not None and self.predicted_error_px <= rule.target_px:
            return StopReason.TARGET
        return None if self._next is not None else StopReason.NO_CANDIDATE

    def record(self, answer: Answer) -> ActiveLoop:
        """Return the state after this answer; the pair need not be the one suggested."""
        pair = answer.pair
        pair.check_within(self.adjustment.frames)
        if pair in self.chain or any(earlier.pair == pair for earlier in self.answers):
            raise PairError(f"pair {pair} is given twice: forget the earlier answer first")
        covariance = self.covariance
        if answer.landmarks is not None:
            covariance = LocalCovariance(self.adjustment.add(fit_link(answer.landmarks, self.adjustment.family)))
        return replace(self, covariance=covariance, answers=(*self.answers, answer))

    def forget(self, pair: Pair) -> ActiveLoop:
        """Return the state as if this pair had never been answered."""
        for answer in self.answers:
            if answer.pair == pair:
                break
        else:
            raise PairError(f"pair {pair} has no answer to forget")
        covariance = self.covariance
        if answer.landmarks is not None:
            covariance = LocalCovariance(self.adjustment.remove(pair))
        kept = tuple(other for other in self.answers if other.pair != pair)
        return replace(self, covariance=covariance, answers=kept)

    def replay(self, answers: Iterable[Answer]) -> ActiveLoop:
        """Return the state after a whole log of answers."""
        state = self
        for answer in answers:
            state = state.record(answer)
        return state

    def run(self, agent: Agent) -> Iterator[ActiveLoop]:
        """Ask `agent` until there is a reason to stop; yield the state after every answer."""
        state = self
        while state.stop_reason() is None:
            suggestion = state._next
            assert suggestion is not None
            state = state.record(agent.answer(suggestion.pair))
            yield state

    @cached_property
    def _next(self) -> Suggestion | None:
        found = self.suggest(1)
        return found[0] if found else None

    def _pairs(self, verdict: Verdict) -> NDArray[np.int64]:
        pairs = [answer.pair for answer in self.answers if answer.verdict is verdict]
        if verdict is Verdict.YES:
            pairs += sorted(self.chain)
        return np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)
