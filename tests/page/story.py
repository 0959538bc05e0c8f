"""Ten questions answered by a careful person, with everything that happens to careful people."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

from smalti.annotation.opening import open_project
from smalti.building.build_settings import BuildSettings
from smalti.progress import Silence
from smalti.records import Answer, Author, Homographies, Landmarks, Pair
from smalti_lab.simulated_agents import OracleAgent
from tests.page.person import Person, SurveyedPairs
from tests.page.program import Program
from tests.page.rounds import careful_eye, rounds

QUESTIONS = 10
APART = Pair(0, 10)
"""Half a round apart: these two frames show different places."""

UNSURE, TOLD_APART = 4, 5
"""The numbers of the answers that are no yes."""

MISTAKEN_BY_PX = 45.0


@dataclass
class Story:
    """What was seen on the way."""

    first: dict[str, Any] = field(default_factory=dict)  # mosaics as the program had them
    before: dict[str, Any] = field(default_factory=dict)
    undone: dict[str, Any] = field(default_factory=dict)
    redone: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    contradiction: str = ""
    accused: Pair | None = None
    corrected: Pair | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    first_state: dict[str, Any] = field(default_factory=dict)
    last_state: dict[str, Any] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)  # addresses
    complaints: list[str] = field(default_factory=list)  # of the browser


def live(page: Page, program: Program, keep: Callable[[Page, str], None]) -> Story:
    """Answer ten questions, and tell what happened."""
    story, person, eye = Story(), Person(page), careful_eye()
    page.on("request", lambda request: story.requested.append(request.url))
    page.on("pageerror", lambda error: story.complaints.append(str(error)))
    page.on("console", lambda line: story.complaints.append(line.text) if line.type == "error" else None)

    person.open(program.address)
    story.first = program.get("api/mosaic")
    story.first_state = program.get("api/state")
    keep(page, "question")
    for _ in range(3):
        _answer_truly(person, eye)
    seen = person.look()
    person.mark(_landmarks(eye, seen.pair))
    keep(page, "landmarks")
    person.press("v")
    expect(person.see("overlay")).to_be_visible()
    keep(page, "overlay")
    person.press("v", "v", "v")
    person.answer("confirm")

    story.before = program.get("api/mosaic")
    person.answer("undo")
    story.undone = program.get("api/mosaic")
    person.answer("redo")
    story.redone = program.get("api/mosaic")

    person.after(lambda: person.press("u"))
    person.go_to(APART)
    person.answer("verdict-no")

    _err_and_correct(person, eye, story, keep)
    for _ in range(3):
        _answer_truly(person, eye)

    story.last = program.get("api/mosaic")
    story.last_state = program.get("api/state")
    story.rows = [row for row in program.get("api/answers") if row["author"] == "person"]
    return story


def error_px(mosaic: dict[str, Any]) -> float:
    """Return how far a mosaic as the page gets it is from the truth, px."""
    maps: Homographies = np.array(mosaic["maps"]).reshape(-1, 3, 3)
    return rounds().truth_error(maps, mosaic["numbers"]).rms


def error_of_oracle_px(prepared: Path, scratch: Path) -> float:
    """Return the error after the same kinds of answers by one who knows the truth, and errs as much with the mouse."""
    opened = open_project(shutil.copytree(prepared, scratch), None, BuildSettings(), progress=Silence())
    try:
        preparation, eye = opened.preparation, careful_eye()
        assert preparation.numbers.used == tuple(range(len(rounds())))
        state = preparation.start
        for number in range(QUESTIONS):
            pair = APART if number == TOLD_APART else state.best.pair
            answer = Answer.unsure(pair) if number == UNSURE else eye.answer(pair)
            state = state.record(replace(answer, author=Author.PERSON))
        return rounds().truth_error(state.mosaic_from_frame, preparation.numbers.used).rms
    finally:
        opened.project.close()


def _answer_truly(person: Person, eye: OracleAgent) -> SurveyedPairs:
    pair = person.look().pair
    if eye.answer(pair).landmarks is None:
        return person.answer("verdict-no")
    person.see("verdict-yes").click()
    person.mark(_landmarks(eye, pair))
    return person.answer("confirm")


def _err_and_correct(person: Person, eye: OracleAgent, story: Story, keep: Callable[[Page, str], None]) -> None:
    """Take one place for another, which looks like it, and see that."""
    pair = person.look().pair
    true = _landmarks(eye, pair)
    towards_middle = MISTAKEN_BY_PX * np.sign(rounds().outline.centre - true.points_i.mean(axis=0)) * [1, 0]
    taken = true.points_i + towards_middle
    inside = rounds().outline.contains(taken)
    person.mark(Landmarks(pair, taken[inside], true.points_j[inside]))
    person.answer("confirm")
    notice = person.see("contradiction")
    expect(notice).to_be_visible()
    story.contradiction, story.accused = notice.inner_text(), pair
    keep(person.page, "contradiction")

    person.see("contradiction-correct").click()
    expect(person.see("question")).to_have_attribute("data-i", str(pair.i))
    expect(person.see("question")).to_have_attribute("data-j", str(pair.j))
    story.corrected = person.look().pair
    person.wipe()
    person.mark(true)
    person.answer("confirm")
    expect(notice).to_be_hidden()


def _landmarks(eye: OracleAgent, pair: Pair) -> Landmarks:
    landmarks = eye.answer(pair).landmarks
    assert landmarks is not None, f"frames {pair} do not overlap, the engine should not think so any more"
    return landmarks
