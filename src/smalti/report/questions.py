"""What was asked, and what was answered."""

from __future__ import annotations

from smalti.project.entries import AnswerEntry, LinkState, Role
from smalti.records import Verdict
from smalti.report.findings import Findings
from smalti.report.held import draw_breaks, draw_held
from smalti.report.markup import Markup, element
from smalti.report.pairs import draw_pairs
from smalti.report.tables import Column, draw_table, fold_table
from smalti.report.wording import NOTHING, ROLES, ROLES_EXPLAINED, count, say_number

STOPPED = {
    "budget": "the budget was spent",
    "target": "the predicted error had reached the target",
    "no candidate": "no pair was left that was worth asking",
    "interrupted": "it was interrupted",
    "person": "the person who answered said that it was enough",
}

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
    Column("χ²", True, "of 6 degrees of freedom, against all other links"),
    Column("weight", True, "in the final fit, between 0 and 1"),
    Column("state", explanation="believed: used; held: contradicts the others, not used"),
    Column("seconds", True, "that the answer took"),
)


def draw_questions(findings: Findings) -> Markup:
    """Return the section of questions; what was not believed comes first."""
    rows = [_row(findings, place, entry) for place, entry in enumerate(findings.answers, start=1)]
    caption = "All answers, in the order in which they were given"
    table = draw_table(caption, COLUMNS, rows, sortable=True)
    return element(
        "section",
        element("h2", "What was asked"),
        draw_held(findings),
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
    columns += [Column(title, True) for title in ("asked", "yes", "no", "unsure", "not believed")]
    rows = []
    for role in Role:
        entries = [entry for entry in findings.answers if entry.role is role]
        if entries or role is Role.LOOP:
            verdicts = [sum(entry.answer.verdict is verdict for entry in entries) for verdict in Verdict]
            numbers = [len(entries), *verdicts, len(findings.pairs(LinkState.HELD, role))]
            rows.append([ROLES[role], ROLES_EXPLAINED[role], *map(str, numbers)])
    total = [str(sum(int(row[n]) for row in rows)) for n in range(2, len(columns))]
    return draw_table("Questions by role", columns, [*rows, ["all", "", *total]], sortable=False)


def _say_end(findings: Findings) -> str:
    reason = findings.facts["stopped"]
    lighter = sum(link.weight < 1 for link in findings.links.values() if link.state is LinkState.BELIEVED)
    weights = f" {count(lighter, 'believed link')} fit worse than usual and got less weight." if lighter else ""
    return (
        f"The engine stopped asking because {STOPPED.get(reason, reason)}. By how well triangles close, links are "
        f"{say_number(findings.facts['noise'], 2)} times as noisy as their landmarks say.{weights}"
    )


def _row(findings: Findings, place: int, entry: AnswerEntry) -> list[str]:
    answer = entry.answer
    link = findings.links.get(answer.pair)
    fit = [NOTHING] * 3
    state = NOTHING if answer.landmarks is None else "not in the fit"
    if link is not None:
        fit = [say_number(link.residual_px, 2), say_number(link.chi2, 1), say_number(link.weight, 3)]
        state = str(link.state)
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
