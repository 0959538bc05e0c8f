"""The paper's active loop: suggest a pair, record the agent's answer, suggest the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import BatchSize, Reference
from smalti.agents.agent import Agent, ExpectingAgent, ask
from smalti.answered_loop import AnsweredLoop
from smalti.errors import ModelError
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import AFFINE, Family, compose, invert, square
from smalti.geometry.outline import Outline
from smalti.loop_setup import StopReason, StopRule
from smalti.overlap.external_model import ExternalModel, NoExternalModel, pairwise
from smalti.paper.haralick import Haralick, best_reference
from smalti.paper.linear_adjustment import AffineLink, LinearAdjustment, fit_affine_link
from smalti.paper.paper_refinement import Refinement, predicted_error, refine
from smalti.paper.paper_strategy import Paper, PaperStrategy, PaperView
from smalti.records import (
    Answer,
    Author,
    Expectation,
    Homographies,
    Landmarks,
    Pair,
    PairNumbers,
    Suggestion,
    Transforms,
    Verdict,
    as_numbers,
)


@dataclass(frozen=True, eq=False)
class PaperLoop(AnsweredLoop[AffineLink]):
    """The state after some answers, by the paper's method alone.

    Maps are affine at most, the noise is that of the landmarks, every yes is accepted, and only the weights of the
    external model are learned. It has the interface of `ActiveLoop`, and is a value like it. The state depends on the
    set of answers, to the last bit, not on their order.
    """

    first: Haralick  # of the chain alone
    chain: Mapping[Pair, Landmarks]
    untrained: ExternalModel
    strategy: PaperStrategy
    stop_rule: StopRule
    only: PairNumbers | None = None
    answers: tuple[Answer, ...] = ()
    links: Mapping[Pair, AffineLink] = field(default_factory=dict)  # of every yes
    known: Haralick | None = None  # the covariance of these links, if it was computed before

    @classmethod
    def start(
        cls,
        frames: int,
        outline: Outline,
        chain: Iterable[Landmarks],
        *,
        external: ExternalModel | None = None,
        strategy: PaperStrategy | None = None,
        family: Family = AFFINE,
        reference: Reference = "auto",
        stop_rule: StopRule | None = None,
        only: PairNumbers | None = None,
    ) -> PaperLoop:
        """Start with the registered pairs, which have to join all frames.

        The mosaic is in the coordinates of the `reference` frame. By default this is the frame relative to which the
        chain determines the others best. If only some pairs can be answered, give them as `only` (n, 2).
        """
        chain = list(chain)
        links = [fit_affine_link(landmarks, family) for landmarks in chain]
        middle = frames // 2 if reference == "auto" else reference
        haralick = Haralick(LinearAdjustment(frames, outline, links, family=family, reference=middle))
        if reference == "auto":
            best = best_reference(haralick)
            if best != middle:
                haralick = Haralick(LinearAdjustment(frames, outline, links, family=family, reference=best))
        if external is None:
            external = NoExternalModel(frames)
        external_frames = pairwise(external).frames
        if external_frames != frames:
            raise ModelError(f"the external model has {external_frames} frames, the sequence has {frames}")
        return cls(
            first=haralick,
            chain={landmarks.pair: landmarks for landmarks in chain},
            untrained=external,
            strategy=Paper() if strategy is None else strategy,
            stop_rule=StopRule() if stop_rule is None else stop_rule,
            only=only,
        )

    @cached_property
    def haralick(self) -> Haralick:
        """The linear mosaic and its covariance; questions are chosen on them."""
        if self.known is not None:
            return self.known
        return Haralick(self.first.adjustment.add(*self.links.values())) if self.links else self.first

    @property
    def adjustment(self) -> LinearAdjustment:
        """The links and the linear mosaic."""
        return self.haralick.adjustment

    @property
    def frames(self) -> int:
        """N."""
        return self.first.adjustment.frames

    @property
    def outline(self) -> Outline:
        """The outline of every frame."""
        return self.first.adjustment.outline

    @property
    def reference(self) -> int:
        """The frame whose pixels the mosaic is in."""
        return self.first.adjustment.reference

    @property
    def lens(self) -> Lens:
        """A lens without distortion."""
        return Lens(self.outline)

    @property
    def linear_mosaic(self) -> Transforms:
        """(N, 2, 3): the mosaic on which questions are chosen."""
        return self.adjustment.mosaic_from_frame

    @cached_property
    def refined(self) -> Refinement:
        """The mosaic for output."""
        return refine(self.adjustment)

    @property
    def mosaic_from_frame(self) -> Homographies:
        """(N, 3, 3): the mosaic for output, from pixels of a frame to those of the reference frame."""
        return square(self.refined.mosaic_from_frame)

    @property
    def part(self) -> NDArray[np.int64]:
        """(N,): the mosaic of every frame; there is one."""
        return np.zeros(self.frames, dtype=np.int64)

    @property
    def rejected(self) -> Mapping[Pair, AffineLink]:
        """The links that are not used: none."""
        return {}

    @property
    def external(self) -> ExternalModel:
        """The external model, trained on the chain and the answers so far."""
        return self.view.external

    @cached_property
    def view(self) -> PaperView:
        """The state as the strategy sees it."""
        by_verdict = {
            verdict: sorted(answer.pair for answer in self.answers if answer.verdict is verdict) for verdict in Verdict
        }
        overlapping = as_numbers(sorted([*self.chain, *by_verdict[Verdict.YES]]))
        trained = self.untrained.learn(overlapping, as_numbers(by_verdict[Verdict.NO]))
        settled = as_numbers(sorted([*self.chain, *(answer.pair for answer in self.answers)]))
        return PaperView(self.haralick, trained, settled, self.only)

    @cached_property
    def predicted_error_px(self) -> float:
        """The error of the mosaic, predicted without ground truth."""
        view = self.view
        return predicted_error(view.centres, view.external_probabilities, self.adjustment.ends, view.settled)

    @property
    def error_bound_px(self) -> float:
        """The same number: the paper states no bound."""
        return self.predicted_error_px

    def likely(self, pair: Pair) -> Suggestion:
        """Return a pair's probability of overlap, by position, by appearance and by both, and its spread."""
        pair.check_within(self.frames)
        return self.view.explain([Suggestion(pair, 0.0)])[0]

    def expect(self, pair: Pair) -> Expectation:
        """Return the expected map between a pair's frames and its standard deviation."""
        pair.check_within(self.frames)
        i, j = self.linear_mosaic[[pair.i, pair.j]]
        _, covariance = self.haralick.centre(pair.j, pair.i)
        largest = float(np.linalg.eigvalsh(covariance)[-1])
        # The paper's agents say yes or no: whoever finds nothing has said no.
        return Expectation(square(compose(invert(i), j)), float(np.sqrt(max(largest, 0.0))), overlap=0.0)

    def link_of(self, landmarks: Landmarks) -> AffineLink:
        """Condense landmarks to a link of the adjustment."""
        return fit_affine_link(landmarks, self.first.adjustment.family)

    def surprise(self, landmarks: Landmarks, author: Author) -> float:
        """Return χ² of a yes against the prediction, for any author: 6 degrees of freedom for affine maps."""
        landmarks.pair.check_within(self.frames)
        return self.haralick.chi2(self.link_of(landmarks))

    def stop_reason(self) -> StopReason | None:
        """Return the reason to stop now, or None to go on."""
        rule = self.stop_rule
        if rule.budget is not None and len(self.answers) >= rule.budget:
            return StopReason.BUDGET
        if rule.target_px is not None and self.predicted_error_px <= rule.target_px:
            return StopReason.TARGET
        return None if self.best is not None else StopReason.NO_CANDIDATE

    def _after(self, answers: tuple[Answer, ...], links: Mapping[Pair, AffineLink]) -> PaperLoop:
        known = self.known or self.__dict__.get("haralick") if links is self.links else None
        return replace(self, answers=answers, links=links, known=known)

    def run(self, agent: Agent, batch: BatchSize = 1) -> Iterator[PaperLoop]:
        """Ask `agent` until there is a reason to stop; yield the state after every answer.

        It asks one question at a time, whatever the `batch`: the paper chooses each by all answers before it.
        """
        state = self
        while state.stop_reason() is None:
            assert state.best is not None
            pair = state.best.pair
            expected = state.expect(pair) if isinstance(agent, ExpectingAgent) else None
            state = state.record(ask(agent, pair, expected))
            yield state
