"""The mosaics as pictures, with what can be laid over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from smalti.geometry.homography import project as project_points
from smalti.project.entries import LinkState
from smalti.project.project import Project
from smalti.rendering.canvas import Canvas
from smalti.report.findings import Findings, Part
from smalti.report.header import link_to
from smalti.report.markup import Markup, element, join
from smalti.report.preview import LARGEST_SIDE, MOST_PICTURES, encode_preview, share_bytes
from smalti.report.strokes import draw_dots, draw_label, draw_lines, draw_outlines, view_box
from smalti.report.wording import count, say_px

OVERLAYS = {"outlines": "Outlines of the frames", "path": "Path of the camera", "links": "Links"}

MAPS = {"affine": "affine maps", "homography": "homographies"}

LETTERS = 1 / 45
"""Of the longer side."""


def draw_mosaics(project: Project, findings: Findings, page: Path, mosaics: Sequence[Path]) -> Markup:
    """Return the section of the mosaics, rendered for it."""
    shown = findings.parts[:MOST_PICTURES]
    figures = []
    for part, most_bytes in zip(shown, share_bytes(shown), strict=True):
        file = link_to(mosaics[part.number], page) if mosaics else None
        figures.append(_draw_mosaic(project, findings, part, most_bytes, file))
    hidden = len(findings.parts) - len(shown)
    rest = element("p", f"{count(hidden, 'smaller mosaic')} not shown; see the files.") if hidden else Markup()
    return element(
        "section", element("h2", "The mosaic" if len(figures) == 1 else "The mosaics"), *figures, rest, id="mosaic"
    )


def _draw_mosaic(project: Project, findings: Findings, part: Part, most_bytes: int, file: str | None) -> Markup:
    mosaic = project.mosaic(part.number)
    canvas = mosaic.canvas()
    picture = element(
        "img",
        src=encode_preview(mosaic.image(LARGEST_SIDE), most_bytes),
        width=canvas.width,
        height=canvas.height,
        alt=f"{part.name.capitalize()}, made of {count(len(part.frames), 'frame')}",
    )
    switches = []
    for kind, words in OVERLAYS.items():
        name = f"{kind}-{part.number}"
        switches.append(element("input", type="checkbox", id=name, class_=f"show-{kind}"))
        switches.append(element("label", words, for_=name))
    return element(
        "figure",
        element("h3", part.name.capitalize()) if len(findings.parts) > 1 else Markup(),
        *switches,
        element("div", element("a", picture, href=file), draw_overlay(findings, part, canvas), class_="stage"),
        element("figcaption", _say_mosaic(findings, part, canvas)),
        class_="mosaic",
    )


def draw_overlay(findings: Findings, part: Part, canvas: Canvas) -> Markup:
    """Return outlines, path and links in the pixels of a canvas, to be laid over its picture."""
    corners = project_points(canvas.canvas_from_frame(part.final), findings.outline.corners)
    centres = project_points(canvas.canvas_from_mosaic, part.centres)
    letters = LETTERS * max(canvas.width, canvas.height)
    ends = {0: part.frames[0], len(part.frames) - 1: part.frames[-1]}
    return element(
        "svg",
        element("g", draw_outlines(corners, "outline"), class_="outlines"),
        element(
            "g",
            draw_lines(part.segments(findings.trajectory, centres), "way"),
            draw_dots(centres, "way"),
            join(*(draw_label(str(frame), centres[n], letters) for n, frame in ends.items())),
            class_="path",
        ),
        # Over the path, which would hide a link of the chain that was not believed.
        element(
            "g",
            draw_lines(part.segments(findings.pairs(LinkState.BELIEVED), centres), "link"),
            draw_lines(part.segments(findings.pairs(LinkState.HELD), centres), "held"),
            class_="links",
        ),
        viewBox=view_box(-0.5, -0.5, canvas.width, canvas.height),
        # The preview's sides are rounded to whole pixels, each for itself.
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _say_mosaic(findings: Findings, part: Part, canvas: Canvas) -> str:
    measured = "" if part.left_out_px is None else f"; {say_px(part.left_out_px)} on links left out of the fit"
    return (
        f"{count(len(part.frames), 'frame')}, {canvas.width} × {canvas.height} px, "
        f"placed by {MAPS[part.finish]}{measured}. "
        f"Its coordinates are those of frame {findings.label(part.reference)}. "
        "The path numbers its first and last frame; links that were not believed are red and dashed."
    )
