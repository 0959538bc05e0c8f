"""The state before the first question, from what a project keeps: nothing is registered, and nothing written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from smalti.agents.agent import Agent
from smalti.building.chain import register_chain
from smalti.building.groundwork import LONGEST_TIE
from smalti.building.matching import PIXELS
from smalti.building.questions import Questions
from smalti.errors import ProjectError
from smalti.experiments.methods import SMALTI, Loop, Method
from smalti.geometry.maps import PROJECTIVE, family_named
from smalti.loop import ActiveLoop, as_numbers
from smalti.overlap.external import ExternalModel
from smalti.overlap.signatures import WeightedSignatures
from smalti.project.entries import Role
from smalti.project.project import Project
from smalti.records import Answer, Pair
from smalti.suggestion.strategy import Strategy


@dataclass(frozen=True, slots=True, eq=False)
class Recollection:
    """What was known before the first question, and what was answered since."""

    used: tuple[int, ...]  # numbers in the source of the frames that the engine knows
    start: ActiveLoop  # that asks about answered pairs only
    looks: ExternalModel
    answers: tuple[Answer, ...]  # in the order in which they were given
    agent: Agent  # gives them again

    def start_by(self, strategy: str | Strategy) -> Loop:
        """Return the state in which a strategy would have begun, with the loop that belongs to it."""
        if not isinstance(strategy, str):
            return replace(self.start, ground=replace(self.start.ground, strategy=strategy))
        if strategy == SMALTI:
            return self.start
        return Method(strategy).start(
            self.start.frames,
            self.start.outline,
            list(self.start.chain.values()),
            external=self.looks,
            only=as_numbers(answer.pair for answer in self.answers),
        )


def recollect(project: Project) -> Recollection:
    """Lay the groundwork of a project again from its log and its cache, or say what is missing there.

    The log is read once: others may go on answering meanwhile. What was refused while the chain was registered is no
    question, though a build that comes upon it gives the same answer again.
    """
    used = tuple(frame.number for frame in project.frames if not frame.reason)
    looks = project.cache.array("signatures")
    if looks is None:
        raise ProjectError(
            f"{project.folder}: the looks of its frames are not in its folder cache; run smalti build or smalti "
            "annotate as before, which computes them"
        )
    questions = Questions(project.store, lambda role: _Nobody(project.folder), used)
    longest_tie = LONGEST_TIE if project.store.fact("registered_by") == PIXELS else 0
    chain = register_chain(len(used), project.outline, questions.ask, 2 * len(used), longest_tie)
    joined = {landmarks.pair for landmarks in chain.links}
    answers = tuple(answer for answer in questions.given(Role.LOOP) if answer.pair not in joined)
    if not answers:
        raise ProjectError(f"{project.folder}: no question was answered yet; there is nothing to replay")
    start = ActiveLoop.start(
        len(used),
        project.outline,
        chain.links,
        external=WeightedSignatures(looks),
        family=family_named(project.store.fact("family") or PROJECTIVE.name),
        only=as_numbers(answer.pair for answer in answers),
    )
    return Recollection(used, start, WeightedSignatures(looks), answers, questions.asking(Role.LOOP))


@dataclass(frozen=True, slots=True)
class _Nobody:
    """Is there where the matcher was: what it has not answered stays open."""

    folder: Path

    def answer(self, pair: Pair) -> Answer:
        raise ProjectError(
            f"{self.folder}: its chain is not registered to the end; go on with smalti build or smalti annotate first"
        )
