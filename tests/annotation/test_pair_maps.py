"""Maps of all pairs against the matrices they are made of."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.annotation import pair_maps as pairmaps
from smalti.annotation.messages import MapKind
from smalti.annotation.pair_maps import PairMatrix, matrix_of, reduce
from smalti.records import Answer, Pair, Suggestion
from smalti.suggestion.state_view import View
from smalti_lab.experiments.worlds import OUTLINE, raster

LOGARITHMIC = [MapKind.INFORMATIVENESS, MapKind.REWARD]


def values_of(found):
    return np.frombuffer(base64.b64decode(found.values), dtype=np.uint8).reshape(found.rows, found.columns)


def given(matrix, marked=()):
    """A matrix of which all entries are known."""
    matrix = np.asarray(matrix, dtype=np.float64)
    np.testing.assert_array_equal(matrix, matrix.T)
    pairs = np.array(marked, dtype=np.int64).reshape(-1, 2)
    return PairMatrix(len(matrix), lambda pairs: matrix[tuple(pairs.T)], pairs)


def symmetric(seed, frames):
    matrix = np.random.default_rng(seed).random((frames, frames))
    return np.triu(matrix) + np.triu(matrix, 1).T


def entries(matrix):
    """All of them."""
    return matrix.at(np.arange(matrix.frames), np.arange(matrix.frames))


def whole(matrix, kind=MapKind.OVERLAP, size=256):
    return reduce(given(matrix), kind, 0, 0, 0, size, 7)


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
    found = whole([[0.01, 0.1], [0.1, 1.0]], kind)
    np.testing.assert_array_equal(values_of(found), [[0, 128], [128, 255]])
    assert (found.smallest, found.largest, found.logarithmic) == (0.01, 1.0, True)


def test_what_is_six_decades_below_the_largest_value_is_nothing():
    found = whole([[1e-30, 1e-1], [1e-1, 1e2]], MapKind.REWARD)
    assert found.smallest == pytest.approx(1e-4)
    np.testing.assert_array_equal(values_of(found), [[0, 128], [128, 255]])


@pytest.mark.parametrize("kind", list(MapKind))
def test_what_is_no_number_counts_as_nothing(kind):
    found = whole([[np.nan, np.inf, 0], [np.inf, -np.inf, 0], [0, 0, 1]], kind)
    np.testing.assert_array_equal(values_of(found), [[0, 0, 0], [0, 0, 0], [0, 0, 255]])
    assert found.largest == 1.0


def test_a_matrix_of_nothing_is_shown_as_nothing():
    found = whole(np.zeros((3, 3)), MapKind.REWARD)
    assert not values_of(found).any()
    assert (found.smallest, found.largest) == (0.0, 0.0)


def test_equal_values_are_all_the_largest():
    np.testing.assert_array_equal(values_of(whole([[0.0, 5.0], [5.0, 0.0]], MapKind.REWARD)), [[0, 255], [255, 0]])


@pytest.mark.parametrize("frames", [8, 9])
def test_a_cell_is_as_large_as_its_largest_entry(frames):
    matrix = symmetric(1, frames)
    found = whole(matrix, size=4)
    per_cell = found.frames_per_cell
    assert per_cell == -(-frames // 4)
    assert found.rows == found.columns <= 4
    for row, column in np.ndindex(found.rows, found.columns):
        part = matrix[row * per_cell : (row + 1) * per_cell, column * per_cell : (column + 1) * per_cell]
        assert values_of(found)[row, column] == np.rint(255 * part.max())


def test_a_window_shows_its_part_of_the_matrix():
    matrix = symmetric(2, 20)
    found = reduce(given(matrix), MapKind.OVERLAP, 3, 11, 5, 256, 0)
    assert (found.first_row, found.first_column, found.rows, found.columns) == (3, 11, 5, 5)
    np.testing.assert_array_equal(values_of(found), np.rint(255 * matrix[3:8, 11:16]))


@pytest.mark.parametrize(("row", "column", "frames"), [(18, 0, 5), (10**9, 10**9, 5), (4, 4, 10**9)])
def test_a_window_beyond_the_matrix_is_moved_and_cut_to_fit(row, column, frames):
    matrix = symmetric(3, 20)
    found = reduce(given(matrix), MapKind.OVERLAP, row, column, frames, 256, 0)
    side = min(frames, 20)
    assert found.rows == found.columns == side
    top, left = found.first_row, found.first_column
    assert (top, left) == (min(row, 20 - side), min(column, 20 - side))
    np.testing.assert_array_equal(values_of(found), np.rint(255 * matrix[top : top + side, left : left + side]))


def test_the_range_of_a_window_is_that_of_the_whole_matrix():
    matrix = np.full((10, 10), 1e-3)
    matrix[0, 0], matrix[9, 9] = 1e-4, 1e1
    window = reduce(given(matrix), MapKind.REWARD, 2, 2, 3, 256, 0)
    assert (window.smallest, window.largest) == (1e-4, 1e1)
    np.testing.assert_array_equal(values_of(window), np.full((3, 3), 51))


@pytest.mark.parametrize("kind", list(MapKind))
def test_matrices_are_the_same_in_both_directions(loop, kind):
    matrix = entries(matrix_of(kind, loop))
    assert matrix.shape == (12, 12)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
    assert (matrix > 0).any()


def test_overlap_is_certain_for_answered_pairs(loop):
    matrix = entries(matrix_of(MapKind.OVERLAP, loop))
    assert matrix[2, 9] == matrix[0, 1] == 1.0
    assert matrix[1, 8] == 0.0


def test_overlap_is_the_posterior_that_questions_show(loop):
    matrix = entries(matrix_of(MapKind.OVERLAP, loop))
    for pair in (Pair(0, 7), Pair(3, 11), Pair(4, 6)):
        assert matrix[pair.i, pair.j] == pytest.approx(loop.likely(pair).reasons["overlap"], rel=1e-12)


def test_informativeness_is_a_length(loop):
    forth, back = loop.view.centres.cov[0, 7], loop.view.centres.cov[7, 0]
    expected = np.sqrt((forth[0] + forth[2] + back[0] + back[2]) / 2)
    assert entries(matrix_of(MapKind.INFORMATIVENESS, loop))[0, 7] == pytest.approx(expected)
    assert loop.likely(Pair(0, 7)).reasons["spread_px"] == pytest.approx(expected)


def test_nothing_is_shown_of_the_place_of_frames_that_nothing_joins():
    world = raster(12)
    chain = [landmarks for landmarks in world.chain(world.agent(3)) if landmarks.pair != Pair(5, 6)]
    parted = ActiveLoop.start(12, OUTLINE, chain, external=world.external)
    matrix = entries(matrix_of(MapKind.INFORMATIVENESS, parted))
    assert (matrix[:6, 6:] == 0.0).all()
    assert matrix[0, 4] > 0.0


def test_reward_is_what_questions_are_ranked_by_and_nothing_for_other_pairs(loop):
    matrix = entries(matrix_of(MapKind.REWARD, loop))
    best = loop.suggest(1)[0]
    assert matrix[best.pair.i, best.pair.j] == matrix.max() == pytest.approx(best.expected_reward)
    assert not matrix[~(loop.view.candidates | loop.view.candidates.T)].any()
    assert matrix[2, 9] == matrix[1, 8] == 0.0


class ByNumber:
    """Ranks pairs one by one."""

    name = "by number"

    def rank(self, view, top):
        return [Suggestion(Pair(0, j), float(j)) for j in range(11, 1, -1)][:top]


def test_reward_of_another_strategy_is_what_it_ranks_by():
    world = raster(12)
    agent = world.agent(3)
    started = ActiveLoop.start(12, OUTLINE, world.chain(agent), external=world.external, strategy=ByNumber())
    matrix = entries(matrix_of(MapKind.REWARD, started))
    assert matrix[0, 11] == matrix[11, 0] == 11.0
    assert matrix.max() == 11.0


def test_entries_are_in_their_places_when_computed_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(pairmaps, "PAIRS_AT_ONCE", 50)
    matrix = symmetric(5, 20)
    np.testing.assert_array_equal(entries(given(matrix)), matrix)
    np.testing.assert_array_equal(given(matrix).at(np.arange(3, 20), np.arange(9)), matrix[3:, :9])


@pytest.mark.parametrize("kind", list(MapKind))
def test_entries_do_not_depend_on_what_else_is_looked_at(loop, kind):
    matrix = matrix_of(kind, loop)
    np.testing.assert_allclose(
        matrix.at(np.array([8, 3]), np.array([0, 8, 11])), entries(matrix)[[8, 3]][:, [0, 8, 11]]
    )


def test_few_pairs_of_a_large_window_are_looked_at_and_they_are_evenly_spread():
    looked_at = []

    def note(pairs):
        looked_at.extend(pairs.tolist())
        return np.zeros(len(pairs))

    found = reduce(PairMatrix(10_000, note, np.zeros((0, 2), dtype=np.int64)), MapKind.OVERLAP, 0, 0, 0, 100, 0)
    assert (found.rows, found.frames_per_cell) == (100, 100)
    frames = np.unique(looked_at)
    np.testing.assert_array_equal(frames, np.arange(0, 10_000, 20) + 10)
    assert len(looked_at) < 0.6 * len(frames) ** 2


def test_a_cell_of_a_large_window_is_as_large_as_the_largest_of_some_of_its_entries(monkeypatch):
    monkeypatch.setattr(pairmaps, "FRAMES_SAMPLED", 8)
    matrix = symmetric(4, 40)
    chosen = np.arange(0, 40, 5) + 2
    expected = matrix[np.ix_(chosen, chosen)].reshape(4, 2, 4, 2).max(axis=(1, 3))
    np.testing.assert_array_equal(values_of(whole(matrix, size=4)), np.rint(255 * expected))


def test_the_range_of_many_frames_is_that_of_some_and_of_the_marked_pairs(monkeypatch):
    monkeypatch.setattr(pairmaps, "FRAMES_OF_RANGE", 4)
    matrix = np.full((40, 40), 1e-3)
    matrix[3, 31] = matrix[31, 3] = 10.0
    matrix[5, 15] = matrix[15, 5] = 1.0
    assert given(matrix).positive_range == (1e-3, 1.0)
    assert given(matrix, [(3, 31)]).positive_range == (1e-3, 10.0)


@pytest.mark.parametrize("column", [0, 20])
def test_marked_pairs_are_shown_in_their_cells_at_any_resolution(monkeypatch, column):
    monkeypatch.setattr(pairmaps, "FRAMES_SAMPLED", 4)
    matrix = np.zeros((40, 40))
    matrix[3, 31] = matrix[31, 3] = 1.0
    found = reduce(given(matrix, [(3, 31)]), MapKind.OVERLAP, 0, column, 20 if column else 0, 4, 0)
    shown = np.argwhere(values_of(found))
    assert shown.tolist() == ([[0, 2]] if column else [[0, 3], [3, 0]])


def test_links_are_marked_and_so_are_candidates(loop):
    for kind in (MapKind.OVERLAP, MapKind.INFORMATIVENESS):
        np.testing.assert_array_equal(matrix_of(kind, loop).marked, loop.view.linked)
    pair = loop.suggest(1)[0].pair
    assert [pair.i, pair.j] in matrix_of(MapKind.REWARD, loop).marked.tolist()


@pytest.mark.parametrize("kind", list(MapKind))
def test_nobody_looks_at_matrices_of_all_pairs(loop, kind, monkeypatch):
    for name in ("centres", "external_probabilities", "candidates"):
        monkeypatch.setattr(View, name, property(lambda _: pytest.fail("all pairs were looked at")))
    assert values_of(reduce(matrix_of(kind, loop), kind, 0, 0, 0, 4, 0)).any()
