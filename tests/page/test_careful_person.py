"""Ten answers by mouse and keys in a real browser make the mosaic that the oracle's ten make."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from smalti.records import Pair
from tests.page.conftest import SCREEN
from tests.page.story import APART, QUESTIONS, error_of_oracle_px, error_px, live

LARGEST_RATIO = 1.2


@pytest.fixture(scope="module")
def told(browser, program, keep_picture):
    """The story, and the address at which it took place."""
    with browser.new_context(**SCREEN) as context:
        return live(context.new_page(), program, keep_picture), program.address


@pytest.fixture(scope="module")
def story(told):
    return told[0]


def test_ten_answers_bring_the_error_to_that_of_the_oracle(story, prepared, tmp_path):
    oracle_px = error_of_oracle_px(prepared, tmp_path / "oracle.smalti")
    print(f"{error_px(story.first):.3f} px at first, {error_px(story.last):.3f} px by the person, {oracle_px:.3f} px")
    assert error_px(story.last) <= LARGEST_RATIO * oracle_px


def test_ten_answers_straighten_a_mosaic_that_had_drifted(story):
    assert error_px(story.last) < 0.2 * error_px(story.first)


def test_ten_answers_are_in_the_table_each_with_its_verdict(story):
    verdicts = {Pair(row["i"], row["j"]): row["verdict"] for row in story.rows}
    assert len(verdicts) == len(story.rows) == QUESTIONS
    assert verdicts[APART] == "no"
    assert sorted(verdicts.values()).count("unsure") == 1
    assert verdicts[story.corrected] == "yes"


def test_undo_takes_the_answer_back_and_redo_gives_it_again_to_the_last_bit(story):
    assert story.undone["maps"] != story.before["maps"]
    assert story.redone["maps"] == story.before["maps"]


def test_a_wrong_answer_is_caught_and_named(story):
    assert story.accused == story.corrected
    assert str(story.accused.i) in story.contradiction
    assert str(story.accused.j) in story.contradiction
    assert "px" in story.contradiction


def test_a_corrected_answer_leaves_no_contradiction(story):
    assert not any(row["rejected"] for row in story.rows)


def test_the_predicted_error_falls_as_answers_come(story):
    assert story.last_state["predicted_px"] < 0.5 * story.first_state["predicted_px"]


def test_nothing_is_requested_from_another_host(told):
    story, address = told
    hosts = {urlsplit(url).netloc for url in story.requested if urlsplit(url).scheme not in ("data", "blob")}
    assert hosts == {urlsplit(address).netloc}


def test_the_browser_has_nothing_to_complain_of(story):
    assert story.complaints == []
