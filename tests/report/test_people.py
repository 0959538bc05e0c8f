"""Who answered, when, how exactly, how consistently."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import Act, AnswerEntry, History, LogEntry, Role
from smalti.project.facts import LeftOutPlaces
from smalti.records import Answer, Author, Landmarks, Pair
from smalti.report.people_section import compare_people
from tests.report.projects import make_project, report_of

OUTLINE = Outline.of_pixels(320, 240)
POINTS = np.array([[40.0, 30.0], [280.0, 30.0], [40.0, 210.0], [280.0, 210.0], [160.0, 120.0]])
MORNING = datetime(2026, 11, 2, 9, 30, tzinfo=UTC).timestamp()


def said(pair, verdict="yes", *, person="", off=(0.0, 0.0), seconds=20.0, time=MORNING):
    landmarks = Landmarks(Pair(*pair), POINTS + off, POINTS) if verdict == "yes" else None
    answers = {
        "yes": lambda: Answer.yes(landmarks, author=Author.PERSON),
        "no": lambda: Answer.no(Pair(*pair), author=Author.PERSON),
        "unsure": lambda: Answer.unsure(Pair(*pair), author=Author.PERSON),
    }
    details = json.dumps({"landmarks": [], "person": person}) if person else ""
    return AnswerEntry(answers[verdict](), Role.LOOP, seconds, details, time=time)


def test_without_an_answer_of_a_person_nothing_is_said(tmp_path):
    with make_project(tmp_path) as project:
        page = report_of(project)
    assert 'id="people"' not in page.source
    assert "#people" not in page.source


def test_every_person_has_a_row_and_all_together_a_sentence(tmp_path):
    answers = [
        said((1, 3), person="Ann", seconds=10.0),
        said((1, 4), "no", person="Ann", seconds=20.0, time=MORNING + 3600),
        said((2, 4), "unsure", person="Ben <b>", seconds=60.0, time=MORNING + 86400),
        said((2, 5), "no", seconds=0.0, time=MORNING + 60),
    ]
    with make_project(tmp_path) as project:
        for entry in answers:
            project.store.keep_answer(entry)
        after = replace(project.outcome, finished_after=project.store.revision)
        project.store.keep_result(project.placements, project.links, after)
        section = report_of(project).part("people")
    rows = [[cell.text for cell in row.all("td")] for row in section.all("tr")[1:]]
    assert [row[0] for row in rows] == ["Ann", "Ben <b>", "without a name"]
    assert rows[0][1:7] == ["2026-11-02 09:30", "2026-11-02 10:30", "1", "1", "0", "5"]
    assert rows[1][3:6] == ["0", "0", "1"]
    assert rows[2][-1] == "–"
    assert "3 people gave 4 answers between 2026-11-02 09:30 and 2026-11-03 09:30 (UTC)" in section.text
    assert "1 yes, 2 no, 1 cannot tell. An answer took 20 s (median). They set 5 landmarks" in section.text
    assert "No pair was answered by two people" in section.text


def compared(*entries):
    log = (LogEntry(place, Act.GIVE, entry.answer.pair, entry) for place, entry in enumerate(entries, 1))
    return compare_people(History.of(log), OUTLINE, Lens(OUTLINE))


def test_answers_of_different_people_on_the_same_pair_are_compared():
    found = compared(
        said((0, 5), person="Ann"),
        said((0, 5), person="Ben", off=(3.0, 4.0)),
        said((0, 5), "no", person="Zoe"),
        said((1, 5), "no"),
    ).agreements
    assert [one.is_same for one in found] == [True, False, False]
    assert found[0].distance_px == pytest.approx(5.0, rel=1e-3)
    assert [one.distance_px for one in found[1:]] == [None, None]


def test_a_correction_of_the_own_answer_is_no_disagreement():
    found = compared(said((0, 5), "no", person="Ann"), said((0, 5), person="Ann"), said((0, 5), person="Ben"))
    assert (found.corrections, [one.is_same for one in found.agreements]) == (1, [True])


def test_known_pairs_and_left_out_landmarks_are_in_the_report_the_numbers_and_the_paragraph(tmp_path):
    known = said((0, 5), person="Ben")
    control = replace(
        said((0, 5), off=(1.0, 0.0)), role=Role.CONTROL, details=json.dumps({"person": "Ann", "known": "yes"})
    )
    with make_project(tmp_path) as project:
        for entry in (known, control):
            project.store.keep_answer(entry)
        place = project.store.revision - 1
        project.store.keep_fact(LeftOutPlaces(((place, 0, 3.0, 2.5), (place, 1, 4.0, 2.5))))
        after = replace(project.outcome, finished_after=project.store.revision)
        project.store.keep_result(project.placements, project.links, after)
        page, info = report_of(project), project.info()
    [ann, ben] = page.rows("Pairs with known answers, and left-out landmarks")
    assert (ann["person"], ann["known yes"], ann["known no"], ann["left out"]) == ("Ann", "1 of 1", "–", "0")
    assert (ben["known yes"], ben["left out"], ben["RMS px"], ben["predicted px"]) == ("–", "2", "3.54", "2.50")
    told = page.part("methods").text
    assert "they answered 1 question about pairs with a known answer" in told
    assert "Ann: 1 of 1 pair with a known answer were answered right (95 % interval 21 to 100 %), landmark σ" in told
    assert "The error at 2 left-out landmarks is 3.54 px RMS, 3.50 px median" in told
    assert "predicted for these places was 2.50 px RMS" in told
    assert [one["person"] for one in info.as_json()["people"]] == ["Ann", "Ben"]
    assert info.left_out_landmarks.landmarks == 2
