"""Frames held in memory, and painted into a picture."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import InputError
from smalti.film import film_frames as stock_module
from smalti.film.film_frames import choose_frames, paint, read_film_frames
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from tests.rendering.scene import Frames, colour_at, frame_of, mapped, psnr, shift, tilt, turn

WIDTH, HEIGHT = 120, 90
BLUE = (0, 0, 200)
STRAIGHT = Lens(Outline.of_pixels(WIDTH, HEIGHT))


class Source(Frames):
    """Frames of one size, as a source has them."""

    path = "shots"
    width, height = WIDTH, HEIGHT


def hold(frames, *, mask=None, lens=STRAIGHT, scale=1.0, places=None, source=None):
    source = Source(dict(enumerate(frames))) if source is None else source
    places = np.arange(len(frames)) if places is None else places
    return read_film_frames(source, list(range(len(frames))), places, mask, lens, scale, lambda: None)


def plain(level):
    return np.full((HEIGHT, WIDTH, 3), level, dtype=np.uint8)


def test_frames_that_fit_together_show_the_scene():
    maps = np.array(
        [
            shift(20, 15) @ turn(5),
            shift(75, 20) @ turn(-8, 1.1),
            shift(30, 70) @ tilt(4e-4, -3e-4),
            shift(60, 60) @ turn(20, 0.9) @ tilt(-3e-4, 2e-4),
        ]
    )
    held = hold([frame_of(matrix, WIDTH, HEIGHT) for matrix in maps])
    picture = paint(held, maps, np.ones(4), (220, 190), BLUE)
    y, x = np.mgrid[:190, :220].astype(float)
    inside, outside = np.zeros((2, 190, 220), dtype=bool)
    for matrix in maps:
        u, v = mapped(np.linalg.inv(matrix), x, y)
        inside |= (u > 0.5) & (u < WIDTH - 1.5) & (v > 0.5) & (v < HEIGHT - 1.5)
        outside |= (u > -2) & (u < WIDTH + 1) & (v > -2) & (v < HEIGHT + 1)
    assert psnr(picture[inside], colour_at(x, y)[inside]) > 38
    assert (picture[~outside] == BLUE).all()


@pytest.mark.parametrize("k1", [0.12, -0.08])
def test_frames_seen_through_a_lens_show_the_scene_straight(k1):
    lens = Lens(Outline.of_pixels(WIDTH, HEIGHT), k1)
    maps = np.array([shift(20, 15) @ turn(5), shift(75, 20) @ turn(-8, 1.1)])
    frames = [frame_of(matrix, WIDTH, HEIGHT, lens) for matrix in maps]
    y, x = np.mgrid[:140, :240].astype(float)
    inside, outside = np.zeros((2, 140, 240), dtype=bool)
    for matrix in maps:
        straight = np.stack(mapped(np.linalg.inv(matrix), x, y), axis=-1)
        inside |= lens.outline.contains(lens.distort(straight), -2.0)
        outside |= lens.outline.contains(lens.distort(straight), 3.0)
    picture = paint(hold(frames, lens=lens), maps, np.ones(2), (240, 140), BLUE)
    as_they_are = paint(hold(frames), maps, np.ones(2), (240, 140), BLUE)
    assert psnr(picture[inside], colour_at(x, y)[inside]) > 33
    assert psnr(as_they_are[inside], colour_at(x, y)[inside]) < 25
    assert (picture[~outside] == BLUE).all()


@pytest.mark.parametrize("scale", [0.5, 0.2])
def test_a_reduced_frame_stays_where_it_is(scale):
    half = plain(40)
    half[:, WIDTH // 2 :] = 200
    held = hold([half], scale=scale)
    assert held.pixels.shape[2] - 2 == round(1.25 * scale * WIDTH)
    canvas = np.diag([scale, scale, 1.0]) @ shift(0.5 - 0.5 / scale + 10 / scale, 10 / scale)
    row = paint(held, canvas[None], np.ones(1), (150, 90), (0, 0, 0))[10 + int(scale * HEIGHT / 2), :, 0].astype(float)
    covered = row > 0
    # The light of the row tells where its two edges and the step between them are, to a fraction of a pixel.
    assert row.sum() == pytest.approx(scale * WIDTH * 120, rel=0.02)
    assert np.sum(row * np.arange(150)) / row.sum() == pytest.approx(
        np.flatnonzero(covered).mean() + scale * WIDTH / 6, abs=0.5
    )


def test_a_frame_moves_smoothly_by_fractions_of_a_pixel():
    held = hold([plain(200)])
    lights = []
    for step in np.linspace(0, 1, 9):
        picture = paint(held, shift(10 + step, 12)[None], np.ones(1), (150, 120), (0, 0, 0))
        lights.append(picture[60, :, 0].astype(float) @ np.arange(150) / picture[60, :, 0].sum())
    np.testing.assert_allclose(np.diff(lights), 1 / 8, atol=0.03)


def test_a_place_shows_the_frame_in_whose_middle_it_lies():
    held = hold([plain(50), plain(210)])
    picture = paint(held, np.array([shift(5, 5), shift(45, 5)]), np.ones(2), (180, 100), BLUE)
    assert picture[50, 60, 0] < 60
    assert picture[50, 110, 0] > 200


def test_a_frame_of_no_strength_is_not_there():
    held = hold([plain(50), plain(210)])
    picture = paint(held, np.array([shift(5, 5), shift(45, 5)]), np.array([1.0, 0.0]), (180, 100), BLUE)
    assert (picture[50, 10:120] == 50).all()
    assert (picture[50, 130:] == BLUE).all()


def test_a_frame_of_half_strength_lets_the_background_through():
    picture = paint(hold([plain(100)]), shift(5, 5)[None], np.array([0.5]), (130, 100), BLUE)
    np.testing.assert_allclose(picture[50, 60], (50, 50, 150), atol=1)


def test_what_the_mask_hides_is_not_painted():
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    mask = (x - 60) ** 2 + (y - 45) ** 2 < 40**2
    frame = np.where(mask[..., None], np.uint8(180), np.uint8(0)).repeat(3, axis=2)
    for scale in (0.8, 0.33):
        held = hold([frame], mask=mask, scale=scale)
        picture = paint(held, np.diag([scale, scale, 1.0])[None], np.ones(1), (WIDTH, HEIGHT), (180, 180, 180))
        assert (picture == 180).all()
    away = paint(hold([frame], mask=mask), np.eye(3)[None], np.ones(1), (WIDTH, HEIGHT), BLUE)
    assert (away[45, 60] == 180).all()
    assert (away[2, 2] == BLUE).all()


def test_a_frame_far_outside_the_picture_costs_nothing_and_shows_nothing():
    maps = np.array([shift(1e9, -1e9), shift(-400, 0)])
    assert (paint(hold([plain(9), plain(9)]), maps, np.ones(2), (60, 40), BLUE) == BLUE).all()


def test_every_frame_is_read_once_in_ascending_order():
    source = Source({n: plain(n) for n in range(6)})
    counted = []
    read_film_frames(source, list(range(6)), np.array([0, 2, 5]), None, STRAIGHT, 0.5, lambda: counted.append(1))
    assert source.decoded == [0, 2, 5]
    assert len(counted) == 3


def test_a_frame_that_cannot_be_read_is_named():
    class Damaged(Source):
        def read_many(self, indices):
            return (pair for pair in super().read_many(indices) if pair[0] != 1)

    with pytest.raises(InputError, match="shots: frame 1 cannot be read; restore the source"):
        hold([plain(0)] * 3, source=Damaged({n: plain(n) for n in range(3)}))


def test_held_frames_fit_into_memory(monkeypatch):
    monkeypatch.setattr(stock_module, "MOST_BYTES", 60_000)
    assert hold([plain(n) for n in range(10)]).pixels.nbytes < 1.2 * 60_000


def test_all_frames_are_held_where_they_are_few():
    maps = np.array([shift(10 * n, 0) for n in range(50)])
    np.testing.assert_array_equal(choose_frames(maps, Outline.of_pixels(WIDTH, HEIGHT)), np.arange(50))


def test_of_thousands_some_are_held_that_still_cover_the_mosaic():
    # A camera that rests for long, and then moves on: every k-th frame would leave holes.
    xs = np.concatenate([np.random.default_rng(2).uniform(0, 1, 3000), np.arange(1, 8) * 150.0])
    maps = np.array([shift(x, 0) for x in xs])
    chosen = choose_frames(maps, Outline.of_pixels(320, 240))
    assert len(chosen) * 320 * 240 <= stock_module.MOST_PAINTED
    assert set(range(3000, 3007)) <= set(chosen.tolist())
    assert chosen[0] == 0
