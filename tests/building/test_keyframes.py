"""Keyframes of a video: which are taken and why, where the frames between them lie, and what is kept of it."""

from __future__ import annotations

import json
import shutil
from functools import cache

import cv2
import numpy as np
import pytest

import smalti
from smalti.building.between_frames import place_between
from smalti.building.keyframes import Frame, KeyframeChooser, Why
from smalti.errors import ProjectError, UsageError
from smalti.frames.pixels import in_gray
from smalti.frames.quality import measure
from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.project.entries import Placement
from smalti.project.facts import Keyframes
from smalti.registration.camera_tracking import Track, fit_map
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.filmed import StopAfter, along, maps_of, tiny_images

OUTLINE = Outline.of_pixels(160, 120)
DOTS = np.stack(np.meshgrid(np.arange(5.0, 160.0, 6.0), np.arange(5.0, 120.0, 6.0)), axis=-1).reshape(-1, 2)
BUDGET = 4


def shifted(n):
    """The map of a camera that moves evenly."""
    return np.array([[1.0, 0.0, 3.0 * n], [0.0, 1.0, -1.0 * n], [0.0, 0.0, 1.0]])


def track_of(n, lens=None):
    """Its track from frame 0, as a tracker finds it that does not know the lens."""
    lens = Lens(OUTLINE) if lens is None else lens
    there = lens.distort(apply_map(shifted(n), lens.undistort(DOTS)))
    seen = OUTLINE.contains(there)
    return Track(fit_map(DOTS[seen], there[seen]), 0.05, 1.0)


@cache
def slow():
    """80 frames, each 4 px further: a loop that ends where it began."""
    return along([(100.0, 100.0), (180.0, 100.0), (180.0, 180.0), (100.0, 180.0), (100.0, 102.0)], step_px=4.0)


@cache
def slow_video(base):
    return write_video(slow(), base / "slow.mp4")


@cache
def built(base):
    smalti.build(slow_video(base), base / "slow.smalti", budget=BUDGET).close()
    return base / "slow.smalti"


@pytest.fixture
def base(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def project(base):
    with smalti.Project.open(built(base)) as opened:
        yield opened


def chosen(images, share=0.25):
    """The chooser after these frames, RGB."""
    chooser = KeyframeChooser(share, OUTLINE, None)
    taken = []
    for number, image in enumerate(images):
        gray = in_gray(image)
        taken += chooser.take(Frame(number, cv2.cvtColor(gray, cv2.COLOR_GRAY2RGB), gray, None, measure(gray)))
    taken += chooser.finish()
    assert [frame.number for frame in taken] == sorted(chooser.why)
    return chooser


def images_of(sequence, numbers):
    return [sequence.frame(n) for n in numbers]


def test_a_keyframe_is_taken_when_the_share_of_the_view_is_new():
    chooser = chosen(images_of(slow(), range(40)))
    keys = sorted(chooser.why)
    assert (chooser.why[0], chooser.why[keys[-1]], keys[-1]) == (Why.FIRST, Why.LAST, 39)
    assert {chooser.why[key] for key in keys[1:-1]} == {Why.VIEW}
    steps = np.linalg.norm(np.diff(slow().camera.centres[keys[:-1]], axis=0), axis=1)
    # A quarter of a frame of 160 by 120 px.
    assert np.all((steps > 20) & (steps < 44))
    assert len(chosen(images_of(slow(), range(40)), share=0.1).why) > 1.5 * len(keys)


def test_of_the_last_frames_the_sharpest_is_taken():
    images = images_of(slow(), range(24))
    usual = sorted(chosen(images).why)[1]
    images[usual] = np.asarray(images[usual - 1] // 2 + images[usual + 1] // 2)  # smeared over 8 px
    assert usual not in chosen(images).why


def test_where_the_camera_jumps_the_frames_on_both_sides_are_keyframes():
    images = [*images_of(slow(), range(6)), *images_of(along([(400.0, 300.0), (430.0, 300.0)], 4.0), range(6))]
    chooser = chosen(images)
    assert chooser.why[5] is Why.LOST
    assert chooser.why[6] is Why.APART
    assert 6 not in chooser.tracks


def test_a_change_of_light_makes_a_keyframe():
    images = images_of(slow(), range(6))
    images[3:] = [(image * 0.5).astype(np.uint8) for image in images[3:]]
    assert chosen(images).why[3] is Why.LIGHT


def test_black_frames_are_no_keyframes_and_the_camera_is_followed_across_them():
    images = images_of(slow(), range(10))
    images[4] = np.zeros_like(images[4])
    chooser = chosen(images)
    assert sorted(chooser.why) == [0, 9]
    assert sorted(chooser.tracks) == [1, 2, 3, 5, 6, 7, 8, 9]


def test_fast_cameras_have_keyframes_only():
    assert len(chosen(images_of(slow(), range(0, 80, 10))).why) == 8


def test_every_frame_lies_within_a_pixel_of_the_truth(project):
    placed = {placement.number: placement.final for placement in project.placements}
    truth = square(slow().mosaic_from_frame)
    reference = project.outcome.references[0]
    grid = OUTLINE.scaled(0.9).corners
    off = {
        number: np.abs(
            apply_map(truth[reference] @ np.linalg.inv(placed[reference]) @ final, grid)
            - apply_map(truth[number], grid)
        ).max()
        for number, final in placed.items()
    }
    assert len(off) == len(slow())
    assert max(off.values()) < 1.0
    assert slow().truth_error(np.array(list(placed.values())), placed.keys()).rms < 0.3


def test_the_engine_knows_only_keyframes_and_everybody_is_told(project):
    info = project.info()
    keys = {frame.number for frame in project.frames if not frame.reason}
    assert info.frames.keyframes == len(keys) < len(slow()) / 3
    assert (info.frames.placed, info.frames.set_aside, info.frames.not_placed) == (len(slow()), 0, 0)
    assert {n for entry in project.answers for n in (entry.answer.pair.i, entry.answer.pair.j)} <= keys
    assert {number for number, _ in project.store.fact(Keyframes).why} == keys
    report = (project.folder / "report.html").read_text()
    assert f"{len(keys)} frames are keyframes" in report
    assert str(Why.VIEW) in report


def test_frames_between_keyframes_have_an_uncertainty_and_are_as_confirmed_as_these(project):
    keys = {frame.number for frame in project.frames if not frame.reason}
    between = [placement for placement in project.placements if placement.number not in keys]
    assert all(0.0 < placement.sigma_px < 3.0 for placement in between)
    assert not project.unconfirmed - keys or project.unconfirmed & keys


def test_a_mosaic_has_keyframes_and_others_only_where_they_are_needed(project):
    few, many = (project.mosaic(all_frames=one)._layout.numbers for one in (False, True))
    assert many == list(range(len(slow())))
    assert len(few) < len(many) / 2
    mosaic, whole = project.mosaic(), project.mosaic(all_frames=True)
    canvas = whole.canvas()
    shown, all_shown = (one.render(canvas, "none", even_light=False)[..., 3] > 0 for one in (mosaic, whole))
    assert np.sum(all_shown & ~shown) < 0.01 * np.sum(all_shown)


def test_an_interrupted_reading_ends_as_one_that_was_not(base, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        smalti.build(slow_video(base), tmp_path / "out", budget=BUDGET, progress=StopAfter("reading", 30))
    smalti.build(slow_video(base), tmp_path / "out", budget=BUDGET).close()
    assert (tmp_path / "out" / "transforms.json").read_bytes() == (built(base) / "transforms.json").read_bytes()


def test_a_project_without_its_cache_ends_the_same(base, tmp_path):
    folder = shutil.copytree(built(base), tmp_path / "copy")
    shutil.rmtree(folder / "cache")
    smalti.build(slow_video(base), folder, budget=BUDGET).close()
    assert (folder / "transforms.json").read_bytes() == (built(base) / "transforms.json").read_bytes()


def test_the_choice_binds_a_project(base):
    with pytest.raises(ProjectError, match="holds a build of other options"):
        smalti.build(slow_video(base), built(base), budget=BUDGET, keyframes="all")


@pytest.mark.parametrize("wrong", ["some", "0", "-0.2", "1.5", "nan", ""])
def test_a_wrong_share_is_refused_in_one_line(wrong, base, tmp_path):
    with pytest.raises(UsageError, match="give auto, all, or the share") as refused:
        smalti.build(slow_video(base), tmp_path / "out", keyframes=wrong)
    assert "\n" not in str(refused.value)


def test_images_are_all_used_unless_a_share_is_given(base, tmp_path):
    with smalti.build(tiny_images(base), tmp_path / "all", end="4", budget=0) as project:
        assert project.info().frames.keyframes is None
        assert not any(frame.reason for frame in project.frames)
        assert project.store.fact(Keyframes) is None


def test_stretches_that_nothing_joins_keep_their_frames_apart():
    tracks = {n: (0 if n < 5 else 5, track_of(n)) for n in (1, 2, 3, 4, 6, 7, 8)}
    keys = [Placement(n, part, shifted(n), shifted(n), 0.1) for n, part in ((0, 0), (4, 0), (5, 1), (8, 1))]
    found = place_between(keys, tracks, Lens(OUTLINE))
    assert {placement.number: placement.part for placement in found} == {1: 0, 2: 0, 3: 0, 6: 1, 7: 1}


def test_what_the_tracks_miss_is_shared_out_over_the_way():
    tracks = {n: (0, track_of(n)) for n in range(1, 9)}
    moved = shifted(8) + np.array([[0.0, 0.0, 4.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = place_between(
        [Placement(0, 0, shifted(0), shifted(0), 0.1), Placement(8, 0, shifted(8), moved, 0.1)], tracks, Lens(OUTLINE)
    )
    off = [placement.final[0, 2] - shifted(placement.number)[0, 2] for placement in found]
    assert off == pytest.approx([0.5 * n for n in range(1, 8)])
    assert [placement.chain[0, 2] for placement in found] == pytest.approx([3.0 * n for n in range(1, 8)])
    sigma = [placement.sigma_px for placement in found]
    assert max(sigma) == sigma[3] > 1.0  # half way, where it is least known


def test_transforms_json_has_all_frames_by_their_numbers_in_the_source(base):
    assert sorted(maps_of(built(base))) == list(range(len(slow())))
    content = json.loads((built(base) / "transforms.json").read_text())
    assert content["not_placed"] == []


def test_a_lens_is_part_of_the_places_between():
    lens = Lens(OUTLINE, k1=0.05)
    tracks = {n: (0, track_of(n, lens)) for n in range(1, 9)}
    keys = [Placement(n, 0, shifted(n), shifted(n), 0.1) for n in (0, 8)]
    off = []
    for known in (lens, Lens(OUTLINE)):
        found = place_between(keys, tracks, known)
        assert [placement.number for placement in found] == list(range(1, 8))
        off.append(
            max(np.abs(apply_map(one.final, DOTS) - apply_map(shifted(one.number), DOTS)).max() for one in found)
        )
    assert off[0] < 0.2 < off[1]
