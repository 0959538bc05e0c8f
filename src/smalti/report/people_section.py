"""Section of the report about the people who answered: who, when, how exact, how consistent; for a paper's methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations

import numpy as np

from smalti.engine.links import map_in_pixels
from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import LIGHT, AnswerEntry, LinkEntry
from smalti.records import Author, Landmarks, Pair, Verdict
from smalti.report.findings import Findings
from smalti.report.markup import NOTHING, Column, Markup, count, draw_table, element, say_number, say_px

NAMELESS = "without a name"

COLUMNS = (
    Column("person", explanation="the name that was given in the page"),
    Column("from"),
    Column("to", explanation="date and time of the first and the last answer in force, UTC"),
    Column("yes", True),
    Column("no", True),
    Column("cannot tell", True),
    Column("landmarks", True),
    Column("residual px", True, "RMS distance between their landmarks on the final mosaic"),
    Column("contradicted", True, "yes answers that have less than half of the full weight in the final fit"),
    Column("seconds", True, "that an answer took, median"),
)


def draw_people(findings: Findings) -> Markup:
    """Return the section about the people who answered; nothing if nobody did."""
    by_name: dict[str, list[AnswerEntry]] = defaultdict(list)
    for entry in findings.answers:
        if entry.answer.author is Author.PERSON:
            by_name[entry.person or NAMELESS].append(entry)
    if not by_name:
        return Markup()
    rows = [_row(name, entries, findings.links) for name, entries in sorted(by_name.items())]
    return element(
        "section",
        element("h2", "People"),
        element("p", _say_all([entry for entries in by_name.values() for entry in entries], len(by_name), findings)),
        element("p", _say_agreement(agreements(findings.given, findings.outline, findings.lens))),
        draw_table("The people who answered", COLUMNS, rows, sortable=False),
        id="people",
    )


def _row(name: str, entries: Sequence[AnswerEntry], links: Mapping[Pair, LinkEntry]) -> list[str]:
    counts = [sum(entry.answer.verdict is verdict for entry in entries) for verdict in Verdict]
    own = [links[entry.answer.pair] for entry in entries if entry.answer.pair in links]
    return [
        name,
        *_span(entries),
        *map(str, counts),
        str(sum(len(entry.answer.landmarks or ()) for entry in entries)),
        say_number(_residual_px(entries, links), 2),
        str(sum(link.weight < LIGHT for link in own)),
        say_number(_median_seconds(entries), 0),
    ]


def _say_all(entries: Sequence[AnswerEntry], people: int, findings: Findings) -> str:
    counts = {verdict: sum(entry.answer.verdict is verdict for entry in entries) for verdict in Verdict}
    first, last = _span(entries)
    when = "" if first == NOTHING else f" between {first} and {last} (UTC)"
    landmarks = [len(entry.answer.landmarks) for entry in entries if entry.answer.landmarks is not None]
    told = (
        f"{count(people, 'person', 'people')} gave {count(len(entries), 'answer')}{when}: {counts[Verdict.YES]} yes, "
        f"{counts[Verdict.NO]} no, {counts[Verdict.UNSURE]} cannot tell."
    )
    seconds = _median_seconds(entries)
    if seconds is not None:
        told += f" An answer took {seconds:.0f} s (median)."
    if landmarks:
        told += f" They set {count(sum(landmarks), 'landmark')}, {np.median(landmarks):.0f} a yes (median)."
    residual = _residual_px(entries, findings.links)
    if residual is not None:
        told += (
            f" On the final mosaic the RMS distance between their landmarks is {say_px(residual)}. The adjustment "
            f"found them {say_number(findings.outcome.noise.person, 2)} times as noisy as they state."
        )
    return told


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two answers on one pair, of different people or of one at different times."""

    is_same: bool  # verdict
    distance_px: float | None  # RMS between the landmarks of one and where the other's map has them; None without


def agreements(given: Iterable[AnswerEntry], outline: Outline, lens: Lens) -> list[Agreement]:
    """Compare all answers that people ever gave on the same pair, whether or not they are in force."""
    by_pair: dict[Pair, list[AnswerEntry]] = defaultdict(list)
    for entry in given:
        by_pair[entry.answer.pair].append(entry)
    found = []
    for entries in by_pair.values():
        for one, other in combinations(entries, 2):
            marks, others = one.answer.landmarks, other.answer.landmarks
            distance = None if marks is None or others is None else _distance_px(marks, others, outline, lens)
            found.append(Agreement(one.answer.verdict is other.answer.verdict, distance))
    return found


def _distance_px(marks: Landmarks, others: Landmarks, outline: Outline, lens: Lens) -> float | None:
    if not marks.determine_affine:
        return None
    i_from_j = map_in_pixels(marks, outline, lens)
    off = others.without_along(apply_map(i_from_j, lens.undistort(others.points_j)) - lens.undistort(others.points_i))
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


def _say_agreement(found: Sequence[Agreement]) -> str:
    if not found:
        return "No pair was answered twice, so nothing can be said about how well people agree."
    same = sum(one.is_same for one in found)
    told = f"Of {count(len(found), 'repeated answer')} on the same pair, {same} had the same verdict."
    distances = [one.distance_px for one in found if one.distance_px is not None]
    if distances:
        told += f" Repeated landmarks lie {say_px(float(np.median(distances)))} apart (median of the RMS distances)."
    return told


def _residual_px(entries: Iterable[AnswerEntry], links: Mapping[Pair, LinkEntry]) -> float | None:
    """Return the RMS distance between all landmarks of these answers on the final mosaic."""
    squares = weights = 0.0
    for entry in entries:
        link, landmarks = links.get(entry.answer.pair), entry.answer.landmarks
        if landmarks is not None and link is not None and np.isfinite(link.residual_px):
            squares += len(landmarks) * link.residual_px**2
            weights += len(landmarks)
    return float(np.sqrt(squares / weights)) if weights else None


def _median_seconds(entries: Iterable[AnswerEntry]) -> float | None:
    seconds = [entry.seconds for entry in entries if entry.seconds > 0]
    return float(np.median(seconds)) if seconds else None


def _span(entries: Iterable[AnswerEntry]) -> tuple[str, str]:
    times = [entry.time for entry in entries if entry.time > 0]
    if not times:
        return NOTHING, NOTHING
    first, last = (datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M") for time in (min(times), max(times)))
    return first, last
