"""What can be computed again: arrays in files, by name. Each has a checksum, that of its archive."""

from __future__ import annotations

import io
import shutil
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError
from smalti.interchange.regular_files import kind_of
from smalti.registration.keypoints import Keypoints

BYTES_IN_MEMORY = 256_000_000
"""Keypoints that stay in memory: of 1,800 small frames, or of 450 large ones."""


class Cache:
    """A folder of arrays. It may be deleted at any time; what is missing or damaged is computed again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.say: Callable[[str], None] = lambda message: None
        """Told of damaged files."""
        self.find_again: Callable[[int], Keypoints] | None = None
        """Finds the keypoints of a frame whose file is damaged or was deleted meanwhile."""
        self._keypoints: OrderedDict[int, Keypoints] = OrderedDict()
        self._bytes = 0

    def has_keypoints(self, frame: int) -> bool:
        """Tell whether the keypoints of a frame are there."""
        return kind_of(self._keypoints_file(frame), OutputError) == "file"

    def keypoints(self, frame: int) -> Keypoints:
        """Return the keypoints of a frame, which must be there; the latest used stay in memory."""
        if frame in self._keypoints:
            self._keypoints.move_to_end(frame)
            return self._keypoints[frame]
        path = self._keypoints_file(frame)
        arrays = self._load(path)
        if arrays is not None:
            found = Keypoints(arrays["points"], arrays["descriptors"], arrays["strengths"])
            self._remember(frame, found)
            return found
        if self.find_again is None:
            raise OutputError(f"{path}: is damaged; run the same smalti build command again")
        found = self.find_again(frame)
        self.keep_keypoints(frame, found)
        return found

    def keep_keypoints(self, frame: int, keypoints: Keypoints) -> None:
        """Keep the keypoints of a frame."""
        self._save(
            self._keypoints_file(frame),
            points=keypoints.points,
            descriptors=keypoints.descriptors,
            strengths=keypoints.strengths,
        )
        self._remember(frame, keypoints)

    def array(self, name: str) -> NDArray[Any] | None:
        """Return an array of that name, or None if there is none or it is damaged."""
        path = self.folder / f"{name}.npz"
        arrays = self._load(path) if kind_of(path, OutputError) == "file" else None
        return None if arrays is None else arrays["values"]

    def keep_array(self, name: str, values: NDArray[Any]) -> None:
        """Keep an array under a name."""
        self._save(self.folder / f"{name}.npz", values=values)

    def clear(self) -> None:
        """Delete everything."""
        self._keypoints.clear()
        self._bytes = 0
        shutil.rmtree(self.folder, ignore_errors=True)

    def _keypoints_file(self, frame: int) -> Path:
        return self.folder / "keypoints" / f"{frame:06d}.npz"

    def _remember(self, frame: int, keypoints: Keypoints) -> None:
        if frame in self._keypoints:
            self._bytes -= _size(self._keypoints.pop(frame))
        self._keypoints[frame] = keypoints
        self._bytes += _size(keypoints)
        while self._bytes > BYTES_IN_MEMORY and len(self._keypoints) > 2:  # a pair is always there
            self._bytes -= _size(self._keypoints.popitem(last=False)[1])

    def _save(self, path: Path, **arrays: NDArray[Any]) -> None:
        # Renamed into place: a file that is there is whole.
        unfinished = path.with_suffix(".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            unfinished.replace(path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise OutputError(
                f"{path}: cannot be written ({error.strerror}); free disk space or check the permissions"
            ) from None

    def _load(self, path: Path) -> dict[str, NDArray[Any]] | None:
        try:
            arrays = read_arrays(path)
            if path.parent.name == "keypoints":
                _check_keypoints(arrays)
            elif arrays.keys() != {"values"}:
                raise ValueError("other arrays")
        except (OSError, ValueError):
            self.say(f"{path}: is damaged; it is computed again")
            return None
        return arrays


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file by name; raise ValueError where it is damaged. No more is read than the file holds."""
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            if any(info.compress_type != ZIP_STORED for info in archive.infolist()):
                raise ValueError("compressed")
            # The archive compares the checksum of each array.
            return {name.removesuffix(".npy"): _read_array(archive.read(name)) for name in archive.namelist()}
    except (EOFError, RuntimeError, NotImplementedError, BadZipFile) as error:
        raise ValueError(str(error)) from None


def _size(keypoints: Keypoints) -> int:
    return keypoints.points.nbytes + keypoints.descriptors.nbytes + keypoints.strengths.nbytes


def _read_array(content: bytes) -> NDArray[Any]:
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("another format")
    shape, is_column_first, dtype = np.lib.format.read_array_header_1_0(file)
    # A small file may claim to hold a huge array.
    if dtype.hasobject or prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError("another size")
    order = "F" if is_column_first else "C"
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order=order).copy()  # type: ignore[call-overload, no-any-return]


def _check_keypoints(arrays: dict[str, NDArray[Any]]) -> None:
    # Those of learned keypoints have signs.
    kind = np.int8 if arrays.get("descriptors", np.empty(0)).dtype == np.int8 else np.uint8
    expected = {"points": ((2,), np.float32), "descriptors": ((128,), kind), "strengths": ((), np.float32)}
    if arrays.keys() != expected.keys():
        raise ValueError("other arrays")
    for name, (shape, dtype) in expected.items():
        if arrays[name].shape != (len(arrays["points"]), *shape) or arrays[name].dtype != dtype:
            raise ValueError("other arrays")
