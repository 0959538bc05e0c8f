"""Vessels that a person draws along in both frames: strokes in, landmarks on the vessel out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.annotation.landmark_messages import SMALLEST_DETERMINANT, degrees_of_directions
from smalti.annotation.messages import Landmark, Origin, TracedVessel, TraceVessel
from smalti.annotation.page_pictures import Pictures
from smalti.annotation.session_state import AnyLoop
from smalti.paper.paper_loop import PaperLoop
from smalti.registration.curves import CurveMatch, match_vessels
from smalti.registration.vessels import trace_vessel


def trace_both(request: TraceVessel, pictures: Pictures, mask: NDArray[np.bool_] | None, loop: AnyLoop) -> TracedVessel:
    """Snap both strokes to the vessel under them, match its lines, and return landmarks on it."""
    if isinstance(loop, PaperLoop):
        return _refuse("the paper's method takes points only, mark points instead of vessels")
    in_i, in_j = (
        trace_vessel(pictures.gray(frame), np.array(stroke, dtype=np.float64).reshape(-1, 2), mask)
        for frame, stroke in ((request.i, request.stroke_i), (request.j, request.stroke_j))
    )
    for frame, vessel in ((request.i, in_i), (request.j, in_j)):
        if not vessel.found:
            return _refuse(f"frame {frame}: {vessel.reason}")
    i_from_j = np.array(request.i_from_j).reshape(3, 3)
    if not abs(np.linalg.det(i_from_j)) > SMALLEST_DETERMINANT:
        return _refuse("the expected place of the frames is not known well enough, mark points instead")
    match = match_vessels(in_i, in_j, i_from_j, request.sigma_px, loop.lens)
    if not match.found:
        return _refuse(match.reason)
    return TracedVessel(found=True, landmarks=_landmarks(match), distance_px=match.distance_px, reason="")


def _refuse(reason: str) -> TracedVessel:
    return TracedVessel(found=False, landmarks=[], distance_px=0.0, reason=reason)


def _landmarks(match: CurveMatch) -> list[Landmark]:
    numbers = np.column_stack([match.points_i, match.points_j, match.sigma_px]).tolist()
    return [
        Landmark(x_i=a, y_i=b, x_j=c, y_j=d, origin=Origin.TRACED, sigma_px=sigma, along_deg=angle, curve=0)
        for (a, b, c, d, sigma), angle in zip(numbers, degrees_of_directions(match.along), strict=True)
    ]
