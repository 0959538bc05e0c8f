"""Frames in files, rendered by Smalti in a process of its own: python files.py JOB.json OUT.tif [COUNT].

With COUNT only so many frames are rendered: enough to compile everything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError
from smalti.rendering.mosaic import Mosaic


class FrameFiles:
    """Decodes frames with the same code as the peers."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield frames by their numbers."""
        for index in indices:
            image = cv2.imread(self._files[index], cv2.IMREAD_COLOR_RGB)
            if image is None:
                raise InputError(f"{self._files[index]}: cannot be read; give an image file")
            yield index, np.asarray(image, np.uint8)


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    count = int(sys.argv[3]) if len(sys.argv) > 3 else len(job["files"])
    maps = {n: np.array(rows) for n, rows in enumerate(job["mosaic_from_frame"][:count])}
    Mosaic(FrameFiles(job["files"]), maps, *job["frame_size"]).save(sys.argv[2], blend="multiband")


if __name__ == "__main__":
    main()
