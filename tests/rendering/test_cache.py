from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalti.errors import InputError
from smalti.rendering.cache import FrameCache
from tests.rendering.scene import Frames

BYTES = 2 * 3 * 3  # of a frame


def frames(count: int) -> Frames:
    return Frames({k: np.full((2, 3, 3), k, dtype=np.uint8) for k in range(count)})


@given(
    calls=st.lists(st.sets(st.integers(0, 9), min_size=1), max_size=12),
    room=st.integers(0, 12),
)
def test_every_call_gives_its_frames_in_order_and_keeps_no_more_than_there_is_room_for(calls, room):
    cache = FrameCache(frames(10), 3, 2, room * BYTES + BYTES - 1)
    for wanted in calls:
        given_frames = []
        for number, frame in cache.read_many(wanted):
            assert (frame == number).all()
            assert sum(kept.nbytes for kept in cache._kept.values()) <= room * BYTES
            given_frames.append(number)
        assert given_frames == sorted(wanted)


def test_a_kept_frame_is_not_decoded_again():
    reader = frames(10)
    cache = FrameCache(reader, 3, 2, 6 * BYTES)
    for wanted in ([0, 1, 2, 3], [2, 3, 4, 5], [0, 5]):
        list(cache.read_many(wanted))
    assert reader.decoded == [0, 1, 2, 3, 4, 5]


def test_the_frame_used_longest_ago_makes_room():
    reader = frames(10)
    cache = FrameCache(reader, 3, 2, 3 * BYTES)
    for wanted in ([0], [1], [2], [0], [3], [0, 2, 3]):
        list(cache.read_many(wanted))
    assert reader.decoded == [0, 1, 2, 3]


def test_a_frame_still_needed_does_not_make_room_for_one_read_before_it():
    reader = frames(10)
    cache = FrameCache(reader, 3, 2, 2 * BYTES)
    list(cache.read_many([8, 9]))
    list(cache.read_many([1, 2, 3, 8, 9]))
    assert reader.decoded == [8, 9, 1, 2, 3]


def test_a_reader_that_skips_or_ends_early_is_refused_by_the_frame_number():
    class Skips:
        def read_many(self, indices):
            return ((k, np.zeros((2, 3, 3), np.uint8)) for k in indices if k != 4)

    with pytest.raises(InputError, match="frame 4: the reader gave frame 5"):
        list(FrameCache(Skips(), 3, 2, 1000).read_many([3, 4, 5]))
    with pytest.raises(InputError, match="frame 4: the reader gave nothing"):
        list(FrameCache(Skips(), 3, 2, 1000).read_many([3, 4]))


@pytest.mark.parametrize("frame", [np.zeros((3, 2, 3), np.uint8), np.zeros((2, 3), np.uint8), np.zeros((2, 3, 3))])
def test_a_frame_of_another_size_or_kind_is_refused(frame):
    with pytest.raises(InputError, match=r"^frame 0: .*expected uint8 of \(2, 3, 3\)"):
        list(FrameCache(Frames({0: frame}), 3, 2, 1000).read_many([0]))
