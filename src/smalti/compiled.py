"""The one place that says how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    # prange is range to a type checker, and to a reader.
    prange = range
else:
    prange = numba.prange


def compiled(function: F) -> F:
    """Compile `function` to machine code on first use and keep the code on disk."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_parallel(function: F) -> F:
    """Compile `function` so that its `prange` loops run on all cores.

    Every iteration of such a loop writes to its own part of the output, so the result does not depend on
    the number of threads.
    """
    return cast(F, numba.njit(cache=True, nogil=True, parallel=True, error_model="numpy")(function))
