"""The external model of few alike pairs: exact for single pairs and for lists of pairs, in a matrix or in strips."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from smalti.errors import ModelError
from smalti.overlap import pair_likeness
from smalti.overlap.external_model import PairwiseModel, PoolableModel
from smalti.overlap.pair_likeness import HALF, PairLikeness
from smalti.suggestion.appearance_evidence import neighbours

FRAMES = 40
STARTS = np.array([0, 7, 14, 25, 31, 40])
ALL_PAIRS = np.stack(np.triu_indices(FRAMES, 1), axis=1)


def dense(seed: int = 0, share: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    half = np.triu(rng.random((FRAMES, FRAMES)) * (rng.random((FRAMES, FRAMES)) < share), 1) ** 3
    return (half + half.T + np.eye(FRAMES)).astype(np.float32)


def model(**options: int) -> PairLikeness:
    return PairLikeness(csr_array(dense()), **options)


def test_it_can_compute_single_pairs_and_be_pooled():
    assert isinstance(model(), PairwiseModel)
    assert isinstance(model(), PoolableModel)


def test_p_ext_is_0_without_likeness_a_half_at_half_and_grows_with_it():
    alike = csr_array(np.array([[1, HALF, 0], [HALF, 1, 0.5], [0, 0.5, 1]], np.float32))
    p = PairLikeness(alike).probabilities()
    assert p[0, 2] == 0.0
    assert p[0, 1] == pytest.approx(0.5, abs=1e-6)
    assert 0.5 < p[1, 2] < 1.0


def test_single_pairs_are_entries_of_the_matrix():
    np.testing.assert_array_equal(model().of_pairs(ALL_PAIRS), model().probabilities()[tuple(ALL_PAIRS.T)])


def test_pairs_of_frames_that_are_like_no_other_have_p_ext_0():
    np.testing.assert_array_equal(PairLikeness(csr_array((FRAMES, FRAMES))).of_pairs(ALL_PAIRS), 0.0)


@pytest.mark.parametrize("most_frames_of_a_matrix", [FRAMES, FRAMES - 1], ids=["matrix", "strips"])
@pytest.mark.parametrize("seed", range(4))
def test_pairs_that_reach_their_level_are_listed_by_blocks(most_frames_of_a_matrix, seed):
    looks = model(most_frames_of_a_matrix=most_frames_of_a_matrix)
    level = np.random.default_rng(seed).uniform(-0.1, 1.1, (5, 5))
    level[0, 3], level[1, 1] = 0.0, np.inf
    block = np.repeat(np.arange(5), np.diff(STARTS))
    exact = looks.of_pairs(ALL_PAIRS)
    i, j = ALL_PAIRS.T
    reached = exact >= level[block[i], block[j]]
    order = np.lexsort((j, i, block[j], block[i]))
    found, bound = (np.concatenate(parts) for parts in zip(*looks.pairs_above(level, STARTS), strict=True))
    np.testing.assert_array_equal(found, ALL_PAIRS[order[reached[order]]])
    assert (bound >= looks.of_pairs(found)).all()
    assert (bound <= looks.of_pairs(found) + 1e-4).all()


def test_pooling_takes_the_mean_over_the_neighbours_of_both_frames():
    around = neighbours(FRAMES, np.stack([np.arange(FRAMES - 1), np.arange(1, FRAMES)], axis=1), 2)
    share = around.toarray() / around.toarray().sum(axis=1, keepdims=True)
    pooled = model().pooled(around).likeness.toarray()
    np.testing.assert_allclose(pooled, share @ dense() @ share.T, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(pooled, pooled.T)


def test_pooling_in_strips_changes_nothing(monkeypatch):
    around = neighbours(FRAMES, np.stack([np.arange(FRAMES - 1), np.arange(1, FRAMES)], axis=1), 2)
    at_once = model().pooled(around).likeness.toarray()
    monkeypatch.setattr(pair_likeness, "FRAMES_AT_ONCE", 7)
    np.testing.assert_array_equal(model().pooled(around).likeness.toarray(), at_once)


def test_of_too_many_pooled_pairs_the_strongest_of_each_frame_are_kept(monkeypatch):
    around = neighbours(FRAMES, np.stack([np.arange(FRAMES - 1), np.arange(1, FRAMES)], axis=1), 2)
    everything = model().pooled(around).likeness
    monkeypatch.setattr(pair_likeness, "MOST_POOLED_PAIRS", 5 * FRAMES)
    kept = model().pooled(around).likeness
    assert kept.nnz <= 2 * 10 * FRAMES < everything.nnz
    assert kept.toarray()[0].max() == everything.toarray()[0].max()


def test_nothing_is_learned_from_the_answers():
    looks = model()
    assert looks.learn(ALL_PAIRS[:5], ALL_PAIRS[5:9]) is looks


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\), expected \(N, N\)"),
        (np.full((2, 2), 1.5), "must lie between 0 and 1"),
        (np.full((2, 2), np.nan), "must lie between 0 and 1"),
        (np.array([[1.0, 0.2], [0.0, 1.0]]), "must be symmetric"),
    ],
)
def test_what_is_no_likeness_is_refused(matrix, message):
    with pytest.raises(ModelError, match=message):
        PairLikeness(csr_array(matrix))
