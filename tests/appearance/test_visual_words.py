"""Signatures of visual words: of length 1, the same every time, alike where the place is the same."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from smalti.appearance.visual_words import CELL_PX, FEWEST_CELLS, WORDS, learn_words, signatures_of, strongest_of_cells
from smalti.geometry.outline import Outline
from smalti.registration.keypoints import NO_KEYPOINTS, Keypoints
from tests.registration.scenes import FRAME_SIZE, FRAMES, apart, keypoints, overlapping

OUTLINE = Outline.of_pixels(*FRAME_SIZE)
EVERY_FRAME = range(FRAMES)


def signatures(numbers=EVERY_FRAME, seed: int = 0) -> np.ndarray:
    return signatures_of([keypoints(n) for n in numbers], OUTLINE, seed)


def scattered(count: int, width: int, height: int, seed: int = 0) -> Keypoints:
    rng = np.random.default_rng(seed)
    points = rng.uniform([-0.5, -0.5], [width - 0.5, height - 0.5], (count, 2)).astype(np.float32)
    descriptors = rng.integers(0, 40, (count, 128), dtype=np.uint8)
    return Keypoints(points, descriptors, np.sort(rng.random(count).astype(np.float32))[::-1])


def test_every_frame_has_a_row_of_length_one_without_negative_entries():
    found = signatures()
    assert len(found) == FRAMES
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-12)
    assert found.min() >= 0


def test_there_is_a_word_for_every_five_keypoints_of_the_cells():
    shown = sum(len(strongest_of_cells(keypoints(n), OUTLINE)) for n in EVERY_FRAME)
    assert shown // 5 < WORDS
    assert signatures().shape[1] == shown // 5


def test_there_are_never_more_words_than_the_limit():
    many = [scattered(4000, 1000, 900, seed) for seed in range(60)]
    assert signatures_of(many, Outline.of_pixels(1000, 900)).shape == (60, WORDS)


def test_a_row_counts_the_words_of_its_frame():
    found = signatures()
    for n in (0, 11, 23):
        shown = len(strongest_of_cells(keypoints(n), OUTLINE))
        smallest = found[n][found[n] > 0].min()
        counts = found[n] / smallest
        np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
        assert counts.sum() == pytest.approx(shown)


def test_frames_of_one_place_are_more_alike_than_frames_of_different_places():
    found = signatures()
    alike = found @ found.T
    of_one = [alike[pair.i, pair.j] for pair in overlapping(0.6)]
    of_two = [alike[pair.i, pair.j] for pair in apart()]
    assert np.mean(of_one) > 2 * np.mean(of_two)
    assert np.mean([one > two for one in of_one for two in of_two]) > 0.97


def test_the_same_seed_gives_the_same_signatures_to_the_last_bit():
    np.testing.assert_array_equal(signatures(seed=3), signatures(seed=3))


def test_another_seed_learns_other_words():
    assert not np.array_equal(signatures(seed=3), signatures(seed=4))


def test_keypoints_may_come_one_by_one():
    np.testing.assert_array_equal(signatures_of(map(keypoints, EVERY_FRAME), OUTLINE), signatures())


def test_a_frame_without_keypoints_looks_like_no_place_in_particular():
    found = signatures_of([NO_KEYPOINTS if n == 5 else keypoints(n) for n in EVERY_FRAME], OUTLINE)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-12)
    to_others = np.delete(found, 5, axis=0) @ found[5]
    assert to_others.min() > 0
    assert to_others.max() < 1.5 * to_others.min()
    mean = np.delete(found, 5, axis=0).mean(axis=0)
    assert found[5] @ mean / np.linalg.norm(mean) > 0.8


def test_frames_all_without_keypoints_have_rows_of_length_one_too():
    found = signatures_of([NO_KEYPOINTS] * 3, OUTLINE)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


@pytest.mark.parametrize("count", [1, 9])
def test_fewer_keypoints_than_words_are_enough(count):
    found = signatures_of([scattered(count, 240, 180, seed) for seed in range(2)], OUTLINE)
    assert found.shape[0] == 2
    assert 1 <= found.shape[1] <= 2 * count
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


def strongest_by_hand(found: Keypoints, outline: Outline, side: float) -> list[int]:
    taken: dict[tuple[int, int], int] = {}
    for row, (x, y) in enumerate(found.points.astype(float)):
        cell = int((x - outline.left) // side), int((y - outline.top) // side)
        if cell not in taken or found.strengths[row] > found.strengths[taken[cell]]:
            taken[cell] = row
    return sorted(taken.values())


@pytest.mark.parametrize(("width", "height"), [(1600, 900), (240, 180)])
def test_the_strongest_of_every_cell_stand_for_the_frame(width, height):
    outline = Outline.of_pixels(width, height)
    found = scattered(1500, width, height)
    side = min(CELL_PX, (width * height / FEWEST_CELLS) ** 0.5)
    rows = strongest_by_hand(found, outline, side)
    kept = strongest_of_cells(found, outline)
    assert len(kept) == len(rows) >= FEWEST_CELLS
    np.testing.assert_array_equal(kept.points, found.points[rows])
    np.testing.assert_array_equal(kept.descriptors, found.descriptors[rows])
    np.testing.assert_array_equal(kept.strengths, found.strengths[rows])


def test_a_frame_without_keypoints_has_no_strongest():
    assert len(strongest_of_cells(NO_KEYPOINTS, OUTLINE)) == 0


def test_settled_words_are_the_means_of_what_is_nearest_to_them():
    descriptors = np.random.default_rng(1).normal(size=(300, 6)).astype(np.float32)
    words = learn_words(descriptors, 8, np.random.default_rng(2), rounds=100)
    distances = np.linalg.norm(descriptors[:, None] - words[None], axis=2)
    nearest = distances.argmin(axis=1)
    assert set(nearest) == set(range(8))
    for number, word in enumerate(words):
        np.testing.assert_allclose(word, descriptors[nearest == number].mean(axis=0), atol=1e-5)


def test_every_round_brings_the_words_nearer():
    descriptors = np.random.default_rng(1).normal(size=(400, 6)).astype(np.float32)

    def spread_after(rounds: int) -> float:
        words = learn_words(descriptors, 10, np.random.default_rng(2), rounds=rounds)
        squares = np.sum((descriptors[:, None] - words[None]) ** 2, axis=2)
        return float(squares.min(axis=1).sum())

    spreads = [spread_after(rounds) for rounds in range(6)]
    assert (np.diff(spreads) < 0).all()


def test_as_many_words_as_descriptors_are_the_descriptors():
    descriptors = np.random.default_rng(4).normal(size=(7, 5)).astype(np.float32)
    words = learn_words(descriptors, 7, np.random.default_rng(0))
    np.testing.assert_allclose(words, descriptors, atol=1e-6)


def test_a_word_that_nothing_is_nearest_to_stays_where_it_is():
    same = np.tile(np.array([0.25, 0.5, 0.75], np.float32), (6, 1))
    np.testing.assert_array_equal(learn_words(same, 3, np.random.default_rng(0)), same[:3])


def test_keypoints_are_let_go_of_one_by_one():
    """Those of a long sequence do not fit into memory all at once."""
    alive: list[weakref.ref[np.ndarray]] = []

    def one_by_one():
        for seed in range(20):
            assert sum(reference() is not None for reference in alive) <= 1
            found = scattered(50, *FRAME_SIZE, seed)
            alive.append(weakref.ref(found.descriptors))
            yield found
            del found

    assert len(signatures_of(one_by_one(), OUTLINE)) == 20
