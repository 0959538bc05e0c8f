"""The two ways to count frames: the engine counts usable frames, everything else counts frames of the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from smalti.records import Pair


@dataclass(frozen=True)
class FrameNumbers:
    """Translates between engine numbers, 0 to n - 1, and source numbers. It lists the source numbers in order."""

    used: tuple[int, ...]  # source numbers of the usable frames, ascending

    def __post_init__(self) -> None:
        assert all(one < following for one, following in zip(self.used, self.used[1:], strict=False)), "ascending"

    def __len__(self) -> int:
        return len(self.used)

    def __iter__(self) -> Iterator[int]:
        return iter(self.used)

    def __contains__(self, number: object) -> bool:
        """Tell whether the engine knows a frame of the source."""
        return number in self._in_engine

    def in_source(self, frame: int) -> int:
        """Return the source number of an engine frame."""
        return self.used[frame]

    def in_engine(self, number: int) -> int:
        """Return the engine number of a source frame, which the engine must know."""
        return self._in_engine[number]

    def knows(self, pair: Pair) -> bool:
        """Tell whether the engine knows both frames of a source pair."""
        return pair.i in self._in_engine and pair.j in self._in_engine

    def pair_in_source(self, pair: Pair) -> Pair:
        """Return an engine pair in source numbers."""
        return Pair(self.used[pair.i], self.used[pair.j])

    def pair_in_engine(self, pair: Pair) -> Pair:
        """Return a source pair in engine numbers; the engine must know both frames."""
        return Pair(self._in_engine[pair.i], self._in_engine[pair.j])

    @cached_property
    def _in_engine(self) -> dict[int, int]:
        return {number: frame for frame, number in enumerate(self.used)}
