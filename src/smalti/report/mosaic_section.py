"""The top of the report, and the mosaics with their layers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import numpy as np

from smalti.errors import ProjectError
from smalti.geometry.homographies import project_points
from smalti.project.entries import LinkState
from smalti.project.project import Project
from smalti.project.uncertainty import Uncertainty, state_of
from smalti.rendering.canvas import Canvas
from smalti.report.findings import Findings, Part
from smalti.report.markup import (
    Markup,
    count,
    draw_dots,
    draw_label,
    draw_lines,
    draw_list,
    draw_outlines,
    element,
    join,
    say_lens,
    say_list,
    say_px,
    view_box,
)
from smalti.report.report_pictures import Map, View, share_page

MOST_LISTED = 6
"""Mosaics whose frames are counted one by one."""

TABLES = {
    "transforms.json": "where each frame lies, for other programs",
    "landmarks.csv": "the landmarks of all accepted links",
}


def draw_header(findings: Findings, page: Path, folder: Path, mosaics: Sequence[Path]) -> Markup:
    """Return the header of a page that will lie at `page`; `folder` is the project's."""
    return element(
        "header",
        element("p", "Smalti report", class_="kicker"),
        element("h1", findings.source),
        element("p", say_placed(findings), class_="lead"),
        element("p", *_say_error(findings), class_="error"),
        Markup() if findings.lens.is_undistorted else element("p", say_lens(findings.lens), class_="quiet"),
        _list_concerns(findings),
        _list_files(findings, page, folder, mosaics),
        element("p", _say_when(mosaics), class_="quiet"),
    )


def say_placed(findings: Findings) -> str:
    """Return how many frames were placed, and on what."""
    placed, parts = len(findings.placements), findings.parts
    frames = count(len(findings.frames), "frame")
    if not parts:
        return f"Placed none of {frames}: no two of them could be matched."
    if len(parts) == 1:
        return f"Placed {placed} of {frames} on one mosaic."
    sizes = np.bincount([placement.part for placement in findings.placements.values()]).tolist()
    shown = f"{say_list(map(str, sizes))} frames" if len(sizes) <= MOST_LISTED else f"{sizes[0]} frames on the largest"
    return f"Placed {placed} of {frames} on {len(parts)} separate mosaics: {shown}."


def link_to(target: Path, page: Path) -> str:
    """Return the address of a file relative to the page."""
    return quote(Path(os.path.relpath(target, page.parent)).as_posix())


def _say_error(findings: Findings) -> list[str]:
    if not findings.parts:
        return ["There is no mosaic, so no error can be measured."]
    outcome = findings.outcome
    where = "" if len(findings.parts) == 1 else " of the largest mosaic"
    measured = (
        [element("strong", say_px(outcome.left_out_px)), " measured on matches not used for the fit"]
        if outcome.left_out_px is not None
        else ["not measured, because there are too few matches"]
    )
    before = (
        f"{say_px(outcome.chain_error_px)} measured on the loops, {say_px(outcome.chain_predicted_px)} predicted."
        if outcome.chain_error_px is not None
        else f"{say_px(outcome.chain_predicted_px)} predicted, not measured because no loop was found."
    )
    predicted = element("strong", say_px(outcome.predicted_error_px))
    return [f"Error{where}: ", *measured, ", ", predicted, " predicted. With the chain alone: ", before]


def _list_concerns(findings: Findings) -> Markup:
    rejected = len(findings.pairs(LinkState.REJECTED))
    unconfirmed = len(findings.unconfirmed)
    unjoined = len(findings.outcome.unjoined)
    concerns = [
        (len(findings.not_placed), count(len(findings.not_placed), "frame") + " could not be placed", "#frames"),
        (rejected, count(rejected, "match was", "matches were") + " rejected", "#rejected"),
        (unconfirmed, count(unconfirmed, "frame depends", "frames depend") + " on a single match", "#frames"),
        (unjoined, count(unjoined, "break") + " in the sequence could not be joined", "#breaks"),
    ]
    items = [element("a", words, href=address) for number, words, address in concerns if number]
    return element("div", draw_list(items), class_="concerns") if items else Markup()


def _list_files(findings: Findings, page: Path, folder: Path, mosaics: Sequence[Path]) -> Markup:
    files = [
        (
            path,
            "the mosaic at full resolution"
            if len(mosaics) == 1
            else f"{part.name}, {count(len(part.frames), 'frame')}",
        )
        for path, part in zip(mosaics, findings.parts, strict=False)
    ]
    files += [(folder / name, meaning) for name, meaning in TABLES.items() if (folder / name).exists()]
    items = [join(element("a", path.name, href=link_to(path, page)), f": {meaning}") for path, meaning in files]
    return element("nav", element("h2", "Files"), draw_list(items), aria_label="Files") if items else Markup()


def _say_when(mosaics: Sequence[Path]) -> str:
    # The time of the files and not of now: the same project gives the same page.
    times = []
    for path in mosaics:
        try:
            times.append(path.stat().st_mtime)
        except OSError as error:
            raise ProjectError(f"{path}: the mosaic cannot be read ({error.strerror}); build again") from None
    return f"Rendered {datetime.fromtimestamp(max(times), UTC):%Y-%m-%d %H:%M} UTC." if times else ""


OVERLAYS = {"outlines": "Outlines of the frames", "path": "Path of the camera", "links": "Links"}

MAPS = {
    "translation": "shifts",
    "rigid": "shifts and rotations",
    "similarity": "shifts, rotations and scales",
    "affine": "affine maps",
    "projective": "homographies",
}

LETTERS = 1 / 45
"""Of the longer side."""

MOST_OUTLINES = 1000
"""Outlines of more frames would fill the picture. Some frames, evenly chosen, have one then."""


def make_views(project: Project, findings: Findings) -> list[View]:
    """Paint the mosaics that the page shows, and return their pictures."""
    mosaics = None if findings.outcome.method == "paper" else state_of(project).mosaics
    return [
        View.of(project.mosaic(part).overview(), Uncertainty.of(project, part, mosaics=mosaics), share)
        for part, share in enumerate(share_page([len(part.frames) for part in findings.parts]))
    ]


def draw_mosaics(findings: Findings, page: Path, mosaics: Sequence[Path], views: Sequence[View]) -> Markup:
    """Return the section of the mosaics, with a view of each that is shown."""
    figures = []
    for part, view in zip(findings.parts, views, strict=False):
        file = link_to(mosaics[part.number], page) if mosaics else None
        picture = element("a", _draw_picture(view.preview, part, view.canvas), href=file)
        figures.append(_draw_mosaic(findings, part, view.canvas, picture, view.maps))
    hidden = len(findings.parts) - len(figures)
    rest = element("p", f"{count(hidden, 'smaller mosaic')} not shown here; see the files.") if hidden else Markup()
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
        _draw_switches("Draw on top", "checkbox", OVERLAYS, part),
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
    rims = project_points(canvas.canvas_from_frame(part.final[:: _outline_step(part)]), findings.lens.rim)
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
            draw_lines(part.segments(findings.pairs(LinkState.ACCEPTED), centres), "link"),
            draw_lines(part.segments(findings.pairs(LinkState.REJECTED), centres), "rejected"),
            class_="links",
        ),
        viewBox=view_box(-0.5, -0.5, canvas.width, canvas.height),
        # The preview's sides are rounded to whole pixels, each for itself.
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _outline_step(part: Part) -> int:
    return -(-len(part.frames) // MOST_OUTLINES)


def _say_mosaic(findings: Findings, part: Part, canvas: Canvas) -> str:
    step = _outline_step(part)
    outlines = f" One frame in {step} has its outline drawn." if step > 1 else ""
    return (
        f"{count(len(part.frames), 'frame')}, {canvas.width} × {canvas.height} px, "
        f"placed by {MAPS[findings.outcome.family]}. "
        f"It has the position, rotation and scale of frame {findings.label(part.reference)}. "
        "Numbers mark the first and last frame of the path. Rejected links are red and dashed."
        f"{outlines}"
    )
