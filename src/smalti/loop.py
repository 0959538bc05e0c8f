"""The active loop: suggest a pair, record what an agent says of it, suggest the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment, Reference
from smalti.adjustment.components import UNESTIMATED, Components, estimate_components, reweigh
from smalti.adjustment.innovation import Agreement
from smalti.adjustment.link import Link, fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.motion import Camera
from smalti.adjustment.refinement import Refinement, refine
from smalti.agents.agent import Agent, ExpectingAgent, ask
from smalti.belief import ENOUGH_GAIN, FIRST_SURPRISES, LARGEST_CHI2, Belief
from smalti.errors import ModelError, PairError
from smalti.geometry.affine import compose, invert
from smalti.geometry.family import AFFINE, Family
from smalti.geometry.outline import Outline
from smalti.overlap.external import ExternalModel, NoExternalModel, pairwise
from smalti.records import Answer, Author, Expectation, Landmarks, Pair, PairNumbers, Suggestion, Verdict
from smalti.suggestion.outlook import Outlook
from smalti.suggestion.posterior import Posterior
from smalti.suggestion.prediction import predicted_error
from smalti.suggestion.strategies import Strategy
from smalti.suggestion.strategies.paper import with_reasons
from smalti.suggestion.strategies.smalti import Smalti
from smalti.suggestion.surroundings import steadied
from smalti.suggestion.view import CLOSEST_ASKED, Answered, GivenUp, View

FEWEST_BETWEEN_JUDGEMENTS = 8
"""Yes answers after which all links are judged anew; a fifth of the frames in long sequences."""


FEWEST_REFUSALS, MOST_REFUSALS = 6, 60
"""Refusals, two more for every frame it has, after which a part that only a guess joins is not asked about any more."""

CHAIN, MATCHER, PERSON, CAMERA = range(4)
"""Whose links have a noise of their own; and how much the camera turns."""

ALIKE_WITHIN = 3
"""Pairs whose frames are this near teach much the same."""

CANDIDATES_OF_BATCH = 50


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

    With `largest_chi2` set, a matcher's link that contradicts the others is held instead of believed (see
    `smalti.belief`); a person's is believed whatever it says. If it `learns`, how noisy the chain, the matcher and the
    person are is learned from how well loops close, and the refined mosaic asks; else, as in the paper, noise is what
    landmarks say it is and the linear mosaic asks.
    """

    covariance: LocalCovariance
    untrained: ExternalModel
    strategy: Strategy
    stop_rule: StopRule
    chain: Mapping[Pair, Landmarks]
    chain_pairs: PairNumbers  # the same pairs, in their order
    steady: ExternalModel | None = None  # the untrained model by what is seen around frames
    guesses: Mapping[Pair, Link] = field(default_factory=dict)
    noise: float = 1.0
    learns: bool = False
    camera: Camera | None = None  # what is known of how it moves from frame to frame
    factors: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)  # of the noise of chain, matcher, person, and τ
    misfit_px: float = 0.0  # by how much the maps fail to follow what was measured, RMS
    least_part: int = 1
    only: PairNumbers | None = None
    largest_chi2: float | None = None
    held: Mapping[Pair, Link] = field(default_factory=dict)
    surprises: tuple[float, ...] = FIRST_SURPRISES
    near: Agreement | None = None  # what judges new links, and then asks too
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
        priors: Iterable[Landmarks] = (),
        noise: float = 1.0,
        learns: bool | None = None,
        least_part: int = 1,
        only: PairNumbers | None = None,
        largest_chi2: float | None = None,
    ) -> ActiveLoop:
        """Begin with the pairs registered so far, each frame in one of them at least.

        `priors` are guesses that join parts nobody has registered, with a σ as large as the guess is wild; each goes as
        soon as answers join what it joins. `noise` is the factor by which a matcher's landmarks are worse than their σ
        says, as far as is known beforehand; a person's are as good as they are said to be. Whether more is learned of
        it is the strategy's choice unless `learns` is given. Parts of fewer than `least_part` frames that only a guess
        joins are not asked about, unless most frames are in such parts. Where only some pairs can be answered, `only`
        (n, 2) are they.
        """
        chain, priors = list(chain), list(priors)
        links = [_link(landmarks, family, noise) for landmarks in chain]
        guesses = [fit_link(landmarks, family) for landmarks in priors]
        strategy = Smalti() if strategy is None else strategy
        if learns is None:
            learns = getattr(strategy, "learns", False)
        camera = Camera.of(links) if learns and family is AFFINE else None
        calm = {} if camera is None else camera.calmed()
        calmed = [calm.get(link.pair, link) for link in links]
        adjustment = Adjustment(frames, outline, [*calmed, *guesses], family=family, reference=reference)
        if external is None:
            external = NoExternalModel(frames)
        known = pairwise(external).frames
        if known != frames:
            raise ModelError(f"the external model speaks of {known} frames, the sequence has {frames}")
        chain_pairs = as_numbers(sorted(landmarks.pair for landmarks in chain))
        return cls(
            covariance=LocalCovariance(adjustment),
            untrained=external,
            strategy=strategy,
            stop_rule=StopRule() if stop_rule is None else stop_rule,
            chain={landmarks.pair: landmarks for landmarks in chain},
            chain_pairs=chain_pairs,
            steady=steadied(external, adjustment, chain_pairs) if learns else None,
            guesses={link.pair: link for link in guesses},
            noise=noise,
            learns=learns,
            camera=camera,
            least_part=least_part,
            only=only,
            largest_chi2=largest_chi2,
        )

    @cached_property
    def priors(self) -> frozenset[Pair]:
        """The guesses that are still needed: nothing else joins what they join."""
        if not self.guesses:
            return frozenset()
        answered = {answer.pair for answer in self.answers if answer.landmarks is not None}
        return frozenset(self.guesses.keys() & self.adjustment.links.keys() - answered)

    @property
    def landmarks(self) -> dict[Pair, Landmarks]:
        """Those of the chain and of every yes, believed or held."""
        given = {answer.pair: answer.landmarks for answer in self.answers if answer.landmarks is not None}
        return {**self.chain, **given}

    @cached_property
    def insisted(self) -> frozenset[Pair]:
        """The pairs of which a person says that they overlap."""
        return frozenset(
            answer.pair for answer in self.answers if answer.landmarks is not None and answer.author is Author.PERSON
        )

    @property
    def adjustment(self) -> Adjustment:
        """The links and the linear mosaic, which asks."""
        return self.covariance.adjustment

    @cached_property
    def refined(self) -> Refinement:
        """The mosaic that people see."""
        return refine(self.adjustment)

    @property
    def external(self) -> ExternalModel:
        """The external model, trained on the chain and the answers so far."""
        return self.view.external

    @cached_property
    def view(self) -> View:
        """What the strategy sees."""
        settled = np.concatenate([self.chain_pairs, as_numbers(answer.pair for answer in self.answers)])
        answered = Answered(settled, self._refused, self._pairs(Verdict.YES), self._pairs(Verdict.NO))
        return View(self.covariance, self.untrained, answered, self._given_up, self.only, self.steady, self.misfit_px)

    @cached_property
    def predicted_error_px(self) -> float:
        """The error of the mosaic, predicted without ground truth; of every part where nothing joins them."""
        return self.outlook.error_px if self.learns else predicted_error(self.view, self._part)

    @property
    def error_bound_px(self) -> float:
        """What the error is below nine times of ten."""
        return self.outlook.bound_px

    @cached_property
    def outlook(self) -> Outlook:
        """The error now and after the next answers, and whether these are worth while."""
        if not self.learns:
            return Outlook.of(self.view, self._part)
        return Outlook.of(self.view, self._part, 2.0 / float(self._components.degrees[CHAIN]))

    @property
    def turn(self) -> float | None:
        """By how much the camera turns, tilts and zooms between two frames (τ), None if nothing is known of it."""
        return None if self.camera is None else self.camera.turn * self.factors[CAMERA]

    @cached_property
    def agreement(self) -> Agreement:
        """The mosaic of the believed links, to hold others against."""
        return self._belief.agreement

    @cached_property
    def best(self) -> Suggestion | None:
        """The pair most worth asking, None where no candidate is left."""
        found = self.suggest(1)
        return found[0] if found else None

    def suggest(self, top: int = 1) -> list[Suggestion]:
        """Return the `top` pairs most worth asking, best first; none where no candidate is left."""
        return self.strategy.rank(self.view, top)

    def likely(self, pair: Pair) -> Suggestion:
        """Say of any pair how likely it is to overlap, by either model, and how much is unknown of it."""
        pair.check_within(self.adjustment.frames)
        found = with_reasons(self.view, [Suggestion(pair, 0.0)])[0]
        if not self.learns:
            return found
        return replace(
            found, reasons={**found.reasons, "overlap": float(self.posterior.of_pairs(as_numbers([pair]))[0])}
        )

    @cached_property
    def posterior(self) -> Posterior:
        """How likely any pair is to be answered yes."""
        return Posterior.of(self.view)

    def expect(self, pair: Pair) -> Expectation:
        """Say where a pair's frames are thought to lie to each other, and how sure that is."""
        pair.check_within(self.adjustment.frames)
        i, j = self.covariance.mosaic_from_frame[[pair.i, pair.j]]
        _, (xx, xy, yy) = self.covariance.of_pairs(as_numbers([pair])).cov[0]
        largest = float(np.linalg.eigvalsh([[xx, xy], [xy, yy]])[-1])
        return Expectation(compose(invert(i), j), float(np.sqrt(max(largest, 0.0))))

    def surprise(self, landmarks: Landmarks, author: Author) -> float:
        """Return χ² of 6 degrees of a yes against what is known; its pair must not be linked yet."""
        return self.agreement.of_new(self._link(landmarks, author))

    def is_settled(self, pair: Pair) -> bool:
        """Tell whether a pair was answered, however, or belongs to the chain."""
        return pair in self.chain or any(answer.pair == pair for answer in self.answers)

    def stop_reason(self) -> StopReason | None:
        """Say why to stop now, or None to go on."""
        rule = self.stop_rule
        if rule.budget is not None and len(self.answers) >= rule.budget:
            return StopReason.BUDGET
        if rule.target_px is not None and self.error_bound_px <= rule.target_px and not self._joinable():
            return StopReason.TARGET
        return None if self.best is not None else StopReason.NO_CANDIDATE

    def record(self, answer: Answer) -> ActiveLoop:
        """Return the state after this answer; the pair need not be the one suggested."""
        pair = answer.pair
        pair.check_within(self.adjustment.frames)
        if self.is_settled(pair):
            raise PairError(f"pair {pair} is given twice: forget the earlier answer first")
        recorded = replace(self, answers=(*self.answers, answer))
        if answer.landmarks is None:
            return recorded._learned(self.agreement) if self.learns else recorded
        link = self._link(answer.landmarks, answer.author)
        if pair in self.priors:
            return recorded._with(replace(self._belief, adjustment=self.adjustment.change(link)))
        if self.largest_chi2 is None:
            return recorded._with(replace(self._belief, adjustment=self.adjustment.add(link)))
        belief = self._belief.insist(link) if answer.author is Author.PERSON else self._belief.receive(link)
        found = sum(earlier.landmarks is not None for earlier in recorded.answers)
        if found % max(FEWEST_BETWEEN_JUDGEMENTS, self.adjustment.frames // 5) == 0:
            belief = belief.settle(recorded.landmarks, recorded.insisted)
        return recorded._with(belief)

    def settle(self) -> ActiveLoop:
        """Return the state after all links were judged anew: those that contradict the rest are held."""
        if self.largest_chi2 is None:
            return self
        return self._with(self._belief.settle(self.landmarks, self.insisted))

    def forget(self, pair: Pair) -> ActiveLoop:
        """Return the state as if this pair had never been answered; what was believed of others, and learned, stays."""
        for answer in self.answers:
            if answer.pair == pair:
                break
        else:
            raise PairError(f"pair {pair} has no answer to forget")
        kept = replace(self, answers=tuple(other for other in self.answers if other.pair != pair))
        if answer.landmarks is None:
            return kept
        # A guess that the answer had made needless may be needed again.
        belief = self._belief
        for guess in self.guesses.values():
            if guess.pair == pair and pair in belief.adjustment.links:
                belief = replace(belief, adjustment=belief.adjustment.change(guess))
            elif guess.pair not in belief.adjustment.links and (guess.pair == pair or guess.pair not in belief.held):
                belief = replace(belief, adjustment=belief.adjustment.add(guess))
        if pair in self.guesses:
            without = {other: link for other, link in belief.held.items() if other != pair}
            return kept._with(replace(belief, held=without))
        return kept._with(belief.forget(pair))

    def replay(self, answers: Iterable[Answer]) -> ActiveLoop:
        """Return the state after a whole log of answers."""
        state = self
        for answer in answers:
            state = state.record(answer)
        return state

    def run(self, agent: Agent, batch: int = 1) -> Iterator[ActiveLoop]:
        """Ask `agent` until there is a reason to stop; yield the state after every answer.

        With a `batch`, so many questions that are not alike are asked before the next are chosen.
        """
        state = self
        while state.stop_reason() is None:
            budget = state.stop_rule.budget
            left = batch if budget is None else min(batch, budget - len(state.answers))
            for suggestion in state._unlike(left):
                expected = state.expect(suggestion.pair) if isinstance(agent, ExpectingAgent) else None
                state = state.record(ask(agent, suggestion.pair, expected))
                yield state

    def _unlike(self, count: int) -> list[Suggestion]:
        """Return the best suggestions of which no two join the same neighbourhoods."""
        if count == 1:
            return [] if self.best is None else [self.best]
        if getattr(self.strategy, "joint", False):
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

    def _with(self, belief: Belief) -> ActiveLoop:
        """Return the state with these links; a guess between parts that they join is dropped."""
        adjustment = belief.adjustment
        state = replace(self, covariance=LocalCovariance(adjustment))
        if state.priors:
            for pair in state.priors - set(adjustment.needed_of(state.priors)):
                adjustment = adjustment.remove(pair)
        near = None
        if self.largest_chi2 is not None or self.learns:
            # With many loops the linear mosaic shrinks until nothing can be told from it.
            near = replace(belief, adjustment=adjustment).agreement
        state = replace(
            self,
            covariance=LocalCovariance(adjustment, None if near is None else near.refined.mosaic_from_frame),
            held=belief.held,
            surprises=belief.surprises,
            near=near,
        )
        return state._learned(near) if self.learns and near is not None else state

    def _learned(self, near: Agreement) -> ActiveLoop:
        """Return the state with links weighted by the noise that they turn out to have.

        What bends all links of a chain the same way, perspective or a lamp that moves with the scope, cannot be seen
        from frame to frame. It adds up until somebody comes back to a place: then the whole chain counts less.
        """
        assumed, found = np.array(self.factors), self._components
        if not found.differ_from(assumed):
            return replace(self, misfit_px=found.misfit_px)
        calm = {} if self.camera is None else self.camera.calmed(found.factors[CHAIN], found.factors[CAMERA])
        adjustment = reweigh(self.adjustment, self._groups, assumed, found.factors, calm)
        change = assumed / found.factors
        held = {
            pair: calm.get(pair, replace(link, root=change[self._group(pair)] * link.root))
            for pair, link in self.held.items()
        }
        refined = refine(adjustment, near.refined.mosaic_from_frame, smallest_gain=ENOUGH_GAIN)
        return replace(
            self,
            covariance=LocalCovariance(adjustment, refined.mosaic_from_frame),
            factors=tuple(found.factors.tolist()),
            misfit_px=found.misfit_px,
            held=held,
            near=Agreement(adjustment, refined),
        )

    @cached_property
    def _components(self) -> Components:
        """The noise of chain, matcher and person, as the links and the refusals tell it."""
        return estimate_components(
            self.covariance, self._groups, np.array(self.factors), self._refused, self.camera, alike=(CHAIN, MATCHER)
        )

    @cached_property
    def _groups(self) -> NDArray[np.int64]:
        """Whose noise each link has, in their order."""
        return np.array([self._group(pair) for pair in self.adjustment.links])

    @cached_property
    def _part(self) -> NDArray[np.int64] | None:
        """The number of every frame's mosaic (N,), None where there is one."""
        return self.adjustment.parts_without(self.priors) if self.priors else None

    @cached_property
    def _refused(self) -> PairNumbers:
        """The pairs that got no yes."""
        return as_numbers(answer.pair for answer in self.answers if answer.landmarks is None)

    def _group(self, pair: Pair) -> int:
        """Say whose noise a link has."""
        if pair in self.priors:
            return UNESTIMATED
        if pair in self.chain:
            return CHAIN
        return PERSON if pair in self.insisted else MATCHER

    def _joinable(self) -> bool:
        """Tell whether parts that only a guess joins may still be asked about."""
        if self._given_up is None:
            return False
        part = np.where(self._given_up.given_up[self._given_up.part], -1, self._given_up.part)
        sizes = np.bincount(part[part >= 0])
        between = (np.sum(sizes) ** 2 - np.sum(sizes**2)) // 2  # pairs of frames of different parts
        known = np.unique(np.concatenate([self.view.settled, self.adjustment.ends]), axis=0)
        consecutive = np.column_stack([np.arange(len(part) - 1), np.arange(1, len(part))])
        barred = np.concatenate([known[known[:, 1] - known[:, 0] >= CLOSEST_ASKED], consecutive])
        first, second = part[barred].T
        return bool(between > np.sum((first != second) & (first >= 0) & (second >= 0)))

    @cached_property
    def _given_up(self) -> GivenUp | None:
        """The parts that only guesses join and that are too small or were refused often enough, None if there are none.

        Nothing is as uncertain as what hangs on a guess: without an end to it, frames that match nothing would be asked
        about for ever.
        """
        if not self.priors:
            return None
        part = self.adjustment.parts_without(self.priors)
        sizes = np.bincount(part)
        refused = np.zeros(len(sizes), dtype=np.int64)
        for i, j in self._pairs(Verdict.NO):
            if part[i] != part[j]:
                refused[[part[i], part[j]]] += 1
        given_up = refused >= np.minimum(FEWEST_REFUSALS + 2 * sizes, MOST_REFUSALS)
        small = sizes < self.least_part
        if 2 * sizes[small].sum() <= len(part):
            given_up |= small
        given_up[np.argmax(sizes)] = False
        return GivenUp(part, given_up)

    def _link(self, landmarks: Landmarks, author: Author) -> Link:
        noise = self.factors[PERSON] if author is Author.PERSON else self.noise * self.factors[MATCHER]
        return _link(landmarks, self.adjustment.family, noise)

    @property
    def _belief(self) -> Belief:
        limit = LARGEST_CHI2 if self.largest_chi2 is None else self.largest_chi2
        return Belief(self.adjustment, self.held, limit, self.surprises, self.near)

    def _pairs(self, verdict: Verdict) -> PairNumbers:
        pairs = as_numbers(
            answer.pair for answer in self.answers if answer.verdict is verdict and answer.pair not in self.held
        )
        if verdict is not Verdict.YES:
            return pairs
        chain = self.chain_pairs
        if self.chain.keys() & self.held.keys():
            chain = as_numbers(sorted(self.chain.keys() - self.held.keys()))
        return np.concatenate([pairs, chain])


def as_numbers(pairs: Iterable[Pair]) -> PairNumbers:
    """Return pairs as an array (n, 2)."""
    return np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)


def _link(landmarks: Landmarks, family: Family, noise: float) -> Link:
    link = fit_link(landmarks, family)
    return link if noise == 1.0 else replace(link, root=link.root / noise)
