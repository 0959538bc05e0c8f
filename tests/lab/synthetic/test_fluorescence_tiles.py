"""A raster of points: tiles show them where the truth says, and a set share shows hardly any."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.homographies import apply_map
from smalti_lab.synthetic.fluorescence_tiles import BACKGROUND, FluorescenceRaster

RASTER = FluorescenceRaster(6, 5, side=160, seed=2)


@pytest.mark.parametrize(("look", "brighter"), [("fluorescence", True), ("electron", False)])
def test_points_are_where_the_truth_says(look, brighter):
    raster = FluorescenceRaster(6, 5, side=160, seed=2, look=look)
    richest = max(range(len(raster)), key=lambda n: len(raster.points(n)))
    points = raster.points(richest)
    strong = points[(points[:, 3] > 60) & (np.abs(points[:, :2] - 79.5) < 70).all(axis=1)]
    x, y = strong[:, :2].round().astype(int).T
    off = raster.frame(richest)[y, x, 0] - BACKGROUND[look]
    assert len(strong) > 5
    assert np.mean(off) > 40 if brighter else np.mean(off) < -20


def test_neighbours_show_the_same_points():
    maps = RASTER.mosaic_from_frame
    for n, m in ((0, 1), (7, 8), (12, 13)):
        in_m = apply_map(np.linalg.inv(maps[m]) @ maps[n], RASTER.shared(n, m)[:, :2])
        own = RASTER.points(m)[:, :2]
        assert all(np.abs(own - point).sum(axis=1).min() < 1e-6 for point in in_m)


def test_a_fifth_of_the_tiles_shows_hardly_any_points():
    counts = np.array([len(RASTER.points(n)) for n in range(len(RASTER))])
    assert RASTER.is_bare.sum() == 6
    assert np.median(counts[RASTER.is_bare]) < 0.2 * np.median(counts[~RASTER.is_bare])


def test_all_tiles_are_the_same_every_time():
    again = FluorescenceRaster(6, 5, side=160, seed=2)
    np.testing.assert_array_equal(RASTER.frame(3), again.frame(3))


def test_a_raster_that_cannot_be_is_refused():
    with pytest.raises(UsageError, match="bare"):
        FluorescenceRaster(4, 3, bare=1.5)
