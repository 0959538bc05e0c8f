"""Long sequences, and many small mosaics."""

from __future__ import annotations

import numpy as np

from smalti.project.entries import Role
from smalti.records import Verdict
from smalti.report import markup, mosaic_section, question_sections
from smalti.report.report_pictures import MOST_PICTURES
from tests.report.projects import Plan, make_project, report_of

FRAMES = 600
CHAIN = [(n, n + 1) for n in range(5)]


def test_a_page_of_600_frames_and_1800_answers_stays_small(tmp_path):
    rng = np.random.default_rng(3)
    chain = [(n, n + 1, Role.CHAIN) for n in range(FRAMES - 1)]
    far = {(i, j) for i, j in np.sort(rng.integers(0, FRAMES, (3000, 2)), axis=1).tolist() if j - i > 1}
    loops = sorted(far)[: 1800 - len(chain)]
    plan = Plan(
        names=[f"flight over the northern field {n:04d}.jpg" for n in range(FRAMES)],
        parts=[0] * FRAMES,
        yes=chain + [(i, j, Role.LOOP) for i, j in loops[::2]],
        other=[(i, j, Role.LOOP, Verdict.NO, "4 of 14 matches agree, 11 needed") for i, j in loops[1::2]],
    )
    with make_project(tmp_path, plan) as project:
        page = report_of(project)
    assert len(page.source) < 2_000_000
    assert len(page.rows("All answers, in the order in which they were given")) == 1800
    assert len(page.rows("Where each frame lies")) == FRAMES
    # Long tables are folded.
    assert ["open" in fold.attributes for fold in page.root.all("details")] == [False, False]


def test_a_table_that_is_very_long_is_cut_and_the_page_says_where_all_of_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(markup, "MOST_ROWS", 4)
    with make_project(tmp_path) as project:
        page = report_of(project)
    assert [row["frame"] for row in page.rows("Where each frame lies")] == ["0", "1", "2", "3"]
    assert "The first 4 of 6 frames; transforms.json has all of them." in page.part("frames").text
    assert "The first 4 of 8 answers; answers.jsonl has all of them." in page.part("asked").text
    assert (project.folder / "answers.jsonl").exists()


def test_outlines_and_cells_of_many_frames_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(mosaic_section, "MOST_OUTLINES", 3)
    monkeypatch.setattr(question_sections, "PLACES", 3)
    with make_project(tmp_path) as project:
        page = report_of(project)
    (outlines,) = page.part("mosaic").all("path", class_="outline")
    assert outlines.attributes["d"].count("M") == 3
    assert "One frame in 2 has its outline drawn." in page.part("mosaic").text
    (cells,) = page.part("asked").all("path", class_="cell chain")
    assert cells.attributes["d"].count("M") == 2 * len({(i // 2, j // 2) for i, j in (*CHAIN, (0, 2))})


def test_of_many_mosaics_only_the_largest_are_shown(tmp_path):
    parts = MOST_PICTURES + 3
    plan = Plan(
        names=[f"{n}.jpg" for n in range(2 * parts)],
        parts=[n // 2 for n in range(2 * parts)],
        yes=[(2 * n, 2 * n + 1, Role.CHAIN) for n in range(parts)],
    )
    with make_project(tmp_path, plan) as project:
        page = report_of(project)
    assert len(page.part("mosaic").all("figure")) == MOST_PICTURES
    assert "3 smaller mosaics not shown here; see the files." in page.part("mosaic").text
    assert f"on {parts} separate mosaics: 2 frames on the largest." in page.root.one("header").text
    files = [link.text for link in page.root.one("nav", aria_label="Files").all("a")]
    assert files[-2:] == [f"mosaic-{parts}.png", "transforms.json"]
