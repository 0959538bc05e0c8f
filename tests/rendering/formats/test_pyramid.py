from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from smalti.rendering.formats.bands import Cascade, TileRows, level_sizes, reduce_half
from tests.rendering.formats.pictures import halved, picture


@pytest.mark.parametrize(("width", "height"), [(1, 1), (5, 1), (1, 4), (64, 63)])
def test_half_an_image_is_the_mean_of_blocks_weighted_by_alpha(width, height):
    image = picture(width, height)
    np.testing.assert_array_equal(reduce_half(image), halved(image))


def test_transparent_pixels_lend_no_colour_and_half_a_block_covers_half():
    image = np.zeros((2, 2, 4), dtype=np.uint8)
    image[0] = (200, 100, 50, 255)
    image[1, :, :3] = 9
    np.testing.assert_array_equal(reduce_half(image), [[[200, 100, 50, 128]]])


def test_what_is_transparent_stays_so():
    image = np.full((4, 4, 4), 77, dtype=np.uint8)
    image[..., 3] = 0
    assert not reduce_half(image).any()


def test_a_uniform_image_stays_as_it_is():
    image = np.full((9, 7, 4), (3, 130, 255, 255), dtype=np.uint8)
    np.testing.assert_array_equal(reduce_half(image), image[:5, :4])


def test_sizes_are_halved_upwards_until_they_are_small():
    assert level_sizes(2049, 3, 512) == [(2049, 3), (1025, 2), (513, 1), (257, 1)]
    assert level_sizes(512, 512, 512) == [(512, 512)]
    assert level_sizes(5, 2, 1) == [(5, 2), (3, 1), (2, 1), (1, 1)]


@given(
    height=st.integers(1, 90),
    parts=st.lists(st.integers(1, 40), min_size=1),
    side=st.integers(1, 20),
    overlap=st.integers(0, 1),
)
def test_rows_of_tiles_are_those_of_the_image_however_its_rows_arrive(height, parts, side, overlap):
    image = np.arange(height * 2).reshape(height, 2)
    tile_rows, seen, top, turn = TileRows(height, side, overlap), [], 0, 0
    while top < height:
        rows = parts[turn % len(parts)]
        for number, gathered in tile_rows.add(image[top : top + rows]):
            assert number == len(seen)
            # No sooner than it must.
            assert min(height, (number + 1) * side + overlap) > top
            seen.append(gathered.copy())
        top, turn = top + rows, turn + 1
    expected = [image[max(0, start - overlap) : start + side + overlap] for start in range(0, height, side)]
    assert len(seen) == len(expected)
    for gathered, rows in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(gathered, rows)


@pytest.mark.parametrize(("rows", "height"), [(1, 37), (3, 37), (3, 128), (64, 1), (64, 128)])
def test_every_level_of_a_cascade_is_half_of_the_one_before(rows, height):
    image = picture(45, height)
    sizes = level_sizes(45, height, 1)
    cascade, levels = Cascade(sizes, 10), [[] for _ in sizes]
    for top in range(0, height, rows):
        for level, number, gathered in cascade.add(image[top : top + rows]):
            assert number == len(levels[level])
            levels[level].append(gathered.copy())
    expected = image
    for parts in levels:
        np.testing.assert_array_equal(np.concatenate(parts), expected)
        expected = halved(expected)
