"""Drift before and after: the path of the camera by the chain alone, and at last."""

from __future__ import annotations

import math

import numpy as np

from smalti.project.entries import LinkState, Role
from smalti.records import Points
from smalti.report.findings import Findings, Part
from smalti.report.markup import Markup, element, join
from smalti.report.preview import MOST_PICTURES
from smalti.report.strokes import draw_dots, draw_label, draw_lines, view_box
from smalti.report.wording import say_px

MARGIN = 0.1
LETTERS = 1 / 32
"""Of the longer side."""

LEGEND = {
    "way": "path of the frames' centres, first and last frame numbered",
    "reference": "the frame that stays fixed",
    "loop": "link suggested by the engine, believed",
    "rejected": "link that was rejected",
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
    after = join(
        draw_lines(part.segments(findings.pairs(LinkState.BELIEVED, Role.LOOP), part.centres), "loop"),
        draw_lines(part.segments(findings.trajectory, part.centres), "way"),
        draw_lines(part.segments(findings.pairs(LinkState.REJECTED), part.centres), "rejected"),
    )
    name = part.name.capitalize()
    return element(
        "div",
        element("h3", name) if len(findings.parts) > 1 else Markup(),
        element(
            "div",
            _draw_panel(part, part.by_chain, before, box, "Before: by the chain alone"),
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
        f"Between the two the frames moved by {say_px(float(np.sqrt(np.mean(moves**2))))} (RMS), frame "
        f"{part.frames[farthest]} the most: {say_px(float(moves[farthest]))}. Frame {part.reference} stays fixed."
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
