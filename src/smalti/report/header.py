"""The top of the page: what came out, how good it is, what to open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from smalti.errors import ProjectError
from smalti.project.entries import LinkState
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element, join
from smalti.report.tables import draw_list
from smalti.report.wording import count, say_lens, say_list, say_px

MOST_LISTED = 6
"""Mosaics whose frames are counted one by one."""

TABLES = {
    "transforms.json": "where each frame lies, for other programs",
    "landmarks.csv": "the landmarks of all links that were believed",
}


def draw_header(findings: Findings, page: Path, folder: Path, mosaics: Sequence[Path]) -> Markup:
    """Return the header of a page that will lie at `page`; `folder` is the project's."""
    return element(
        "header",
        element("p", "Smalti report", class_="kicker"),
        element("h1", findings.source),
        element("p", say_placed(findings), class_="lead"),
        element("p", *_say_error(findings), class_="error"),
        Markup() if findings.lens.is_straight else element("p", say_lens(findings.lens), class_="quiet"),
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
    sizes = [len(part.frames) for part in parts]
    shown = f"{say_list(map(str, sizes))} frames" if len(sizes) <= MOST_LISTED else f"{sizes[0]} frames on the largest"
    return f"Placed {placed} of {frames} on {len(parts)} mosaics that nothing joins: {shown}."


def link_to(target: Path, page: Path) -> str:
    """Return the address of a file relative to the page."""
    return quote(Path(os.path.relpath(target, page.parent)).as_posix())


def _say_error(findings: Findings) -> list[str]:
    if not findings.parts:
        return ["There is no mosaic, so there is no error to tell."]
    facts = findings.facts
    where = "" if len(findings.parts) == 1 else " of the largest mosaic"
    measured = (
        [element("strong", say_px(facts["left_out_px"])), " measured on matches not used for a trial fit"]
        if facts["left_out_px"] is not None
        else ["not measured, because there are too few matches to leave some out"]
    )
    before = (
        f"{say_px(facts['chain_error_px'])} measured on the loops, {say_px(facts['chain_predicted_px'])} predicted."
        if facts["chain_error_px"] is not None
        else f"{say_px(facts['chain_predicted_px'])} predicted; no loop was found to measure it on."
    )
    predicted = element("strong", say_px(facts["predicted_error_px"]))
    return [f"Error{where}: ", *measured, ", ", predicted, " predicted. Before, by the chain alone: ", before]


def _list_concerns(findings: Findings) -> Markup:
    rejected = len(findings.pairs(LinkState.REJECTED))
    unconfirmed = len(findings.unconfirmed)
    unjoined = len(findings.facts["unjoined"])
    concerns = [
        (len(findings.not_placed), count(len(findings.not_placed), "frame") + " could not be placed", "#frames"),
        (rejected, count(rejected, "match was", "matches were") + " rejected", "#rejected"),
        (unconfirmed, count(unconfirmed, "frame rests", "frames rest") + " on a single match", "#frames"),
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
    return element("nav", element("h2", "What to open"), draw_list(items), aria_label="Files") if items else Markup()


def _say_when(mosaics: Sequence[Path]) -> str:
    # The time of the files and not of now: the same project gives the same page.
    times = []
    for path in mosaics:
        try:
            times.append(path.stat().st_mtime)
        except OSError as error:
            raise ProjectError(f"{path}: the mosaic cannot be read ({error.strerror}); build again") from None
    return f"Rendered {datetime.fromtimestamp(max(times), UTC):%Y-%m-%d %H:%M} UTC." if times else ""
