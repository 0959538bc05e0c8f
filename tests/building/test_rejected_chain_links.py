"""After a build, a person may reject any link of the chain, and the project opens again."""

from __future__ import annotations

import shutil

import pytest

import smalti
from smalti.project.entries import Role
from smalti.records import Answer, Author, Pair
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.walks import FRAMES, walk


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    smalti.build(write_video(walk(), folder / "walk.mp4"), folder / "walk", keyframes="all", budget=4 * FRAMES).close()
    return folder / "walk"


def test_a_link_of_consecutive_frames_can_be_rejected_and_reopened(built, tmp_path):
    with smalti.Project.open(built) as project:
        asked = {entry.answer.pair for entry in project.answers if entry.role is Role.LOOP}
    # What the chain needs as a bridge over a rejected link was asked already, as a question of the loop.
    bridged = [n for n in range(FRAMES - 1) if asked & {Pair(max(n - 1, 0), n + 1), Pair(n, n + 2)}]
    links = sorted({0, FRAMES - 2, *bridged[:2]})
    assert bridged
    for n in links:
        i, j = n, n + 1
        folder = shutil.copytree(built, tmp_path / str(n))
        with smalti.Session.open(folder) as session:
            session.record(Answer.no(Pair(i, j), author=Author.PERSON))
            by_person = [(row.i, row.j, row.verdict) for row in session.answers() if row.author == "person"]
            assert by_person == [(i, j, "no")]
            rejected = session.mosaic().maps
        with smalti.Session.open(folder) as session:
            assert session.mosaic().maps == rejected
