"""Where the frames lie, and which lie nowhere."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from smalti.geometry.homography import project as project_points
from smalti.project.entries import FrameEntry
from smalti.records import Homographies, Points
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element, join
from smalti.report.tables import Column, draw_list, draw_table, fold_table
from smalti.report.wording import NOTHING, count, say_number, say_ranges

COLUMNS = (
    Column("frame", True),
    Column("label"),
    Column("mosaic", True),
    Column("x px", True, "of the frame's centre on the mosaic"),
    Column("y px", True, "of the frame's centre on the mosaic"),
    Column("rotation °", True, "at the centre, clockwise on the screen"),
    Column("scale", True, "at the centre: mosaic pixels a frame pixel"),
    Column("± px", True, "predicted standard deviation of the centre, relative to the reference frame"),
    Column("confirmed", explanation="yes: several matches agree on its place; no: it rests on a single match"),
)

UNCONFIRMED = "if the single match that joins them to the others is wrong, nothing contradicts it"


def draw_placements(findings: Findings) -> Markup:
    """Return the section of frames; those that lie nowhere come first."""
    aside = {
        frame.number: frame.reason for frame in findings.frames if frame.reason and frame.number in findings.placements
    }
    rows = [_row(findings, frame) for frame in findings.frames]
    table = draw_table("Where each frame lies", COLUMNS, rows, sortable=True)
    return element(
        "section",
        element("h2", "Frames"),
        _list_reasons("Not placed", findings.not_placed),
        _list_reasons("Set aside at first, placed beside a neighbour at last", aside),
        _list_reasons("Not confirmed", dict.fromkeys(findings.unconfirmed, UNCONFIRMED)),
        fold_table(count(len(rows), "frame"), table, len(rows)),
        id="frames",
    )


def rotation_and_scale(mosaic_from_frame: Homographies, centre: Points) -> tuple[float, float]:
    """Return by which angle (degrees, clockwise on the screen) and scale a map (3, 3) acts at a point (2,)."""
    mapped = project_points(mosaic_from_frame, centre[None])[0]
    depth = mosaic_from_frame[2] @ (*centre, 1.0)
    local = (mosaic_from_frame[:2, :2] - np.outer(mapped, mosaic_from_frame[2, :2])) / depth
    angle = math.degrees(math.atan2(local[1, 0] - local[0, 1], local[0, 0] + local[1, 1]))
    return angle, math.sqrt(abs(np.linalg.det(local)))


def _list_reasons(title: str, reasons: Mapping[int, str]) -> Markup:
    if not reasons:
        return Markup()
    by_reason: dict[str, list[int]] = {}
    for number, reason in sorted(reasons.items()):
        by_reason.setdefault(reason, []).append(number)
    items = [
        join(element("strong", f"{reason}: "), f"{'frame' if len(numbers) == 1 else 'frames'} {say_ranges(numbers)}")
        for reason, numbers in by_reason.items()
    ]
    return join(element("h3", f"{title}: {count(len(reasons), 'frame')}"), draw_list(items))


def _row(findings: Findings, frame: FrameEntry) -> list[str]:
    placement = findings.placements.get(frame.number)
    if placement is None:
        return [str(frame.number), frame.label, *[NOTHING] * 7]
    part = findings.parts[placement.part]
    x, y = part.centres[part.frames.index(frame.number)]
    angle, scale = rotation_and_scale(placement.final, findings.outline.centre)
    return [
        str(frame.number),
        frame.label,
        str(placement.part + 1),
        say_number(float(x), 2),
        say_number(float(y), 2),
        say_number(angle, 3),
        say_number(scale, 5),
        say_number(placement.sigma_px, 2),
        "no" if frame.number in findings.unconfirmed else "yes",
    ]
