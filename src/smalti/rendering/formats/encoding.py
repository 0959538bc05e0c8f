"""Pieces of an image, encoded on all cores and handed over in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from numpy.typing import NDArray

_Piece = TypeVar("_Piece")
_Encoded = TypeVar("_Encoded")


@contextmanager
def encoding(
    bands: Iterable[NDArray[Any]],
    split: Callable[[NDArray[Any]], Iterable[_Piece]],
    encode: Callable[[_Piece], _Encoded],
) -> Iterator[Iterator[_Encoded]]:
    """Give the encoded pieces of every band; the next band is made meanwhile.

    At the end, however it comes, no core is at work on them any more: what they wrote can be moved or removed.
    """
    with closing(_encode(bands, split, encode)) as encoded:
        yield encoded


def _encode(
    bands: Iterable[NDArray[Any]],
    split: Callable[[NDArray[Any]], Iterable[_Piece]],
    encode: Callable[[_Piece], _Encoded],
) -> Generator[_Encoded, None, None]:
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        waiting: list[Future[_Encoded]] = []
        for band in bands:
            started = [pool.submit(encode, piece) for piece in split(band)]
            for future in waiting:
                yield future.result()
            waiting = started
        for future in waiting:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
