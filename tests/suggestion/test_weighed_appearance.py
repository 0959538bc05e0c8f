"""Looks by what they are worth: the search must be given every pair that matters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from smalti.overlap.external_model import FixedProbabilities, NoExternalModel
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.suggestion.appearance_evidence import ROUNDED_UP, Evidence, WeighedAppearance

FRAMES = 50
STARTS = np.array([0, 7, 20, 21, 38, FRAMES])
PAIRS = np.column_stack(np.triu_indices(FRAMES, 1))

EDGES = np.array([0.05, 0.09375, 0.5, 0.765625, 0.9])
"""Some are numbers that single precision holds, whose log odds are rounded up."""

RISING = np.array([0.1, 0.3, 1.0, 2.0, 5.0, 40.0])
UP_AND_DOWN = np.array([0.1, 3.0, 1.0, 8.0, 2.0, 5.0])


def fixed():
    rng = np.random.default_rng(1)
    matrix = np.triu(rng.choice([0.0, *EDGES, *rng.random(200), 1.0], size=(FRAMES, FRAMES)), 1)
    return FixedProbabilities(matrix + matrix.T)


def signatures():
    raw = np.random.default_rng(2).exponential(size=(FRAMES, 30)) ** 3
    return WeightedSignatures(raw / np.linalg.norm(raw, axis=1, keepdims=True))


def weighed(looks, ratios):
    return WeighedAppearance(looks, Evidence(logit(EDGES), np.column_stack([ratios, np.ones(len(ratios))])))


def levels_of(seed):
    """A level for every pair of blocks: none, all, that of a step exactly, and any between."""
    blocks = len(STARTS) - 1
    rng = np.random.default_rng(seed)
    steps = np.concatenate([RISING / RISING.max(), UP_AND_DOWN / UP_AND_DOWN.max(), [0.0, np.inf], rng.random(6)])
    return rng.choice(steps, size=(blocks, blocks))


def yielded(looks, least):
    found = list(looks.pairs_above(least, STARTS))
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *(pairs for pairs, _ in found)])
    return pairs, np.concatenate([np.empty(0), *(bound for _, bound in found)])


def reaching(looks, least):
    """All pairs that reach their level, by looking at every one."""
    block = np.searchsorted(STARTS, PAIRS, side="right") - 1
    return {tuple(pair) for pair in PAIRS[looks.of_pairs(PAIRS) >= least[block[:, 0], block[:, 1]]].tolist()}


each_model = pytest.mark.parametrize("looks", [fixed(), signatures()], ids=["matrix", "signatures"])
each_course = pytest.mark.parametrize("ratios", [RISING, UP_AND_DOWN], ids=["rising", "up and down"])


@each_model
@each_course
def test_every_pair_that_reaches_its_level_is_yielded_once(looks, ratios):
    looks = weighed(looks, ratios)
    for seed in range(10):
        least = levels_of(seed)
        found = [tuple(pair) for pair in yielded(looks, least)[0].tolist()]
        assert len(set(found)) == len(found)
        assert reaching(looks, least) <= set(found)


@each_model
def test_no_pair_is_yielded_that_misses_its_level_by_more_than_rounding(looks):
    looks = weighed(looks, RISING)
    least = levels_of(3)
    pairs, _ = yielded(looks, least)
    block = np.searchsorted(STARTS, pairs, side="right") - 1
    above = np.minimum(looks.appearance.of_pairs(pairs) + ROUNDED_UP, 1.0)
    assert (looks._share(above) >= least[block[:, 0], block[:, 1]]).all()


@each_model
@each_course
def test_no_share_is_above_its_bound(looks, ratios):
    looks = weighed(looks, ratios)
    pairs, bound = yielded(looks, np.zeros((len(STARTS) - 1, len(STARTS) - 1)))
    assert len(pairs) == len(PAIRS)
    assert (bound >= looks.of_pairs(pairs)).all()


@each_model
def test_shares_are_ratios_of_the_first_kind_over_the_largest(looks):
    looks = weighed(looks, UP_AND_DOWN)
    external = looks.appearance.of_pairs(PAIRS)
    expected = UP_AND_DOWN[np.sum(external[:, None] >= EDGES - 1e-15, axis=1)] / 8.0
    np.testing.assert_allclose(looks.of_pairs(PAIRS), expected)
    np.testing.assert_array_equal(looks.probabilities()[tuple(PAIRS.T)], looks.of_pairs(PAIRS))


def test_without_looks_every_pair_has_the_same_share():
    looks = WeighedAppearance(NoExternalModel(FRAMES), Evidence.nothing(2))
    np.testing.assert_array_equal(looks.of_pairs(PAIRS), 1.0)
    assert len(yielded(looks, np.ones((len(STARTS) - 1, len(STARTS) - 1)))[0]) == len(PAIRS)


def test_pairs_that_look_wholly_unlike_are_yielded_where_looks_are_worth_nothing():
    rng = np.random.default_rng(0)
    matrix = np.triu((rng.random((FRAMES, FRAMES)) < 0.5) * rng.random((FRAMES, FRAMES)), 1)
    looks = FixedProbabilities(matrix + matrix.T)
    prior = rng.dirichlet([0.7, 0.3], len(PAIRS))
    looks = WeighedAppearance(looks, Evidence.learn(looks.of_pairs(PAIRS), np.ones(len(PAIRS)), prior))
    shares = looks.of_pairs(PAIRS)
    for level in np.unique(shares):
        least = np.full((len(STARTS) - 1, len(STARTS) - 1), level)
        assert reaching(looks, least) <= {tuple(pair) for pair in yielded(looks, least)[0].tolist()}
