"""What a source of frames offers where they are made, not read from files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray


class MadeFrames(ABC):
    """Frames made on demand: no file is behind them, and nothing is wrong with what is made on purpose."""

    path = Path("synthetic")
    scale = 1.0
    warnings: tuple[str, ...] = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Of a frame, in pixels."""

    @property
    @abstractmethod
    def height(self) -> int:
        """Of a frame, in pixels."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render frame n: (height, width, 3), RGB."""

    def read(self, index: int) -> NDArray[np.uint8]:
        """Render the frame of that number."""
        return self.frame(index)

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Render frames one after the other."""
        for index in indices:
            yield index, self.frame(index)

    def close(self) -> None:  # noqa: B027  # a source has to have it
        """Do nothing: no file is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
