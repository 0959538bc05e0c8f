"""What the log says of people: noise and agreement at known pairs, and the errors at left-out landmarks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom, chi2

from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import Act, AnswerEntry, History, LinkEntry, LinkState, LogEntry, Role
from smalti.project.facts import LeftOutPlaces
from smalti.project.people import Share, errors_of_all, measure_people
from smalti.records import Answer, Author, Landmarks, Pair, Verdict

OUTLINE = Outline.of_pixels(640, 480)
SEEDS = range(20)
KNOWN_SIGMA = 1.0


def log_of(*entries: AnswerEntry) -> History:
    return History.of(
        LogEntry(place, Act.GIVE, entry.answer.pair, AnswerEntry(entry.answer, entry.role, 0.0, entry.details, place))
        for place, entry in enumerate(entries, 1)
    )


def marks(pair: Pair, sigma: float, rng, count: int, *, off=0.0) -> Landmarks:
    """Landmarks of a pair, whose true map is the same whoever marks it."""
    turn = np.random.default_rng([7, pair.i, pair.j]).uniform(-0.05, 0.05)
    truth = np.array([[np.cos(turn), -np.sin(turn), 40.0], [np.sin(turn), np.cos(turn), -25.0], [2e-5, 1e-5, 1.0]])
    points_j = rng.uniform([40, 40], [600, 440], (count, 2))
    points_i = apply_map(truth, points_j) + off
    return Landmarks(pair, points_i + rng.normal(0.0, sigma, points_i.shape), points_j, 1.5)


def known(pair: Pair, rng, *, author=Author.MATCHER, count=12, person="") -> AnswerEntry:
    landmarks = marks(pair, KNOWN_SIGMA, rng, count)
    exact = Landmarks(pair, landmarks.points_i, landmarks.points_j, KNOWN_SIGMA)
    return AnswerEntry(Answer.yes(exact, author=author), Role.LOOP, 0.0, json.dumps({"person": person}))


def control(pair: Pair, person: str, knows: str, landmarks: Landmarks | None, verdict="no") -> AnswerEntry:
    answer = Answer(pair, Verdict.YES if landmarks is not None else Verdict(verdict), landmarks, author=Author.PERSON)
    return AnswerEntry(answer, Role.CONTROL, 0.0, json.dumps({"person": person, "known": knows}))


def measured(*entries: AnswerEntry, **finished):
    return {one.person: one for one in measure_people(log_of(*entries), OUTLINE, Lens(OUTLINE), **finished)}


def simulated(seed: int):
    """Ann marks with 1.5 px and is always right; Ben with 4 px, and says no to a fifth of what overlaps."""
    rng, entries = np.random.default_rng(seed), []
    for n in range(30):
        pair = Pair(n, 50 + n)
        entries.append(known(pair, rng))
        entries.append(control(pair, "Ann", "yes", marks(pair, 1.5, rng, 4)))
        misses = rng.random() < 0.2
        entries.append(control(pair, "Ben", "yes", None if misses else marks(pair, 4.0, rng, 4)))
        entries += [control(Pair(n, 90 + n), name, "no", None) for name in ("Ann", "Ben")]
    return measured(*entries)


def test_the_noise_of_two_people_is_found_within_its_stated_uncertainty():
    for name, true_px in (("Ann", 1.5), ("Ben", 4.0)):
        sigmas = [simulated(seed)[name].sigma for seed in SEEDS]
        deviations = np.array([(sigma.px - true_px) / sigma.uncertainty_px for sigma in sigmas])
        low, high = chi2.isf([0.9995, 0.0005], len(deviations))
        assert low < np.sum(deviations**2) < high
        assert abs(deviations.mean()) < 3.5 / np.sqrt(len(deviations))


def test_wrong_noes_are_found_within_the_stated_interval():
    shares = [simulated(seed)["Ben"].known_yes for seed in SEEDS]
    inside = sum(share.interval[0] <= 0.8 <= share.interval[1] for share in shares)
    assert inside >= binom.ppf(0.001, len(shares), 0.95)


def test_who_is_always_right_has_a_share_of_one_with_an_interval_below():
    ann = simulated(0)["Ann"]
    assert ann.known_yes == ann.known_no == Share(30, 30)
    assert ann.known_no.interval[0] == pytest.approx(0.886, abs=0.001)


def test_a_known_link_of_few_landmarks_makes_the_noise_less_certain():
    rng = np.random.default_rng(3)
    pairs = [Pair(n, 50 + n) for n in range(10)]
    asked = [control(pair, "Ann", "yes", marks(pair, 2.0, rng, 4)) for pair in pairs]
    many, few = (
        measured(*(known(pair, np.random.default_rng(pair.i), count=count) for pair in pairs), *asked)["Ann"].sigma
        for count in (30, 2)
    )
    assert few.uncertainty_px > 1.5 * many.uncertainty_px
    assert abs(few.px - 2.0) < 4 * few.uncertainty_px


def test_a_yes_that_marks_another_place_is_not_right_and_not_noise():
    rng, pair, other = np.random.default_rng(1), Pair(0, 50), Pair(1, 51)
    found = measured(
        known(pair, rng),
        known(other, rng),
        control(pair, "Ann", "yes", marks(pair, 1.0, rng, 4)),
        control(other, "Ann", "yes", marks(other, 1.0, rng, 4, off=90.0)),
    )["Ann"]
    assert (found.known_yes, found.elsewhere) == (Share(1, 2), 1)
    assert found.sigma.px < 3.0


def test_cannot_tell_is_neither_right_nor_wrong():
    rng, pair = np.random.default_rng(1), Pair(0, 50)
    found = measured(known(pair, rng), control(pair, "Ann", "yes", None, "unsure"))["Ann"]
    assert (found.known_yes, found.unsure, found.sigma) == (Share(0, 0), 1, None)


@pytest.mark.parametrize("why", ["contradicted", "own", "gone", "overlaps after all"])
def test_what_is_no_longer_known_measures_nobody(why):
    rng, pair = np.random.default_rng(1), Pair(0, 50)
    asked = control(pair, "Ann", "no" if why == "overlaps after all" else "yes", None)
    reference = {
        "own": [known(pair, rng, author=Author.PERSON, person="Ann")],
        "gone": [],
    }.get(why, [known(pair, rng)])
    links = {pair: LinkEntry(pair, LinkState.REJECTED, 900.0, 0.0, 30.0)} if why == "contradicted" else {}
    assert measured(*reference, asked, links=links) == {}


def test_a_person_of_the_same_name_as_another_is_one_person_and_nobody_has_a_name_too():
    rng, pair = np.random.default_rng(1), Pair(0, 50)
    found = measured(known(pair, rng), control(pair, "", "yes", None))
    assert list(found) == ["without a name"]


def test_errors_at_left_out_landmarks_are_summed_by_person():
    history = log_of(
        known(Pair(0, 9), np.random.default_rng(1), author=Author.PERSON, person="Ann"),
        known(Pair(1, 9), np.random.default_rng(1), author=Author.PERSON, person="Ben"),
    )
    rows = LeftOutPlaces(((1, 0, 3.0, 2.0), (1, 1, 4.0, 2.0), (2, 0, 1.0, None), (77, 0, 50.0, 1.0)))
    people = {one.person: one.left_out for one in measure_people(history, OUTLINE, Lens(OUTLINE), left_out=rows)}
    assert (people["Ann"].landmarks, people["Ann"].predicted_rms_px) == (2, 2.0)
    assert people["Ann"].rms_px == pytest.approx(np.sqrt(12.5))
    assert people["Ben"].predicted_rms_px is None
    assert errors_of_all(history, rows).landmarks == 3
