"""Landmarks between page and engine: conversion, checks, snapping to the best correlation and to vessels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from smalti.annotation.messages import (
    LARGEST_SIGMA_PX,
    LEAST_SIGMA_PX,
    GiveAnswer,
    Given,
    Landmark,
    Message,
    Origin,
    Side,
    Snapped,
    SnapPoint,
    TracedVessel,
    TraceVessel,
)
from smalti.annotation.page_pictures import Pictures
from smalti.annotation.session_state import AnyLoop, scales_of
from smalti.engine.links import spread_out
from smalti.errors import LandmarkError
from smalti.geometry.linear_maps import invert
from smalti.paper.paper_loop import PaperLoop
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from smalti.registration.curves import CurveMatch, match_vessels
from smalti.registration.snapping import snap
from smalti.registration.vessels import trace_vessel

SIGMA_PX = {
    Origin.CLICKED: 1.5,
    Origin.SNAPPED: 0.5,
    Origin.MATCHED: 1.0,
    Origin.ALIGNED: 1.0,
    Origin.LAID: 3.0,
    Origin.TRACED: 1.0,
}
"""Standard deviation of a landmark, unless it has its own."""

FEWEST_TO_CHECK = 4
"""With so many landmarks, one of them can be left out: three still give a map."""

MOST_SHOWN = 24
"""Landmarks of a matcher that the page shows, spread over the overlap."""

LARGEST_SCALE = 50.0
"""Largest scale between two frames."""

SMALLEST_DETERMINANT = 1e-6
"""Of a map between two frames: one with less is flat."""

MARGIN = 2.0
"""A landmark must lie in the frame enlarged by this factor. An expected position may lie outside the frame."""

_SHEET = TypeAdapter(list[Landmark])


class _Details(Message):
    """What the log keeps of an answer for the page, besides the answer itself."""

    landmarks: tuple[Landmark, ...] = ()
    person: str = ""
    known: Verdict | None = None  # of a pair that was asked to measure the person


def read_landmarks(pair: Pair, sheet: list[Landmark], loop: AnyLoop) -> Landmarks:
    """Return the active landmarks, at least one. Refuse landmarks that no camera can produce."""
    active = [landmark for landmark in sheet if landmark.active and not landmark.check]
    landmarks = Landmarks(
        pair,
        np.array([(landmark.x_i, landmark.y_i) for landmark in active]).reshape(-1, 2),
        np.array([(landmark.x_j, landmark.y_j) for landmark in active]).reshape(-1, 2),
        np.array([landmark.sigma_px or SIGMA_PX[landmark.origin] for landmark in active]),
        np.array([direction_of(landmark) for landmark in active]).reshape(-1, 2),
    )
    largest, smallest = scales_of(loop, landmarks)
    for frame, points in ((pair.i, landmarks.points_i), (pair.j, landmarks.points_j)):
        if not loop.outline.scaled(MARGIN).contains(points).all():
            raise LandmarkError(f"pair {pair}: a landmark lies far outside frame {frame}, move it into the frame")
    if largest > LARGEST_SCALE or smallest * LARGEST_SCALE < 1.0:
        raise LandmarkError(
            f"pair {pair}: the landmarks stretch frame {pair.j} by {largest:.3g} and {smallest:.3g} into frame "
            f"{pair.i}, spread them out or check that each marks the same point in both"
        )
    return landmarks


def direction_of(landmark: Landmark) -> tuple[float, float]:
    """Return the unit vector along the curve of a landmark, (0, 0) for one on none."""
    if landmark.along_deg is None:
        return 0.0, 0.0
    angle = math.radians(landmark.along_deg)
    return math.cos(angle), math.sin(angle)


def degrees_of_directions(along: NDArray[np.float64]) -> list[float | None]:
    """Return the angles of unit vectors (n, 2), None for (0, 0)."""
    return [math.degrees(math.atan2(y, x)) if x or y else None for x, y in along.tolist()]


def read_answer(request: GiveAnswer, role: Role, loop: AnyLoop, known: Verdict | None = None) -> AnswerEntry:
    """Return a person's answer as the log stores it. Inactive landmarks are kept in the details.

    `known` is what is known of a pair that was asked to measure the person.
    """
    pair = Pair(request.i, request.j)
    landmarks = read_landmarks(pair, request.landmarks, loop) if request.verdict is Verdict.YES else None
    answer = Answer(pair, request.verdict, landmarks, request.reason, Author.PERSON)
    kept = _Details(
        landmarks=tuple(map(_with_sigma, request.landmarks)), person=person_named(request.person), known=known
    )
    details = kept.model_dump_json(exclude_defaults=True) if kept != _Details() else ""
    return AnswerEntry(answer, role, request.seconds, details)


def person_named(name: str) -> str:
    """Return a person's name without needless spaces."""
    return " ".join(name.split())


def leave_last_out(sheet: list[Landmark]) -> list[Landmark]:
    """Return landmarks with the last that a person has set for checking only, if four or more are active.

    Nothing changes where the person has chosen one. Landmarks of the matcher say nothing about a person.
    """
    own = [n for n, one in enumerate(sheet) if one.active and one.origin in (Origin.CLICKED, Origin.SNAPPED)]
    if not own or sum(one.active for one in sheet) < FEWEST_TO_CHECK or any(one.check for one in sheet):
        return sheet
    left_out = sheet[own[-1]].model_copy(update={"active": False, "check": True})
    return [*sheet[: own[-1]], left_out, *sheet[own[-1] + 1 :]]


def _with_sigma(landmark: Landmark) -> Landmark:
    """Return a landmark that is left out with its standard deviation, which is compared with the mosaic later."""
    if not landmark.check:
        return landmark
    sigma_px = landmark.sigma_px or SIGMA_PX[landmark.origin]
    return landmark.model_copy(update={"active": False, "sigma_px": sigma_px})


def write_given(entry: AnswerEntry) -> Given:
    """Return an answer in the form of the page."""
    answer = entry.answer
    return Given(verdict=answer.verdict, landmarks=_write_landmarks(entry), author=answer.author, reason=answer.reason)


def write_matched(landmarks: Landmarks, origin: Origin = Origin.MATCHED) -> list[Landmark]:
    """Return some of a matcher's landmarks, spread out.

    If all pixels gave each its own deviation, those shown have smaller ones: together they say as much as all.
    """
    chosen = spread_out(landmarks.points_j, MOST_SHOWN)
    sigmas: list[float | None] = [None] * len(chosen)
    if np.ndim(landmarks.sigma) > 0:
        own = np.asarray(landmarks.sigma)[chosen] * np.sqrt(len(chosen) / len(landmarks))
        sigmas = np.clip(own, LEAST_SIGMA_PX, LARGEST_SIGMA_PX).tolist()
    sides = np.hstack([landmarks.points_i, landmarks.points_j])[chosen]
    angles = degrees_of_directions(landmarks.directions[chosen])
    return [
        Landmark(x_i=a, y_i=b, x_j=c, y_j=d, origin=origin, sigma_px=sigma, along_deg=angle)
        for (a, b, c, d), sigma, angle in zip(sides.tolist(), sigmas, angles, strict=True)
    ]


def _write_landmarks(entry: AnswerEntry) -> list[Landmark]:
    if entry.details:
        try:
            if entry.details.startswith("["):  # of 0.2.0: nobody had a name
                return _SHEET.validate_json(entry.details)
            return list(_Details.model_validate_json(entry.details).landmarks)
        except ValidationError:
            # Another program wrote the details. The active points are in the entry itself.
            pass
    return [] if entry.answer.landmarks is None else write_matched(entry.answer.landmarks)


def snap_landmark(request: SnapPoint, pictures: Pictures, mask: NDArray[np.bool_] | None) -> Snapped:
    """Move one side of a landmark to the best correlation."""
    i, j = np.array([request.x_i, request.y_i]), np.array([request.x_j, request.y_j])
    i_from_j = np.array(request.i_from_j).reshape(2, 3)
    if not abs(np.linalg.det(i_from_j[:, :2])) > SMALLEST_DETERMINANT:
        return Snapped(
            found=False,
            x=0.0,
            y=0.0,
            correlation=0.0,
            reason="the positions of the frames are not known well enough yet",
        )
    if request.moving is Side.I:
        fixed, moving, fixed_point, moving_point, moving_from_fixed = request.j, request.i, j, i, i_from_j
    else:
        fixed, moving, fixed_point, moving_point, moving_from_fixed = request.i, request.j, i, j, invert(i_from_j)
    found = snap(
        pictures.gray(fixed),
        pictures.gray(moving),
        fixed_point,
        moving_point,
        moving_from_fixed,
        request.radius,
        mask,
        mask,
    )
    x, y = found.point.tolist()
    return Snapped(found=found.found, x=x, y=y, correlation=found.correlation, reason=found.reason)


def trace_both(request: TraceVessel, pictures: Pictures, mask: NDArray[np.bool_] | None, loop: AnyLoop) -> TracedVessel:
    """Snap both strokes to the vessel under them, match its lines, and return landmarks on it."""
    if isinstance(loop, PaperLoop):
        return _no_vessel("the paper's method takes points only, mark points instead of vessels")
    in_i, in_j = (
        trace_vessel(pictures.gray(frame), np.array(stroke, dtype=np.float64).reshape(-1, 2), mask)
        for frame, stroke in ((request.i, request.stroke_i), (request.j, request.stroke_j))
    )
    for frame, vessel in ((request.i, in_i), (request.j, in_j)):
        if not vessel.found:
            return _no_vessel(f"frame {frame}: {vessel.reason}")
    i_from_j = np.array(request.i_from_j).reshape(3, 3)
    if not abs(np.linalg.det(i_from_j)) > SMALLEST_DETERMINANT:
        return _no_vessel("the expected place of the frames is not known well enough, mark points instead")
    match = match_vessels(in_i, in_j, i_from_j, request.sigma_px, loop.lens)
    if not match.found:
        return _no_vessel(match.reason)
    return TracedVessel(found=True, landmarks=_landmarks_on(match), distance_px=match.distance_px, reason="")


def _no_vessel(reason: str) -> TracedVessel:
    return TracedVessel(found=False, landmarks=[], distance_px=0.0, reason=reason)


def _landmarks_on(match: CurveMatch) -> list[Landmark]:
    numbers = np.column_stack([match.points_i, match.points_j, match.sigma_px]).tolist()
    return [
        Landmark(x_i=a, y_i=b, x_j=c, y_j=d, origin=Origin.TRACED, sigma_px=sigma, along_deg=angle, curve=0)
        for (a, b, c, d, sigma), angle in zip(numbers, degrees_of_directions(match.along), strict=True)
    ]
