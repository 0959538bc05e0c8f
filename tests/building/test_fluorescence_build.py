"""A raster of bright dots on black, built as by default: no tile is set aside that its dots can place."""

from __future__ import annotations

import numpy as np
import pytest

import smalti
from smalti.geometry.homographies import project_points
from smalti_lab.synthetic.fluorescence_tiles import FluorescenceRaster
from smalti_lab.synthetic.microscope_tiles import write_raster

RASTER = FluorescenceRaster(5, 4, side=240, overlap=0.12, bare=0.15, seed=3)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    base = tmp_path_factory.mktemp("dots")
    with smalti.build(write_raster(RASTER, base, ".png"), base / "out") as project:
        yield project


def shared():
    """How many points every tile shares with each of those beside it."""
    found = {}
    for n, cell in enumerate(RASTER.cells):
        beside = np.flatnonzero(np.abs(RASTER.cells - cell).sum(axis=1) == 1)
        found[n] = [len(RASTER.shared(n, int(m))) for m in beside]
    return found


def test_all_tiles_lie_on_one_mosaic(project):
    info = project.info()
    assert (info.parts, info.frames.placed, info.frames.not_placed) == (1, len(RASTER), 0)


def test_no_tile_is_set_aside_that_shares_twenty_points_with_another(project):
    rich = {n for n, counts in shared().items() if max(counts) >= 20}
    assert len(rich) > 8
    assert not rich & {frame.number for frame in project.frames if frame.reason}


def test_tiles_that_share_some_points_lie_within_a_pixel(project):
    """A small raster with narrow strips: benchmarks/fluorescence.py has the errors of large ones."""
    centre = project.outline.centre[None]
    at = {p.number: project_points(p.final, centre)[0] for p in project.placements}
    near = [n for n, counts in shared().items() if sum(counts) >= 6]
    assert len(near) >= 15
    # Up to a shift and a turn of the whole mosaic.
    turned = np.array([at[n] for n in near]) @ [1, 1j]
    true = np.array([project_points(RASTER.mosaic_from_frame[n], centre)[0] for n in near]) @ [1, 1j]
    turned, true = turned - turned.mean(), true - true.mean()
    turn = np.vdot(turned, true) / np.vdot(turned, turned)
    assert np.abs(turn * turned - true).max() < 1.0
