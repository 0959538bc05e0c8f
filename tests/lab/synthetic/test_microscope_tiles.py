"""A microscope's raster: neighbouring tiles show the same specimen where the truth says, and a set share is blank."""

from __future__ import annotations

import csv

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti_lab.synthetic.microscope_tiles import MicroscopeRaster, write_raster

RASTER = MicroscopeRaster(8, 6, side=160, seed=5)


def test_neighbours_show_the_same_specimen_where_the_truth_says():
    """Through the tiles' noise of 1.5 grey levels each and the vignetting of their corners."""
    maps, compared = RASTER.mosaic_from_frame, 0
    for n in range(len(RASTER)):
        for other in range(n + 1, len(RASTER)):
            apart = np.abs(RASTER.cells[n] - RASTER.cells[other]).sum()
            if apart != 1 or RASTER.is_blank[[n, other]].any():
                continue
            n_from_other = np.linalg.inv(maps[n]) @ maps[other]
            one, two = (RASTER.frame(k)[..., 0].astype(np.float32) for k in (n, other))
            moved = cv2.warpPerspective(two, n_from_other, (160, 160), flags=cv2.INTER_CUBIC, borderValue=-1)
            both = cv2.erode((moved >= 0).astype(np.uint8), np.ones((5, 5))) > 0
            assert both.any()
            assert np.abs(one - moved)[both].mean() < 5
            shifted = np.roll(moved, 2, axis=1)
            if two.std() > 25:
                assert np.abs(one - shifted)[both].mean() > 1.5 * np.abs(one - moved)[both].mean()
                compared += 1
    assert compared > 10


def test_a_third_of_the_tiles_is_blank_and_shows_background_alone():
    assert RASTER.is_blank.sum() == 16
    # Smoothed, so that only tissue is dark and not a pixel's noise.
    darkest = np.array([cv2.GaussianBlur(RASTER.frame(n)[..., 0].astype(float), (0, 0), 3).min() for n in range(48)])
    assert darkest[RASTER.is_blank].min() > 200
    # Some of the others show no more than the specimen's pale rim.
    assert np.quantile(darkest[~RASTER.is_blank], 0.9) < 180


@pytest.mark.parametrize(("order", "second_row"), [("snake", [3, 2, 1, 0]), ("rows", [0, 1, 2, 3])])
def test_tiles_come_in_the_order_of_the_stage(order, second_row):
    raster = MicroscopeRaster(4, 3, side=64, order=order, stage_px=0, camera_degrees=0)
    assert raster.cells[4:8, 0].tolist() == second_row
    assert raster.cells[4:8, 1].tolist() == [1, 1, 1, 1]
    steps = np.diff(raster.mosaic_from_frame[:4, 0, 2])
    np.testing.assert_allclose(steps, 0.88 * 64)


def test_files_and_truth_are_written_side_by_side(tmp_path):
    raster = MicroscopeRaster(3, 2, side=64)
    tiles = write_raster(raster, tmp_path, ".png")
    np.testing.assert_array_equal(np.load(tmp_path / "truth.npy"), raster.mosaic_from_frame)
    with (tmp_path / "truth.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["file"] for row in rows] == sorted(file.name for file in tiles.iterdir())
    assert [row["blank"] == "1" for row in rows] == raster.is_blank.tolist()
    np.testing.assert_array_equal(cv2.imread(str(tiles / rows[3]["file"]))[..., ::-1], raster.frame(3))


def test_a_raster_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="overlap 1"):
        MicroscopeRaster(4, 3, overlap=1)
