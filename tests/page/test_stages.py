"""Before the first question and after the last: what the page shows while the program works."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import expect

from tests.page.axe import serious
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
        expect(person.see("progress")).to_contain_text("Choose the first question")
        keep_picture(page, "preparing")
        assert serious(page) == []
        person.look()
        expect(person.see("progress")).to_be_hidden()


def test_before_the_first_question_the_page_says_what_it_waits_for(page, program):
    """The question comes late: the page must not say meanwhile that there is none."""
    said = []

    def hold(route):
        page.wait_for_timeout(300)
        said.append(page.get_by_test_id("progress").inner_text())
        route.continue_()

    page.route("**/api/question?*", hold)
    person = Person(page)
    person.open(program.address)
    assert "Choose the first question" in said[0]
    assert "No useful question" not in said[0]


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


def test_in_the_queue_of_doubtful_pairs_every_question_comes_by_itself(page, folder, keep_picture):
    with Program(folder, "--queue", "doubtful") as program:
        program.wait_until_asking()
        person = Person(page)
        seen = [person.open(program.address)]
        for _ in range(3):
            person.press("u")
            # The matcher's turn comes between; where it has nothing to answer, only its end is news.
            expect(person.see("question")).not_to_have_attribute("data-revision", str(seen[-1].revision))
            seen.append(person.look())
        assert len({look.pair for look in seen}) == len(seen)
        assert program.get("api/state")["counts"]["by_person"] == 3
        keep_picture(page, "doubtful")


def test_a_demonstration_asks_without_any_data_and_goes_on_later(page, tmp_path, monkeypatch, keep_picture):
    monkeypatch.chdir(tmp_path)
    with Program("--demo") as program:
        program.wait_until_asking()
        state, question = program.get("api/state"), program.get("api/question")
        assert state["usable"] == 48
        # The last frames show what the first ones showed; the chain does not know it.
        assert question["j"] - question["i"] > 24
        person = Person(page)
        person.open(program.address)
        keep_picture(page, "demonstration")
        person.after(lambda: person.press("u"))
        program.stop()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["smalti-demo"]
    with Program("--demo") as program:
        program.wait_until_asking()
        assert program.get("api/state")["counts"]["unsure"] == 1
