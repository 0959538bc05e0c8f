"""Which links others confirm, against removing each of them in turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.engine.link_confirmation import are_confirmed, contested_links, unconfirmed_frames

FRAMES = 9


def numbers(pairs):
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def parts_of(ends):
    return connected_components(coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(FRAMES, FRAMES)), directed=False)


pairs = st.tuples(st.integers(0, FRAMES - 1), st.integers(0, FRAMES - 1)).filter(lambda pair: pair[0] < pair[1])


@given(st.sets(pairs, max_size=20))
def test_a_link_is_confirmed_if_its_frames_stay_joined_without_it(links):
    ends = numbers(links)
    joined, _ = parts_of(ends)
    without = [parts_of(np.delete(ends, n, axis=0))[0] for n in range(len(ends))]
    np.testing.assert_array_equal(are_confirmed(FRAMES, ends), np.array(without, dtype=int) == joined)


@given(st.sets(pairs, max_size=20))
def test_frames_that_do_not_hang_are_joined_by_confirmed_links(links):
    ends = numbers(links)
    confirmed, (_, part) = are_confirmed(FRAMES, ends), parts_of(ends)
    _, group = parts_of(ends[confirmed])
    pooled = ~unconfirmed_frames(FRAMES, ends)
    for number in range(part.max() + 1):
        assert len(set(group[pooled & (part == number)])) == 1
        largest = np.bincount(group[part == number]).max()
        assert np.sum(pooled & (part == number)) == largest


def test_of_a_chain_without_loops_all_frames_hang_but_one():
    chain = numbers((n, n + 1) for n in range(FRAMES - 1))
    assert not are_confirmed(FRAMES, chain).any()
    assert np.sum(unconfirmed_frames(FRAMES, chain)) == FRAMES - 1


@pytest.mark.parametrize("links", [[], [(0, 1)]])
def test_few_links_are_no_problem(links):
    assert len(are_confirmed(FRAMES, numbers(links))) == len(links)
    assert len(unconfirmed_frames(FRAMES, numbers(links))) == FRAMES


TRIANGLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5)]
"""Frames 3 to 5 confirm each other; 0, 1 and 2 hang on one link each."""


def contested(rejected):
    is_so = contested_links(FRAMES, numbers(TRIANGLE), numbers(rejected))
    return [pair for pair, one in zip(TRIANGLE, is_so, strict=True) if one]


def test_unconfirmed_links_between_the_frames_of_a_rejected_one_are_contested():
    assert contested([(0, 2)]) == [(0, 1), (1, 2)]


def test_a_link_that_confirmed_ones_contradict_contests_nothing():
    assert contested([(3, 5)]) == []


def test_a_rejected_link_says_little_about_a_long_row_of_links():
    assert contested([(0, 5)]) == []


def test_confirmed_links_are_never_contested():
    assert contested([(2, 5)]) == [(2, 3)]


def test_without_rejected_links_nothing_is_contested():
    assert contested([]) == []
