"""What a frame's own mask hides comes from other frames; where there is none, highlights are drawn, tools are not."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.frames.visibility import Part
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.frame_survey import CLEAR, DOUBTFUL, HIDDEN, Survey, fill_hidden, find_neighbours
from smalti.rendering.light_comparison import compare
from smalti.rendering.mosaic import BLENDS, Mosaic
from tests.rendering.scene import Frames, frame_of, shift
from tests.rendering.worlds import HEIGHT, WIDTH, paint_small

WORLD = {k: shift(20.0 * k, 6.0 * (k % 2)) for k in range(5)}
FALSE = np.uint8(255)
"""A colour that the scene does not have: it stays below 234."""


class Rods:
    """A rod that hides a part of each frame, elsewhere in each."""

    differ = True
    field = np.ones((HEIGHT, WIDTH), bool)

    def __init__(self, part: Part = Part.TOOL, still: bool = False) -> None:
        self.part, self.still = part, still

    def where(self, number: int) -> np.ndarray:
        """In the same place of the scene if it is still: no frame shows what is behind it."""
        left = 90 - 20 * number if self.still else 10 + 17 * number
        rod = np.zeros((HEIGHT, WIDTH), bool)
        rod[30:80, max(left, 0) : left + 18] = True
        return rod

    def find_parts(self, number: int, image: np.ndarray) -> np.ndarray:
        return np.where(self.where(number), np.uint8(self.part), np.uint8(Part.SCENE))


def mosaic_behind(rods: Rods, masked: bool = True, **options) -> Mosaic:
    frames = {n: frame_of(matrix, WIDTH, HEIGHT) for n, matrix in WORLD.items()}
    for number, frame in frames.items():
        frame[rods.where(number)] = FALSE
    finder = rods if masked else None
    return Mosaic(Frames(frames), WORLD, WIDTH, HEIGHT, finder=finder, **options)


def is_false(image: np.ndarray) -> np.ndarray:
    return np.asarray(image.min(axis=2) > 236)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("part", [Part.TOOL, Part.HIGHLIGHT])
def test_what_a_frame_hides_comes_from_another_frame(part, blend):
    rods = Rods(part)
    image = mosaic_behind(rods).render(mosaic_behind(rods).canvas(), blend)
    whole = Mosaic(
        Frames({n: frame_of(matrix, WIDTH, HEIGHT) for n, matrix in WORLD.items()}), WORLD, WIDTH, HEIGHT
    ).render(mosaic_behind(rods).canvas(), blend)
    seen_by_others = image[..., 3] > 0
    # The first rod lies where no other frame is.
    assert seen_by_others.sum() >= (whole[..., 3] > 0).sum() - 50 * 30
    inside = seen_by_others & (np.arange(image.shape[1]) > 40)[None]
    assert not is_false(image)[inside].any()
    assert np.abs(image[inside][:, :3].astype(int) - whole[inside][:, :3]).max() < 24


@pytest.mark.parametrize("blend", BLENDS)
def test_where_only_a_tool_is_seen_is_a_hole_and_where_only_a_highlight_is_seen_it_is_drawn(blend):
    tool, highlight = (
        mosaic_behind(rods).render(mosaic_behind(rods).canvas(), blend)
        for rods in (Rods(Part.TOOL, still=True), Rods(Part.HIGHLIGHT, still=True))
    )
    middle = (slice(44, 74), slice(94, 104))
    assert not tool[middle][..., 3].any()
    assert (highlight[middle][..., 3] == 255).all()
    assert is_false(highlight[middle]).all()
    assert not is_false(tool).any()


@pytest.mark.parametrize("blend", ["multiband", "median"])
def test_tiles_and_memory_change_nothing(monkeypatch, blend):
    canvas = mosaic_behind(Rods()).canvas()
    whole = mosaic_behind(Rods()).render(canvas, blend)
    paint_small(monkeypatch)
    np.testing.assert_array_equal(mosaic_behind(Rods()).render(canvas, blend), whole)


def test_the_map_of_sources_names_a_frame_that_shows_the_place_and_coverage_counts_only_such():
    rods = Rods()
    mosaic = mosaic_behind(rods)
    mosaic._layout.plan()
    maps = mosaic.maps(mosaic.canvas())
    unmasked = mosaic_behind(rods, masked=False).maps(mosaic.canvas())
    assert (maps.coverage <= unmasked.coverage).all()
    assert (maps.coverage < unmasked.coverage).sum() > 4 * 50 * 18
    for number, matrix in WORLD.items():
        rows, columns = np.nonzero(maps.source == number)
        left, top = matrix[:2, 2].astype(int)
        assert not rods.where(number)[np.clip(rows - top, 0, HEIGHT - 1), np.clip(columns - left, 0, WIDTH - 1)].any()


def test_light_is_compared_only_where_both_frames_show_the_scene():
    rods = Rods()
    mosaic = mosaic_behind(rods)
    survey, maps = mosaic._layout.plan().survey, np.array(list(WORLD.values()))
    lens, all_valid = Lens(Outline.of_pixels(WIDTH, HEIGHT)), np.ones((survey.rows, survey.columns), bool)
    pairs = find_neighbours(maps, lens.outline)
    found = compare(survey, maps, lens, pairs, all_valid)
    assert len(found.pair) > 500
    for pair, points in zip(found.pair, np.rint(found.points).astype(int), strict=True):
        assert not any(rods.where(number)[y, x] for number, (x, y) in zip(pair, points, strict=True))


def test_a_survey_rates_cells_by_what_hides_them(tmp_path):
    rods = Rods()
    survey = Survey(tmp_path, [0], WIDTH, HEIGHT, None, rods)
    worth = survey.reduce(0, np.zeros((HEIGHT, WIDTH, 3), np.uint8))[..., 4]
    cell = survey.cell
    assert worth[(40 // cell), (18 // cell)] == HIDDEN
    assert worth[(40 // cell), (28 // cell)] == DOUBTFUL
    assert worth[-1, -1] == CLEAR


def test_the_mask_that_all_frames_share_is_not_a_frames_own(tmp_path):
    rods = Rods()
    shared = ~rods.where(0)
    survey = Survey(tmp_path, [0], WIDTH, HEIGHT, shared, rods)
    assert not survey.reduce(0, np.zeros((HEIGHT, WIDTH, 3), np.uint8))[..., 4].any()


def test_hidden_cells_take_the_colours_beside_them():
    frame = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    frame[40:48, 40:48] = 255
    survey_cell = 2
    worth = np.zeros((HEIGHT // survey_cell, WIDTH // survey_cell), np.uint8)
    worth[20:24, 20:24] = HIDDEN
    assert (fill_hidden(frame, worth) == 90).all()
