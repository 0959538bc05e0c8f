"""Where a session stands: its numbers, its mosaic, its answers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from smalti.adjustment.perspective import residual_px
from smalti.annotation.ledger import Ledger
from smalti.annotation.messages import (
    AnswerRow,
    Counts,
    ErrorAfter,
    LiveMosaic,
    Progress,
    Queue,
    Sheets,
    Stage,
    State,
)
from smalti.annotation.wording import STOPPED, describe_act
from smalti.geometry.affine import square
from smalti.project.entries import Role
from smalti.project.project import Project
from smalti.records import Author, Homographies


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
        parts=len(set(loop.adjustment.parts_without(loop.priors).tolist())),
        concluded=project.is_finished,
        folder=str(project.folder),
        sheets=sheets,
        masked=project.mask is not None,
    )


def describe_mosaic(ledger: Ledger) -> LiveMosaic:
    """Return where every frame lies."""
    loop = ledger.loop
    reference = loop.adjustment.reference
    in_reference = np.column_stack([np.arange(loop.adjustment.frames), np.full(loop.adjustment.frames, reference)])
    part = loop.adjustment.parts_without(loop.priors)
    sizes = np.bincount(part)
    # The largest part is number 0; equal ones keep their order.
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return LiveMosaic(
        revision=ledger.history.revision,
        reference=ledger.used[reference],
        numbers=list(ledger.used),
        maps=loop.agreement.refined.mosaic_from_frame.ravel().tolist(),
        sigma_px=np.sqrt(loop.covariance.of_pairs(in_reference).cov[:, 0, ::2].sum(axis=1)).tolist(),
        parts=rank[part].tolist(),
    )


def live_maps(ledger: Ledger) -> tuple[dict[int, Homographies], dict[int, float]]:
    """Return the maps (3, 3) of the largest part's frames to its mosaic, and how uncertain their places are, px."""
    mosaic = describe_mosaic(ledger)
    maps = square(np.array(mosaic.maps).reshape(-1, 2, 3))
    largest = {number: n for n, number in enumerate(mosaic.numbers) if mosaic.parts[n] == 0}
    return {number: maps[n] for number, n in largest.items()}, {n: mosaic.sigma_px[at] for n, at in largest.items()}


def list_answers(ledger: Ledger) -> list[AnswerRow]:
    """Return all answers in force, those of the chain included, in the order in which they were given."""
    maps = square(ledger.loop.agreement.refined.mosaic_from_frame)
    rows = []
    for entry in ledger.answers():
        answer, inner = entry.answer, ledger.inner(entry.answer.pair)
        landmarks = answer.landmarks
        rows.append(
            AnswerRow(
                place=entry.place,
                i=answer.pair.i,
                j=answer.pair.j,
                role=entry.role,
                verdict=answer.verdict,
                author=answer.author,
                landmarks=0 if landmarks is None else len(landmarks),
                residual_px=None if landmarks is None else residual_px(maps, landmarks.of_pair(inner)),
                held=inner in ledger.loop.held,
                reason=answer.reason,
                seconds=entry.seconds,
            )
        )
    return rows


def _count_answers(ledger: Ledger) -> Counts:
    """Count the answers that are not of the chain."""
    given = [entry.answer for entry in ledger.answers() if entry.role is Role.LOOP]
    verdicts = Counter(str(answer.verdict) for answer in given)
    by_person = sum(answer.author is Author.PERSON for answer in given)
    return Counts(yes=verdicts["yes"], no=verdicts["no"], unsure=verdicts["unsure"], by_person=by_person)
