"""Long sequences, and many small mosaics."""

from __future__ import annotations

import numpy as np

from smalti.project.entries import Role
from smalti.records import Verdict
from smalti.report.report_pictures import MOST_PICTURES
from tests.report.projects import Plan, make_project, report_of

FRAMES = 600


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
