"""Matches that were rejected, and where the sequence broke, in words."""

from __future__ import annotations

import math

import numpy as np

from smalti.project.entries import LinkEntry, LinkState
from smalti.records import Pair
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element, join
from smalti.report.tables import draw_list
from smalti.report.wording import ROLES, say_number, say_px


def draw_rejected(findings: Findings) -> Markup:
    """Name every match that contradicts the others."""
    rejected = [findings.links[pair] for pair in findings.pairs(LinkState.REJECTED)]
    rejected.sort(key=lambda link: (-link.chi2, link.pair))
    if rejected:
        told = join(
            element(
                "p", "These pairs were said to overlap, but not where all the others have them. They were not used."
            ),
            draw_list(_say_rejected(findings, link) for link in rejected),
        )
    else:
        told = element("p", "None: all matches agree.")
    return element("div", element("h3", "Rejected matches"), told, id="rejected")


def draw_breaks(findings: Findings) -> Markup:
    """Tell where the chain broke beyond bridging, and whether answers joined the two sides."""
    breaks = [Pair(*pair) for pair in findings.facts["breaks"]]
    if not breaks:
        return Markup()
    unjoined = {Pair(*pair) for pair in findings.facts["unjoined"]}
    told = join(
        element(
            "p",
            "Here the chain broke: no match of frames near each other joins the two sides. Each is a mosaic of its own "
            "until an answer joins them.",
        ),
        draw_list(_say_break(findings, pair, pair in unjoined) for pair in breaks),
    )
    return element("div", element("h3", "Where the sequence broke"), told, id="breaks")


def _say_rejected(findings: Findings, link: LinkEntry) -> Markup:
    i, j = link.pair.i, link.pair.j
    names = element("strong", f"Frames {findings.label(i)} and {findings.label(j)}")
    reason = next(entry.answer.reason for entry in findings.answers if entry.answer.pair == link.pair)
    said = f" The matcher had said: {reason}." if reason else ""
    return join(names, f", asked for: {ROLES[findings.roles[link.pair]]}. {_say_contradiction(findings, link)}{said}")


def _say_contradiction(findings: Findings, link: LinkEntry) -> str:
    if not (math.isfinite(link.chi2) and math.isfinite(link.residual_px)):
        return f"{_say_places(findings, link.pair)} Nothing else joins the two as this answer would. Not used."
    believed = [findings.links[pair] for pair in findings.pairs(LinkState.BELIEVED)]
    ends = {link.pair.i, link.pair.j}
    others = sum(not ends.isdisjoint((other.pair.i, other.pair.j)) for other in believed)
    against = f"the {others} believed links of these two frames" if others > 1 else "the other links"
    usual_px = float(np.median([other.residual_px for other in believed])) if believed else None
    usual_chi2 = float(np.median([other.chi2 for other in believed])) if believed else None
    return (
        f"Contradicts {against} by {say_px(link.residual_px)} (a believed link: {say_px(usual_px)} in the median); "
        f"χ² {say_number(link.chi2, 0)} of 8 degrees of freedom ({say_number(usual_chi2, 0)} in the median). Not used."
    )


def _say_break(findings: Findings, pair: Pair, is_unjoined: bool) -> Markup:
    names = element("strong", f"Frames {findings.label(pair.i)} and {findings.label(pair.j)}")
    if not is_unjoined:
        return join(names, ": answers joined the two sides later.")
    told = f": no answer joined the two sides. {_say_places(findings, pair)}"
    return join(names, told)


def _say_places(findings: Findings, pair: Pair) -> str:
    return f"Frame {pair.i} {_where(findings, pair.i)}, frame {pair.j} {_where(findings, pair.j)}."


def _where(findings: Findings, frame: int) -> str:
    placement = findings.placements.get(frame)
    return "lies on no mosaic" if placement is None else f"lies on {findings.parts[placement.part].name}"
