import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.frames.field_of_view import find_field
from tests.frames.scenes import make_scene

HEIGHT, WIDTH = 240, 320
SCENE = make_scene(700, 1100, colours=1)


def views(frames=24, moving=True):
    rng = np.random.default_rng(5)
    for _ in range(frames):
        y, x = (rng.integers(0, SCENE.shape[0] - HEIGHT), rng.integers(0, SCENE.shape[1] - WIDTH)) if moving else (9, 9)
        noise = rng.normal(0, 2, (HEIGHT, WIDTH))
        yield np.clip(SCENE[y : y + HEIGHT, x : x + WIDTH] + noise, 0, 255).astype(np.uint8)


def circle(radius):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return np.hypot(x - WIDTH / 2, y - HEIGHT / 2) < radius


def surrounded(field, level=8, **options):
    rng = np.random.default_rng(6)
    soft = cv2.GaussianBlur(field.astype(np.float32), (0, 0), 1)
    for image in views(**options):
        yield np.clip(image * soft + level * (1 - soft) + rng.normal(0, 2, image.shape), 0, 255).astype(np.uint8)


def leaks(found, field):
    """Whether more is found than the field and the pixels right beside it."""
    beside = cv2.dilate(field.astype(np.uint8), np.ones((3, 3), dtype=np.uint8)).astype(bool)
    return (found & ~beside).any()


def rectangle(top=0, bottom=0, left=0, right=0):
    field = np.zeros((HEIGHT, WIDTH), dtype=bool)
    field[top : HEIGHT - bottom, left : WIDTH - right] = True
    return field


FIELDS = {
    "round": circle(100),
    "round and cut off": circle(150),
    "letterbox": rectangle(top=30, bottom=30),
    "one dark border": rectangle(left=12),
    "framed": rectangle(20, 20, 40, 30),
}


@pytest.mark.parametrize(
    ("kind", "moving"), [*((kind, True) for kind in FIELDS), ("round and cut off", False), ("letterbox", False)]
)
def test_a_dark_surround_is_left_out(kind, moving):
    field = FIELDS[kind]
    found = find_field(surrounded(field, moving=moving))
    assert not leaks(found, field)
    assert (found & field).sum() > 0.94 * field.sum()


def test_black_frames_and_a_title_do_not_disturb():
    field = circle(100)
    images = list(surrounded(field))
    images[7] = np.full_like(images[7], 230)
    images += [np.zeros_like(images[0])] * 250
    found = find_field(images)
    assert not leaks(found, field)
    assert (found & field).sum() > 0.94 * field.sum()


def test_text_in_the_surround_is_left_out_too():
    field = circle(90)
    images = [cv2.putText(image, "05:12", (3, 18), cv2.FONT_HERSHEY_PLAIN, 1, 255) for image in surrounded(field)]
    assert not leaks(find_field(images), field)


@pytest.mark.parametrize("frames", [2, 24])
@pytest.mark.parametrize("moving", [True, False], ids=["moving", "at rest"])
def test_a_frame_full_of_scene_stays_whole(moving, frames):
    assert find_field(views(frames, moving)).all()


def test_a_dark_vignette_without_rim_is_scene():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    shade = np.exp(-(((x - WIDTH / 2) / 110) ** 2) - ((y - HEIGHT / 2) / 110) ** 2)
    assert find_field((image * shade).astype(np.uint8) for image in views()).mean() > 0.99


def test_a_dark_scene_is_scene():
    assert find_field((image * 0.12).astype(np.uint8) for image in views()).all()
    assert find_field(np.zeros((3, HEIGHT, WIDTH), dtype=np.uint8)).all()


def draw_text(image):
    return cv2.putText(image, "2024-05-01", (20, 40), cv2.FONT_HERSHEY_SIMPLEX, 0.8, 255, 2)


def draw_cross(image):
    cv2.line(image, (130, 120), (190, 120), 255, 1)
    return cv2.line(image, (160, 90), (160, 150), 255, 1)


def draw_logo(image):
    cv2.rectangle(image, (230, 190), (300, 225), 20, -1)
    return cv2.putText(image, "LOGO", (236, 214), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 230, 2)


@pytest.mark.parametrize("draw", [draw_text, draw_cross, draw_logo])
def test_an_overlay_is_left_out_and_little_else(draw):
    marks = draw(np.full((HEIGHT, WIDTH), 120, dtype=np.uint8)) != 120
    found = find_field(draw(image) for image in views())
    assert (found & marks).sum() <= 0.02 * marks.sum()
    around = cv2.dilate(marks.astype(np.uint8), np.ones((17, 17), dtype=np.uint8)).astype(bool)
    assert found[~around].all()


def draw_scratch(image, opacity=0.35):
    line = np.zeros((HEIGHT, WIDTH), np.float32)
    cv2.line(line, (90, 60), (170, 110), 1.0, 2)
    cv2.circle(line, (230, 150), 5, 1.0, -1)
    share = opacity * cv2.GaussianBlur(line, (0, 0), 0.8)
    return np.rint(image * (1 - share) + 30 * share).astype(np.uint8)


def test_a_faint_scratch_and_a_speck_on_the_lens_are_left_out_and_little_else():
    marks = draw_scratch(np.full((HEIGHT, WIDTH), 120, dtype=np.uint8)) < 104  # more than half of the opacity
    found = find_field(draw_scratch(image) for image in views(frames=32))
    assert (found & marks).sum() <= 0.3 * marks.sum()
    around = cv2.dilate(marks.astype(np.uint8), np.ones((17, 17), dtype=np.uint8)).astype(bool)
    assert found[~around].all()


def test_a_clock_that_runs_is_left_out():
    numbers = np.random.default_rng(8).integers(0, 10, (24, 6))
    shown = np.zeros((HEIGHT, WIDTH), dtype=bool)

    def draw_clock(image, digits):
        text = "{}{}:{}{}:{}{}".format(*digits)
        drawn = cv2.putText(np.zeros_like(image), text, (60, 200), cv2.FONT_HERSHEY_SIMPLEX, 0.9, 255, 2)
        shown[drawn > 128] = True
        return np.maximum(image, drawn)

    found = find_field(draw_clock(image, digits) for image, digits in zip(views(), numbers, strict=True))
    assert (found & shown).sum() <= 0.1 * shown.sum()
    assert found[: 200 - 60].all()


def test_a_ring_over_the_scene_does_not_take_what_it_encloses():
    found = find_field(cv2.circle(image, (160, 120), 60, 255, 2) for image in views())
    assert not found[120, 100]
    assert found[100:140, 140:180].all()


def test_a_scene_at_rest_is_no_overlay():
    assert find_field(draw_text(image) for image in views(moving=False)).all()


def test_a_smooth_scene_at_rest_is_no_overlay_for_all_its_noise():
    rng = np.random.default_rng(7)
    images = (rng.normal(120, 2, (HEIGHT, WIDTH)).astype(np.uint8) for _ in range(24))
    assert find_field(draw_text(image) for image in images).all()


def test_a_scene_at_rest_in_flickering_light_is_no_overlay():
    still = draw_text(cv2.GaussianBlur(SCENE[:HEIGHT, :WIDTH], (0, 0), 12) // 2)
    assert find_field(still + np.uint8(k % 5 * 10) for k in range(24)).all()


def test_an_overlay_inside_a_round_field_is_found():
    field = circle(110)
    found = find_field(draw_cross(image) for image in surrounded(field))
    assert not found[120, 130:190].any()
    assert not leaks(found, field)


def test_no_frames_are_refused():
    with pytest.raises(UsageError, match="without frames"):
        find_field([])
