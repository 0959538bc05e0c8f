"""The likeness of frames by their keypoints: symmetric, the same every time, high where the place is the same."""

from __future__ import annotations

import weakref

import numba
import numpy as np
import pytest

from smalti.appearance import keypoint_likeness
from smalti.appearance.keypoint_likeness import (
    FALL,
    likeness_of,
    pack_likeness,
    symmetric,
    unpack_likeness,
)
from smalti.appearance.visual_words import signatures_of
from smalti.geometry.outline import Outline
from smalti.registration.keypoints import DESCRIPTOR_LEVELS, NO_KEYPOINTS, SIFT_MATCHES, Keypoints
from tests.registration.scenes import FRAME_SIZE, FRAMES, apart, keypoints, overlapping

SMALL = 8
LARGEST = SIFT_MATCHES.largest_ratio**2 * SIFT_MATCHES.usual_next


def first(count: int, frames: int) -> list[Keypoints]:
    return [keypoints(n).spread(count) for n in range(frames)]


@pytest.fixture(scope="module")
def found() -> np.ndarray:
    return likeness_of((keypoints(n) for n in range(FRAMES)), FRAMES).toarray()


def by_hand(some: list[Keypoints]) -> np.ndarray:
    """Compare all keypoints with all, in the words of the definition."""
    likeness = np.eye(len(some))
    for i in range(len(some)):
        for j in range(i + 1, len(some)):
            one, other = (some[n].descriptors.astype(np.float64) / DESCRIPTOR_LEVELS for n in (i, j))
            distance = ((one[:, None] - other[None]) ** 2).sum(axis=2)
            a = np.arange(len(one))
            b = distance.argmin(axis=1)
            mutual = (distance.argmin(axis=0)[b] == a) & (distance[a, b] <= LARGEST)
            likeness[i, j] = likeness[j, i] = np.exp(-distance[a, b][mutual] / (FALL * LARGEST)).sum() / np.sqrt(
                len(one) * len(other)
            )
    return likeness


def test_likeness_is_symmetric_from_0_to_1_and_1_of_a_frame_and_itself(found):
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1.0)
    assert found.min() >= 0.0
    assert found.max() <= 1.0


def test_it_counts_mutual_nearest_keypoints_by_their_distance(monkeypatch):
    monkeypatch.setattr(keypoint_likeness, "CELLS_SEARCHED", 1000)  # all, so that none is missed
    some = first(60, SMALL)
    np.testing.assert_allclose(likeness_of(some, SMALL).toarray(), by_hand(some), rtol=1e-5)


def test_cells_miss_little_of_what_all_comparisons_find():
    some = first(300, SMALL)
    exact, cells = by_hand(some), likeness_of(some, SMALL).toarray()
    far = np.triu_indices(SMALL, 1)
    assert cells[far].sum() > 0.85 * exact[far].sum()


def test_frames_of_one_place_are_more_alike_than_frames_of_different_places(found):
    one, other = (np.array([found[pair.i, pair.j] for pair in pairs]) for pairs in (overlapping(0.3), apart()))
    assert np.mean(one[:, None] > other) > 0.98


def test_small_overlaps_are_ranked_better_than_by_words(found):
    words = signatures_of([keypoints(n) for n in range(FRAMES)], Outline.of_pixels(*FRAME_SIZE))

    def share_in_order(alike: np.ndarray) -> float:
        one, other = (np.array([alike[pair.i, pair.j] for pair in pairs]) for pairs in (overlapping(0.1), apart()))
        return float(np.mean(one[:, None] > other))

    assert share_in_order(found) > share_in_order(words @ words.T) + 0.02


def test_the_order_of_keypoints_does_not_matter():
    some = first(100, SMALL)
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(of_frame)) for of_frame in some]
    mixed = [
        Keypoints(of_frame.points[order], of_frame.descriptors[order], of_frame.strengths[order])
        for of_frame, order in zip(some, orders, strict=True)
    ]
    keypoints_of_a_cell = keypoint_likeness.KEYPOINTS_OF_A_CELL
    assert sum(map(len, some)) < 2 * keypoints_of_a_cell  # one cell: the centres drawn are others
    np.testing.assert_allclose(likeness_of(mixed, SMALL).toarray(), likeness_of(some, SMALL).toarray(), rtol=1e-5)


def test_the_number_of_threads_does_not_change_a_bit(found):
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        alone = likeness_of((keypoints(n) for n in range(FRAMES)), FRAMES).toarray()
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(alone, found)


def test_another_seed_draws_other_cells(found):
    assert not np.array_equal(likeness_of((keypoints(n) for n in range(FRAMES)), FRAMES, seed=1).toarray(), found)


def test_a_frame_without_keypoints_is_like_no_other():
    alike = likeness_of([*first(50, 3), NO_KEYPOINTS], 4).toarray()
    np.testing.assert_array_equal(alike[3], [0, 0, 0, 1])


def test_frames_all_without_keypoints_are_like_no_other():
    np.testing.assert_array_equal(likeness_of([NO_KEYPOINTS] * 3, 3).toarray(), np.eye(3))


def test_long_sequences_have_fewer_keypoints_of_each_frame(monkeypatch):
    monkeypatch.setattr(keypoint_likeness, "MOST_DESCRIPTORS", 60 * SMALL)
    np.testing.assert_array_equal(
        likeness_of([keypoints(n) for n in range(SMALL)], SMALL).toarray(),
        likeness_of(first(60, SMALL), SMALL).toarray(),
    )


def test_keypoints_are_let_go_of_one_by_one():
    """Those of a long sequence do not fit into memory all at once."""
    alive: list[weakref.ref[np.ndarray]] = []

    def one_by_one():
        rng = np.random.default_rng(0)
        for _ in range(12):
            assert sum(reference() is not None for reference in alive) <= 1
            descriptors = rng.integers(0, 40, (400, 128), dtype=np.uint8)
            points = rng.uniform(0, 200, (400, 2)).astype(np.float32)
            alive.append(weakref.ref(descriptors))
            yield Keypoints(points, descriptors, np.ones(400, np.float32))
            del descriptors

    assert likeness_of(one_by_one(), 12).shape == (12, 12)


def test_of_too_many_pairs_those_most_alike_of_each_frame_are_kept():
    rows = np.triu(np.random.default_rng(0).random((20, 20)).astype(np.float32))
    kept = symmetric([rows[:7], rows[7:]], 20, most_pairs=60).toarray()
    for n in range(20):
        later = rows[n, n + 1 :]
        np.testing.assert_array_equal(kept[n, n + 1 :], np.where(later >= np.sort(later)[-3:].min(initial=2), later, 0))


def test_what_was_stored_is_read_again_to_the_last_bit(found):
    alike = likeness_of((keypoints(n) for n in range(FRAMES)), FRAMES)
    again = unpack_likeness(pack_likeness(alike), FRAMES)
    assert again is not None
    np.testing.assert_array_equal(again.toarray(), found)


@pytest.mark.parametrize("broken", ["of more frames", "of fewer frames", "signatures", "a place too far", "too alike"])
def test_what_is_stored_of_something_else_is_refused(broken):
    packed = pack_likeness(likeness_of(first(50, 4), 4))
    frames = {"of more frames": 5, "of fewer frames": 3}.get(broken, 4)
    if broken == "signatures":
        packed = np.ones((4, 10))
    elif broken == "a place too far":
        packed["j"][1] = 2**31
    elif broken == "too alike":
        packed["likeness"][1] = 7.0
    assert unpack_likeness(packed, frames) is None
