"""Synthetic sequences: the frames show what the truth says, and only what the settings ask for."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.linear_maps import compose, invert
from smalti_lab.synthetic.camera_path import CameraPath, Handling, wander
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

SIZE = (900, 700)
GREY = np.full((700, 900, 3), 120, np.uint8)


@pytest.fixture(scope="module")
def scene():
    return procedural_scene(*SIZE, seed=2)


def flown(scene, frames=40, degradation=None, seed=0, handling=None, **options) -> SyntheticSequence:
    handling = handling or Handling(heading_degrees=12, zoom=0.08, shake_px=1.5)
    camera = wander(SIZE, frames, (160, 120), handling=handling, seed=4, **options)
    return SyntheticSequence(scene, camera, degradation or Degradation(), seed)


def aligned(image_i: np.ndarray, image_j: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Estimate j_from_i from the pictures alone, by maximising their correlation."""
    grey_i, grey_j = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (image_i, image_j))
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 200, 1e-7)
    _, warp = cv2.findTransformECC(grey_i, grey_j, start.astype(np.float32), cv2.MOTION_AFFINE, stop, None, 3)
    return warp.astype(float)


@pytest.mark.parametrize("degradation", [Degradation(), Degradation(blur_px=1.0, exposure=0.3, noise=2.0)])
def test_pictures_of_two_frames_align_where_the_truth_says(scene, degradation):
    sequence = flown(scene, degradation=degradation)
    pairs = sequence.overlapping_pairs(0.6)
    for i, j in pairs[:: len(pairs) // 8]:
        maps = sequence.mosaic_from_frame
        j_from_i = compose(invert(maps[j]), maps[i])
        start = j_from_i + np.array([[0, 0, 0.7], [0, 0, -0.6]])
        found = aligned(sequence.frame(i), sequence.frame(j), start)
        centre = np.array([79.5, 59.5, 1.0])
        assert np.linalg.norm((found - j_from_i) @ centre) < 0.06


def test_a_frame_that_lies_on_the_scenes_pixels_is_a_cut_from_it(scene):
    camera = CameraPath("cut", 200, 100, np.array([[[1.0, 0, 37], [0, 1, 411]]]))
    np.testing.assert_array_equal(SyntheticSequence(scene, camera).frame(0), scene[411:511, 37:237])


def test_frame_n_is_the_same_whoever_asks_and_in_which_order(scene):
    degradation = Degradation(blur_px=0.7, motion_blur=0.1, exposure=0.3, noise=4, vignetting=0.2)
    one, other = flown(scene, degradation=degradation, seed=5), flown(scene, degradation=degradation, seed=5)
    forward = dict(one.read_many(range(6)))
    backward = {n: other.read(n) for n in reversed(range(6))}
    for n in range(6):
        np.testing.assert_array_equal(forward[n], backward[n])
    assert one.fingerprint == other.fingerprint


def test_the_fingerprint_tells_sequences_apart(scene):
    others = [
        flown(scene),
        flown(scene, seed=1),
        flown(scene, frames=39),
        flown(scene, degradation=Degradation(noise=1)),
        flown(np.rot90(scene, 2)),
    ]
    assert len({sequence.fingerprint for sequence in others}) == len(others)


def test_noise_has_its_deviation_and_is_new_in_every_frame_and_channel():
    sequence = flown(GREY, degradation=Degradation(noise=5))
    first, second = (sequence.frame(n).astype(float) - 120 for n in (0, 1))
    assert first.std() == pytest.approx(5, rel=0.03)
    assert abs(first.mean()) < 0.1
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(first[..., 0].ravel(), first[..., 1].ravel())[0, 1]) < 0.03


def test_exposure_drifts_slowly_with_a_few_steps_and_within_its_limits():
    gains = Degradation(exposure=0.3).gains(600, seed=1)
    assert 0.7 <= gains.min() < 0.88
    assert 1.12 < gains.max() <= 1.3
    changes = np.abs(np.diff(gains))
    assert 3 <= (changes > 0.04).sum() <= 20
    assert np.median(changes) < 0.01


def test_exposure_scales_the_picture():
    sequence = flown(GREY, frames=300, degradation=Degradation(exposure=0.3))
    darkest = int(np.argmin(sequence.gains))
    assert sequence.gains[darkest] < 0.9
    np.testing.assert_allclose(sequence.frame(darkest), 120 * sequence.gains[darkest], atol=0.51)


def test_vignetting_darkens_corners_and_spares_the_middle():
    frame = flown(GREY, degradation=Degradation(vignetting=0.4)).frame(0).astype(float)
    assert frame[60, 80, 0] == pytest.approx(120, abs=1)
    np.testing.assert_allclose(frame[[0, 0, -1, -1], [0, -1, 0, -1], 0], 120 * 0.6, atol=2)


def test_blur_is_a_gaussian_of_the_given_width_up_to_the_frames_border():
    x = np.arange(SIZE[0])
    edge = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    edge[:, x >= 450] = 200
    camera = CameraPath("edge", 40, 30, np.array([[[1.0, 0, 430], [0, 1, 300]]]))
    profile = SyntheticSequence(edge, camera, Degradation(blur_px=2.0)).frame(0)[0, :, 0].astype(float)
    spread = np.diff(profile) / 200
    position = np.arange(39) + 0.5
    middle = (spread * position).sum()
    assert middle == pytest.approx(19.5, abs=0.02)
    assert np.sqrt((spread * (position - middle) ** 2).sum()) == pytest.approx(2.0, abs=0.1)


def test_blur_near_the_border_comes_from_the_scene_outside(scene):
    camera = CameraPath("one", 60, 40, np.array([[[1.0, 0, 300], [0, 1, 300]]]))
    larger = CameraPath("one", 100, 80, np.array([[[1.0, 0, 280], [0, 1, 280]]]))
    blur = Degradation(blur_px=3.0)
    inner, outer = (SyntheticSequence(scene, path, blur).frame(0) for path in (camera, larger))
    assert np.abs(inner.astype(int) - outer[20:-20, 20:-20]).max() <= 1


def test_motion_blurs_along_the_motion_only_and_moves_nothing():
    dot = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    dot[300:303, 400:403] = 255
    maps = np.array([[[1.0, 0, 370 + 40 * n], [0, 1, 280]] for n in range(2)])
    sequence = SyntheticSequence(dot, CameraPath("right", 60, 40, maps), Degradation(motion_blur=0.4))
    for n in (0, 1):
        if n == 1:
            maps = maps - [[0, 0, 40], [0, 0, 0]]
            sequence = SyntheticSequence(dot, CameraPath("right", 60, 40, maps), Degradation(motion_blur=0.4))
        seen = sequence.frame(n)[..., 0].astype(float)
        along, across = seen.sum(axis=0), seen.sum(axis=1)
        assert np.average(np.arange(60), weights=along) == pytest.approx(31, abs=0.1)
        assert np.average(np.arange(40), weights=across) == pytest.approx(21, abs=0.1)
        assert (along > along.max() / 2).sum() == pytest.approx(16, abs=2)
        assert (across > across.max() / 2).sum() == 3


def test_a_sequence_can_stand_for_a_source_of_frames(scene):
    with flown(scene, frames=5) as sequence:
        assert (sequence.width, sequence.height, sequence.scale, len(sequence)) == (160, 120, 1.0, 5)
        assert len(sequence.labels) == 5
        assert len(set(sequence.labels)) == 5
        assert str(sequence.path) == "synthetic"
        assert sequence.warnings == ()
        assert [n for n, _ in sequence.read_many([1, 3])] == [1, 3]
        assert sequence.read(2).shape == (120, 160, 3)
        assert sequence.read(2).dtype == np.uint8


@pytest.mark.parametrize("n", [-1, 40])
def test_a_frame_that_does_not_exist_is_refused(scene, n):
    with pytest.raises(UsageError, match=f"frame {n}: the sequence has frames 0 to 39"):
        flown(scene).frame(n)


def test_a_path_that_leaves_the_scene_is_refused(scene):
    camera = CameraPath("out", 160, 120, np.array([np.eye(2, 3), [[1, 0, 800], [0, 1, 0]]]))
    with pytest.raises(UsageError, match="frame 1 leaves the scene of 900 × 700"):
        SyntheticSequence(scene, camera)


def test_a_scene_that_is_no_picture_is_refused(scene):
    with pytest.raises(UsageError, match="a scene is"):
        flown(scene[..., 0])


@pytest.mark.parametrize("setting", [{"noise": -1}, {"exposure": 1.0}, {"vignetting": 2}, {"blur_px": float("nan")}])
def test_a_senseless_degradation_is_refused(setting):
    with pytest.raises(UsageError, match=f"degradation: {next(iter(setting))}"):
        Degradation(**setting)
