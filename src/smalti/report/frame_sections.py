"""Sections of the report about frames: drift before and after, and where every frame lies."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from smalti.geometry.homographies import project_points
from smalti.project.entries import FrameEntry, LinkState, Role
from smalti.records import Homographies, Points
from smalti.report.findings import Findings, Part
from smalti.report.markup import (
    NOTHING,
    Column,
    Markup,
    count,
    draw_dots,
    draw_label,
    draw_lines,
    draw_list,
    element,
    fold_table,
    join,
    say_number,
    say_px,
    say_ranges,
    view_box,
)
from smalti.report.report_pictures import MOST_PICTURES

MARGIN = 0.1
LETTERS = 1 / 32
"""Of the longer side."""

LEGEND = {
    "way": "path of the frames' centres, first and last frame numbered",
    "reference": "the frame that stays fixed",
    "loop": "accepted link that the engine suggested",
    "rejected": "rejected link",
}


def draw_drift(findings: Findings) -> Markup:
    """Return the section of the drift, two panels of one scale for every mosaic."""
    legend = [
        element("li", element("span", class_=f"key {kind}", aria_hidden="true"), words)
        for kind, words in LEGEND.items()
    ]
    panels = [_draw_part(findings, part) for part in findings.parts[:MOST_PICTURES]]
    return element(
        "section", element("h2", "Drift before and after"), element("ul", *legend, class_="legend"), *panels, id="drift"
    )


def _draw_part(findings: Findings, part: Part) -> Markup:
    box = _common_box(part, findings)
    before = draw_lines(part.segments(findings.trajectory, part.by_chain), "way")
    # What was rejected comes last: the path would hide a link of the chain.
    loops = findings.pairs(LinkState.ACCEPTED, Role.LOOP, Role.NEAR, Role.RETRY)
    after = join(
        draw_lines(part.segments(loops, part.centres), "loop"),
        draw_lines(part.segments(findings.trajectory, part.centres), "way"),
        draw_lines(part.segments(findings.pairs(LinkState.REJECTED), part.centres), "rejected"),
    )
    name = part.name.capitalize()
    return element(
        "div",
        element("h3", name) if len(findings.parts) > 1 else Markup(),
        element(
            "div",
            _draw_panel(part, part.by_chain, before, box, "Before: the chain alone"),
            _draw_panel(part, part.centres, after, box, "After: the finished mosaic"),
            class_="panels",
        ),
        element("p", _say_moves(part)),
    )


def _draw_panel(part: Part, centres: Points, lines: Markup, box: tuple[float, ...], title: str) -> Markup:
    left, top, width, height = box
    letters = LETTERS * max(width, height)
    reference = centres[part.frames.index(part.reference)]
    ends = {0: part.frames[0], len(part.frames) - 1: part.frames[-1]}
    bar = _nice_length(width / 4)
    bar_from = np.array([left + letters, top + height - letters])
    bar_to = bar_from + np.array([bar, 0.0])
    drawing = element(
        "svg",
        lines,
        draw_dots(centres, "way"),
        draw_dots(reference[None], "reference"),
        *(draw_label(str(frame), centres[n], letters) for n, frame in ends.items()),
        draw_lines(np.array([[bar_from, bar_to]]), "bar"),
        draw_label(f"{bar:g} px", (bar_from + bar_to) / 2, letters, "middle"),
        viewBox=view_box(*box),
        role="img",
        aria_label=f"{title}: the centres of {len(part.frames)} frames, joined in their order",
    )
    return element("figure", drawing, element("figcaption", title))


def _say_moves(part: Part) -> str:
    moves = part.moves_px
    farthest = int(np.argmax(moves))
    return (
        f"The answers moved the frames by {say_px(float(np.sqrt(np.mean(moves**2))))} (RMS). Frame "
        f"{part.frames[farthest]} moved most: {say_px(float(moves[farthest]))}. Frame {part.reference} stays fixed."
    )


def _common_box(part: Part, findings: Findings) -> tuple[float, float, float, float]:
    """Return left, top, width and height of what both panels show: it gives them the same scale."""
    points = np.concatenate([part.by_chain, part.centres])
    low, high = points.min(axis=0), points.max(axis=0)
    # A camera that hardly moved is not blown up until its noise looks like a path.
    missing = np.maximum(0.0, findings.outline.outer_half_side / 2 - (high - low))
    margin = missing / 2 + MARGIN * float((high - low + missing).max())
    left, top = low - margin
    width, height = high - low + 2 * margin
    return float(left), float(top), float(width), float(height)


def _nice_length(about: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at most `about`."""
    power = 10.0 ** math.floor(math.log10(about))
    return max(step * power for step in (1, 2, 5) if step == 1 or step * power <= about)


COLUMNS = (
    Column("frame", True),
    Column("label"),
    Column("mosaic", True),
    Column("x px", True, "of the frame's centre on the mosaic"),
    Column("y px", True, "of the frame's centre on the mosaic"),
    Column("rotation °", True, "at the centre, clockwise on the screen"),
    Column("scale", True, "at the centre: mosaic pixels per frame pixel"),
    Column("± px", True, "predicted standard deviation of the centre, relative to the reference frame"),
    Column(
        "confirmed",
        explanation="yes: several matches agree on the place; no: it depends on a single match; by neighbours: "
        "it matches nothing, and lies where the raster has it",
    ),
)

UNMATCHED = "no match joins it to the others"
UNCONFIRMED = "a single match joins them to the others, and no other match confirms it"


def draw_placements(findings: Findings, thumbnails: Mapping[int, str]) -> Markup:
    """Return the section of frames; those that lie nowhere come first, with their pictures as far as there are some."""
    by_neighbours = {number: findings.frames[number].reason or UNMATCHED for number in findings.outcome.by_neighbours}
    by_spots = {number: findings.frames[number].reason or UNMATCHED for number in findings.outcome.by_spots}
    aside = {
        frame.number: frame.reason
        for frame in findings.frames
        if frame.is_set_aside and frame.number in findings.placements and frame.number not in by_neighbours | by_spots
    }
    shown = [frame for frame in findings.frames if not frame.is_between]
    rows = (_row(findings, frame) for frame in shown)
    return element(
        "section",
        element("h2", "Frames"),
        _draw_keyframes(findings),
        _draw_unplaced(findings, thumbnails),
        _list_reasons("Placed by their neighbours in the raster, not by their own pixels", by_neighbours),
        _list_reasons("Placed by a few spots that they share with the tiles around", by_spots),
        _list_reasons("Set aside at first, placed next to a neighbour at the end", aside),
        _list_reasons("Not confirmed", dict.fromkeys(findings.unconfirmed, UNCONFIRMED)),
        fold_table("frame", "Where each frame lies", COLUMNS, rows, len(shown), "transforms.json"),
        id="frames",
    )


def _draw_unplaced(findings: Findings, thumbnails: Mapping[int, str]) -> Markup:
    """Return the frames that lie on no mosaic: all of them by their reasons, and pictures with what to try."""
    listed = _list_reasons("Not placed", findings.not_placed)
    figures = [
        element(
            "figure",
            element("img", src=thumbnails[one.frame], alt=f"frame {findings.label(one.frame)}", loading="lazy"),
            element(
                "figcaption",
                element("strong", findings.label(one.frame)),
                f": {one.reason}. ",
                element("span", f"{one.try_this[0].upper()}{one.try_this[1:]}.", class_="advice"),
            ),
        )
        for one in findings.unplaced
        if one.frame in thumbnails
    ]
    if not figures:
        return listed
    left = len(findings.unplaced) - len(figures)
    rest = f"{count(left, 'more frame is', 'more frames are')} not pictured; smalti info --json lists all of them."
    return join(
        listed,
        element("div", *figures, class_="thumbnails"),
        element("p", rest, class_="quiet") if left else Markup(),
    )


def _draw_keyframes(findings: Findings) -> Markup:
    """Return which frames are keyframes and why, and how the others were placed."""
    if findings.keyframes is None:
        return Markup()
    used = {frame.number for frame in findings.frames if not frame.reason}
    between = sum(frame.is_between and frame.number in findings.placements for frame in findings.frames)
    said = (
        f"{count(len(used), 'frame is a keyframe', 'frames are keyframes')}: only these were matched. "
        f"{count(between, 'frame lies', 'frames lie')} between them. Each was placed by how the camera was followed "
        "from the keyframe before it; what that misses at the keyframe after it is shared out over the way. A track is "
        f"uncertain by {say_px(float(np.median(findings.tracks_px)))} (median), at most by "
        f"{say_px(max(findings.tracks_px))}. The table lists the keyframes, transforms.json all frames. A keyframe is "
        f"taken when {findings.keyframes.share:.0%} of the view is new, or earlier where that is needed."
    )
    why = {number: reason for number, reason in findings.keyframes.why if number in used}
    return join(element("p", said), _list_reasons("Keyframes", why))


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


def _say_confirmed(findings: Findings, number: int) -> str:
    if number in findings.outcome.by_neighbours:
        return "by neighbours"
    return "no" if number in findings.unconfirmed else "yes"


def _row(findings: Findings, frame: FrameEntry) -> list[str]:
    placement = findings.placements.get(frame.number)
    if placement is None:
        return [str(frame.number), frame.label, *[NOTHING] * 7]
    x, y = project_points(placement.final, findings.outline.centre[None])[0]
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
        _say_confirmed(findings, frame.number),
    ]
