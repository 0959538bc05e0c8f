"""What looks are worth: likelihood ratios that are learned from pairs whose kinds are known with some probability."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.suggestion.appearance_evidence import STRONGEST, Evidence, update

PAIRS = 3000
OVERLAPPING, BETWEEN, APART = range(3)


def kinds_of(rng):
    """How probable each kind of some pairs is (n, 3), a tenth to overlap, and what they then are (n,)."""
    prior = rng.dirichlet([0.1, 0.1, 0.8], size=PAIRS)
    truth = (rng.random((PAIRS, 1)) > np.cumsum(prior, axis=1)[:, :2]).sum(axis=1)
    return truth, prior


def learned(external, prior):
    return Evidence.learn(external, np.ones(PAIRS), prior)


def test_looks_that_know_nothing_have_ratios_near_one():
    rng = np.random.default_rng(1)
    _, prior = kinds_of(rng)
    ratios = learned(rng.random(PAIRS), prior).ratios
    # A twelfth of 300 overlapping pairs, some 25, fall in each step: they are off by a fifth, seldom by three.
    assert len(ratios) == 12
    assert np.abs(np.log(ratios[:, OVERLAPPING])).max() < np.log(1.9)
    assert np.abs(np.log(ratios[:, OVERLAPPING])).mean() < 0.25


def test_looks_that_tell_all_have_large_ratios():
    rng = np.random.default_rng(2)
    truth, prior = kinds_of(rng)
    external = np.where(truth == OVERLAPPING, rng.uniform(0.7, 1.0, PAIRS), rng.uniform(0.0, 0.5, PAIRS))
    evidence = learned(external, prior)
    assert evidence.of(np.array([0.9]))[0, OVERLAPPING] > 50.0
    assert evidence.of(np.array([0.2]))[0, OVERLAPPING] < 0.1


def test_looks_that_are_sure_of_as_many_wrong_pairs_as_right_ones_are_worth_as_much_as_that_is():
    rng = np.random.default_rng(3)
    truth, prior = kinds_of(rng)
    overlapping, apart = (np.flatnonzero(truth == kind) for kind in (OVERLAPPING, APART))
    external = np.full(PAIRS, 0.01)
    external[overlapping] = external[rng.choice(apart, len(overlapping), replace=False)] = 0.999
    expected = len(apart) / len(overlapping)  # all of the one kind, so many times fewer of the other
    found = learned(external, prior).of(np.array([0.999]))[0, OVERLAPPING]
    assert found == pytest.approx(expected, rel=0.2)


def test_a_kind_between_has_a_ratio_of_its_own():
    rng = np.random.default_rng(4)
    truth, prior = kinds_of(rng)
    external = rng.uniform(0.0, 0.3, PAIRS) + np.choose(truth, [0.7, 0.4, 0.0])
    evidence = learned(external, prior)
    middle, high = evidence.of(np.array([0.55, 0.85]))
    assert middle[BETWEEN] > 5.0 > middle[OVERLAPPING]
    assert high[OVERLAPPING] > 5.0 > high[BETWEEN]


def test_pairs_that_stand_for_many_count_for_as_many():
    # Of the pairs that are apart, those that look alike are few but stand for ten each.
    prior = np.repeat([[0.99, 0.0, 0.01], [0.0, 0.01, 0.99]], [100, 1000], axis=0)
    prior[0, 1] = 0.01
    external = np.repeat([0.9, 0.9, 0.1], [100, 100, 900])
    weight = np.ones(1100)
    alike = Evidence.learn(external, weight, prior).of(np.array([0.9]))[0, OVERLAPPING]
    weight[100:200] = 10.0
    heavier = Evidence.learn(external, weight, prior).of(np.array([0.9]))[0, OVERLAPPING]
    assert alike == pytest.approx(10.0, rel=0.15)
    assert heavier == pytest.approx(1.9, rel=0.15)


def test_nothing_is_learned_where_a_kind_cannot_be():
    prior = np.tile([0.5, 0.5, 0.0], (4, 1))
    evidence = Evidence.learn(np.array([0.1, 0.4, 0.6, 0.9]), np.ones(4), prior)
    np.testing.assert_array_equal(evidence.of(np.array([0.0, 0.5, 1.0])), 1.0)


def test_no_evidence_is_stronger_than_the_strongest_nor_any_of_the_last_kind():
    truth, _ = kinds_of(np.random.default_rng(5))
    ratios = learned((truth == OVERLAPPING) + 0.0, np.eye(3)[truth]).ratios
    assert ratios.max() <= STRONGEST
    assert ratios.min() >= 1.0 / STRONGEST
    np.testing.assert_array_equal(ratios[:, -1], 1.0)


def test_an_update_is_bayes_rule():
    found = update(np.array([[0.2, 0.3, 0.5]]), np.array([[4.0, 2.0, 1.0]]))
    np.testing.assert_allclose(found, [[0.8 / 1.9, 0.6 / 1.9, 0.5 / 1.9]], rtol=1e-12)
