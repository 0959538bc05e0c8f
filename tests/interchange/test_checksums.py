"""Checksums notice every change, and digests of files are those of all their bytes."""

from __future__ import annotations

import hashlib

import pytest

from smalti.errors import InputError
from smalti.interchange import checksums
from smalti.interchange.checksums import SEAL_BYTES, GradualDigests, file_digest, is_seal, row_checksum, seal, unseal


def test_rows_that_differ_in_any_cell_or_kind_have_different_checksums():
    rows = [(), (None,), ("",), (b"",), (0,), (0.0,), ("0",), ("ab", "c"), ("a", "bc"), ("a", "b", "c"), (1,), (1.0,)]
    assert len({row_checksum(row) for row in rows}) == len(rows)


def test_a_row_after_another_one_has_another_checksum():
    assert row_checksum((1,), row_checksum((0,))) != row_checksum((1,))


def test_zero_has_no_sign_because_the_database_keeps_none():
    assert row_checksum((-0.0,)) == row_checksum((0.0,))


@pytest.mark.parametrize("content", [b"", b"some bytes"])
def test_whatever_byte_of_something_sealed_is_changed_it_is_noticed(content):
    sealed = seal(content)
    assert unseal(sealed) == content
    assert is_seal(sealed[-SEAL_BYTES:])
    for at in range(len(sealed)):
        assert unseal(sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]) is None
        assert unseal(sealed[:at]) is None


def test_digests_computed_in_steps_are_those_of_the_whole_files(tmp_path, monkeypatch):
    monkeypatch.setattr(checksums, "_CHUNK", 100)
    contents = [bytes([n]) * size for n, size in enumerate((0, 1, 99, 100, 101, 1000))]
    paths = [tmp_path / str(n) for n in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    expected = [hashlib.blake2b(content, digest_size=16).hexdigest() for content in contents]
    digests = GradualDigests(paths)
    for step in range(8):
        digests.advance(step / 7)
    assert digests.finish() == expected
    assert [file_digest(path) for path in paths] == expected


def test_no_more_is_read_than_the_share_that_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(checksums, "_CHUNK", 100)
    (tmp_path / "file").write_bytes(bytes(1000))
    digests = GradualDigests([tmp_path / "file"])
    digests.advance(0.45)
    assert digests._done == 500


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="gone: cannot be read"):
        file_digest(tmp_path / "gone")
