"""Sections of the report about questions: all pairs, every answer, rejected matches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from smalti.project.database import BACKUP_NAME
from smalti.project.entries import LIGHT, AnswerEntry, LinkEntry, LinkState, Role
from smalti.records import Pair, Verdict
from smalti.report.findings import Findings
from smalti.report.markup import (
    NOTHING,
    ROLES,
    ROLES_EXPLAINED,
    Column,
    Markup,
    count,
    draw_list,
    draw_table,
    element,
    fold_table,
    join,
    say_list,
    say_number,
    say_px,
)

STOPPED = {
    "budget": "the budget was spent",
    "target": "the predicted error reached the target",
    "enough": "further questions would have changed little",
    "nothing found": "the last questions found nothing, and none was likely to",
    "no candidate": "no useful question was left",
    "raster": "all neighbours in the raster had been asked about",
    "interrupted": "the build was interrupted",
    "person": "the person who answered chose to stop",
}

STATES = {LinkState.ACCEPTED: "accepted", LinkState.REJECTED: "rejected"}

NOISY = (Role.CHAIN, Role.BRIDGE, Role.CHECK, Role.LOOP, Role.NEAR, Role.RETRY)
"""Roles of the links whose noise is learned."""

COLUMNS = (
    Column("order", True, "order of the questions"),
    Column("i", True, "number of the earlier frame"),
    Column("j", True, "number of the later frame"),
    Column("role", explanation="; ".join(f"{ROLES[role]}: {words}" for role, words in ROLES_EXPLAINED.items())),
    Column("by", explanation="person: answered in the page, always accepted; else the registration method, if known"),
    Column("verdict"),
    Column("reason"),
    Column("landmarks", True),
    Column("residual px", True, "RMS distance between the landmarks on the final mosaic"),
    Column("χ²", True, "disagreement with all other links; 8 degrees of freedom, 2 per landmark for fewer than 4"),
    Column("weight", True, "weight in the final fit, from 0 to 1"),
    Column("state", explanation="accepted: used; rejected: contradicts the others, not used"),
    Column("seconds", True, "time that the answer took"),
)


def draw_questions(findings: Findings) -> Markup:
    """Return the section of questions; what was rejected comes first."""
    rows = (_row(findings, place, entry) for place, entry in enumerate(findings.answers, start=1))
    caption = "All answers, in the order in which they were given"
    return element(
        "section",
        element("h2", "Questions"),
        draw_rejected(findings),
        draw_breaks(findings),
        element("h3", "Summary"),
        _draw_summary(findings),
        element("p", _say_end(findings)),
        element("h3", "All pairs of frames"),
        draw_pairs(findings),
        element("h3", "All answers"),
        fold_table("answer", caption, COLUMNS, rows, len(findings.answers), BACKUP_NAME),
        id="asked",
    )


def _draw_summary(findings: Findings) -> Markup:
    columns = [Column("role"), Column("why")]
    columns += [Column(title, True) for title in ("asked", "yes", "no", "cannot tell", "rejected")]
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
    reason = findings.outcome.stopped
    lighter = sum(link.weight < LIGHT for link in findings.links.values() if link.state is LinkState.ACCEPTED)
    links = count(lighter, "accepted link has", "accepted links have")
    weights = f" {links} less than half of the full weight because of a bad fit." if lighter else ""
    return f"The engine stopped asking because {STOPPED.get(reason, reason)}.{_say_noise(findings)}{weights}"


def _say_noise(findings: Findings) -> str:
    """Say how noisy each kind of link turned out to be."""
    noise = asdict(findings.outcome.noise)
    kinds = {"chain": "links of the chain", "matcher": "other links of the matcher", "person": "links of people"}
    found = {
        _noise_of(entry) for entry in findings.answers if entry.answer.landmarks is not None and entry.role in NOISY
    }
    told = [f"{words} {say_number(noise[kind], 2)} times" for kind, words in kinds.items() if kind in found]
    if not told:
        return ""
    return f" Noise of the links, compared with what their landmarks state: {say_list(told)} as much."


def _noise_of(entry: AnswerEntry) -> str:
    return str(entry.answer.author) if entry.role.is_after_chain else "chain"


VERDICTS = {Verdict.YES: "yes", Verdict.NO: "no", Verdict.UNSURE: "cannot tell"}


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
        answer.method or str(answer.author),
        VERDICTS[answer.verdict],
        answer.reason,
        NOTHING if answer.landmarks is None else str(len(answer.landmarks)),
        *fit,
        state,
        f"{entry.seconds:.2f}",
    ]


KINDS = {
    "no": "no overlap",
    "unsure": "cannot tell",
    "chain": "accepted links of the chain, bridges and checks",
    "yes": "other accepted links",
    "rejected": "rejected",
}
"""In the order in which they are drawn, the most important one last."""

CELLS = 150
"""At least so large a share of the picture's side is a cell: of 600 frames, single ones could not be seen."""

PLACES = 600
"""Places of cells along a side. Of more frames, pairs near each other share a cell, which is drawn once."""


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
        *(
            element("path", d=_cells(chosen, cell, -(-frames // PLACES)), class_=f"cell {kind}")
            for kind, chosen in pairs.items()
            if chosen
        ),
        viewBox=f"0 0 {frames} {frames}",
        role="img",
        aria_label=f"Matrix of all pairs of {count(frames, 'frame')}: {_say_counts(pairs)}",
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
        element("figcaption", f"Frame 0 is at the top left, frame {frames - 1} at the bottom right. Empty: not asked."),
        class_="pairs",
    )


def _kind_of(findings: Findings, pair: Pair, verdict: Verdict) -> str:
    if verdict is not Verdict.YES:
        return str(verdict)
    link = findings.links.get(pair)
    if link is not None and link.state is LinkState.REJECTED:
        return "rejected"
    return "chain" if findings.roles[pair] in (Role.CHAIN, Role.BRIDGE, Role.CHECK) else "yes"


def _cells(pairs: Iterable[Pair], side: float, step: int) -> str:
    """Return the path of the squares of pairs, on either side of the diagonal; one for all pairs within `step`."""
    places = {(pair.j // step * step, pair.i // step * step): None for pair in pairs}
    course = []
    for later, earlier in places:
        for x, y in ((later, earlier), (earlier, later)):
            course.append(f"M{x + 0.5 - side / 2:g} {y + 0.5 - side / 2:g}h{side:g}v{side:g}h-{side:g}z")
    return "".join(course)


def _say_counts(pairs: dict[str, list[Pair]]) -> str:
    return ", ".join(f"{len(chosen)} {KINDS[kind]}" for kind, chosen in pairs.items() if chosen)


def draw_rejected(findings: Findings) -> Markup:
    """Name every match that contradicts the others."""
    rejected = [findings.links[pair] for pair in findings.pairs(LinkState.REJECTED)]
    rejected.sort(key=lambda link: (-link.chi2, link.pair))
    if rejected:
        reasons = {entry.answer.pair: entry.answer.reason for entry in findings.answers}
        usual = _Usual.of(findings)
        told = join(
            element("p", "These matches were rejected because they contradict the others. They were not used."),
            draw_list(_say_rejected(findings, link, reasons[link.pair], usual) for link in rejected),
        )
    else:
        told = element("p", "None: all matches agree.")
    return element("div", element("h3", "Rejected matches"), told, id="rejected")


def draw_breaks(findings: Findings) -> Markup:
    """Tell where the chain broke beyond bridging, and whether answers joined the two sides."""
    breaks = findings.outcome.breaks
    if not breaks:
        return Markup()
    unjoined = findings.outcome.unjoined
    told = join(
        element(
            "p",
            "The chain broke here: no match of nearby frames joins the two sides. Each side is a separate mosaic "
            "until an answer joins them.",
        ),
        draw_list(_say_break(findings, pair, pair in unjoined) for pair in breaks),
    )
    return element("div", element("h3", "Breaks in the sequence"), told, id="breaks")


def _say_rejected(findings: Findings, link: LinkEntry, reason: str, usual: _Usual) -> Markup:
    i, j = link.pair.i, link.pair.j
    names = element("strong", f"Frames {findings.label(i)} and {findings.label(j)}")
    said = f" The matcher said: {reason}." if reason else ""
    return join(names, f", role {ROLES[findings.roles[link.pair]]}. {_say_contradiction(findings, link, usual)}{said}")


@dataclass(frozen=True, slots=True)
class _Usual:
    """What the accepted links are like."""

    links: Counter[int]  # by frame
    residual_px: float | None
    chi2: float | None

    @classmethod
    def of(cls, findings: Findings) -> _Usual:
        accepted = [findings.links[pair] for pair in findings.pairs(LinkState.ACCEPTED)]
        return cls(
            Counter(frame for link in accepted for frame in (link.pair.i, link.pair.j)),
            float(np.median([link.residual_px for link in accepted])) if accepted else None,
            float(np.median([link.chi2 for link in accepted])) if accepted else None,
        )


def _say_contradiction(findings: Findings, link: LinkEntry, usual: _Usual) -> str:
    if not (math.isfinite(link.chi2) and math.isfinite(link.residual_px)):
        return f"{_say_places(findings, link.pair)} No other match joins them in this way. Not used."
    others = usual.links[link.pair.i] + usual.links[link.pair.j]
    against = f"the {others} accepted links of these two frames" if others > 1 else "the other links"
    return (
        f"Contradicts {against} by {say_px(link.residual_px)} (median of accepted links: {say_px(usual.residual_px)}); "
        f"χ² {say_number(link.chi2, 0)} with 8 degrees of freedom (median: {say_number(usual.chi2, 0)}). Not used."
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
