"""The small picture and the maps that are collected while a mosaic is painted."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.rendering import mosaic_overview
from tests.rendering.scene import shift
from tests.rendering.test_maps import spread_of
from tests.rendering.worlds import WORLDS, count_views, disc, mosaic_of, paint_small, reader_of

WORLD = WORLDS["homographies"]


@pytest.fixture
def small(monkeypatch):
    """Let overviews be smaller than the mosaics of these tests, by factors that are not whole numbers."""
    monkeypatch.setattr(mosaic_overview, "PICTURE_SIDE", 97)
    monkeypatch.setattr(mosaic_overview, "MAP_SIDE", 100)


def test_the_picture_is_the_mean_over_each_pixel(small):
    mosaic = mosaic_of(WORLD)
    whole = mosaic.render(mosaic.canvas()).astype(np.float64)
    picture = mosaic.overview().picture
    assert max(picture.shape[:2]) == 97
    whole[..., :3] *= whole[..., 3:] / 255
    mean = cv2.resize(whole, picture.shape[1::-1], interpolation=cv2.INTER_AREA)
    shown = mean[..., 3] >= 1
    np.testing.assert_allclose(picture[..., 3], mean[..., 3], atol=0.51)
    colours = mean[shown][:, :3] * 255 / mean[shown][:, 3:]
    np.testing.assert_allclose(picture[shown][:, :3], colours, atol=0.6)


def test_a_mosaic_that_is_small_enough_is_shown_as_it_is():
    mosaic = mosaic_of(WORLD)
    np.testing.assert_array_equal(mosaic.overview().picture, mosaic.render(mosaic.canvas()))


@pytest.mark.parametrize("mask", [None, disc()], ids=["whole", "disc"])
def test_the_maps_are_those_of_the_mosaic_at_every_few_pixels(small, mask):
    mosaic, spread = mosaic_of(WORLD, mask), spread_of(WORLD)
    canvas = mosaic.canvas()
    whole, few = mosaic.maps(canvas, spread), mosaic.overview().maps(spread)
    step = -(-max(canvas.width, canvas.height) // 100)
    assert step > 2
    every = (slice(step // 2, None, step), slice(step // 2, None, step))
    np.testing.assert_array_equal(few.source, whole.source[every])
    np.testing.assert_array_equal(few.coverage, count_views(WORLD, canvas, mask)[every])
    np.testing.assert_allclose(few.uncertainty, whole.uncertainty[every], rtol=1e-6)


def test_a_very_long_mosaic_has_an_overview(monkeypatch):
    monkeypatch.setattr(mosaic_overview, "PICTURE_SIDE", 3)
    monkeypatch.setattr(mosaic_overview, "MAP_SIDE", 1)
    overview = mosaic_of({0: shift(0, 0), 1: shift(400, 0)}).overview()
    assert overview.picture.shape == (1, 3, 4)
    assert overview.maps({}).source.shape == (1, 1)


def test_it_depends_neither_on_the_tiles_nor_on_the_room(small, monkeypatch):
    whole = mosaic_of(WORLD).overview()
    paint_small(monkeypatch)
    again = mosaic_of(WORLD).overview()
    np.testing.assert_array_equal(again.picture, whole.picture)
    np.testing.assert_array_equal(again.maps({}).source, whole.maps({}).source)


def test_saving_a_mosaic_with_its_overview_decodes_no_frame_more(tmp_path):
    alone, both = reader_of(WORLD), reader_of(WORLD)
    mosaic_of(WORLD, reader=alone).save(tmp_path / "alone.png")
    mosaic = mosaic_of(WORLD, reader=both)
    overview = mosaic.begin_overview()
    mosaic.save(tmp_path / "both.png", overview=overview)
    overview.maps({})
    assert both.decoded == alone.decoded
    assert (tmp_path / "both.png").read_bytes() == (tmp_path / "alone.png").read_bytes()
