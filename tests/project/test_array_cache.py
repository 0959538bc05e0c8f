"""The cache: whole files or none, deletable at any time, and clear about damage."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.project import array_cache as cache_module
from smalti.project.array_cache import Cache
from smalti.registration.keypoints import NO_KEYPOINTS, Keypoints

VALUES = np.random.default_rng(1).normal(size=(7, 3))


def some_keypoints(seed: int, count: int = 20) -> Keypoints:
    rng = np.random.default_rng(seed)
    return Keypoints(
        rng.normal(size=(count, 2)).astype(np.float32),
        rng.integers(0, 256, (count, 128), dtype=np.uint8),
        rng.random(count).astype(np.float32),
    )


def assert_same(one: Keypoints, other: Keypoints) -> None:
    for name in ("points", "descriptors", "strengths"):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def fresh(cache: Cache) -> Cache:
    """One that remembers nothing of its own."""
    return Cache(cache.folder)


def files(cache: Cache) -> list[Path]:
    return [path for path in cache.folder.rglob("*") if path.is_file()]


def test_keypoints_come_back_from_disk_to_the_last_bit(cache):
    cache.keep_keypoints(3, some_keypoints(3))
    assert_same(fresh(cache).keypoints(3), some_keypoints(3))


def test_no_keypoints_come_back_as_none(cache):
    cache.keep_keypoints(0, NO_KEYPOINTS)
    assert_same(fresh(cache).keypoints(0), NO_KEYPOINTS)


def test_it_knows_which_frames_it_has(cache):
    assert not cache.has_keypoints(1)
    cache.keep_keypoints(1, some_keypoints(1))
    assert cache.has_keypoints(1)
    assert fresh(cache).has_keypoints(1)
    assert not cache.has_keypoints(11)


def test_frames_are_not_mixed_up(cache):
    for frame in (0, 1, 10, 1_000_000, 1_000_001):
        cache.keep_keypoints(frame, some_keypoints(frame))
    again = fresh(cache)
    for frame in (1_000_001, 10, 0, 1_000_000, 1):
        assert_same(again.keypoints(frame), some_keypoints(frame))


def test_keeping_again_replaces(cache):
    cache.keep_keypoints(0, some_keypoints(1))
    cache.keep_keypoints(0, some_keypoints(2, count=5))
    assert_same(cache.keypoints(0), some_keypoints(2, count=5))
    assert_same(fresh(cache).keypoints(0), some_keypoints(2, count=5))


def test_only_the_latest_used_stay_in_memory(cache, monkeypatch):
    monkeypatch.setattr(cache_module, "BYTES_IN_MEMORY", 2 * 20 * (2 * 4 + 128 + 4))  # two frames
    for frame in (0, 1):
        cache.keep_keypoints(frame, some_keypoints(frame))
    zero, one = cache.keypoints(0), cache.keypoints(1)
    assert cache.keypoints(0) is zero
    cache.keep_keypoints(2, some_keypoints(2))  # 1 is the one used longest ago
    assert cache.keypoints(0) is zero
    assert cache.keypoints(1) is not one
    assert_same(cache.keypoints(1), one)


def test_arrays_come_back_and_a_missing_one_is_none(cache):
    assert cache.array("signatures") is None
    cache.keep_array("signatures", VALUES)
    np.testing.assert_array_equal(fresh(cache).array("signatures"), VALUES)
    assert cache.array("other") is None


def test_the_folder_may_be_deleted_at_any_time(cache):
    cache.keep_keypoints(0, some_keypoints(0))
    cache.keep_array("signatures", VALUES)
    cache.clear()
    assert not cache.folder.exists()
    assert not cache.has_keypoints(0)
    assert cache.array("signatures") is None
    cache.clear()
    cache.keep_keypoints(0, some_keypoints(5))
    assert_same(fresh(cache).keypoints(0), some_keypoints(5))


def test_clearing_forgets_what_is_in_memory(cache):
    cache.keep_keypoints(0, some_keypoints(0))
    cache.clear()
    with pytest.raises(OutputError):
        cache.keypoints(0)


def test_nothing_but_finished_files_stays(cache):
    cache.keep_keypoints(0, some_keypoints(0))
    cache.keep_array("signatures", VALUES)
    assert {path.suffix for path in files(cache)} == {".npz"}


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(cache, monkeypatch):
    cache.keep_array("signatures", VALUES)

    def run_out_of_space(file, **_arrays):
        file.write(b"half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez", run_out_of_space)
    with pytest.raises(
        OutputError, match=r"signatures\.npz: cannot be written \(No space left on device\); free disk space"
    ):
        cache.keep_array("signatures", 2 * VALUES)
    monkeypatch.undo()
    assert len(files(cache)) == 1
    np.testing.assert_array_equal(fresh(cache).array("signatures"), VALUES)


def test_keypoints_that_could_not_be_written_are_not_remembered(cache, monkeypatch):
    def fail(*_arguments, **_arrays):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OutputError):
        cache.keep_keypoints(0, some_keypoints(0))
    assert not cache.has_keypoints(0)
    with pytest.raises(OutputError):
        cache.keypoints(0)


def cut_short(cache: Cache, kept: int) -> Path:
    cache.keep_array("signatures", VALUES)
    path = cache.folder / "signatures.npz"
    path.write_bytes(path.read_bytes()[:kept])
    return path


@pytest.fixture
def told(cache) -> list[str]:
    lines: list[str] = []
    cache.say = lines.append
    return lines


@pytest.mark.parametrize("kept", [0, 4, 100, -30], ids=["empty as a power cut leaves it", "head", "more", "no end"])
def test_a_damaged_array_counts_as_missing_and_one_line_names_it(cache, told, kept):
    path = cut_short(cache, kept)
    assert cache.array("signatures") is None
    assert told == [f"{path}: is damaged; it is computed again"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at the open files of Linux")
def test_a_damaged_file_is_closed(cache):
    path = cut_short(cache, 100)
    assert cache.array("signatures") is None
    assert path not in [Path(os.path.realpath(number)) for number in Path("/proc/self/fd").iterdir()]


def test_a_changed_byte_among_the_numbers_is_noticed(cache):
    cache.keep_array("signatures", VALUES)
    path = cache.folder / "signatures.npz"
    content = bytearray(path.read_bytes())
    at = content.find(VALUES.tobytes()) + 10
    content[at] ^= 0xFF
    path.write_bytes(content)
    assert cache.array("signatures") is None


def test_whatever_byte_is_changed_nothing_wrong_is_returned(cache):
    cache.keep_array("signatures", VALUES)
    path = cache.folder / "signatures.npz"
    whole = path.read_bytes()
    noticed = 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        found = cache.array("signatures")
        if found is None:
            noticed += 1
        else:
            np.testing.assert_array_equal(found, VALUES)
    assert noticed > len(VALUES.tobytes())


def test_damaged_keypoints_are_found_again_and_kept(cache, told):
    cache.keep_keypoints(3, some_keypoints(3))
    path = cache.folder / "keypoints" / "000003.npz"
    path.write_bytes(path.read_bytes()[:-40])
    again = fresh(cache)
    again.say, again.find_again = told.append, some_keypoints
    assert_same(again.keypoints(3), some_keypoints(3))
    assert told == [f"{path}: is damaged; it is computed again"]
    assert_same(fresh(cache).keypoints(3), some_keypoints(3))


@pytest.mark.parametrize(
    "arrays",
    [{"points": VALUES}, {name: np.zeros((3, 3, 3), np.float32) for name in ("points", "descriptors", "strengths")}],
    ids=["some missing", "other shapes"],
)
def test_a_file_that_holds_no_keypoints_is_damaged(cache, told, arrays):
    cache._save(cache.folder / "keypoints" / "000003.npz", **arrays)
    cache.find_again = some_keypoints
    assert_same(cache.keypoints(3), some_keypoints(3))
    assert len(told) == 1


def test_a_small_file_that_claims_a_huge_array_is_damaged_and_takes_no_memory(cache, told):
    cache.keep_array("signatures", VALUES)
    path = cache.folder / "signatures.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**3)})
    with ZipFile(path, "w") as archive:
        archive.writestr("values.npy", header.getvalue() + bytes(800))
    assert cache.array("signatures") is None
    assert len(told) == 1


def test_a_compressed_archive_which_may_be_a_bomb_is_not_unpacked(cache, told):
    cache.folder.mkdir()
    np.savez_compressed(cache.folder / "signatures.npz", values=np.zeros(10**6))
    assert cache.array("signatures") is None
    assert len(told) == 1


def test_a_file_in_the_place_of_the_folder_is_an_error_in_one_line(cache):
    cache.folder.write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        cache.keep_array("signatures", VALUES)
