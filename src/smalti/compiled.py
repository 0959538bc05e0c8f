"""The one place that says how kernels are compiled, and what of the machine they may use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    # prange is range to a type checker, and to a reader.
    prange = range
else:
    prange = numba.prange

NOT_PARALLEL = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")
"""What numba would make parallel of its own accord."""

# A thread that has done its part sleeps until the next loop. By itself it would spin for milliseconds, a quarter of the
# processor's time, and keep the core from the plain code between the loops. Read when the first kernel starts threads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Numbers that lie side by side become one vector. By itself numba does that to loops only, which those over the rows of
# small blocks are too short for. Sums keep the order in which they are written, but for `compiled_sums`.
numba.config.SLP_VECTORIZE = 1  # type: ignore[attr-defined]

WORTH_SHARING = 2000.0
"""Microseconds of work from which on it is shared: waking another thread takes time, on a busy machine a lot of it."""

NOT_KEPT = (
    "compiled code cannot be saved, so every start takes a minute longer: the package folder and your cache folder are "
    "not writable; set NUMBA_CACHE_DIR to a folder that is"
)


def compiled(function: F) -> F:
    """Compile `function` to machine code on first use and keep the code on disk."""
    return _compile(function)


def compiled_parallel(function: F) -> F:
    """Compile `function` so that its `prange` loops run on all cores.

    Every iteration of such a loop writes to its own part of the output, so the result does not depend on
    the number of threads. Nothing else is made parallel: a sum by threads would depend on how many there are.
    """
    return _compile(function, parallel={"prange": True, **dict.fromkeys(NOT_PARALLEL, False)})


def compiled_sums(function: F) -> F:
    """Compile a long sum, whose terms the compiler may add in any order: then it uses all lanes of a vector.

    The order is chosen when it is compiled: equal terms give equal sums.
    """
    return _compile(function, fastmath={"reassoc", "contract"})


@contextlib.contextmanager
def threads_for(microseconds: float) -> Iterator[None]:
    """Let parallel kernels have all threads for work that one would need so long for, or one if it is too little."""
    threads = numba.get_num_threads()
    numba.set_num_threads(threads if microseconds >= WORTH_SHARING else 1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def physical_memory() -> int:
    """Return the bytes of memory that this machine has, or a modest guess where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Raised here for one reason only: numba found no folder to write to.
        warnings.warn(NOT_KEPT, stacklevel=1)  # one place, so that it is said once
        return cast(F, numba.njit(**options)(function))
    if _stamp_of(kernel):  # not a public part of numba: without it, its own stamp has to do
        kernel._cache._cache_file._source_stamp = _stamp(kernel)
    return cast(F, kernel)


OWN_SOURCE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _stamp(kernel: Any) -> str:
    """Return what the code on disk depends on: it is used as long as this stays the same.

    By itself numba looks at the file of a kernel only. The kernels and numbers that the file imports are compiled into
    it as well: after an upgrade that changes them alone, old code would be run.
    """
    digest = hashlib.sha256(f"{OWN_SOURCE} {_stamp_of(kernel)}".encode())
    for name, value in sorted(kernel.py_func.__globals__.items()):
        if isinstance(value, CPUDispatcher) and value.py_func.__module__ != kernel.py_func.__module__:
            digest.update(f"{name} {_stamp_of(value)}".encode())
        elif isinstance(value, bool | int | float | str):
            digest.update(f"{name} {value!r}".encode())
        elif isinstance(value, np.ndarray):
            digest.update(name.encode() + value.tobytes())
    return digest.hexdigest()


def _stamp_of(kernel: Any) -> str:
    return str(getattr(getattr(getattr(kernel, "_cache", None), "_cache_file", None), "_source_stamp", ""))
