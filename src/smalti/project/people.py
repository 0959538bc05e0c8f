"""What the log says of the people who answered: agreement and noise at pairs with known answers, left-out landmarks.

A control is an answer to a pair whose answer was known when it was asked (`annotation/known_pairs.py`). At a known yes,
the landmarks p_i, p_j of a person are held against the map G of the known link: r = p_i - G(p_j) is normal with the
covariance s² 1 + J C Jᵀ. C is the covariance of the known link, and s the person's standard deviation. `noise_of` finds
the most likely s of all landmarks of a person, and its deviation by the Fisher information.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from smalti.engine.links import PRIOR_DEVIATIONS, fit_link, projected_and_rows
from smalti.geometry.homographies import PROJECTIVE
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import LIGHT, AnswerEntry, History, LinkEntry
from smalti.project.facts import LeftOutPlaces, Noise
from smalti.records import Author, Landmarks, Pair, Verdict

NAMELESS = "without a name"

ELSEWHERE = 0.1
"""In units of the frame (a quarter of width plus height): a yes with landmarks this far off marks another place."""

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some answers are right, and the interval that has their true share with 95 % probability."""

    right: int
    of: int

    @property
    def share(self) -> float | None:
        """The share that is right."""
        return self.right / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval: it is right for few answers too, and for shares near 0 and 1."""
        if not self.of:
            return 0.0, 1.0
        share, squared = self.right / self.of, NORMAL_95**2
        middle = (share + squared / (2 * self.of)) / (1 + squared / self.of)
        spread = share * (1 - share) / self.of + squared / (4 * self.of**2)
        half = NORMAL_95 * np.sqrt(spread) / (1 + squared / self.of)
        return float(max(middle - half, 0.0)), float(min(middle + half, 1.0))


@dataclass(frozen=True, slots=True)
class Sigma:
    """The standard deviation of a person's landmarks, px of a coordinate."""

    px: float
    uncertainty_px: float  # its own standard deviation
    landmarks: int


@dataclass(frozen=True, slots=True)
class LeftOutErrors:
    """Distances between left-out landmarks and the mosaic, beside those that were predicted at the same places."""

    landmarks: int
    rms_px: float
    median_px: float
    p90_px: float
    predicted_rms_px: float | None  # of mosaic and landmarks together; None for the paper's method


@dataclass(frozen=True, slots=True)
class PersonMeasure:
    """What was measured of a person."""

    person: str
    known_yes: Share  # right is a yes whose landmarks mark the known place
    known_no: Share
    elsewhere: int  # yes answers that mark another place; they are not right
    unsure: int  # "cannot tell" at known pairs; neither right nor wrong
    sigma: Sigma | None
    left_out: LeftOutErrors | None


@dataclass(frozen=True, slots=True, eq=False)
class _Residuals:
    """Distances between a person's landmarks and the known link, along independent directions."""

    values: NDArray[np.float64]  # (2n,), px
    variances: NDArray[np.float64]  # (2n,), px²: due to the known link
    rms_px: float


def measure_people(
    history: History,
    outline: Outline,
    lens: Lens,
    *,
    noise: Noise | None = None,
    links: Mapping[Pair, LinkEntry] | None = None,
    left_out: LeftOutPlaces | None = None,
) -> list[PersonMeasure]:
    """Return what was measured of every person with known pairs or left-out landmarks, by name.

    `noise`, `links` and `left_out` are those of the finished mosaic. A known answer that was contradicted since, or is
    no longer in force, measures nobody.
    """
    known = {entry.answer.pair: entry for entry in history.answers}
    by_name: dict[str, list[tuple[AnswerEntry, AnswerEntry | None]]] = defaultdict(list)
    for entry in history.controls:
        reference = known.get(entry.answer.pair)
        if _is_still_known(entry, reference, links or {}):
            by_name[entry.person].append((entry, reference))
    errors = errors_by_person(history, left_out)
    return [
        _measure(name, by_name.get(name, []), errors.get(name), outline, lens, noise)
        for name in sorted(by_name.keys() | errors.keys())
    ]


def errors_by_person(history: History, left_out: LeftOutPlaces | None) -> dict[str, LeftOutErrors]:
    """Return the errors at left-out landmarks by the name of who set them."""
    if left_out is None:
        return {}
    people = {entry.place: entry.person for entry in history.answers}
    rows: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    for place, _, error_px, predicted_px in left_out.rows:
        if place in people:
            rows[people[place]].append((error_px, predicted_px))
    return {name: summarise_left_out(own) for name, own in rows.items()}


def errors_of_all(history: History, left_out: LeftOutPlaces | None) -> LeftOutErrors | None:
    """Return the errors at all left-out landmarks of answers in force; None without any."""
    places = {entry.place for entry in history.answers}
    rows = [] if left_out is None else [(row[2], row[3]) for row in left_out.rows if row[0] in places]
    return summarise_left_out(rows) if rows else None


def summarise_left_out(rows: Sequence[tuple[float, float | None]]) -> LeftOutErrors:
    """Summarise distances and their predictions."""
    errors = np.array([error for error, _ in rows])
    predicted = [value for _, value in rows if value is not None]
    return LeftOutErrors(
        landmarks=len(rows),
        rms_px=float(np.sqrt(np.mean(errors**2))),
        median_px=float(np.median(errors)),
        p90_px=float(np.quantile(errors, 0.9)),
        predicted_rms_px=float(np.sqrt(np.mean(np.square(predicted)))) if len(predicted) == len(rows) else None,
    )


def _is_still_known(entry: AnswerEntry, reference: AnswerEntry | None, links: Mapping[Pair, LinkEntry]) -> bool:
    is_yes = reference is not None and reference.answer.landmarks is not None
    if entry.known is Verdict.NO:
        return not is_yes
    if entry.known is not Verdict.YES or reference is None or not is_yes:
        return False
    is_own = reference.answer.author is Author.PERSON and reference.person == entry.person
    link = links.get(entry.answer.pair)
    return not is_own and (link is None or link.weight >= LIGHT)


def _measure(
    name: str,
    controls: Iterable[tuple[AnswerEntry, AnswerEntry | None]],
    left_out: LeftOutErrors | None,
    outline: Outline,
    lens: Lens,
    noise: Noise | None,
) -> PersonMeasure:
    right = {Verdict.YES: 0, Verdict.NO: 0}
    asked = {Verdict.YES: 0, Verdict.NO: 0}
    elsewhere = unsure = landmarks = 0
    residuals = []
    for entry, reference in controls:
        said, known = entry.answer.verdict, entry.known
        assert known is not None
        if said is Verdict.UNSURE:
            unsure += 1
            continue
        asked[known] += 1
        if said is known is Verdict.YES:
            assert reference is not None
            assert reference.answer.landmarks is not None
            assert entry.answer.landmarks is not None
            found = _hold(entry.answer.landmarks, reference.answer.landmarks, outline, lens, _noise(reference, noise))
            if found.rms_px > ELSEWHERE * outline.unit + np.sqrt(found.variances.mean()):
                elsewhere += 1
                continue
            residuals.append(found)
            landmarks += len(entry.answer.landmarks)
        right[known] += said is known
    return PersonMeasure(
        person=name or NAMELESS,
        known_yes=Share(right[Verdict.YES], asked[Verdict.YES]),
        known_no=Share(right[Verdict.NO], asked[Verdict.NO]),
        elsewhere=elsewhere,
        unsure=unsure,
        sigma=noise_of(residuals, landmarks) if residuals else None,
        left_out=left_out,
    )


def _noise(reference: AnswerEntry, noise: Noise | None) -> float:
    """Return by which factor the known landmarks err more than they say."""
    if noise is None:
        return 1.0
    return noise.person if reference.answer.author is Author.PERSON else noise.matcher


def _hold(landmarks: Landmarks, known: Landmarks, outline: Outline, lens: Lens, noise: float) -> _Residuals:
    """Hold landmarks against the link of known ones, which may leave directions undetermined."""
    link = fit_link(known, outline, lens)
    to_unit = outline.unit_from_pixels
    points_i, points_j = (
        lens.undistort(points) @ to_unit[:, :2].T + to_unit[:, 2] for points in (landmarks.points_i, landmarks.points_j)
    )
    projected, rows = projected_and_rows(link.i_from_j, points_j)
    root = link.root @ PROJECTIVE.by_entry.T / noise
    information = root.T @ root + np.diag(np.square(1.0 / np.array(PRIOR_DEVIATIONS)))
    along = (rows @ PROJECTIVE.by_entry.T).reshape(-1, PROJECTIVE.freedom)
    variances, directions = np.linalg.eigh(along @ np.linalg.solve(information, along.T))
    off = (points_i - projected).ravel()
    return _Residuals(
        outline.unit * (directions.T @ off),
        outline.unit**2 * np.maximum(variances, 0.0),
        outline.unit * float(np.sqrt(2.0 * np.mean(off**2))),
    )


def noise_of(residuals: Sequence[_Residuals], landmarks: int) -> Sigma:
    """Return the most likely standard deviation of the landmarks behind residuals, with its own deviation."""
    values = np.concatenate([one.values for one in residuals])
    known = np.concatenate([one.variances for one in residuals])

    def cost(log_sigma: float) -> float:
        variance = np.exp(2.0 * log_sigma) + known
        return float(np.sum(np.log(variance) + values**2 / variance))

    found = minimize_scalar(cost, bounds=(np.log(1e-3), np.log(1e3)), method="bounded", options={"xatol": 1e-6})
    sigma = float(np.exp(found.x))
    information = float(np.sum(2.0 * sigma**2 / (sigma**2 + known) ** 2))
    return Sigma(sigma, 1.0 / np.sqrt(max(information, 1e-12)), landmarks)
