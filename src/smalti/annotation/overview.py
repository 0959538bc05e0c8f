"""The state of a session as messages for the page: numbers, mosaic, answers, question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from smalti.annotation.answer_history import AnswerHistory, AnswerState
from smalti.annotation.exports import Placed
from smalti.annotation.messages import (
    AnswerRow,
    Counts,
    ErrorAfter,
    Given,
    LensNumbers,
    LiveMosaic,
    MeasuredPerson,
    Progress,
    Question,
    Queue,
    Sheets,
    Stage,
    State,
)
from smalti.annotation.session_state import (
    AnyLoop,
    accepted_of,
    contradicted_of,
    expect,
    references_of,
    sigma_px_of,
)
from smalti.building.build_results import family_of, residual_px
from smalti.engine.link_confirmation import unconfirmed_frames
from smalti.engine.variance_components import CHAIN, MATCHER, PERSON
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.lens import Lens
from smalti.loop_setup import StopReason
from smalti.paper.paper_loop import PaperLoop
from smalti.project.entries import Act, FrameEntry, LogEntry, Role
from smalti.project.facts import Noise
from smalti.project.people import measure_people
from smalti.project.project import Project
from smalti.records import Author, Pair, Verdict
from smalti.suggestion.predicted_error import LEAST_ERROR_PX, calibration, misfit_px


def describe_state(
    answer_history: AnswerHistory,
    project: Project,
    *,
    queue: Queue,
    target_px: float | None,
    working: Progress | None,
    stop: StopReason | None,
    sheets: Sheets,
    people: list[MeasuredPerson],
) -> State:
    """Return the numbers.

    `working` is the progress of the matcher while it answers questions itself; `stop` is why it has stopped.
    """
    history, loop = answer_history.history, answer_history.loop
    errors = [ErrorAfter(answers=count, predicted_px=value) for count, value in answer_history.state_history.errors()]
    stop = None if working is not None else stop or loop.stop_reason()
    return State(
        revision=history.revision,
        stage=Stage.ASKING,
        progress=working,
        name=project.folder.name.removesuffix(".smalti"),
        source=str(project.source.path),
        queue=queue,
        width=project.width,
        height=project.height,
        frames=len(answer_history.frames),
        usable=len(answer_history.numbers),
        counts=_count_answers(answer_history),
        predicted_px=errors[-1].predicted_px,
        target_px=target_px,
        target_met=target_px is not None and loop.error_bound_px <= target_px,
        errors=errors,
        undo=None if history.undoable is None else describe_act(history.undoable),
        redo=None if history.redoable is None else describe_act(history.redoable),
        stopped=None if stop is None else STOPPED[stop],
        working=working is not None,
        parts=int(loop.part.max()) + 1,
        finished=project.is_finished,
        folder=str(project.folder),
        sheets=sheets,
        people=people,
        lens=_lens_numbers(loop.lens),
        masked=project.mask is not None,
    )


def describe_people(answer_history: AnswerHistory, project: Project) -> list[MeasuredPerson]:
    """Return what was measured of every person at pairs with known answers."""
    history = answer_history.history
    if not history.controls:
        return []
    measured = measure_people(history, project.outline, answer_history.loop.lens, noise=_noise_of(answer_history.loop))
    return [
        MeasuredPerson(
            person=one.person,
            known=one.known_yes.of + one.known_no.of,
            right=one.known_yes.right + one.known_no.right,
            unsure=one.unsure,
            sigma_px=None if one.sigma is None else one.sigma.px,
            sigma_uncertainty_px=None if one.sigma is None else one.sigma.uncertainty_px,
        )
        for one in measured
    ]


def _noise_of(loop: AnyLoop) -> Noise | None:
    if isinstance(loop, PaperLoop):
        return None
    noise = loop.estimate.noise_model.noise
    return Noise(float(noise[CHAIN]), float(noise[MATCHER]), float(noise[PERSON]))


def describe_mosaic(answer_history: AnswerHistory) -> LiveMosaic:
    """Return the map of every frame."""
    loop = answer_history.loop
    return LiveMosaic(
        revision=answer_history.history.revision,
        reference=answer_history.numbers.in_source(references_of(loop)[0]),
        numbers=list(answer_history.numbers),
        maps=loop.mosaic_from_frame.ravel().tolist(),
        sigma_px=sigma_px_of(loop).tolist(),
        parts=loop.part.tolist(),
        confirmed=(~unconfirmed_frames(loop.frames, accepted_of(loop))).tolist(),
    )


def largest_part(answer_history: AnswerHistory) -> Placed:
    """Return the maps of the frames of the largest mosaic."""
    mosaic = describe_mosaic(answer_history)
    maps = np.array(mosaic.maps).reshape(-1, 3, 3)
    places = {number: n for n, number in enumerate(mosaic.numbers) if mosaic.parts[n] == 0}
    return Placed(
        {number: maps[n] for number, n in places.items()},
        {number: mosaic.sigma_px[n] for number, n in places.items()},
        mosaic.reference,
        answer_history.loop.lens,
        frozenset(number for number, n in places.items() if not mosaic.confirmed[n]),
        family_of(answer_history.loop),
    )


def list_answers(answer_history: AnswerHistory) -> list[AnswerRow]:
    """Return all answers in force, including the chain, in the order in which they were given."""
    loop = answer_history.loop
    maps, part, contradicted = loop.mosaic_from_frame, loop.part, contradicted_of(loop)
    rows = []
    for entry in answer_history.answers():
        answer, inner = entry.answer, answer_history.inner(entry.answer.pair)
        landmarks = answer.landmarks
        residual = None
        if landmarks is not None and part[inner.i] == part[inner.j]:
            residual = residual_px(maps, landmarks.of_pair(inner), loop.lens)
        rows.append(
            AnswerRow(
                place=entry.place,
                i=answer.pair.i,
                j=answer.pair.j,
                role=entry.role,
                verdict=answer.verdict,
                author=answer.author,
                person=entry.person,
                landmarks=0 if landmarks is None else len(landmarks),
                residual_px=residual,
                rejected=inner in loop.rejected,
                contradicted=inner in contradicted,
                reason=answer.reason,
                seconds=entry.seconds,
            )
        )
    return rows


def _lens_numbers(lens: Lens) -> LensNumbers | None:
    if lens.is_undistorted:
        return None
    centre_x, centre_y, unit_px, k1, k2 = lens.numbers
    return LensNumbers(centre_x=centre_x, centre_y=centre_y, unit_px=unit_px, k1=k1, k2=k2)


def _count_answers(answer_history: AnswerHistory) -> Counts:
    """Count the answers that are not of the chain."""
    given = [entry.answer for entry in answer_history.answers() if entry.role is Role.LOOP]
    verdicts = Counter(str(answer.verdict) for answer in given)
    by_person = sum(answer.author is Author.PERSON for answer in given)
    return Counts(yes=verdicts["yes"], no=verdicts["no"], unsure=verdicts["unsure"], by_person=by_person)


def make_question(
    loop: AnyLoop,
    pair: Pair,
    numbers: FrameNumbers,
    frames: Sequence[FrameEntry],
    *,
    revision: int,
    suggested: bool,
    answer: Given | None,
    is_known: bool = False,
) -> Question:
    """Return what the page needs to ask about a pair. The pair has engine numbers."""
    reasons = loop.likely(pair).reasons
    expected = expect(loop, pair)
    i, j = numbers.in_source(pair.i), numbers.in_source(pair.j)
    return Question(
        revision=revision,
        i=i,
        j=j,
        label_i=frames[i].label,
        label_j=frames[j].label,
        suggested=suggested,
        overlap=reasons["overlap"],
        position=reasons["position"],
        appearance=reasons["external"],
        joined=expected.joined,
        unknown_px=reasons["spread_px"],
        i_from_j=expected.i_from_j.ravel().tolist(),
        covariance=expected.covariance.ravel().tolist(),
        noise=expected.noise,
        answer=answer,
        is_known=is_known,
    )


VERDICTS = {Verdict.YES: "yes", Verdict.NO: "no", Verdict.UNSURE: "cannot tell"}

STOPPED = {
    StopReason.BUDGET: "the matcher has tried as many pairs as a build does, three for each frame; you can go on",
    StopReason.TARGET: "the error is below the target with 90 % probability",
    StopReason.ENOUGH: "further answers would change little",
    StopReason.NOTHING_FOUND: "the last questions found nothing, and none is likely to",
    StopReason.NO_CANDIDATE: "no other pair would reduce the error noticeably",
}


def describe_answer(pair: Pair, verdict: Verdict) -> str:
    """Return an answer in words."""
    return f"{VERDICTS[verdict]}, frames {pair.i} and {pair.j}"


NOTICEABLE = 1.05
"""A predicted error that rises by less than this factor is not explained."""


def say_learned(before: AnswerState, after: AnswerState, errors_px: Mapping[str, float]) -> str | None:
    """Say what an answer has shown about the mosaic, if the predicted error rose; None otherwise.

    A yes lowers the error by as much as was promised if the noise is what it was taken for. The same answer tells more
    about the noise: then the error was larger than predicted, also before.
    """
    old_px, new_px = errors_px.get(before.key), errors_px.get(after.key)
    old, new = before.loop, after.loop
    if old_px is None or new_px is None or new_px <= NOTICEABLE * old_px:
        return None
    if isinstance(old, PaperLoop) or isinstance(new, PaperLoop):
        return None
    rose = f"The predicted error rose from {old_px:.2g} to {new_px:.2g} px"
    if after.entry is None or after.entry.answer.landmarks is None:
        return f"{rose}: your answers show that other frames overlap than expected."
    if new.part.max() < old.part.max():
        return f"{rose}: it now counts the frames that your answer has joined."
    factors = {
        "the chain was noisier than it claimed": new.estimate.noise_model.noise[CHAIN]
        / old.estimate.noise_model.noise[CHAIN],
        "the mosaic lay less exactly than its matches claimed": math.sqrt(
            calibration(new.estimate) / calibration(old.estimate)
        ),
        "the scene is less flat or less still than it seemed": math.hypot(misfit_px(new.estimate), LEAST_ERROR_PX)
        / math.hypot(misfit_px(old.estimate), LEAST_ERROR_PX),
    }
    return f"{rose}: your answers show that {max(factors, key=lambda cause: factors[cause])}."


def describe_act(entry: LogEntry) -> str:
    """Return the effect of a log entry in words."""
    if entry.act is Act.REMOVE or entry.answer is None:
        assert entry.pair is not None
        return f"removal, frames {entry.pair.i} and {entry.pair.j}"
    return describe_answer(entry.answer.answer.pair, entry.answer.answer.verdict)
