"""The active loop: suggest a pair, record the agent's answer, suggest the next pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smalti.agents.agent import PREFETCHED, Agent, ExpectingAgent, ask, prefetch
from smalti.answered_loop import AnsweredLoop
from smalti.engine.covariance import Covariance
from smalti.engine.estimate import Estimate
from smalti.engine.link_confirmation import unconfirmed_frames
from smalti.engine.links import Link
from smalti.engine.robust_estimate import estimate, estimate_again
from smalti.engine.variance_components import MATCHER, PERSON
from smalti.errors import ModelError, PairError
from smalti.geometry.homographies import PROJECTIVE, Family, FamilyName, family_named
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.loop_setup import ChainEstimate, LoopSetup, StopReason, StopRule
from smalti.notebook_html import draw_card, say_answers, say_error
from smalti.overlap.external_model import ExternalModel, NoExternalModel, pairwise
from smalti.records import (
    Answer,
    Author,
    Expectation,
    Homographies,
    Landmarks,
    Pair,
    PairNumbers,
    Suggestion,
    Verdict,
    as_numbers,
)
from smalti.suggestion.appearance_evidence import pooled
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.predicted_error import AHEAD, Prediction
from smalti.suggestion.state_view import CLOSEST_ASKED, Answered, GivenUp, View
from smalti.suggestion.strategy import JointStrategy, Smalti, Strategy
from smalti.suggestion.sure_pairs import sure_pairs

FEWEST_NO_ANSWERS, MOST_NO_ANSWERS = 6, 60
"""After so many "no" answers, plus two for every frame, no more questions are asked about a separate part, or about
frames behind an unconfirmed link of inflated variance; and the largest such number."""

SIMILAR_WITHIN = 3
"""Pairs whose frame numbers are this close have about the same gain."""

CANDIDATES_OF_BATCH = 50

PATIENCE = 1 / 8
"""Share of the frames: after so many "no" answers in a row, no more is expected to be found on one mosaic."""

LIKELY_JOIN = 0.5
"""The probability, within the next twenty questions, of joining two parts from which on they are worth their time."""

BatchSize = int | Callable[[int], int]
"""The number of questions to choose at once, or a function of the number of answers so far."""

RELEARNING_ROUNDS = 2
"""The most rounds in which the chain is learned again without its rejected links: others may then be rejected."""

Reference = int | Literal["auto"]


@dataclass(frozen=True, eq=False)
class ActiveLoop(AnsweredLoop[Link]):
    """The state after some answers.

    It is a value: `record` returns the next state and does not change this one. The loop is the same for a program and
    for a person; only the agent differs. The mosaic is computed on first access, from the set of answers. So several
    answers cost one computation, and their order does not matter, to the last bit.
    """

    setup: LoopSetup
    answers: tuple[Answer, ...] = ()
    links: Mapping[Pair, Link] = field(default_factory=dict)  # the links of every yes
    known: tuple[ChainEstimate, Estimate] | None = None  # of these links, if it was computed before

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

        Frames that no link joins are separate mosaics until an answer joins them. Parts of fewer than `least_part`
        frames get no questions, unless most frames are in such parts. If only some pairs can be answered, `only` (n, 2)
        are these pairs. The `lens` is estimated unless it is given. The mosaic is in the pixels of the `reference`
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
            raise ModelError(f"the external model has {known} frames, the sequence has {frames}")
        reference_frame = None if reference == "auto" else reference
        of_chain = ChainEstimate.of(frames, outline, by_pair.values(), family, lens, reference_frame)
        setup = LoopSetup(
            chain=by_pair,
            of_chain=of_chain,
            given_lens=lens,
            untrained=external,
            pooled=pooled(external, of_chain.first, as_numbers(sorted(by_pair))),
            strategy=Smalti() if strategy is None else strategy,
            stop_rule=StopRule() if stop_rule is None else stop_rule,
            least_part=least_part,
            only=only,
        )
        return cls(setup)

    @cached_property
    def estimate(self) -> Estimate:
        """The mosaic: maps, covariance, noise, camera, and rejected links."""
        return self._estimated[1]

    @cached_property
    def _estimated(self) -> tuple[ChainEstimate, Estimate]:
        """The estimate of all links, and that of the chain without the links that were found to be wrong."""
        if self.known is not None:
            return self.known
        setup, landmarks = self.setup, self.landmarks
        of_chain, links, wrong = setup.of_chain, self.links, frozenset[Pair]()
        state = estimate(of_chain.first, list(links.values()), self.person_pairs)
        for _ in range(RELEARNING_ROUNDS):
            before, wrong = wrong, frozenset(pair for pair in state.rejected if pair in setup.chain)
            relearned = setup.without(wrong)
            if wrong == before or relearned is of_chain:
                break
            of_chain = relearned
            if of_chain.lens != setup.of_chain.lens:
                links = {pair: of_chain.link_of(landmarks[pair]) for pair in self.links}
            rest = [of_chain.link_of(setup.chain[pair]) for pair in sorted(wrong)]
            loops, rejected = list(links.values()), state.rejected.keys()
            state = estimate_again(of_chain.first, loops, rest, rejected, self.person_pairs)
        return of_chain, state

    @property
    def frames(self) -> int:
        """N, the number of frames."""
        return self.setup.first.frames

    @property
    def outline(self) -> Outline:
        """The outline of every frame."""
        return self.setup.first.outline

    @property
    def lens(self) -> Lens:
        """The lens, as estimated from the chain and the answers so far."""
        of_chain, state = self._estimated
        return state.lens or of_chain.lens

    @property
    def strategy(self) -> Strategy:
        """The strategy that ranks the pairs."""
        return self.setup.strategy

    @property
    def stop_rule(self) -> StopRule:
        """When to stop asking."""
        return self.setup.stop_rule

    @property
    def chain(self) -> Mapping[Pair, Landmarks]:
        """The pairs that were registered before the first question."""
        return self.setup.chain

    @property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): from undistorted pixels of a frame to those of its part's reference frame, levelled."""
        return self.estimate.mosaic_from_frame

    @property
    def part(self) -> NDArray[np.int64]:
        """(N,): the mosaic of every frame, the largest first."""
        return self.estimate.part

    @property
    def covariance(self) -> Covariance:
        """The covariance of frames relative to each other."""
        return self.estimate.covariance

    @property
    def rejected(self) -> Mapping[Pair, Link]:
        """The rejected links, which contradict the others: kept, not used."""
        return self.estimate.rejected

    @property
    def external(self) -> ExternalModel:
        """The external model, trained on the chain and the answers so far."""
        return self.view.external

    @cached_property
    def view(self) -> View:
        """What the strategy sees."""
        setup, given = self.setup, self.answers
        settling = [answer for answer in given if not self._is_open(answer)]
        matched = [answer.landmarks is not None and answer.author is Author.MATCHER for answer in given]
        answered = Answered(
            settled=np.concatenate([setup.chain_pairs, as_numbers(answer.pair for answer in settling)]),
            refused=as_numbers(answer.pair for answer in settling if answer.landmarks is None),
            overlapping=self._pairs(Verdict.YES),
            apart=self._pairs(Verdict.NO),
            failed=as_numbers(sorted(self.failed_pairs)),
            decided=np.concatenate(
                [setup.chain_pairs, as_numbers(one.pair for one in given if one.verdict is not Verdict.UNSURE)]
            ),
            matched=sum(matched),
        )
        return View(
            self.estimate,
            setup.untrained,
            answered,
            self._given_up,
            setup.only,
            setup.pooled,
            conservative=self._confirms(),
        )

    @property
    def predicted_error_px(self) -> float:
        """The error of the mosaic, px, predicted without ground truth; separate parts count by themselves."""
        return self.prediction.error_px

    @property
    def error_bound_px(self) -> float:
        """The error is below this bound with a probability of 0.9, px."""
        return self.prediction.bound_px

    @cached_property
    def prediction(self) -> Prediction:
        """The predicted error now and after the next answers, and whether these are worth their cost."""
        return Prediction.of(self.view)

    @cached_property
    def posterior(self) -> Posterior:
        """The probability that a pair is answered yes."""
        return Posterior.of(self.view)

    def sure_pairs(self, most: int) -> list[Pair]:
        """Return at most so many pairs that surely overlap and were not answered, spread over the frames."""
        return sure_pairs(self.view, self.posterior, most)

    def likely(self, pair: Pair) -> Suggestion:
        """Return the probability that a pair overlaps, with its reasons, as a suggestion without reward."""
        pair.check_within(self.frames)
        return Suggestion(pair, 0.0, reasons=self.posterior.reasons(pair))

    def expect(self, pair: Pair) -> Expectation:
        """Return the expected map between a pair's frames, in pixels, and its uncertainty."""
        return self._expect_all([pair])[0]

    def _expect_all(self, pairs: Sequence[Pair]) -> list[Expectation]:
        for pair in pairs:
            pair.check_within(self.frames)
        overlaps = self.posterior.overlap_of_pairs(as_numbers(pairs)).tolist()
        undistort = None if self.lens.is_undistorted else self.lens.undistort
        expected = []
        for pair, overlap in zip(pairs, overlaps, strict=True):
            if self.part[pair.i] != self.part[pair.j]:
                expected.append(Expectation(np.eye(3), np.inf, overlap))
                continue
            i_from_j, _ = self.covariance.expect(pair.i, pair.j)
            _, (xx, xy, yy) = self.covariance.of_pairs(as_numbers([pair])).cov[0]
            largest = float(np.linalg.eigvalsh([[xx, xy], [xy, yy]])[-1])
            expected.append(Expectation(i_from_j, float(np.sqrt(max(largest, 0.0))), overlap, undistort))
        return expected

    def link_of(self, landmarks: Landmarks) -> Link:
        """Return the engine's link of landmarks."""
        return self.setup.of_chain.link_of(landmarks)

    def surprise(self, landmarks: Landmarks, author: Author) -> float:
        """Return χ², 8 degrees of freedom, of a yes against the mosaic's prediction; 0 between separate parts."""
        group = PERSON if author is Author.PERSON else MATCHER
        of_chain, state = self._estimated
        return state.surprise(of_chain.link_of(landmarks), group)

    def stop_reason(self) -> StopReason | None:
        """Return why to stop now, or None to go on."""
        rule = self.stop_rule
        if rule.budget is not None and len(self.answers) >= rule.budget:
            return StopReason.BUDGET
        if rule.target_px is not None and self.error_bound_px <= rule.target_px and not self._joinable():
            return StopReason.TARGET
        if rule.known_px is not None and self.error_bound_px <= rule.known_px:
            return StopReason.KNOWN
        if self.best is None:
            return StopReason.NO_CANDIDATE
        return self.why_enough() if rule.when_enough else None

    def why_enough(self) -> StopReason | None:
        """Return why more answers are not worth their time, or None if they are."""
        if self._may_join():
            return None
        if self._is_vain():
            return StopReason.NOTHING_FOUND
        return None if self.prediction.worth_going_on else StopReason.ENOUGH

    def _after(self, answers: tuple[Answer, ...], links: Mapping[Pair, Link]) -> ActiveLoop:
        known = self.known or self.__dict__.get("_estimated") if links is self.links else None
        return replace(self, answers=answers, links=links, known=known)

    def until(self, stop_rule: StopRule) -> ActiveLoop:
        """Return the same state with another stop rule."""
        known = self.known or self.__dict__.get("_estimated")
        return replace(self, setup=replace(self.setup, stop_rule=stop_rule), known=known)

    def run(self, agent: Agent, batch: BatchSize = 1) -> Iterator[ActiveLoop]:
        """Ask `agent` until there is a reason to stop; yield the state after every answer.

        With a `batch`, so many questions that are not similar are asked before the next are chosen. An agent that can
        work ahead answers them on all cores. They change the mosaic together, in one computation.
        """
        state = self
        while state.stop_reason() is None:
            budget, wanted = state.stop_rule.budget, batch if isinstance(batch, int) else batch(len(state.answers))
            left = wanted if budget is None else min(wanted, budget - len(state.answers))
            for after in state.ask_about(agent, [suggestion.pair for suggestion in state.suggest_apart(left)]):
                state = after
                yield state

    def ask_about(self, agent: Agent, pairs: Sequence[Pair]) -> Iterator[ActiveLoop]:
        """Ask `agent` about these pairs; yield the state after every answer.

        An agent that can use expected maps gets those of this state, from before the first answer.
        """
        expected: Sequence[Expectation | None] = [None] * len(pairs)
        if isinstance(agent, ExpectingAgent) and pairs:
            expected = self._expect_all(pairs)
        state = self
        for n, pair in enumerate(pairs):
            soon = slice(n, n + PREFETCHED)
            prefetch(agent, pairs[soon], expected[soon])
            state = state.record(ask(agent, pair, expected[n]))
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

    def suggest_apart(self, count: int) -> list[Suggestion]:
        """Return the best suggestions, no two of them between the same neighbourhoods."""
        if count == 1:
            return [] if self.best is None else [self.best]
        if isinstance(self.strategy, JointStrategy) and self.strategy.joint:
            return self.suggest(count)
        chosen: list[Suggestion] = []
        for suggestion in self.suggest(CANDIDATES_OF_BATCH * count):
            pair = suggestion.pair
            similar = any(
                max(abs(pair.i - other.pair.i), abs(pair.j - other.pair.j)) <= SIMILAR_WITHIN for other in chosen
            )
            if not similar:
                chosen.append(suggestion)
            if len(chosen) == count:
                break
        return chosen

    def is_settled(self, pair: Pair) -> bool:
        """Tell whether a pair is not to be asked again: it was answered, or belongs to the chain."""
        return pair in self.chain or any(answer.pair == pair and not self._is_open(answer) for answer in self.answers)

    def _is_open(self, answer: Answer) -> bool:
        """Tell whether a person may still be asked about an answered pair: the matcher could not tell."""
        return self.setup.asked is Author.PERSON and answer.is_failure

    @cached_property
    def _refusals(self) -> PairNumbers:
        """The pairs that were answered no, or could not be matched while the matcher is asked."""
        return as_numbers(
            answer.pair
            for answer in self.answers
            if answer.verdict is Verdict.NO or (answer.is_failure and not self._is_open(answer))
        )

    def _is_vain(self) -> bool:
        """Tell whether the last questions about frames of one mosaic have all found nothing."""
        part, patience = self.part, max(FEWEST_NO_ANSWERS, round(PATIENCE * self.frames))
        on_one_mosaic = [answer for answer in self.answers if part[answer.pair.i] == part[answer.pair.j]]
        last = on_one_mosaic[-patience:]
        return len(last) == patience and all(answer.landmarks is None for answer in last)

    def _may_join(self) -> bool:
        """Tell whether the next questions are likely to join separate parts."""
        if not self._joinable():
            return False
        part = self.part
        probabilities = [
            suggestion.reasons.get("overlap", 0.0)
            for suggestion in self.suggest(max(AHEAD))
            if part[suggestion.pair.i] != part[suggestion.pair.j]
        ]
        return float(np.prod([1.0 - p for p in probabilities])) < 1.0 - LIKELY_JOIN

    def _joinable(self) -> bool:
        """Tell whether a question can still join separate parts."""
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

    def _confirms(self) -> bool:
        """Tell whether to ask about frames behind unconfirmed links of inflated variance: until enough "no" answers."""
        if self.estimate.variance_inflation is None:
            return False
        unconfirmed = unconfirmed_frames(self.frames, self.estimate.system.ends)
        unsuccessful = int(np.sum(unconfirmed[self._refusals].any(axis=1)))
        return unsuccessful < min(FEWEST_NO_ANSWERS + 2 * int(np.sum(unconfirmed)), MOST_NO_ANSWERS)

    @cached_property
    def _given_up(self) -> GivenUp | None:
        """The separate parts that are too small or have enough "no" answers; None if there is one mosaic.

        Separate parts are the most uncertain. Without a limit, frames that match nothing would be asked about for ever.
        """
        part = self.part
        if not part.any():
            return None
        sizes = np.bincount(part)
        refused = np.zeros(len(sizes), dtype=np.int64)
        for i, j in self._refusals:
            if part[i] != part[j]:
                refused[[part[i], part[j]]] += 1
        given_up = refused >= np.minimum(FEWEST_NO_ANSWERS + 2 * sizes, MOST_NO_ANSWERS)
        small = sizes < self.setup.least_part
        if 2 * sizes[small].sum() <= len(part):
            given_up |= small
        given_up[np.argmax(sizes)] = False
        return GivenUp(part, given_up)

    def _pairs(self, verdict: Verdict) -> PairNumbers:
        """Return the pairs (n, 2) of a verdict; for yes, the accepted ones and those of the chain."""
        rejected = self.rejected
        pairs = as_numbers(
            answer.pair for answer in self.answers if answer.verdict is verdict and answer.pair not in rejected
        )
        if verdict is not Verdict.YES:
            return pairs
        accepted = [pair not in rejected for pair in self.setup.chain_order]
        return np.concatenate([pairs, self.setup.chain_pairs[accepted]])
