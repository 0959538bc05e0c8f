"""The report: one page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from smalti.errors import UsageError
from smalti.interchange.writing import write_text
from smalti.project.project import Project
from smalti.report.background import draw_background
from smalti.report.drift import draw_drift
from smalti.report.findings import Findings
from smalti.report.header import draw_header
from smalti.report.markup import Markup, element, join
from smalti.report.mosaics import draw_mosaics
from smalti.report.placements import draw_placements
from smalti.report.questions import draw_questions

# The browser itself refuses whatever the page would fetch.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_report(project: Project, path: Path, *, mosaics: Sequence[Path]) -> None:
    """Write the report of a finished project; `mosaics` are the rendered files, one a part, or none."""
    findings = Findings.of(project)
    if mosaics and len(mosaics) != len(findings.parts):
        raise UsageError(f"{len(mosaics)} files of mosaics for {len(findings.parts)} parts: give one a part, or none")
    header = draw_header(findings, path, project.folder, mosaics)
    sections = [draw_questions(findings), draw_placements(findings), draw_background(findings)]
    links = {"asked": "Questions", "frames": "Frames", "made": "How it was made"}
    if findings.parts:
        sections = [draw_mosaics(project, findings, path, mosaics), draw_drift(findings), *sections]
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
