"""All pairs of frames at one glance: which were asked, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable

from smalti.project.entries import LinkState, Role
from smalti.records import Pair, Verdict
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element
from smalti.report.wording import count

KINDS = {
    "no": "no overlap",
    "unsure": "unsure",
    "chain": "chain, bridges and checks, believed",
    "yes": "suggested or set aside, believed",
    "rejected": "rejected",
}
"""In the order in which they are drawn, the most important one last."""

CELLS = 150
"""At least so large a share of the picture's side is a cell: of 600 frames, single ones could not be seen."""


def draw_pairs(findings: Findings) -> Markup:
    """Return the picture of N × N pairs with its legend."""
    pairs: dict[str, list[Pair]] = {kind: [] for kind in KINDS}
    for entry in findings.answers:
        pairs[_kind_of(findings, entry.answer.pair, entry.answer.verdict)].append(entry.answer.pair)
    frames = len(findings.frames)
    cell = max(1.0, frames / CELLS)
    picture = element(
        "svg",
        element("path", d=f"M0 0H{frames}V{frames}H0ZM0 0L{frames} {frames}", class_="frame"),
        *(element("path", d=_cells(chosen, cell), class_=f"cell {kind}") for kind, chosen in pairs.items() if chosen),
        viewBox=f"0 0 {frames} {frames}",
        role="img",
        aria_label=f"Square of all pairs of {count(frames, 'frame')}: {_say_counts(pairs)}",
    )
    legend = [
        element("li", element("span", class_=f"key cell {kind}", aria_hidden="true"), f"{KINDS[kind]}: {len(chosen)}")
        for kind, chosen in pairs.items()
        if chosen
    ]
    return element(
        "figure",
        element("ul", *legend, class_="legend"),
        picture,
        element("figcaption", f"Frame 0 at the top left, frame {frames - 1} at the bottom right; empty: never asked."),
        class_="pairs",
    )


def _kind_of(findings: Findings, pair: Pair, verdict: Verdict) -> str:
    if verdict is not Verdict.YES:
        return str(verdict)
    link = findings.links.get(pair)
    if link is not None and link.state is LinkState.REJECTED:
        return "rejected"
    return "chain" if findings.roles[pair] in (Role.CHAIN, Role.BRIDGE, Role.CHECK) else "yes"


def _cells(pairs: Iterable[Pair], side: float) -> str:
    """Return the path of the squares of pairs, on either side of the diagonal."""
    course = []
    for pair in pairs:
        for x, y in ((pair.j, pair.i), (pair.i, pair.j)):
            course.append(f"M{x + 0.5 - side / 2:g} {y + 0.5 - side / 2:g}h{side:g}v{side:g}h-{side:g}z")
    return "".join(course)


def _say_counts(pairs: dict[str, list[Pair]]) -> str:
    return ", ".join(f"{len(chosen)} {KINDS[kind]}" for kind, chosen in pairs.items() if chosen)
