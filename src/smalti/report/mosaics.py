"""The mosaics as pictures, with what can be laid over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from smalti.geometry.homography import project as project_points
from smalti.project.entries import LinkState
from smalti.project.project import Project
from smalti.project.state import FinishedState, state_of
from smalti.project.uncertainty import Uncertainty
from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic import Mosaic
from smalti.report.findings import Findings, Part
from smalti.report.header import link_to
from smalti.report.maps import Map, make_maps
from smalti.report.markup import Markup, element, join
from smalti.report.preview import LARGEST_SIDE, MOST_PICTURES, encode_preview, share_bytes
from smalti.report.strokes import draw_dots, draw_label, draw_lines, draw_outlines, view_box
from smalti.report.wording import count

OVERLAYS = {"outlines": "Outlines of the frames", "path": "Path of the camera", "links": "Links"}

MAPS = {
    "translation": "shifts",
    "rigid": "shifts and turns",
    "similarity": "shifts, turns and scales",
    "affine": "affine maps",
    "projective": "homographies",
}

LETTERS = 1 / 45
"""Of the longer side."""

ALL_MAPS, FEWEST_MAPS = 340_000, 5_000
"""Characters that the maps of all mosaics may take in the page, and those of each in any case."""


def draw_mosaics(project: Project, findings: Findings, page: Path, mosaics: Sequence[Path]) -> Markup:
    """Return the section of the mosaics, rendered for it."""
    shown = findings.parts[:MOST_PICTURES]
    shares = zip(shown, share_bytes(shown), share_bytes(shown, ALL_MAPS, FEWEST_MAPS), strict=True)
    figures = []
    state = None if findings.facts["method"] == "paper" else state_of(project)
    for part, most_bytes, most_of_maps in shares:
        mosaic = project.mosaic(part.number)
        whole = mosaic.canvas()
        # One canvas for both, so that the maps speak of the very picture that they lie over.
        preview = mosaic.canvas(min(1.0, LARGEST_SIDE / max(whole.width, whole.height)))
        picture = _draw_picture(encode_preview(mosaic.render(preview), most_bytes), part, whole)
        maps = _make_maps(project, state, mosaic, part, preview, most_of_maps)
        file = link_to(mosaics[part.number], page) if mosaics else None
        figures.append(_draw_mosaic(findings, part, whole, element("a", picture, href=file), maps))
    hidden = len(findings.parts) - len(shown)
    rest = element("p", f"{count(hidden, 'smaller mosaic')} not shown; see the files.") if hidden else Markup()
    return element(
        "section", element("h2", "The mosaic" if len(figures) == 1 else "The mosaics"), *figures, rest, id="mosaic"
    )


def _draw_mosaic(findings: Findings, part: Part, canvas: Canvas, picture: Markup, maps: Sequence[Map]) -> Markup:
    views = {"picture": "Picture", **{one.kind: one.title for one in maps}}
    stage = [picture, *(one.draw() for one in maps), draw_overlay(findings, part, canvas)]
    return element(
        "figure",
        element("h3", part.name.capitalize()) if len(findings.parts) > 1 else Markup(),
        _draw_switches("Show", "radio", views, part),
        _draw_switches("Draw over it", "checkbox", OVERLAYS, part),
        element("div", *stage, class_="stage"),
        element("p", class_="reading", hidden=True),
        *(one.draw_key() for one in maps),
        element("figcaption", _say_mosaic(findings, part, canvas)),
        class_="mosaic",
    )


def _draw_picture(address: str, part: Part, canvas: Canvas) -> Markup:
    made_of = count(len(part.frames), "frame")
    alt = f"{part.name.capitalize()}, made of {made_of}"
    return element("img", src=address, width=canvas.width, height=canvas.height, alt=alt)


def _make_maps(
    project: Project, state: FinishedState | None, mosaic: Mosaic, part: Part, canvas: Canvas, most_bytes: int
) -> list[Map]:
    spread = Uncertainty.of(project, part.number, state=state).spread
    return make_maps(mosaic.maps(canvas, spread), relative_to=part.reference, most_bytes=most_bytes)


def _draw_switches(title: str, kind: str, choices: Mapping[str, str], part: Part) -> Markup:
    switches = []
    for n, (choice, words) in enumerate(choices.items()):
        switch = element(
            "input",
            type=kind,
            id=f"{choice}-{part.number}",
            name=f"view-{part.number}" if kind == "radio" else None,
            class_=f"show-{choice}",
            checked=kind == "radio" and n == 0,
            autocomplete="off",  # or a browser that loads the page anew brings back what was chosen before
        )
        switches.append(element("label", switch, words))
    return element("fieldset", element("legend", title), *switches, class_=f"switches {kind}")


def draw_overlay(findings: Findings, part: Part, canvas: Canvas) -> Markup:
    """Return outlines, path and links in the pixels of a canvas, to be laid over its picture."""
    rims = project_points(canvas.canvas_from_frame(part.final), findings.lens.rim)
    centres = project_points(canvas.canvas_from_mosaic, part.centres)
    letters = LETTERS * max(canvas.width, canvas.height)
    ends = {0: part.frames[0], len(part.frames) - 1: part.frames[-1]}
    return element(
        "svg",
        element("g", draw_outlines(rims, "outline"), class_="outlines"),
        element(
            "g",
            draw_lines(part.segments(findings.trajectory, centres), "way"),
            draw_dots(centres, "way"),
            join(*(draw_label(str(frame), centres[n], letters) for n, frame in ends.items())),
            class_="path",
        ),
        # Over the path, which would hide a link of the chain that was rejected.
        element(
            "g",
            draw_lines(part.segments(findings.pairs(LinkState.BELIEVED), centres), "link"),
            draw_lines(part.segments(findings.pairs(LinkState.REJECTED), centres), "rejected"),
            class_="links",
        ),
        viewBox=view_box(-0.5, -0.5, canvas.width, canvas.height),
        # The preview's sides are rounded to whole pixels, each for itself.
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _say_mosaic(findings: Findings, part: Part, canvas: Canvas) -> str:
    return (
        f"{count(len(part.frames), 'frame')}, {canvas.width} × {canvas.height} px, "
        f"placed by {MAPS[findings.facts['family']]}. "
        f"Its place, turn and scale are those of frame {findings.label(part.reference)}. "
        "The path numbers its first and last frame; links that were rejected are red and dashed."
    )
