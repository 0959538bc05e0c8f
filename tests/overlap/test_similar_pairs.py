"""The index for long sequences: exact, whatever was asked before and however much could be kept."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.overlap.signature_distances import SignatureSet, signature_set_of
from smalti.overlap.similar_pairs import Index

FRAMES, WORDS = 300, 60
STARTS = np.append(np.arange(0, FRAMES, 32), FRAMES)
BLOCKS = len(STARTS) - 1
ALL_PAIRS = np.column_stack(np.triu_indices(FRAMES, 1))
BLOCK = np.repeat(np.arange(BLOCKS), np.diff(STARTS))


class Watched:
    """Signatures that count how often all pairs are gone through."""

    def __init__(self, signatures: SignatureSet) -> None:
        self._signatures = signatures
        self.strips = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._signatures, name)

    def subtract_distances(self, *given: object) -> None:
        self.strips += 1
        self._signatures.subtract_distances(*given)


@pytest.fixture
def signatures() -> Watched:
    rng = np.random.default_rng(5)
    raw = rng.exponential(size=(FRAMES, WORDS)) * (rng.random((FRAMES, WORDS)) < 0.15)
    raw[:, 0] += 0.3
    raw[150:] += raw[:150]
    return Watched(signature_set_of(raw / np.linalg.norm(raw, axis=1, keepdims=True)))


def weights_like(seed: int, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 1.0 + 4.0 * rng.exponential(size=WORDS) * (rng.random(WORDS) < share)


def level_like(seed: int, low: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    level = rng.uniform(low, low + 0.4, size=(BLOCKS, BLOCKS))
    level[rng.random(level.shape) < 0.2] = np.inf
    return level


def check(index: Index, signatures: Watched, weights: np.ndarray, level: np.ndarray) -> None:
    """Compare what the index finds with all pairs."""
    batches = list(index.reaching(weights, level, STARTS))
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *(pairs for pairs, _ in batches)])
    similarity = np.concatenate([np.empty(0), *(some for _, some in batches)])
    exact = 1.0 - signatures.distances(weights, ALL_PAIRS)
    reached = exact >= level[BLOCK[ALL_PAIRS[:, 0]], BLOCK[ALL_PAIRS[:, 1]]]
    order = np.lexsort((ALL_PAIRS[:, 1], ALL_PAIRS[:, 0], BLOCK[ALL_PAIRS[:, 1]], BLOCK[ALL_PAIRS[:, 0]]))
    chosen = order[reached[order]]
    np.testing.assert_array_equal(pairs, ALL_PAIRS[chosen])
    np.testing.assert_array_equal(similarity, exact[chosen])


def test_any_series_of_questions_is_answered_exactly(signatures: Watched) -> None:
    index = Index(signatures)
    for seed in range(8):
        weights = np.ones(WORDS) if seed % 3 == 0 else weights_like(seed)
        check(index, signatures, weights, level_like(seed, low=0.4 - 0.1 * seed))


@pytest.mark.parametrize("room", [0, 500, 20_000])
def test_answers_do_not_depend_on_how_much_can_be_kept(signatures: Watched, room: int) -> None:
    index = Index(signatures, most_kept=room)
    for seed in range(6):
        weights = weights_like(seed, share=0.2 * seed)
        check(index, signatures, weights, level_like(seed, low=-0.2))
        check(index, signatures, weights * np.where(np.arange(WORDS) % 2, 1.0, 0.98), level_like(seed, low=-0.15))


def test_a_higher_level_and_other_weights_are_answered_without_another_search(signatures: Watched) -> None:
    index = Index(signatures)
    check(index, signatures, np.ones(WORDS), np.full((BLOCKS, BLOCKS), 0.2))
    searched = signatures.strips
    for seed in range(4):
        check(index, signatures, weights_like(seed), np.full((BLOCKS, BLOCKS), 0.2 + 0.1 * seed))
    assert signatures.strips == searched > 0


def test_a_level_somewhat_lower_is_answered_without_another_search(signatures: Watched) -> None:
    index = Index(signatures)
    check(index, signatures, np.ones(WORDS), np.full((BLOCKS, BLOCKS), 0.3))
    searched = signatures.strips
    check(index, signatures, weights_like(1), np.full((BLOCKS, BLOCKS), 0.1))
    assert signatures.strips == searched


def test_where_all_similar_pairs_are_too_many_those_under_the_trained_weights_are_kept(signatures: Watched) -> None:
    weights = weights_like(2, share=0.9)
    similar = np.count_nonzero(1.0 - signatures.distances(weights, ALL_PAIRS) >= -0.1)
    index = Index(signatures, most_kept=similar)
    level = np.full((BLOCKS, BLOCKS), -0.05)
    check(index, signatures, weights, level)
    check(index, signatures, weights, level)
    searched = signatures.strips
    check(index, signatures, weights, level)
    check(index, signatures, 1.2 * weights, level)
    assert signatures.strips == searched
    check(index, signatures, 0.5 * weights, level)
    assert signatures.strips > searched


def test_a_level_that_no_pair_can_reach_is_not_taken_for_a_search_of_lower_ones(signatures: Watched) -> None:
    index = Index(signatures)
    check(index, signatures, np.ones(WORDS), np.full((BLOCKS, BLOCKS), 1.1))
    check(index, signatures, np.ones(WORDS), np.full((BLOCKS, BLOCKS), 0.8))


def test_blocks_of_which_nothing_was_asked_are_answered_later_without_another_search(signatures: Watched) -> None:
    index = Index(signatures)
    level = np.full((BLOCKS, BLOCKS), np.inf)
    level[0, 3] = 0.2
    check(index, signatures, np.ones(WORDS), level)
    searched = signatures.strips
    check(index, signatures, weights_like(3), np.full((BLOCKS, BLOCKS), 0.1))
    assert signatures.strips == searched > 0


def test_nothing_is_searched_where_nothing_is_asked(signatures: Watched) -> None:
    check(Index(signatures), signatures, np.ones(WORDS), np.full((BLOCKS, BLOCKS), np.inf))
    assert signatures.strips == 0


def test_a_search_that_nobody_follows_to_its_end_keeps_nothing(signatures: Watched) -> None:
    index = Index(signatures)
    level = np.full((BLOCKS, BLOCKS), 0.1)
    next(iter(index.reaching(np.ones(WORDS), level, STARTS)))
    check(index, signatures, np.ones(WORDS), level)
