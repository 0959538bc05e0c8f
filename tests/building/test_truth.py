"""The whole path, from a video to a mosaic, against the truth."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

import smalti
from smalti.building.build import build
from smalti.building.build_settings import BuildSettings
from smalti.errors import ProjectError, UnknownNameError, UsageError
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.project.entries import LinkState, Role
from smalti.project.project import Project
from smalti.project.uncertainty import Uncertainty, state_of
from tests.building.filmed import (
    FILES,
    TINY_BUDGET,
    built_strips,
    built_tiny,
    copied,
    error_px,
    strips,
    tiny,
    tiny_images,
    tiny_video,
)


@pytest.fixture
def base(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def mosaic(base):
    with Project.open(built_strips(base)) as project:
        yield project


def test_every_frame_is_placed_within_a_fraction_of_a_pixel(mosaic):
    assert [placement.number for placement in mosaic.placements] == list(range(24))
    assert mosaic.parts == 1
    assert mosaic.not_placed == {}
    assert error_px(mosaic, strips()) < 0.15


def test_the_loops_make_the_mosaic_better_than_the_chain(mosaic):
    chain = np.array([placement.chain for placement in mosaic.placements])
    assert error_px(mosaic, strips()) < 0.6 * strips().truth_error(chain).rms


def test_all_files_are_there_and_nothing_unfinished(mosaic):
    assert {file.name for file in mosaic.folder.iterdir()} - {"project.sqlite-wal", "project.sqlite-shm"} == {
        *FILES,
        "cache",
    }
    assert list(mosaic.folder.rglob("*.part")) == []


def test_a_build_stops_when_the_next_questions_are_not_worth_their_time(mosaic):
    assert mosaic.info().stopped == "enough"
    assert not mosaic.info().worth_going_on
    assert mosaic.info().attempts < 2 * 24


def test_three_attempts_a_frame_are_the_cap():
    assert BuildSettings().loop_budget(24, spent=30) == 3 * 24 - 30


def test_every_consecutive_pair_is_asked_once(mosaic):
    chain = [entry.answer.pair for entry in mosaic.answers if entry.role is Role.CHAIN]
    assert [(pair.i, pair.j) for pair in chain] == [(n, n + 1) for n in range(23)]
    pairs = [entry.answer.pair for entry in mosaic.answers]
    assert len(set(pairs)) == len(pairs)


def test_the_file_of_transforms_says_what_the_project_does(mosaic):
    content = json.loads((mosaic.folder / "transforms.json").read_text())
    assert (content["frame_width"], content["frame_height"]) == (240, 180)
    assert content["not_placed"] == []
    for frame, placement in zip(content["frames"], mosaic.placements, strict=True):
        np.testing.assert_allclose(frame["final"], placement.final)


def test_the_file_of_landmarks_holds_the_believed_links(mosaic):
    written = {record.pair for record in read_landmarks(mosaic.folder / "landmarks.csv")}
    accepted = {link.pair for link in mosaic.links if link.state is LinkState.ACCEPTED}
    assert written == accepted
    assert mosaic.evaluate(mosaic.folder / "landmarks.csv").relative_rmsd_px < 1.0


def test_the_picture_shows_the_scene(mosaic):
    """Every frame's centre has on the mosaic the colour that it has in the frame, about."""
    picture = cv2.imread(str(mosaic.folder / "mosaic.png"), cv2.IMREAD_COLOR_RGB)
    canvas = mosaic.mosaic().canvas()
    assert picture.shape[:2] == (canvas.height, canvas.width)
    blurred = cv2.GaussianBlur(picture, (0, 0), 4)
    corners = np.concatenate(
        [
            cv2.perspectiveTransform(strips().outline.corners[None], placement.final)[0]
            for placement in mosaic.placements
        ]
    )
    for placement in mosaic.placements[::3]:
        x, y = cv2.perspectiveTransform(strips().outline.centre[None, None], placement.final)[0, 0] - corners.min(0)
        seen = cv2.GaussianBlur(strips().frame(placement.number), (0, 0), 4)[90, 120].astype(float)
        assert np.abs(blurred[round(y), round(x)] - seen).max() < 25


def test_the_same_frames_give_the_same_transforms_to_the_last_bit(base, tmp_path):
    build(tiny_video(base), tmp_path / "again", budget=TINY_BUDGET).close()
    for name in ("transforms.json", "landmarks.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (built_tiny(base) / name).read_bytes()


def test_a_finished_build_asks_nothing_again(base, tmp_path):
    folder = copied(built_tiny(base), tmp_path / "copy")
    with build(tiny_video(base), folder, budget=TINY_BUDGET) as project:
        with Project.open(built_tiny(base)) as before:
            assert len(project.answers) == len(before.answers)
        assert (folder / "transforms.json").read_bytes() == (built_tiny(base) / "transforms.json").read_bytes()


def test_a_larger_budget_goes_on_from_the_answers_there_are(base, tmp_path):
    folder = copied(built_tiny(base), tmp_path / "copy")
    with build(tiny_video(base), folder, budget=TINY_BUDGET + 3) as project, Project.open(built_tiny(base)) as before:
        pairs = [entry.answer.pair for entry in project.answers]
        assert pairs[:-3] == [entry.answer.pair for entry in before.answers]
        assert project.info().asked == TINY_BUDGET + 3
    build(tiny_video(base), tmp_path / "at once", budget=TINY_BUDGET + 3).close()
    assert (tmp_path / "at once" / "transforms.json").read_bytes() == (folder / "transforms.json").read_bytes()


def test_a_smaller_budget_uses_the_first_answers_only(base, tmp_path):
    folder = copied(built_tiny(base), tmp_path / "copy")
    build(tiny_video(base), folder, budget=2).close()
    build(tiny_video(base), tmp_path / "at once", budget=2).close()
    assert (tmp_path / "at once" / "transforms.json").read_bytes() == (folder / "transforms.json").read_bytes()


def test_without_questions_the_chain_is_the_mosaic(base, tmp_path):
    with build(tiny_video(base), tmp_path / "out", budget=0) as project:
        told = project.info()
        assert (told.asked, told.frames.placed, told.stopped) == (0, 12, "budget")
        assert told.chain_error_px is None
        assert {entry.role for entry in project.answers} == {Role.CHAIN, Role.CHECK}
        assert error_px(project, tiny()) < 1.0


def test_a_target_stops_the_questions_early(base, tmp_path):
    with Project.open(built_tiny(base)) as project:
        before, after = project.outcome.chain_predicted_px, project.outcome.predicted_error_px
    target = (before + after) / 2
    with build(tiny_video(base), tmp_path / "out", budget=TINY_BUDGET, target_px=target) as project:
        told = project.info()
        assert told.stopped == "target"
        assert 0 < told.asked < TINY_BUDGET
        assert told.predicted_error_px <= target


def test_matches_that_are_left_out_of_a_trial_tell_the_error(base, tmp_path):
    with build(tiny_images(base), tmp_path / "out", budget=20) as project:
        assert 0 < project.info().left_out_px < 1.0


def test_images_give_the_mosaic_that_a_video_does(base, tmp_path):
    with build(tiny_images(base), tmp_path / "out", budget=TINY_BUDGET) as project:
        assert [frame.label for frame in project.frames] == [f"frame_{n:04d}.png" for n in range(12)]
        assert error_px(project, tiny()) < 0.3


def test_the_package_offers_it():
    assert smalti.build is build


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"method": "guess"}, UnknownNameError),
        ({"family": "round"}, UnknownNameError),
        ({"reference": "middle"}, UsageError),
        ({"reference": "-1"}, UsageError),
        ({"budget": -1}, UsageError),
        ({"target_px": 0.0}, UsageError),
        ({"target_px": float("nan")}, UsageError),
        ({"seed": -1}, UsageError),
        ({"every": 0}, UsageError),
        ({"max_size": 3}, UsageError),
        ({"start": "noon"}, UsageError),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(options, error, base, tmp_path):
    with pytest.raises(error):
        build(tiny_video(base), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def by_paper(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    with build(tiny_video(base), tmp_path_factory.mktemp("paper") / "out", budget=4, method="paper") as project:
        yield project


def test_the_papers_method_makes_its_own_mosaic_of_affine_maps(by_paper):
    told = by_paper.info()
    assert (told.family, told.frames.placed, told.asked, told.rejected) == ("affine", 12, 4, 0)
    assert by_paper.lens.is_undistorted
    assert max(np.abs(placement.final[2, :2]).max() for placement in by_paper.placements) == 0
    assert error_px(by_paper, tiny()) < 1.0
    for name in FILES:
        assert (by_paper.folder / name).is_file(), name


def test_of_the_papers_method_a_frame_is_as_sure_everywhere_as_its_centre(by_paper):
    found = Uncertainty.of(by_paper)
    for placement in by_paper.placements:
        deviations = found.at(placement.number, tiny().outline.corners)
        np.testing.assert_allclose(deviations, placement.sigma_px, rtol=1e-9)
    with pytest.raises(ProjectError, match="made by the paper's method, which stores no states; build it with"):
        state_of(by_paper)


def test_the_other_method_takes_up_what_was_answered(by_paper, base, tmp_path):
    folder = copied(by_paper.folder, tmp_path / "copy")
    with build(tiny_video(base), folder, budget=4) as project:
        assert [e.answer.pair for e in project.answers] == [e.answer.pair for e in by_paper.answers]
        assert (project.info().family, project.outcome.method) == ("projective", "smalti")
        assert error_px(project, tiny()) < 0.5
