"""Before the first question and after the last: what the page shows while the program works."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import expect

from tests.page.correspondence import give_truth
from tests.page.person import PATIENCE_MS, Person
from tests.page.program import START_SECONDS, STOP_SECONDS, Program
from tests.page.rounds import careful_eye


def test_progress_is_shown_until_the_first_question_comes_by_itself(page, film, prepared, tmp_path, keep_picture):
    with Program(film, "-o", tmp_path / "rounds.smalti", "--registration", "keypoints") as program:
        person = Person(page)
        page.goto(program.address)
        expect(person.see("progress")).to_be_visible()
        expect(person.see("progress")).to_contain_text("rounds")
        keep_picture(page, "preparing")
        person.look()
        expect(person.see("progress")).to_be_hidden()


def test_an_input_that_is_no_film_ends_the_program_with_one_line(tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"this is no film")
    with Program(broken, "-o", tmp_path / "broken.smalti") as program:
        _, errors = program.process.communicate(timeout=STOP_SECONDS)
    assert program.process.returncode == 1
    (line,) = errors.splitlines()
    assert "broken.mp4" in line


def test_stop_here_makes_the_mosaic_and_the_report_and_says_where(person, program, keep_picture):
    give_truth(program, careful_eye(), 3)
    person.page.reload()
    person.look()
    person.see("finish").click()
    folder = Path(program.get("api/state")["folder"])
    expect(person.see("progress")).to_contain_text(str(folder), timeout=2 * PATIENCE_MS)
    keep_picture(person.page, "finished")
    assert (folder / "mosaic.png").stat().st_size > 10_000
    assert (folder / "report.html").stat().st_size > 10_000


def test_an_answer_given_while_the_mosaic_is_made_is_not_in_it(person, program):
    person.after(lambda: person.press("u"))
    person.see("finish").click()
    wait_for(lambda: program.get("api/state")["progress"] is not None)
    person.after(lambda: person.press("n"))
    wait_for(lambda: program.get("api/state")["stage"] == "asking")
    assert not program.get("api/state")["finished"]


def wait_for(condition):
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
