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
from smalti.project.entries import LIGHT, AnswerEntry, History, LinkEntry
from smalti.project.people import NAMELESS, PersonMeasure, Share
from smalti.records import Author, Landmarks, Pair, Verdict
from smalti.report.findings import Findings
from smalti.report.markup import NOTHING, Column, Markup, count, draw_table, element, say_number, say_px

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


MEASURED = (
    Column("person"),
    Column("known yes", True, "pairs with a known yes that were answered yes at the same place, of those answered"),
    Column("known no", True, "pairs that surely do not overlap and were answered no, of those answered"),
    Column("elsewhere", True, "pairs with a known yes that were answered yes, but at another place"),
    Column("cannot tell", True, "pairs with a known answer about which the person could not tell"),
    Column("σ px", True, "standard deviation of a coordinate of their landmarks, by the known links, and its own"),
    Column("left out", True, "landmarks that were left out of their links, to be compared with the mosaic"),
    Column("RMS px", True, "distance between the left-out landmarks and the mosaic"),
    Column("median px", True),
    Column("90 % px", True, "nine of ten left-out landmarks are nearer"),
    Column("predicted px", True, "RMS distance that was predicted at the same landmarks"),
)


def draw_people(findings: Findings) -> Markup:
    """Return the section about the people who answered; nothing if nobody did."""
    by_name: dict[str, list[AnswerEntry]] = defaultdict(list)
    for entry in findings.answers:
        if entry.answer.author is Author.PERSON:
            by_name[entry.person or NAMELESS].append(entry)
    people = by_name.keys() | {one.person for one in findings.people}
    if not people:
        return Markup()
    rows = [_row(name, entries, findings.links) for name, entries in sorted(by_name.items())]
    measured = [_measured_row(one) for one in findings.people]
    told = [
        _say_all([entry for entries in by_name.values() for entry in entries], len(people), findings),
        _say_agreement(compare_people(findings.history, findings.outline, findings.lens)),
        *_say_measured(findings),
    ]
    return element(
        "section",
        element("h2", "People"),
        element("p", "For the methods section of a paper:", class_="quiet"),
        element("p", " ".join(told), id="methods"),
        draw_table("The people who answered", COLUMNS, rows, sortable=False),
        draw_table("Pairs with known answers, and left-out landmarks", MEASURED, measured, sortable=False)
        if measured
        else "",
        id="people",
    )


def _measured_row(one: PersonMeasure) -> list[str]:
    left_out = one.left_out
    errors: tuple[float | None, ...] = (None,) * 4
    if left_out is not None:
        errors = (left_out.rms_px, left_out.median_px, left_out.p90_px, left_out.predicted_rms_px)
    sigma = NOTHING if one.sigma is None else f"{one.sigma.px:.2f} ± {one.sigma.uncertainty_px:.2f}"
    return [
        one.person,
        _say_share(one.known_yes),
        _say_share(one.known_no),
        str(one.elsewhere),
        str(one.unsure),
        sigma,
        str(0 if left_out is None else left_out.landmarks),
        *(say_number(error, 2) for error in errors),
    ]


def _say_share(share: Share) -> str:
    return f"{share.right} of {share.of}" if share.of else NOTHING


def _say_measured(findings: Findings) -> list[str]:
    """Return a sentence on every person's known pairs, and one on all left-out landmarks."""
    told = []
    controls = len(findings.history.controls)
    if controls:
        told.append(f"Besides, they answered {count(controls, 'question')} about pairs with a known answer.")
    for one in findings.people:
        right, asked = one.known_yes.right + one.known_no.right, one.known_yes.of + one.known_no.of
        if asked:
            low, high = Share(right, asked).interval
            said = f"{one.person}: {right} of {count(asked, 'pair')} with a known answer were answered right "
            said += f"(95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
            if one.sigma is not None:
                sigma = one.sigma
                said += f", landmark σ {sigma.px:.2f} ± {sigma.uncertainty_px:.2f} px"
                said += f" by {count(sigma.landmarks, 'landmark')}"
            told.append(f"{said}.")
    errors = findings.left_out
    if errors is not None:
        predicted = errors.predicted_rms_px
        beside = "" if predicted is None else f"; predicted for these places was {say_px(predicted)} RMS"
        told.append(
            f"The error at {count(errors.landmarks, 'left-out landmark')} is {say_px(errors.rms_px)} RMS, "
            f"{say_px(errors.median_px)} median, and below {say_px(errors.p90_px)} at 90 % of them{beside}."
        )
    return told


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
    """Two people's answers on one pair."""

    is_same: bool  # verdict
    distance_px: float | None  # RMS between the landmarks of one and where the other's map has them; None without


@dataclass(frozen=True, slots=True)
class Comparison:
    """What people's answers on the same pairs say."""

    agreements: tuple[Agreement, ...]
    corrections: int  # answers that were replaced by who had given them


def compare_people(history: History, outline: Outline, lens: Lens) -> Comparison:
    """Compare the answers of different people on the same pair, of each the last that was not undone.

    Who answers a pair again corrects the own answer: this says nothing about how well people agree. So does who has no
    name, since nobody can tell such people apart.
    """
    by_pair: dict[Pair, dict[str, AnswerEntry]] = defaultdict(dict)
    corrections = 0
    for entry in history.standing:
        if entry.answer.author is Author.PERSON:
            corrections += entry.person in by_pair[entry.answer.pair]
            by_pair[entry.answer.pair][entry.person] = entry
    found = []
    for entries in by_pair.values():
        for one, other in combinations(entries.values(), 2):
            marks, others = one.answer.landmarks, other.answer.landmarks
            distance = None if marks is None or others is None else _distance_px(marks, others, outline, lens)
            found.append(Agreement(one.answer.verdict is other.answer.verdict, distance))
    return Comparison(tuple(found), corrections)


def _distance_px(marks: Landmarks, others: Landmarks, outline: Outline, lens: Lens) -> float | None:
    if not marks.determine_affine:
        return None
    i_from_j = map_in_pixels(marks, outline, lens)
    off = others.without_along(apply_map(i_from_j, lens.undistort(others.points_j)) - lens.undistort(others.points_i))
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


def _say_agreement(compared: Comparison) -> str:
    found, corrections = compared.agreements, compared.corrections
    told = "No pair was answered by two people, so nothing can be said about how well they agree."
    if found:
        same = sum(one.is_same for one in found)
        told = f"Of {count(len(found), 'time')} that two people answered the same pair, {same} had the same verdict."
    distances = [one.distance_px for one in found if one.distance_px is not None]
    if distances:
        told += f" Their landmarks lie {say_px(float(np.median(distances)))} apart (median of the RMS distances)."
    if corrections:
        were = "was" if corrections == 1 else "were"
        told += f" {count(corrections, 'answer').capitalize()} {were} corrected later by who gave the first one."
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
