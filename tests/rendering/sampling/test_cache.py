from __future__ import annotations

import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.errors import InputError, OutputError
from smalti.rendering.frame_cache import FrameCache, FramePyramid, read_exactly
from tests.rendering.scene import Frames

SHAPE = (4, 6, 3)
BYTES = 4 * 6 * 3 + 2 * 3 * 3  # of a frame and its half


def frames(count: int) -> Frames:
    """Frame 10 + k is full of k."""
    return Frames({10 + k: np.full(SHAPE, k, dtype=np.uint8) for k in range(count)})


def make(place: int, frame: np.ndarray) -> FramePyramid:
    assert (frame == place).all()
    return FramePyramid.of(frame, np.eye(3), 2)


def cache_of(reader: Frames, folder: Path, budget: int) -> FrameCache:
    return FrameCache(reader, sorted(reader.frames), SHAPE, make, folder, budget * BYTES + BYTES - 1)


def always(place: int) -> bool:
    return True


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(st.sets(st.integers(0, 9), min_size=1), max_size=10), budget=st.integers(0, 12))
def test_every_call_gives_its_frames_in_order_and_each_is_decoded_once_whatever_the_room(calls, budget):
    reader = frames(10)
    with tempfile.TemporaryDirectory() as folder:
        cache = cache_of(reader, Path(folder), budget)
        for wanted in calls:
            given_places = []
            for place, frame in cache.read_many(wanted, always):
                assert len(frame.levels) == 2
                assert all((level == place).all() for level in frame.levels)
                assert sum(kept.nbytes for kept in cache._in_memory.values()) == cache._bytes <= budget * BYTES
                given_places.append(place)
            assert given_places == sorted(wanted)
    assert sorted(reader.decoded) == sorted({10 + place for wanted in calls for place in wanted})
    assert all(call == sorted(call) for call in reader.calls)


def test_a_frame_that_is_wanted_no_more_is_kept_neither_in_memory_nor_on_disk(tmp_path):
    reader = frames(4)
    cache = cache_of(reader, tmp_path, 1)
    list(cache.read_many([0, 1, 2, 3], lambda place: place == 2))
    assert list(cache._in_memory) == [2]
    assert not cache._on_disk
    list(cache.read_many([0, 2], lambda place: False))
    assert reader.decoded == [10, 11, 12, 13, 10]


def test_a_frame_still_needed_does_not_make_room_for_one_read_before_it(tmp_path):
    reader = frames(10)
    cache = cache_of(reader, tmp_path, 2)
    list(cache.read_many([8, 9], always))
    for place, _ in cache.read_many([1, 2, 3, 8, 9], always):
        if place < 8:
            assert {8, 9} <= set(cache._in_memory)
    assert len(reader.decoded) == 5


def test_places_on_disk_are_used_again(tmp_path):
    cache = cache_of(frames(3), tmp_path, 0)
    for _ in range(5):
        list(cache.read_many([0, 1, 2], always))
    assert cache._spool_end == 3 * np.prod(SHAPE)


def test_nothing_is_left_in_the_folder(tmp_path):
    cache = cache_of(frames(3), tmp_path, 0)
    list(cache.read_many([0, 1, 2], always))
    assert list(tmp_path.iterdir()) == []


def limited(size: int):
    """Let no file grow beyond that size."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    return limits


def test_a_disk_without_room_is_one_line_that_names_the_folder(tmp_path):
    cache = cache_of(frames(3), tmp_path, 0)
    limits = limited(int(np.prod(SHAPE)))
    try:
        with pytest.raises(OutputError, match=rf"^{tmp_path}: cannot be written \(File too large\)"):
            list(cache.read_many([0, 1], always))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_disk_that_takes_half_a_frame_is_refused_too(tmp_path):
    cache = cache_of(frames(3), tmp_path, 0)
    limits = limited(int(np.prod(SHAPE)) * 3 // 2)
    try:
        with pytest.raises(OutputError, match="cannot be written"):
            list(cache.read_many([0, 1], always))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_reader_that_skips_or_ends_early_is_refused_by_the_frame_number():
    class Skips:
        def read_many(self, indices):
            return ((k, np.zeros(SHAPE, np.uint8)) for k in indices if k != 4)

    with pytest.raises(InputError, match=r"^frame 4: the reader gave frame 5 instead"):
        list(read_exactly(Skips(), [3, 4, 5], SHAPE))
    with pytest.raises(InputError, match=r"^frame 4: the reader gave nothing instead"):
        list(read_exactly(Skips(), [3, 4], SHAPE))


@pytest.mark.parametrize("frame", [np.zeros((6, 4, 3), np.uint8), np.zeros((4, 6), np.uint8), np.zeros(SHAPE)])
def test_a_frame_of_another_size_or_kind_is_refused(frame):
    with pytest.raises(InputError, match=r"^frame 0: .*expected uint8 of \(4, 6, 3\)"):
        list(read_exactly(Frames({0: frame}), [0], SHAPE))
