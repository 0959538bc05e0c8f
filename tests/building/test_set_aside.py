"""Frames that are of no use: named with the reason, set aside, and placed at the end where that can be done."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

import smalti
from smalti.building.build_results import place_asides
from smalti.frames.quality import BLANK
from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import square
from smalti.project.entries import FrameEntry, Placement, Role
from smalti.records import Answer
from tests.building.filmed import error_px, tiny, true_landmarks, write_images

# Where they stand in the sequence: a black one, two copies of the frame before them, a blurred one.
BLACK, FROZEN, BLURRED = 3, (6, 7), 10


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    base = tmp_path_factory.mktemp("aside")
    images = [tiny().frame(n) for n in range(12)]
    images.insert(BLACK, np.zeros_like(images[0]))
    for place in FROZEN:
        images.insert(place, images[FROZEN[0] - 1])
    images.insert(BLURRED, cv2.GaussianBlur(images[BLURRED - 1], (0, 0), 25))
    with smalti.build(write_images(base / "images", images), base / "out", budget=8) as project:
        yield project


def test_each_is_listed_with_its_reason(project):
    reasons = {frame.number: frame.reason for frame in project.frames if frame.reason}
    assert sorted(reasons) == [BLACK, *FROZEN, BLURRED]
    assert reasons[BLACK] == "black"
    assert {reasons[number] for number in FROZEN} == {f"frozen (repeats frame {FROZEN[0] - 1})"}
    assert reasons[BLURRED].startswith("too blurred")
    assert project.info().frames.set_aside == 4


def test_the_engine_is_not_asked_of_them(project):
    aside = {BLACK, *FROZEN, BLURRED}
    for entry in project.answers:
        concerned = {entry.answer.pair.i, entry.answer.pair.j} & aside
        assert bool(concerned) == (entry.role is Role.ASIDE)


def test_the_chain_leads_past_them(project):
    chain = [entry.answer.pair for entry in project.answers if entry.role is Role.CHAIN]
    assert (2, 4) in {(pair.i, pair.j) for pair in chain}
    assert project.info().chain.bridges == 0


def test_frozen_ones_lie_where_the_frame_that_they_repeat_does(project):
    maps = {placement.number: placement.final for placement in project.placements}
    corners = tiny().outline.corners[None]
    for number in FROZEN:
        repeated = cv2.perspectiveTransform(corners, maps[FROZEN[0] - 1])
        assert np.abs(cv2.perspectiveTransform(corners, maps[number]) - repeated).max() < 0.2


def test_a_black_one_lies_nowhere_and_the_files_say_why(project):
    assert project.not_placed[BLACK] == "black"
    content = json.loads((project.folder / "transforms.json").read_text())
    assert {"frame": BLACK, "reason": "black"} in content["not_placed"]
    report = (project.folder / "report.html").read_text()
    assert 'class="thumbnails"' in report
    assert "nothing stands out from its noise" in report.lower()
    told = {frame["frame"]: frame for frame in project.info().as_json()["unplaced"]}
    assert told[BLACK]["reason"] == "black"
    assert told[BLACK]["try_this"]


def test_every_good_frame_is_where_it_belongs(project):
    good = [frame.number for frame in project.frames if not frame.reason]
    maps = {placement.number: placement.final for placement in project.placements}
    assert tiny().truth_error(np.array([maps[number] for number in good])).rms < 0.3


CENTRE = tiny().outline.centre[None]


@pytest.mark.parametrize("neighbour", [4, 6])
def test_one_that_matches_one_neighbour_is_placed_beside_that(neighbour):
    """Whether it is the earlier or the later of the two."""
    truth = square(tiny().mosaic_from_frame)
    placed = [Placement(n, 0, truth[n], truth[n], 0.5) for n in (4, 6)]

    def seen(pair):
        return apply_map(np.linalg.inv(truth[pair.i]) @ truth[pair.j], CENTRE)[0]

    class OneMatches:
        def ask_of_source(self, pair, role, expected):
            assert role is Role.ASIDE
            # Between the two, where the third one lies as well.
            assert np.linalg.norm(apply_map(expected.i_from_j, CENTRE)[0] - seen(pair)) < 3.0 * expected.sigma_px
            if neighbour not in (pair.i, pair.j):
                return Answer.no(pair)
            (record,) = true_landmarks(tiny(), np.array([[pair.i, pair.j]]))
            return Answer.yes(record)

    (found,) = place_asides([FrameEntry(5, "five", "frozen")], placed, OneMatches(), Lens(tiny().outline))
    assert (found.number, found.part) == (5, 0)
    for maps in (found.chain, found.final):
        np.testing.assert_allclose(maps, truth[5], atol=1e-6)


def test_the_nearest_other_frame_of_the_mosaic_is_tried_too():
    """Where the camera comes back to: frame 0 lies between frames 4 and 6."""
    truth = square(tiny().mosaic_from_frame)
    there = {0: truth[5], 2: truth[11], 4: truth[4], 6: truth[6]}
    placed = [Placement(n, 0, there[n], there[n], 0.5) for n in sorted(there)]
    asked = []

    class NothingMatches:
        def ask_of_source(self, pair, role, expected):
            asked.append((pair.i, pair.j))
            return Answer.unsure(pair, "")

    assert place_asides([FrameEntry(5, "five", "too blurred")], placed, NothingMatches(), Lens(tiny().outline)) == []
    assert asked == [(4, 5), (5, 6), (0, 5)]


@pytest.mark.parametrize("reason", BLANK)
def test_a_frame_in_which_nothing_stands_out_is_not_tried(reason):
    truth = square(tiny().mosaic_from_frame)
    placed = [Placement(n, 0, truth[n], truth[n], 0.5) for n in (4, 6)]
    assert place_asides([FrameEntry(5, "five", reason)], placed, None, Lens(tiny().outline)) == []


def test_frames_that_show_nothing_but_black_are_an_error_of_input(tmp_path):
    folder = write_images(tmp_path / "images", [np.zeros((120, 160, 3), np.uint8)] * 4)
    with pytest.raises(smalti.SmaltiError, match="fewer than two frames are usable"):
        smalti.build(folder, tmp_path / "out")


def test_nothing_is_set_aside_of_a_good_sequence(tmp_path):
    images = [tiny().frame(n) for n in range(12)]
    with smalti.build(write_images(tmp_path / "images", images), tmp_path / "out", budget=0) as project:
        assert [frame.reason for frame in project.frames] == 12 * [""]
        assert error_px(project, tiny()) < 1.0
