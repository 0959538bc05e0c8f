"""A microscope's raster with blank tiles, built as by default: one mosaic, and said what is placed by what."""

from __future__ import annotations

import json

import numpy as np
import pytest

import smalti
from smalti.geometry.homographies import project_points
from smalti.project.entries import Role
from smalti_lab.synthetic.microscope_tiles import MicroscopeRaster, write_raster

STAGE_PX = 3.0
RASTER = MicroscopeRaster(6, 5, side=200, overlap=0.15, stage_px=STAGE_PX, order="rows", seed=2)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    base = tmp_path_factory.mktemp("raster")
    with smalti.build(write_raster(RASTER, base), base / "out") as project:
        yield project


def errors_px(project):
    """The RMS error of the centre and the corners of every tile by its number, after a similarity."""
    placements = {placement.number: placement.final for placement in project.placements}
    points = np.concatenate([project.outline.centre[None], project.outline.corners])
    at = {number: project_points(final, points) @ [1, 1j] for number, final in placements.items()}
    true = {number: project_points(RASTER.mosaic_from_frame[number], points) @ [1, 1j] for number in placements}
    matched = sorted(placements.keys() - set(project.outcome.by_neighbours))
    mine, wanted = (np.concatenate([of[number] for number in matched]) for of in (at, true))
    turn = np.vdot(mine - mine.mean(), wanted - wanted.mean()) / np.vdot(mine - mine.mean(), mine - mine.mean())
    off = {n: np.abs(turn * (at[n] - mine.mean()) + wanted.mean() - true[n]) for n in placements}
    return {n: float(np.sqrt(np.mean(of_tile**2))) for n, of_tile in off.items()}


def test_every_tile_lies_on_one_mosaic(project):
    info = project.info()
    assert (info.parts, info.frames.placed, info.frames.not_placed) == (1, len(RASTER), 0)
    assert (info.raster.lines, info.raster.length, info.raster.order) == (5, 6, "rows")


def test_tiles_with_matches_lie_within_half_a_pixel(project):
    off = errors_px(project)
    assert max(off[n] for n in off if n not in project.outcome.by_neighbours) < 0.5


def test_blank_tiles_lie_within_the_stages_error_and_are_said_to(project):
    off, by_neighbours = errors_px(project), set(project.outcome.by_neighbours)
    assert by_neighbours.issuperset(np.flatnonzero(RASTER.is_blank).tolist())
    # Two coordinates, and the neighbours err as well.
    assert np.sqrt(np.mean([off[n] ** 2 for n in by_neighbours])) < 2 * STAGE_PX
    content = json.loads((project.folder / "transforms.json").read_text())
    assert {frame["frame"] for frame in content["frames"] if frame["placed_by"] == "neighbours"} == by_neighbours
    assert "Placed by their neighbours in the raster" in (project.folder / "report.html").read_text()
    assert project.info().frames.by_neighbours == len(by_neighbours)


def test_a_raster_takes_less_than_two_attempts_a_tile(project):
    assert project.info().attempts < 2 * len(RASTER)
    assert not [entry for entry in project.answers if entry.role is Role.LOOP]


def test_built_again_it_asks_nothing_and_stays_the_same(project):
    before = {placement.number: placement.final for placement in project.placements}
    asked = len(project.answers)
    with smalti.build(project.source_facts.location, project.folder) as again:
        assert len(again.answers) == asked
        assert {placement.number: placement.final.tobytes() for placement in again.placements} == {
            number: final.tobytes() for number, final in before.items()
        }
