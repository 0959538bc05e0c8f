"""The report: one page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from smalti import __version__
from smalti.errors import UsageError
from smalti.interchange.atomic_files import write_text
from smalti.interchange.transforms_json import CONVENTION
from smalti.project.project import Project
from smalti.report.findings import Findings
from smalti.report.frame_sections import draw_drift, draw_placements
from smalti.report.markup import Column, Markup, draw_table, element, join, say_seconds
from smalti.report.masks_section import draw_masks
from smalti.report.mosaic_section import draw_header, draw_mosaics, make_views
from smalti.report.people_section import draw_people
from smalti.report.question_sections import draw_questions
from smalti.report.report_pictures import MOST_THUMBNAILS, View, make_thumbnails

# The browser itself refuses whatever the page would fetch.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_report(project: Project, path: Path, *, mosaics: Sequence[Path], views: Sequence[View] | None = None) -> None:
    """Write the report of a finished project; `mosaics` are the rendered files, one a part, or none.

    `views` are those of the mosaics that the page shows. Without them, the mosaics are painted for the page.
    """
    findings = Findings.of(project)
    if mosaics and len(mosaics) != len(findings.parts):
        raise UsageError(f"{len(mosaics)} files of mosaics for {len(findings.parts)} parts: give one a part, or none")
    header = draw_header(findings, path, project.folder, mosaics)
    people = draw_people(findings)
    masks = draw_masks(project, findings)
    pictured = [one.frame for one in findings.unplaced[:MOST_THUMBNAILS]]
    frames = draw_placements(findings, make_thumbnails(project.source, pictured) if pictured else {})
    sections = [draw_questions(findings), people, frames, masks, draw_background(findings)]
    own = {"people": "People"} if people else {}
    masked = {"masked": "Masks"} if masks else {}
    links = {"asked": "Questions", **own, "frames": "Frames", **masked, "made": "How it was made"}
    if findings.parts:
        views = make_views(project, findings) if views is None else views
        sections = [draw_mosaics(findings, path, mosaics, views), draw_drift(findings), *sections]
        links = {"mosaic": "Mosaic", "drift": "Drift", **links}
    contents = [element("a", words, href=f"#{name}") for name, words in links.items()]
    body = [header, element("nav", *contents, class_="contents", aria_label="Contents"), element("main", *sections)]
    write_text(path, _page(f"{findings.source}: Smalti report", join(*body)))


def _page(title: str, body: Markup) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", _own_file("page.css")),
    )
    scripts = [element("script", _own_file(name)) for name in ("sorting.js", "reading.js")]
    return f"<!DOCTYPE html>\n{element('html', head, element('body', body, *scripts), lang='en')}\n"


def _own_file(name: str) -> Markup:
    return Markup(files("smalti.report").joinpath(name).read_text(encoding="utf-8"))


STAGES = {
    "reading": "reading the frames, finding keypoints",
    "chain": "registering the chain",
    "appearance": "computing the appearance of frames",
    "loop": "asking questions",
    "finish": "finishing the mosaic",
    "render": "rendering",
    "report": "writing the report",
}


def draw_background(findings: Findings) -> Markup:
    """Return the section of how the mosaic was made."""
    return element(
        "section",
        element("h2", "How it was made"),
        element("h3", "Time"),
        _draw_time(findings.seconds),
        element("h3", "Settings"),
        draw_table("Settings of the build", [Column("setting"), Column("value")], _settings(findings), sortable=False),
        element("h3", "Transforms"),
        element("p", CONVENTION),
        element("p", f"Made by Smalti {__version__}.", class_="quiet"),
        id="made",
    )


def _draw_time(seconds: Mapping[str, float]) -> Markup:
    longest = max(seconds.values(), default=0.0)
    rows = [
        [STAGES.get(stage, stage), say_seconds(spent), _bar(spent / longest if longest > 0 else 0.0)]
        for stage, spent in seconds.items()
    ]
    rows.append(["all", say_seconds(sum(seconds.values())), ""])
    columns = [Column("stage"), Column("time", True), Column("share")]
    return draw_table("Time spent in each stage, over all sessions", columns, rows, sortable=False)


def _bar(share: float) -> Markup:
    return element("span", class_="share", style=f"width:{100 * share:.1f}%")


def _settings(findings: Findings) -> Iterator[tuple[str, str]]:
    facts = findings.source_facts
    location = facts.location
    first = location if isinstance(location, str) else location[0]
    yield "input", first if isinstance(location, str) or len(location) == 1 else f"{first} and {len(location) - 1} more"
    yield "frame size", f"{findings.outline.width:.0f} × {findings.outline.height:.0f} px"
    for name, value in asdict(facts.binding).items():
        yield from _flatten(name, value)
    yield "maps", findings.outcome.family
    yield "fingerprint of the input", facts.fingerprint


def _flatten(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(f"{name} {key}".replace("_", " "), inner)
    else:
        yield name.replace("_", " "), "not set" if value is None else str(value)
