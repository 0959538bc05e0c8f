"""What can be computed again: arrays in files, by name."""

from __future__ import annotations

import shutil
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError
from smalti.interchange.regular_files import kind_of
from smalti.registration.keypoints import Keypoints

FRAMES_IN_MEMORY = 1000


class Cache:
    """A folder of arrays. It may be deleted at any time; what is missing is computed again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._keypoints: OrderedDict[int, Keypoints] = OrderedDict()

    def has_keypoints(self, frame: int) -> bool:
        """Tell whether the keypoints of a frame are there."""
        return kind_of(self._keypoints_file(frame), OutputError) == "file"

    def keypoints(self, frame: int) -> Keypoints:
        """Return the keypoints of a frame, which must be there; the latest used stay in memory."""
        if frame in self._keypoints:
            self._keypoints.move_to_end(frame)
            return self._keypoints[frame]
        arrays = self._load(self._keypoints_file(frame))
        found = Keypoints(arrays["points"], arrays["descriptors"], arrays["strengths"])
        self._remember(frame, found)
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

    def array(self, name: str) -> NDArray[np.float64] | None:
        """Return an array of that name, or None if there is none."""
        path = self.folder / f"{name}.npz"
        return self._load(path)["values"] if kind_of(path, OutputError) == "file" else None

    def keep_array(self, name: str, values: NDArray[np.float64]) -> None:
        """Keep an array under a name."""
        self._save(self.folder / f"{name}.npz", values=values)

    def clear(self) -> None:
        """Delete everything."""
        self._keypoints.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _keypoints_file(self, frame: int) -> Path:
        return self.folder / "keypoints" / f"{frame:06d}.npz"

    def _remember(self, frame: int, keypoints: Keypoints) -> None:
        self._keypoints[frame] = keypoints
        if len(self._keypoints) > FRAMES_IN_MEMORY:
            self._keypoints.popitem(last=False)

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

    def _load(self, path: Path) -> dict[str, NDArray[Any]]:
        try:
            # Opened here: given a name, numpy leaves a file open that is no archive.
            with path.open("rb") as file, np.load(file) as arrays:
                return dict(arrays)
        except (OSError, EOFError, ValueError, RuntimeError, BadZipFile):
            raise OutputError(f"{path}: is damaged; delete the folder {self.folder} and build again") from None
