"""Rasters of tiles: found from the steps between consecutive tiles, and nothing else taken for one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from smalti.building.chain import register_chain
from smalti.building.raster import PROBES, PROPOSALS, Places, Raster, find_raster, places_of, propose_rasters
from smalti.project.entries import Role
from smalti.records import Answer, Landmarks, Pair
from tests.worlds import OUTLINE

ALONG, ACROSS = np.array([105.0, 2.0]), np.array([-1.5, 69.0])
"""Steps of the stage, px: an overlap of about 13 %; the camera is turned a little."""

JITTER = 1.5


@dataclass
class Stage:
    """Tiles at known positions, of which some are blank or missing, and a matcher that knows the truth."""

    positions: np.ndarray  # (P, 2), by place
    shown: set[int]

    def overlap(self, i: int, j: int) -> float:
        left = np.clip(1.0 - np.abs(self.positions[j] - self.positions[i]) / [OUTLINE.width, OUTLINE.height], 0.0, 1.0)
        return float(left.prod())

    def step_between(self, pairs):
        self.asked.extend(pairs)
        return [self.positions[j] - self.positions[i] if self.overlap(i, j) > 0.05 else None for i, j in pairs]

    def find(self):
        self.asked = []
        consecutive = [place for place in sorted(self.shown) if place + 1 in self.shown]
        steps = dict(zip(consecutive, self.step_between([(n, n + 1) for n in consecutive]), strict=True))
        failed = [place for place, step in steps.items() if step is None]
        self.steps = {place: step for place, step in steps.items() if step is not None}
        self.failed = failed
        self.asked.clear()
        return find_raster(self.places, self.steps, failed, OUTLINE, self.step_between, len(self.shown) // 4)

    @property
    def places(self) -> Places:
        return Places(sorted(self.shown), len(self.positions))


def stage(
    lines: int, length: int, order: str, *, blank: float = 0.0, along=ALONG, across=ACROSS, seed: int = 0
) -> Stage:
    """A raster with blank tiles outside an ellipse, as around a piece of tissue."""
    rng = np.random.default_rng(seed)
    raster = Raster(length, order)
    cells = np.array([raster.cell(place) for place in range(lines * length)])
    positions = cells[:, :1] * across + cells[:, 1:] * along + rng.normal(0.0, JITTER, (len(cells), 2))
    out = np.sum(((cells + 0.5) / [lines, length] - 0.5) ** 2, axis=1)
    blanks = np.argsort(-out)[: round(blank * len(cells))]
    return Stage(positions, set(range(len(cells))) - set(blanks.tolist()))


@pytest.mark.parametrize("order", ["snake", "rows"])
@pytest.mark.parametrize("blank", [0.0, 1 / 3])
@pytest.mark.parametrize(("lines", "length"), [(9, 14), (14, 9), (6, 5), (39, 34)])
def test_a_raster_is_found_with_its_order_and_its_blank_margin(order, blank, lines, length):
    found = stage(lines, length, order, blank=blank).find()
    assert found is not None
    assert found.raster == Raster(length, order)
    np.testing.assert_allclose(found.across, ACROSS, atol=4 * JITTER)
    np.testing.assert_allclose(found.along, ALONG, atol=4 * JITTER)


def test_columns_are_lines_too():
    found = stage(7, 11, "snake", blank=0.2, along=-ACROSS, across=ALONG).find()
    assert found is not None
    assert found.raster == Raster(11, "snake")
    np.testing.assert_allclose(found.along, -ACROSS, atol=4 * JITTER)


def test_tiles_missing_at_the_beginning_shift_the_lines():
    whole = stage(8, 10, "snake")
    found = Stage(whole.positions[4:], set(range(76))).find()
    assert found is not None
    assert found.raster == Raster(10, "snake", left_out=4)


def test_a_missing_tile_leaves_a_gap_in_the_numbers_of_the_files():
    labels = [f"scan-2/tile {n:03}.tif" for n in range(1, 60) if n != 23]
    assert places_of(labels) == [n for n in range(59) if n != 22]
    # Numbers that do not count tiles do not count: times, rows and columns, no numbers at all.
    for other in (
        [f"{n * n}.png" for n in range(30)],
        [f"r{n // 5}c{n % 5}.png" for n in range(30)],
        ["a.png", "b.png"],
    ):
        assert places_of(other) == list(range(len(other)))


def test_random_blank_tiles_hide_no_raster():
    whole = stage(20, 17, "rows", seed=3)
    whole.shown -= set(np.random.default_rng(4).permutation(340)[:113].tolist())
    found = whole.find()
    assert found is not None
    assert found.raster == Raster(17, "rows")


def test_a_flight_of_lanes_is_asked_about_a_few_pairs_at_most():
    # Photographs overlap by 40 % along a lane, lanes by 20 %; lanes differ in length, and the wind blows.
    rng = np.random.default_rng(5)
    positions = []
    for lane, length in enumerate((12, 9, 14, 11, 13)):
        x = np.cumsum(np.full(length, 72.0)) + rng.uniform(-150, 150)
        positions += [(at, 64.0 * lane) for at in (x if lane % 2 == 0 else x[::-1])]
    flight = Stage(np.array(positions) + rng.normal(0.0, 5.0, (len(positions), 2)), set(range(len(positions))))
    assert flight.find() is None
    assert len(flight.asked) <= min(PROBES * PROPOSALS, len(positions) // 4)


@pytest.mark.parametrize("step", [(8.0, 0.0), (30.0, 10.0), (100.0, 0.0)])
def test_a_camera_that_goes_straight_on_is_no_raster(step):
    rng = np.random.default_rng(6)
    positions = np.arange(300)[:, None] * np.array(step) + rng.normal(0.0, 1.0, (300, 2))
    straight = Stage(positions, set(range(300)))
    straight.shown -= {40, 41, 130, 200, 201, 202, 203}
    assert straight.find() is None
    assert straight.asked == []


def test_a_video_there_and_back_is_no_raster():
    x = 40.0 * np.abs((np.arange(200) % 40) - 20.0)
    video = Stage(np.column_stack([x, 10.0 * (np.arange(200) // 20)]), set(range(200)))
    assert video.find() is None
    assert video.asked == []


def test_the_best_proposal_of_a_raster_is_the_true_one():
    whole = stage(40, 50, "rows", blank=0.3)
    whole.find()
    assert propose_rasters(whole.places, whole.steps, whole.failed, OUTLINE)[0] == Raster(50, "rows")


class Microscope:
    """Answers by the truth of a stage, in engine numbers."""

    def __init__(self, tiles: Stage) -> None:
        self.tiles = tiles
        self.places = tiles.places.shown
        self.questions: list[tuple[Pair, Role]] = []

    def __call__(self, pair: Pair, role: Role, expected=None) -> Answer:
        self.questions.append((pair, role))
        i, j = self.places[pair.i], self.places[pair.j]
        if self.tiles.overlap(i, j) < 0.05:
            return Answer.no(pair)
        off = self.tiles.positions[j] - self.tiles.positions[i]
        if expected is not None and role is Role.BRIDGE:
            assert np.linalg.norm(expected.i_from_j[:2, 2] - off) < 4 * expected.sigma_px
        points = OUTLINE.corners
        return Answer.yes(Landmarks(pair, points + off, points))


@pytest.mark.parametrize("order", ["snake", "rows"])
def test_the_chain_links_all_neighbours_of_a_raster_once(order):
    tiles = stage(12, 10, order, blank=1 / 3)
    ask = Microscope(tiles)
    frames = len(ask.places)
    chain = register_chain(frames, OUTLINE, ask, 2 * frames, places=tiles.places)
    assert chain.raster is not None
    assert len(set(ask.questions)) == len(ask.questions) <= 2 * frames
    linked = {(ask.places[record.pair.i], ask.places[record.pair.j]) for record in chain.links}
    beside = {(i, j) for i in tiles.shown for j in tiles.shown if i < j and tiles.overlap(i, j) > 0.05}
    assert linked == beside
