"""Where a session stands: its numbers, its mosaic, its answers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from smalti.annotation.exports import Placed
from smalti.annotation.ledger import Ledger
from smalti.annotation.messages import (
    AnswerRow,
    Counts,
    ErrorAfter,
    LensNumbers,
    LiveMosaic,
    Progress,
    Queue,
    Sheets,
    Stage,
    State,
)
from smalti.annotation.states import believed_of, references_of, sigma_px_of
from smalti.annotation.wording import STOPPED, describe_act
from smalti.building.results import residual_px
from smalti.engine.confirmation import hanging_frames
from smalti.geometry.lens import Lens
from smalti.project.entries import Role
from smalti.project.project import Project
from smalti.records import Author


def describe_state(
    ledger: Ledger,
    project: Project,
    *,
    queue: Queue,
    target_px: float | None,
    working: Progress | None,
    sheets: Sheets,
) -> State:
    """Return the numbers; `working` is how far the matcher is that answers questions itself just now."""
    history, loop = ledger.history, ledger.loop
    errors = [ErrorAfter(answers=count, predicted_px=value) for count, value in ledger.course.errors()]
    stop = None if working is not None else loop.stop_reason()
    return State(
        revision=history.revision,
        stage=Stage.ASKING,
        progress=working,
        name=project.folder.name.removesuffix(".smalti"),
        source=str(project.source.path),
        queue=queue,
        width=project.width,
        height=project.height,
        frames=len(ledger.frames),
        usable=len(ledger.used),
        counts=_count_answers(ledger),
        predicted_px=errors[-1].predicted_px,
        target_px=target_px,
        target_met=target_px is not None and loop.error_bound_px <= target_px,
        errors=errors,
        undo=None if history.undoable is None else describe_act(history.undoable),
        redo=None if history.redoable is None else describe_act(history.redoable),
        stopped=None if stop is None else STOPPED[stop],
        parts=int(loop.part.max()) + 1,
        concluded=project.is_finished,
        folder=str(project.folder),
        sheets=sheets,
        lens=_lens_numbers(loop.lens),
        masked=project.mask is not None,
    )


def describe_mosaic(ledger: Ledger) -> LiveMosaic:
    """Return where every frame lies."""
    loop = ledger.loop
    return LiveMosaic(
        revision=ledger.history.revision,
        reference=ledger.used[references_of(loop)[0]],
        numbers=list(ledger.used),
        maps=loop.mosaic_from_frame.ravel().tolist(),
        sigma_px=sigma_px_of(loop).tolist(),
        parts=loop.part.tolist(),
    )


def largest_part(ledger: Ledger) -> Placed:
    """Return where the frames of the largest mosaic lie."""
    mosaic = describe_mosaic(ledger)
    maps = np.array(mosaic.maps).reshape(-1, 3, 3)
    places = {number: n for n, number in enumerate(mosaic.numbers) if mosaic.parts[n] == 0}
    hanging = hanging_frames(ledger.loop.frames, believed_of(ledger.loop))
    return Placed(
        {number: maps[n] for number, n in places.items()},
        {number: mosaic.sigma_px[n] for number, n in places.items()},
        mosaic.reference,
        ledger.loop.lens,
        frozenset(number for number, n in places.items() if hanging[n]),
    )


def list_answers(ledger: Ledger) -> list[AnswerRow]:
    """Return all answers in force, those of the chain included, in the order in which they were given."""
    loop = ledger.loop
    maps, part = loop.mosaic_from_frame, loop.part
    rows = []
    for entry in ledger.answers():
        answer, inner = entry.answer, ledger.inner(entry.answer.pair)
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
                landmarks=0 if landmarks is None else len(landmarks),
                residual_px=residual,
                rejected=inner in loop.rejected,
                reason=answer.reason,
                seconds=entry.seconds,
            )
        )
    return rows


def _lens_numbers(lens: Lens) -> LensNumbers | None:
    if lens.is_straight:
        return None
    centre_x, centre_y, unit_px, k1, k2 = lens.numbers
    return LensNumbers(centre_x=centre_x, centre_y=centre_y, unit_px=unit_px, k1=k1, k2=k2)


def _count_answers(ledger: Ledger) -> Counts:
    """Count the answers that are not of the chain."""
    given = [entry.answer for entry in ledger.answers() if entry.role is Role.LOOP]
    verdicts = Counter(str(answer.verdict) for answer in given)
    by_person = sum(answer.author is Author.PERSON for answer in given)
    return Counts(yes=verdicts["yes"], no=verdicts["no"], unsure=verdicts["unsure"], by_person=by_person)
