"""Time, settings, version, conventions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smalti import __version__
from smalti.interchange.transforms_json import CONVENTION
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element
from smalti.report.tables import Column, draw_table
from smalti.report.wording import say_seconds

STAGES = {
    "reading": "reading the frames, finding keypoints",
    "chain": "registering the chain",
    "looks": "comparing what frames look like",
    "loop": "asking",
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
    facts = findings.facts
    location = facts["location"]
    first = location if isinstance(location, str) else location[0]
    yield "input", first if isinstance(location, str) or len(location) == 1 else f"{first} and {len(location) - 1} more"
    yield "frame size", f"{findings.outline.width:.0f} × {findings.outline.height:.0f} px"
    for name, value in facts["binding"].items():
        yield from _flatten(name, value)
    yield "maps", facts["family"]
    yield "fingerprint of the input", facts["fingerprint"]


def _flatten(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(f"{name} {key}".replace("_", " "), inner)
    else:
        yield name.replace("_", " "), "not set" if value is None else str(value)
