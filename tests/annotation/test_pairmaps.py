"""Maps of all pairs against the matrices they are made of."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from smalti.annotation.messages import MapKind
from smalti.annotation.pairmaps import matrix_of, reduce
from smalti.experiments.worlds import OUTLINE, raster
from smalti.loop import ActiveLoop
from smalti.overlap.rectangle import rectangle_probability
from smalti.records import Answer, Pair

LOGARITHMIC = [MapKind.INFORMATIVENESS, MapKind.REWARD]


def values_of(found):
    return np.frombuffer(base64.b64decode(found.values), dtype=np.uint8).reshape(found.rows, found.columns)


def whole(matrix, kind=MapKind.OVERLAP, size=256):
    return reduce(np.asarray(matrix, dtype=np.float64), kind, 0, 0, 0, size, 7)


@pytest.fixture(scope="module")
def loop():
    world = raster(12)
    agent = world.agent(3)
    state = ActiveLoop.start(12, OUTLINE, world.chain(agent), external=world.external)
    return state.record(agent.answer(Pair(2, 9))).record(Answer.unsure(Pair(1, 8)))


def test_probabilities_are_shown_from_nothing_to_certain():
    found = whole([[1.0, 0.5], [0.5, 0.0]])
    np.testing.assert_array_equal(values_of(found), [[255, 128], [128, 0]])
    assert (found.smallest, found.largest, found.logarithmic) == (0.0, 1.0, False)
    assert (found.rows, found.columns, found.frames_per_cell, found.revision) == (2, 2, 1, 7)


@pytest.mark.parametrize("kind", LOGARITHMIC)
def test_other_values_are_shown_by_their_logarithm_within_their_range(kind):
    found = whole([[0.0, 0.01], [0.1, 1.0]], kind)
    np.testing.assert_array_equal(values_of(found), [[0, 0], [128, 255]])
    assert (found.smallest, found.largest, found.logarithmic) == (0.01, 1.0, True)


@pytest.mark.parametrize("kind", LOGARITHMIC)
def test_what_is_six_decades_below_the_largest_value_is_nothing(kind):
    found = whole([[1e-30, 1e-1], [1e2, 1e-4]], kind)
    assert found.smallest == pytest.approx(1e-4)
    np.testing.assert_array_equal(values_of(found), [[0, 128], [255, 0]])


@pytest.mark.parametrize("kind", list(MapKind))
def test_what_is_no_number_counts_as_nothing(kind):
    found = whole([[np.nan, np.inf], [-np.inf, 1.0]], kind)
    np.testing.assert_array_equal(values_of(found), [[0, 0], [0, 255]])
    assert found.largest == 1.0


@pytest.mark.parametrize("kind", LOGARITHMIC)
def test_a_matrix_of_nothing_is_shown_as_nothing(kind):
    found = whole(np.zeros((3, 3)), kind)
    assert not values_of(found).any()
    assert (found.smallest, found.largest) == (0.0, 0.0)


@pytest.mark.parametrize("kind", LOGARITHMIC)
def test_equal_values_are_all_the_largest(kind):
    np.testing.assert_array_equal(values_of(whole([[0.0, 5.0], [5.0, 0.0]], kind)), [[0, 255], [255, 0]])


@pytest.mark.parametrize("frames", [8, 9, 11])
def test_a_cell_is_as_large_as_its_largest_entry(frames):
    matrix = np.random.default_rng(1).random((frames, frames))
    found = whole(matrix, size=4)
    per_cell = found.frames_per_cell
    assert per_cell == -(-frames // 4)
    assert found.rows == found.columns <= 4
    for row, column in np.ndindex(found.rows, found.columns):
        part = matrix[row * per_cell : (row + 1) * per_cell, column * per_cell : (column + 1) * per_cell]
        assert values_of(found)[row, column] == np.rint(255 * part.max())


def test_a_window_shows_its_part_of_the_matrix():
    matrix = np.random.default_rng(2).random((20, 20))
    found = reduce(matrix, MapKind.OVERLAP, 3, 11, 5, 256, 0)
    assert (found.first_row, found.first_column, found.rows, found.columns) == (3, 11, 5, 5)
    np.testing.assert_array_equal(values_of(found), np.rint(255 * matrix[3:8, 11:16]))


@pytest.mark.parametrize(("row", "column", "frames"), [(18, 0, 5), (10**9, 10**9, 5), (4, 4, 10**9)])
def test_a_window_beyond_the_matrix_is_moved_and_cut_to_fit(row, column, frames):
    matrix = np.random.default_rng(3).random((20, 20))
    found = reduce(matrix, MapKind.OVERLAP, row, column, frames, 256, 0)
    side = min(frames, 20)
    assert found.rows == found.columns == side
    top, left = found.first_row, found.first_column
    assert (top, left) == (min(row, 20 - side), min(column, 20 - side))
    np.testing.assert_array_equal(values_of(found), np.rint(255 * matrix[top : top + side, left : left + side]))


def test_the_range_of_a_window_is_that_of_the_whole_matrix():
    matrix = np.full((10, 10), 1e-3)
    matrix[0, 0], matrix[9, 9] = 1e-4, 1e1
    window = reduce(matrix, MapKind.REWARD, 2, 2, 3, 256, 0)
    assert (window.smallest, window.largest) == (1e-4, 1e1)
    np.testing.assert_array_equal(values_of(window), np.full((3, 3), 51))


@pytest.mark.parametrize("kind", list(MapKind))
def test_matrices_are_the_same_in_both_directions(loop, kind):
    matrix = matrix_of(kind, loop.view)
    assert matrix.shape == (12, 12)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    assert (matrix > 0).any()


def test_overlap_is_certain_for_answered_pairs(loop):
    matrix = matrix_of(MapKind.OVERLAP, loop.view)
    assert matrix[2, 9] == matrix[0, 1] == 1.0
    assert matrix[1, 8] == 0.0


def test_informativeness_is_a_length(loop):
    cov = loop.view.centres.cov
    forth, back = (np.sqrt(np.linalg.det([[c[0], c[1]], [c[1], c[2]]])) for c in (cov[0, 7], cov[7, 0]))
    assert matrix_of(MapKind.INFORMATIVENESS, loop.view)[0, 7] == pytest.approx(np.sqrt((forth + back) / 2))


def test_reward_is_both_probabilities_times_informativeness_for_pairs_that_may_be_asked(loop):
    view, centres = loop.view, loop.view.centres
    matrix = matrix_of(MapKind.REWARD, view)
    for i, j in np.ndindex(12, 12):
        expected = 0.0
        if view.candidates[min(i, j), max(i, j)]:
            directions = [
                rectangle_probability(centres.mean[a, b], centres.cov[a, b], OUTLINE)
                * np.sqrt(centres.cov[a, b, 0] * centres.cov[a, b, 2] - centres.cov[a, b, 1] ** 2)
                for a, b in ((i, j), (j, i))
            ]
            expected = view.external_probabilities[i, j] * np.mean(directions)
        assert matrix[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert matrix[2, 9] == matrix[1, 8] == 0.0


def test_the_pair_of_largest_reward_is_the_one_that_the_paper_would_ask(loop):
    matrix = matrix_of(MapKind.REWARD, loop.view)
    pair = loop.suggest(1)[0].pair
    assert matrix[pair.i, pair.j] == matrix.max()
