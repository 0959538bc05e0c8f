"""What a project tells: its numbers, and how it stands against landmarks of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from smalti.cli.build_command import described
from smalti.errors import ProjectError, TableError
from smalti.geometry.lens import Lens
from smalti.interchange.landmarks_csv import write_landmarks
from smalti.project.entries import FrameEntry, Role
from smalti.project.facts import Noise
from smalti.project.project import Project
from smalti.project.project_info import ChainCounts, FrameCounts, LensNumbers
from smalti.records import Landmarks, Pair
from tests.project.entries import no, outcome, unsure, yes
from tests.project.folders import begin, finish, write_images

KEYS = {
    *(
        "folder",
        "source",
        "frames",
        "parts",
        "chain",
        "asked",
        "yes",
        "no",
        "unsure",
        "rejected",
        "attempts",
        "matched_near",
    ),
    *("unconfirmed", "raster"),
    *(
        "registered_by",
        "links_by_method",
        "tried_again",
        "predicted_error_px",
        "error_bound_px",
        "ahead_px",
        "worth_going_on",
    ),
    *("people", "left_out_landmarks", "unplaced"),
    *("chain_error_px", "left_out_px", "family", "noise", "camera", "stopped", "seconds", "lens"),
}


@pytest.fixture
def project(tmp_path: Path):
    with begin(tmp_path / "out", write_images(tmp_path / "images")) as project:
        yield project


def test_a_project_just_begun_has_all_keys_and_nothing_done(project: Project):
    told = project.info()
    assert told.as_json().keys() == KEYS
    assert told.frames == FrameCounts(read=0, placed=0, set_aside=0, not_placed=0)
    assert (told.parts, told.asked, told.attempts, told.noise) == (0, 0, 0, None)


def test_a_project_that_is_being_answered_tells_which_frames_the_answers_join(project: Project):
    project.store.keep_frames([FrameEntry(n, f"{n}.png", "") for n in range(8)])
    for entry in (yes(0, 1), yes(1, 2), yes(4, 5), yes(5, 6, Role.LOOP)):
        project.store.keep_answer(entry)
    project.store.keep_answer(no(0, 7))
    told = project.info()
    assert told.frames == FrameCounts(read=8, placed=6, set_aside=0, not_placed=2)
    assert (told.parts, told.chain.links, told.is_provisional) == (2, 3, True)
    assert "not finished" in described(told)


def test_a_finished_project_tells_its_numbers(project: Project):
    finish(project)
    project.store.keep_frames([FrameEntry(n, f"{n}.png", "too blurred" if n == 3 else "") for n in range(7)])
    project.store.keep_answer(no(0, 4))
    project.store.keep_answer(no(0, 5))
    project.store.keep_answer(unsure(0, 6))
    told = project.info()
    assert told.as_json().keys() == KEYS
    assert told.folder == str(project.folder)
    assert told.source == str(project.folder.with_name("images"))
    assert told.frames == FrameCounts(read=7, placed=3, set_aside=1, not_placed=4)
    assert told.parts == 2
    assert told.chain == ChainCounts(links=1, bridges=1, checks=1)
    assert (told.asked, told.yes, told.no, told.unsure) == (5, 2, 2, 1)
    assert (told.rejected, told.unconfirmed, told.attempts) == (1, 1, 9)
    assert (told.predicted_error_px, told.chain_error_px) == (0.5, 8.0)
    assert (told.family, told.stopped, told.left_out_px) == ("projective", "budget", 0.75)
    assert told.noise == Noise(chain=1.2, matcher=1.0, person=1.0)
    assert told.camera == {"turn": 0.01, "tilt": None}
    assert told.seconds == {"reading": 1.23}


def test_a_project_without_a_lens_has_a_straight_one_and_tells_none(project: Project):
    finish(project)
    assert project.lens == Lens(project.outline)
    assert project.info().lens is None
    assert project.lens.is_undistorted


def test_the_lens_of_a_project_is_that_of_its_facts(project: Project):
    finish(project)
    project.store.keep_fact(outcome(lens=(0.02, 0.0)))
    assert project.lens == Lens(project.outline, 0.02, 0.0)
    # The corner is 1.25 half sides from the centre: 48 by 36 pixels.
    assert project.info().lens == LensNumbers(0.02, 0.0, pytest.approx(2.0 * 1.25**2))


def test_what_is_told_can_be_written_as_json(project: Project):
    finish(project)
    assert json.loads(json.dumps(project.info().as_json())) == project.info().as_json()


def test_landmarks_of_a_file_are_held_against_the_mosaic(project: Project, tmp_path: Path):
    finish(project)  # frame 1 lies 20 to the right of frame 0, frame 2 on another mosaic
    points = np.array([[1.0, 2.0], [8.0, 9.0]])
    records = [
        Landmarks(Pair(0, 1), points + np.array([20.0, 3.0]), points),
        Landmarks(Pair(0, 2), points, points),
    ]
    write_landmarks(tmp_path / "truth.csv", records)
    found = project.evaluate(tmp_path / "truth.csv")
    assert found.relative_rmsd_px == pytest.approx(3.0)
    assert (found.pairs, found.landmarks, found.pairs_apart, found.landmarks_apart) == (1, 2, 1, 2)
    assert found.frames_placed == 3


def test_landmarks_of_frames_that_it_does_not_have_are_refused_by_file_and_frame(project: Project, tmp_path: Path):
    finish(project)
    path = tmp_path / "truth.csv"
    write_landmarks(path, [Landmarks(Pair(0, 4), np.zeros((1, 2)), np.zeros((1, 2)))])
    with pytest.raises(ProjectError, match=r"truth\.csv: names frame 4, but the project has only frames 0 to 3"):
        project.evaluate(str(path))


def test_a_missing_file_of_landmarks_is_named(project: Project, tmp_path: Path):
    with pytest.raises(TableError, match=r"nowhere\.csv"):
        project.evaluate(tmp_path / "nowhere.csv")
