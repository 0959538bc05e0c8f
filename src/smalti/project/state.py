"""The engine's state behind a finished project, computed again from the answers that the mosaic was made by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from smalti.engine.estimate import Estimate, refine_on_landmarks
from smalti.errors import ProjectError
from smalti.geometry.maps import family_named
from smalti.loop import ActiveLoop
from smalti.project.entries import Role
from smalti.project.project import Project
from smalti.records import Answer, Pair


@dataclass(frozen=True, eq=False)
class FinishedState:
    """The chain alone, and what was answered since, in the numbers of the engine."""

    used: tuple[int, ...]  # numbers in the source of the frames that the engine knows
    start: ActiveLoop
    answers: tuple[Answer, ...]  # in the order in which they were given
    asides: tuple[Answer, ...]  # of frames that were set aside, in the numbers of the source

    @property
    def loop(self) -> ActiveLoop:
        """The state after all answers."""
        return self.start.replay(self.answers)

    @cached_property
    def final(self) -> Estimate:
        """The finished mosaics."""
        return refine_on_landmarks(self.loop.estimate)


def state_of(project: Project) -> FinishedState:
    """Compute the state of a finished project again: it is a function of its answers."""
    family = project.store.fact("family")
    if family is None:
        raise ProjectError(
            f"{project.folder}: its mosaic was computed by an older Smalti; run the same smalti build command again, "
            "which keeps all answers"
        )
    if project.store.fact("method") == "paper":
        raise ProjectError(
            f"{project.folder}: its mosaic was made by the paper's method, which keeps no states; build it with "
            "--method smalti for a film or a map of the uncertainty"
        )
    used = tuple(frame.number for frame in project.frames if not frame.reason)
    place = {number: n for n, number in enumerate(used)}
    references = project.store.fact("references")
    chain, answers, asides = [], [], []
    # With a smaller budget than before, the mosaic is made by the first of the answers only.
    counted = {link.pair for link in project.links}
    for entry in project.placed_by:
        pair = entry.answer.pair
        if entry.role is Role.ASIDE:
            asides.append(entry.answer)
        elif pair.i in place and pair.j in place and (pair in counted or entry.answer.landmarks is None):
            answer = entry.answer.of_pair(Pair(place[pair.i], place[pair.j]))
            if entry.role is Role.LOOP:
                answers.append(answer)
            elif answer.landmarks is not None:
                chain.append(answer.landmarks)
    start = ActiveLoop.start(
        len(used),
        project.outline,
        chain,
        family=family_named(family),
        reference=place[references[0]] if references else "auto",
    )
    known = {landmarks.pair for landmarks in chain}
    loops = tuple(answer for answer in answers if answer.pair not in known)
    return FinishedState(used, start, loops, tuple(asides))
