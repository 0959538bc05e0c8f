"""Engine numbers and source numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from smalti.frame_numbers import FrameNumbers
from smalti.records import Pair

NUMBERS = FrameNumbers((2, 3, 7, 20))
used = st.sets(st.integers(0, 10_000), min_size=2, max_size=50).map(
    lambda numbers: FrameNumbers(tuple(sorted(numbers)))
)


def test_an_engine_frame_is_the_nth_usable_frame_of_the_source():
    assert [NUMBERS.in_source(frame) for frame in range(len(NUMBERS))] == [2, 3, 7, 20]
    assert list(NUMBERS) == [2, 3, 7, 20]
    assert [NUMBERS.in_engine(number) for number in NUMBERS] == [0, 1, 2, 3]


def test_pairs_are_translated_both_ways():
    assert NUMBERS.pair_in_source(Pair(1, 3)) == Pair(3, 20)
    assert NUMBERS.pair_in_engine(Pair(3, 20)) == Pair(1, 3)


def test_a_pair_is_known_if_both_its_frames_are():
    assert NUMBERS.knows(Pair(2, 20))
    assert not NUMBERS.knows(Pair(2, 4))
    assert not NUMBERS.knows(Pair(0, 2))
    assert 7 in NUMBERS
    assert 1 not in NUMBERS


def test_a_frame_that_the_engine_does_not_know_has_no_engine_number():
    with pytest.raises(KeyError):
        NUMBERS.in_engine(4)
    with pytest.raises(KeyError):
        NUMBERS.pair_in_engine(Pair(2, 4))


def test_source_numbers_out_of_order_are_refused():
    with pytest.raises(AssertionError, match="ascending"):
        FrameNumbers((3, 2))


@given(used, st.data())
def test_there_and_back_is_the_same_pair(numbers, data):
    i, j = sorted(data.draw(st.sets(st.integers(0, len(numbers) - 1), min_size=2, max_size=2)))
    outer = numbers.pair_in_source(Pair(i, j))
    assert numbers.knows(outer)
    assert numbers.pair_in_engine(outer) == Pair(i, j)


def test_equal_numbers_are_equal():
    assert FrameNumbers((1, 2)) == FrameNumbers((1, 2)) != FrameNumbers((1, 3))
