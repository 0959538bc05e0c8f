"""Tiles that no match places: on the grid of the others, and said how sure."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.building.raster import Raster
from smalti.building.tile_placement import Tiles, place_tiles
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.project.entries import FrameEntry, Placement
from smalti.records import Answer, Landmarks, Pair
from smalti.registration.constellation import Stars
from tests.worlds import OUTLINE

ALONG, ACROSS, BACKLASH = np.array([105.0, 2.0]), np.array([-1.5, 69.0]), np.array([6.0, 0.0])
RASTER = Raster(8, "snake")
CELLS = np.array([RASTER.cell(place) for place in range(48)], dtype=float)
POSITIONS = CELLS[:, 1:] * ALONG + CELLS[:, :1] * ACROSS + (CELLS[:, :1] % 2) * BACKLASH
JITTER = np.random.default_rng(1).normal(0.0, 1.5, POSITIONS.shape)
NOBODY = None
"""Asks nobody: a test that asks fails."""


def shift(position) -> np.ndarray:
    final = np.eye(3)
    final[:2, 2] = position
    return final


def placed(number: int, part: int = 0, positions=POSITIONS + JITTER) -> Placement:
    return Placement(number, part, shift(positions[number]), shift(positions[number]), 0.5)


NO_STARS = Stars.of(np.empty((0, 2)), np.empty(0), np.empty(0))


def place_all(placements, *, reasons=None, questions=NOBODY, keypoints=0, stars_of=lambda _: NO_STARS):
    frames = [FrameEntry(n, str(n), (reasons or {}).get(n, "")) for n in range(48)]
    tiles = Tiles(RASTER, range(48))
    return place_tiles(tiles, frames, placements, questions, lambda _: keypoints, stars_of, Lens(OUTLINE))


def place(placements, **options):
    found = place_all(placements, **options)
    return {placement.number: placement for placement in found.placements}, found.by_neighbours


def off_px(placement: Placement) -> float:
    centre = project_points(placement.final, OUTLINE.centre[None])[0]
    return float(np.linalg.norm(centre - OUTLINE.centre - POSITIONS[placement.number]))


def test_a_tile_without_a_match_lies_on_the_grid_within_the_stages_error():
    blank = {0, 1, 19, 20, 27, 46, 47}
    found, by_grid = place([placed(n) for n in range(48) if n not in blank])
    assert by_grid == sorted(blank)
    assert sorted(found) == list(range(48))
    assert max(off_px(found[n]) for n in blank) < 2.0
    # The tile itself may deviate from the grid by the stage's error: 1.5 px a coordinate.
    assert all(1.5 < found[n].sigma_px < 6.0 for n in blank)


def test_placed_tiles_stay_where_they_are():
    before = [placed(n) for n in range(40)]
    found, _ = place(before)
    assert all(found[placement.number] is placement for placement in before)


def test_a_wrongly_placed_tile_does_not_bend_the_grid():
    wrong = POSITIONS + JITTER
    wrong[21] += 300.0
    found, _ = place([placed(n, positions=wrong) for n in range(48) if n != 20])
    assert off_px(found[20]) < 2.0


def test_a_part_that_blank_tiles_separate_is_moved_as_a_whole():
    island = [5, 6, 9, 10]
    turn = np.array([[0.0, -1.0, 4000.0], [1.0, 0.0, -700.0], [0.0, 0.0, 1.0]])
    apart = [Placement(n, 1, turn @ shift((POSITIONS + JITTER)[n]), turn @ placed(n).final, 0.5) for n in island]
    found, by_grid = place([*(placed(n) for n in range(48) if RASTER.cell(n)[0] > 1), *apart])
    assert set(island) < set(by_grid)
    assert {found[n].part for n in island} == {0}
    assert max(off_px(found[n]) for n in island) < 6.0
    # Relative to each other they stay as they were.
    for n in island[1:]:
        before, after = (
            np.linalg.inv(of[island[0]]) @ of[n]
            for of in ({p.number: p.final for p in apart}, {k: v.final for k, v in found.items()})
        )
        np.testing.assert_allclose(after[:2, 2], before[:2, 2], atol=0.1)


def test_tiles_of_one_line_determine_no_grid():
    before = [placed(n) for n in range(8)]
    found, by_grid = place(before)
    assert (sorted(found), by_grid) == (list(range(8)), [])


class Beside:
    """Matches a tile with the one before it only; others do not match."""

    def __init__(self, number: int) -> None:
        self.number, self.asked = number, []

    def ask_of_source(self, pair: Pair, role, expected) -> Answer:
        self.asked.append(pair)
        if pair != Pair(self.number - 1, self.number):
            return Answer.no(pair)
        truth = POSITIONS + JITTER
        points = OUTLINE.corners
        return Answer.yes(Landmarks(pair, points + truth[pair.j] - truth[pair.i], points))


@pytest.mark.parametrize(("keypoints", "is_matched"), [(50, True), (3, False)])
def test_a_tile_set_aside_that_has_keypoints_is_matched_with_its_neighbours(keypoints, is_matched):
    questions = Beside(20)
    before = [placed(n) for n in range(48) if n != 20]
    found, by_grid = place(before, reasons={20: "almost no detail"}, questions=questions, keypoints=keypoints)
    assert by_grid == ([] if is_matched else [20])
    assert sorted(questions.asked) == ([Pair(11, 20), Pair(19, 20), Pair(20, 21), Pair(20, 27)] if is_matched else [])
    truth = (POSITIONS + JITTER)[20]
    assert bool(np.linalg.norm(found[20].final[:2, 2] - truth) < 1e-6) == is_matched


SPOTS = 4
"""In a strip. Together with those of other strips they are enough for tiles as small as these."""


def spots(at):
    """Return what every tile shows of spots (n, 2) on the mosaic."""

    def of_tile(number: int) -> Stars:
        inside = at - (POSITIONS + JITTER)[number]
        kept = OUTLINE.contains(inside)
        return Stars.of(inside[kept], 10.0 + np.arange(len(at))[kept], np.full(int(kept.sum()), 0.1))

    return of_tile


def strip_spots(number, neighbours):
    """Return spots at random along the middle of every strip that a tile shares with its neighbours."""
    true, along = POSITIONS + JITTER + OUTLINE.centre, np.random.default_rng(number).uniform(-0.4, 0.4, (SPOTS, 1))
    steps = [(true[number], true[other] - true[number]) for other in neighbours]
    return np.vstack([here + step / 2 + along * step[::-1] * [1, -1] for here, step in steps])


def test_spots_in_several_strips_place_a_tile_that_no_pair_of_tiles_does():
    at = strip_spots(20, [11, 19, 21, 27])
    found = place_all([placed(n) for n in range(48) if n != 20], stars_of=spots(at))
    assert (found.by_spots, found.by_neighbours) == ([20], [])
    final = {placement.number: placement for placement in found.placements}[20].final
    np.testing.assert_allclose(final[:2, 2], (POSITIONS + JITTER)[20], atol=0.01)


def test_two_spots_are_too_few():
    at = strip_spots(20, [11])[:2]
    found = place_all([placed(n) for n in range(48) if n != 20], stars_of=spots(at))
    assert (found.by_spots, found.by_neighbours) == ([], [20])


def test_a_tile_placed_by_its_spots_helps_to_place_the_next():
    """Tile 21 has placed tiles on three sides, and spots on two of these."""
    at = np.vstack([strip_spots(20, [11, 19, 27]), strip_spots(21, [10, 26, 20, 22])])
    found = place_all([placed(n) for n in range(48) if n not in (20, 21)], stars_of=spots(at))
    assert (found.by_spots, found.by_neighbours) == ([20, 21], [])


def test_a_part_is_moved_as_a_whole_to_where_its_spots_meet_those_around():
    """Its turn is that of the grid's fit: so a tile of it errs by a fraction of a pixel."""
    island = [20, 21]
    at = np.vstack([strip_spots(20, [11, 19, 27]), strip_spots(21, [10, 26])])
    apart = [Placement(n, 1, placed(n).final, placed(n).final, 0.5) for n in island]
    found = place_all([*(placed(n) for n in range(48) if n not in island), *apart], stars_of=spots(at))
    assert (found.by_spots, found.by_neighbours) == (island, [])
    final = {placement.number: placement for placement in found.placements}
    for n in island:
        np.testing.assert_allclose(final[n].final[:2, 2], (POSITIONS + JITTER)[n], atol=0.5)
