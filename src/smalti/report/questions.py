"""What was asked, and what was answered."""

from __future__ import annotations

from smalti.project.entries import AnswerEntry, LinkState, Role
from smalti.records import Verdict
from smalti.report.findings import Findings
from smalti.report.markup import Markup, element
from smalti.report.pairs import draw_pairs
from smalti.report.rejected import draw_breaks, draw_rejected
from smalti.report.tables import Column, draw_table, fold_table
from smalti.report.wording import NOTHING, ROLES, ROLES_EXPLAINED, count, say_list, say_number

STOPPED = {
    "budget": "the budget was spent",
    "target": "the predicted error had reached the target",
    "no candidate": "no pair was left that was worth asking",
    "interrupted": "it was interrupted",
    "person": "the person who answered said that it was enough",
}

STATES = {LinkState.BELIEVED: "believed", LinkState.REJECTED: "rejected"}

NOISY = (Role.CHAIN, Role.BRIDGE, Role.CHECK, Role.LOOP)
"""Roles of the links whose noise is learned."""

LIGHT = 0.5
"""Of the full weight: below, a link hardly counts."""

COLUMNS = (
    Column("order", True, "in which the questions were asked"),
    Column("i", True, "number of the earlier frame"),
    Column("j", True, "number of the later frame"),
    Column("role", explanation="; ".join(f"{ROLES[role]}: {words}" for role, words in ROLES_EXPLAINED.items())),
    Column("by", explanation="person: answered in the page, and believed whatever the others say"),
    Column("verdict"),
    Column("reason"),
    Column("landmarks", True),
    Column("residual px", True, "RMS of the landmarks on the final mosaic"),
    Column(
        "χ²", True, "of 8 degrees of freedom, or two a landmark if there are fewer than four; against all other links"
    ),
    Column("weight", True, "in the final fit, between 0 and 1"),
    Column("state", explanation="believed: used; rejected: contradicts the others, not used"),
    Column("seconds", True, "that the answer took"),
)


def draw_questions(findings: Findings) -> Markup:
    """Return the section of questions; what was rejected comes first."""
    rows = [_row(findings, place, entry) for place, entry in enumerate(findings.answers, start=1)]
    caption = "All answers, in the order in which they were given"
    table = draw_table(caption, COLUMNS, rows, sortable=True)
    return element(
        "section",
        element("h2", "What was asked"),
        draw_rejected(findings),
        draw_breaks(findings),
        element("h3", "Summary"),
        _draw_summary(findings),
        element("p", _say_end(findings)),
        element("h3", "All pairs of frames"),
        draw_pairs(findings),
        element("h3", "All answers"),
        fold_table(count(len(rows), "answer"), table, len(rows)),
        id="asked",
    )


def _draw_summary(findings: Findings) -> Markup:
    columns = [Column("role"), Column("why")]
    columns += [Column(title, True) for title in ("asked", "yes", "no", "unsure", "rejected")]
    rows = []
    for role in Role:
        entries = [entry for entry in findings.answers if entry.role is role]
        if entries or role is Role.LOOP:
            verdicts = [sum(entry.answer.verdict is verdict for entry in entries) for verdict in Verdict]
            numbers = [len(entries), *verdicts, len(findings.pairs(LinkState.REJECTED, role))]
            rows.append([ROLES[role], ROLES_EXPLAINED[role], *map(str, numbers)])
    total = [str(sum(int(row[n]) for row in rows)) for n in range(2, len(columns))]
    return draw_table("Questions by role", columns, [*rows, ["all", "", *total]], sortable=False)


def _say_end(findings: Findings) -> str:
    reason = findings.facts["stopped"]
    lighter = sum(link.weight < LIGHT for link in findings.links.values() if link.state is LinkState.BELIEVED)
    weights = f" {count(lighter, 'believed link')} fit so badly that they count less than half." if lighter else ""
    return f"The engine stopped asking because {STOPPED.get(reason, reason)}.{_say_noise(findings)}{weights}"


def _say_noise(findings: Findings) -> str:
    """Say how noisy each kind of link turned out to be."""
    noise = findings.facts["noise"]
    kinds = {"chain": "links of the chain", "matcher": "the matcher's other links", "person": "links of people"}
    found = {
        _noise_of(entry) for entry in findings.answers if entry.answer.landmarks is not None and entry.role in NOISY
    }
    told = [f"{words} err {say_number(noise[kind], 2)} times" for kind, words in kinds.items() if kind in found]
    if not told:
        return ""
    return f" By how well all links agree, {say_list(told)} as much as their landmarks say."


def _noise_of(entry: AnswerEntry) -> str:
    return str(entry.answer.author) if entry.role is Role.LOOP else "chain"


def _row(findings: Findings, place: int, entry: AnswerEntry) -> list[str]:
    answer = entry.answer
    link = findings.links.get(answer.pair)
    fit = [NOTHING] * 3
    state = NOTHING if answer.landmarks is None else "not in the fit"
    if link is not None:
        fit = [say_number(link.residual_px, 2), say_number(link.chi2, 1), say_number(link.weight, 3)]
        state = STATES[link.state]
    return [
        str(place),
        str(answer.pair.i),
        str(answer.pair.j),
        ROLES[entry.role],
        str(answer.author),
        str(answer.verdict),
        answer.reason,
        NOTHING if answer.landmarks is None else str(len(answer.landmarks)),
        *fit,
        state,
        f"{entry.seconds:.2f}",
    ]
