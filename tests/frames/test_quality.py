import functools
import math
import time

import cv2
import numpy as np
import pytest

from smalti.frames.quality import measure, measure_frames, measure_views, unusable
from smalti.frames.source import open_source
from tests.frames.scenes import make_scene, write_video

SCENE = make_scene(700, 1100, colours=1)


def views(frames, step=6.0, noise=1.0):
    """Views of the scene that wander along by `step` pixels a frame, with the noise of a sensor."""
    rng = np.random.default_rng(0)
    shifts = [np.float32([[1, 0, -40 - step * k], [0, 1, -30 - 0.4 * step * k]]) for k in range(frames)]
    images = [cv2.warpAffine(SCENE, shift, (640, 480), flags=cv2.INTER_CUBIC) for shift in shifts]
    return [np.clip(image + rng.normal(0, noise, image.shape), 0, 255).astype(np.uint8) for image in images]


def judge(images, mask=None):
    return unusable(list(measure_frames(images, mask)))


def test_a_good_sequence_is_kept_whole():
    assert judge(views(30)) == {}


def test_black_white_and_flat_frames_are_named():
    images = views(12)
    rng = np.random.default_rng(1)
    images[2] = rng.integers(0, 9, images[2].shape).astype(np.uint8)
    images[5] = np.full_like(images[5], 255)
    images[8] = np.full_like(images[8], 128)
    assert judge(images) == {2: "black", 5: "white (overexposed)", 8: "no contrast"}


def test_a_dull_or_dark_scene_is_kept():
    images = [(20 + 0.1 * image).astype(np.uint8) for image in views(12, noise=0)]
    assert judge(images) == {}


def test_repeats_name_the_frame_that_they_repeat():
    images = views(12)
    images[4] = images[5] = images[3]
    assert judge(images) == {4: "frozen (repeats frame 3)", 5: "frozen (repeats frame 3)"}


def test_repeats_are_known_through_compression(tmp_path):
    rng = np.random.default_rng(2)
    scene = make_scene(300, 500, seed=4)
    shown = [0, 1, 2, 3, 3, 3, 4, 5, 6, 6, 7, 8]

    def draw(k):
        frame = scene[3 * shown[k] : 3 * shown[k] + 240, 6 * shown[k] : 6 * shown[k] + 320]
        return np.clip(frame + rng.normal(0, 1, frame.shape), 0, 255).astype(np.uint8)

    path = write_video(tmp_path / "clip.mp4", "libx264", frames=12, draw=draw, crf=26)
    with open_source(path) as source:
        grays = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for _, image in source.read_many(range(12))]
    assert judge(grays) == {
        4: "frozen (repeats frame 3)",
        5: "frozen (repeats frame 3)",
        9: "frozen (repeats frame 8)",
    }


def test_a_scene_that_moves_by_a_pixel_is_not_frozen():
    assert judge(views(20, step=1.0)) == {}


def test_a_creeping_scene_is_thinned_and_never_frozen_for_good():
    kept = sorted(set(range(60)) - judge(views(60, step=0.05, noise=0)).keys())
    assert len(kept) >= 4
    assert max(np.diff(kept)) <= 20  # no more than a pixel is lost between two that are kept


def test_a_small_thing_that_moves_is_no_repeat():
    images = views(2)
    images[1] = images[0].copy()
    images[1][100:130, 200:230] = images[0][300:330, 50:80]
    assert judge(images) == {}


def test_a_blurred_frame_is_told_by_its_neighbours():
    images = views(24)
    images[9] = cv2.GaussianBlur(images[9], (0, 0), 20)
    reasons = judge(images)
    assert list(reasons) == [9]
    assert reasons[9].startswith("too blurred (sharpness ")
    assert reasons[9].endswith(" % of its neighbours')")


def test_mild_blur_is_kept():
    images = views(24)
    images[9] = cv2.GaussianBlur(images[9], (0, 0), 2)
    assert judge(images) == {}


BURST = range(10, 34)  # longer than the neighbourhood of its middle


@functools.cache
def long_sequence():
    return [cv2.resize(image, (320, 240), interpolation=cv2.INTER_AREA) for image in views(50, step=4)]


def spoil(change):
    return [change(image) if k in BURST else image for k, image in enumerate(long_sequence())]


def test_a_smoother_stretch_of_the_scene_is_kept():
    assert judge(spoil(lambda image: cv2.GaussianBlur(image, (0, 0), 3))) == {}


BURSTS = {
    "blurred": lambda image: cv2.GaussianBlur(image, (0, 0), 10),
    "in turbid fluid": lambda image: (150 + 0.05 * image).astype(np.uint8),
    "in a haze": lambda image: np.clip(200 + np.linspace(-30, 30, 320) + 0.02 * image, 0, 255).astype(np.uint8),
}


@pytest.mark.parametrize("kind", BURSTS)
def test_a_burst_does_not_set_its_own_norm(kind):
    reasons = judge(spoil(BURSTS[kind]))
    assert list(reasons) == list(BURST)
    assert reasons[22].startswith("almost no detail (")


def test_shading_and_noise_are_no_texture():
    shaded = np.clip(np.linspace(20, 230, 640) + np.random.default_rng(0).normal(0, 4, (480, 640)), 0, 255)
    images = views(12)
    assert measure(shaded.astype(np.uint8)).texture < 0.1 * measure(images[0]).texture
    assert measure((images[0] * 0.5).astype(np.uint8)).texture == pytest.approx(measure(images[0]).texture, rel=0.15)


def test_a_frame_whose_field_is_mostly_hidden_is_set_aside():
    images = views(12)
    field = np.ones((480, 640), dtype=bool)
    left, little = field.copy(), field.copy()
    left[:, 320:] = False
    little[:, 100:] = False
    masks = [field] * 12
    masks[4], masks[7] = left, little
    assert unusable(list(measure_views(zip(images, masks, strict=True)))) == {
        7: "hidden (15 % of the usual field can be seen)"
    }


def test_a_frame_that_is_hidden_altogether_is_not_called_black():
    images, nothing = views(6), np.zeros((480, 640), dtype=bool)
    masks = [None, None, nothing, None, None, None]
    assert unusable(list(measure_views(zip(images, masks, strict=True))))[2].startswith("hidden (")


def test_a_frame_with_a_broad_shadow_is_not_blurred():
    images = [(90 + 0.25 * image).astype(np.uint8) for image in views(24)]
    images[9] = np.clip(cv2.GaussianBlur(images[9], (0, 0), 2.5) + np.linspace(-85, 85, 640), 0, 255).astype(np.uint8)
    assert judge(images) == {}


def test_a_darker_frame_is_not_blurred():
    images = views(24)
    images[9] = (images[9] * 0.25).astype(np.uint8)
    assert judge(images) == {}


def test_only_the_masked_field_is_judged():
    mask = np.zeros((480, 640), dtype=bool)
    mask[100:380, 150:490] = True
    images = [np.where(mask, image, 0).astype(np.uint8) for image in views(12)]
    images[3] = np.where(mask, 0, 255).astype(np.uint8)
    assert judge(images, mask) == {3: "black"}
    kept = measure(images[5], mask)
    assert kept.brightness == pytest.approx(images[5][mask].mean(), abs=2)
    assert kept.sharpness == pytest.approx(measure(images[5][100:380, 150:490]).sharpness, rel=0.2)


def test_the_first_frame_has_nothing_to_change_from():
    measured = measure(views(1)[0])
    assert measured.change == math.inf
    assert not measured.is_repeat
    assert unusable([]) == {}


def test_the_change_is_about_the_motion_in_reduced_pixels():
    first, second = (cv2.GaussianBlur(image, (0, 0), 3) for image in views(2, step=2.0, noise=0))
    assert 0.4 < measure(second, None, first).change < 1.6  # 2.15 px, at half size


def test_measuring_takes_some_milliseconds_at_most():
    images = views(8)
    list(measure_frames(images))
    start = time.perf_counter()
    list(measure_frames(images))
    assert (time.perf_counter() - start) / 8 < 0.01  # 1 ms on an idle machine
