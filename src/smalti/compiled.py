"""How all kernels are compiled, and which resources of the machine they may use.

`compiled`, `compiled_inline`, `compiled_parallel` and `compiled_sums` are the decorators. `threads_for` and
`physical_memory` come next, the cache of compiled code last.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

if sys.platform != "win32":
    import fcntl

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    # To a type checker, prange is range.
    prange = range
else:
    prange = numba.prange

NOT_PARALLEL = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")
"""What numba would make parallel on its own."""

# A thread that has finished sleeps until the next loop. By default it spins for milliseconds, a quarter of the
# processor's time, and blocks the core for the serial code between loops. Read when the first kernel starts threads.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Adjacent numbers become one vector. By default numba vectorises loops only, and loops over the rows of small blocks
# are too short for that. Sums keep the order in which they are written, except in `compiled_sums`.
numba.config.SLP_VECTORIZE = 1  # type: ignore[attr-defined]

LEAST_PARALLEL_MICROSECONDS = 2000.0
"""Less work than this runs on one thread: waking others takes time, a lot of it on a busy machine."""

NOT_CACHED = (
    "compiled code cannot be saved, so every start takes up to a minute longer: the package folder and your cache "
    "folder are not writable, or full; set NUMBA_CACHE_DIR to another folder"
)


def compiled(function: F) -> F:
    """Compile `function` to machine code on first use, and cache the code on disk."""
    return _compile(function)


def compiled_inline(function: F) -> F:
    """Compile `function` as a part of every kernel that calls it, so that a constant argument selects code for free."""
    return _compile(function, inline="always")


def compiled_parallel(function: F) -> F:
    """Compile `function` so that its `prange` loops run on all cores.

    Every iteration of such a loop writes to its own part of the output, so the result does not depend on the number of
    threads. Nothing else is parallel: the result of a parallel sum would depend on the number of threads.
    """
    return _compile(function, parallel={"prange": True, **dict.fromkeys(NOT_PARALLEL, False)})


def compiled_sums(function: F) -> F:
    """Compile a long sum whose terms may be added in any order, so that all lanes of a vector are used.

    The order is fixed at compilation: equal terms give equal sums.
    """
    return _compile(function, fastmath={"reassoc", "contract"})


@contextlib.contextmanager
def threads_for(microseconds: float) -> Iterator[None]:
    """Give parallel kernels all threads for work that takes one thread so long, or one thread if it is too little."""
    threads = numba.get_num_threads()
    numba.set_num_threads(threads if microseconds >= LEAST_PARALLEL_MICROSECONDS else 1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def physical_memory() -> int:
    """Return the bytes of memory of this machine, or 4 GiB if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # There is only one reason: numba found no folder that it can write to.
        warnings.warn(NOT_CACHED, stacklevel=1)  # one call site, so that the warning appears once
        return cast(F, numba.njit(**options)(function))
    kernel._cache.save_overload = _saving(kernel._cache.save_overload)
    kernel.get_call_template = _taking_values(kernel.get_call_template)
    kernel.compile = _compiling_once(kernel)
    if _stamp_of(kernel):  # not public in numba; without it, numba's own stamp is used
        kernel._cache._cache_file._source_stamp = _stamp(kernel)
    return cast(F, kernel)


def _saving(save: Callable[..., None]) -> Callable[..., None]:
    """Return a function that caches code if it can: a full disk is no reason not to run the code."""

    def save_if_possible(signature: Any, code: Any) -> None:
        try:
            save(signature, code)
        except OSError:
            warnings.warn(NOT_CACHED, stacklevel=1)

    return save_if_possible


def is_cached(kernel: Any, signature: Any) -> bool:
    """Tell whether a kernel, as its decorator returns it, has code on disk for these types of arguments."""
    cache: Any = kernel._cache
    if cache.cache_path is None:
        return False
    try:
        return cache._index_key(signature, kernel.targetctx.codegen()) in cache._cache_file._load_index()
    except (OSError, EOFError, UnpicklingError):
        return False


def _compiling_once(kernel: Any) -> Callable[[Any], Any]:
    """Return a function that compiles a kernel, but waits if another process does so, and then takes its code.

    A lock beside the index also keeps two processes from giving two codes the same file, which Numba does not exclude.
    """
    compile_it = kernel.compile
    lock = kernel._cache._cache_file._index_path + ".lock"

    def compile_once(signature: Any) -> Any:
        if signature in kernel.overloads or is_cached(kernel, signature):
            return compile_it(signature)
        # Compilation makes so many objects that looking for garbage among them takes a tenth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            with _locked(lock):
                return compile_it(signature)
        finally:
            if collects:
                gc.enable()

    return compile_once


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold a lock between processes, if there can be one. The kernel releases it when the program dies."""
    with contextlib.ExitStack() as stack:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                file = stack.enter_context(open(path, "wb"))  # noqa: PTH123
                fcntl.flock(file, fcntl.LOCK_EX)
                # Whoever waits for the lock finds the code; nobody else needs it.
                stack.callback(Path(path).unlink, missing_ok=True)
        yield


def _taking_values(get_call_template: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that finds the kernel that another kernel calls: one for all numbers.

    Numba would compile one for every constant in the call. LLVM inserts constants all the same.
    """
    unliteral: Any = numba.types.unliteral

    def get_for_types(args: Any, kws: Any) -> Any:
        return get_call_template(
            tuple(unliteral(arg) for arg in args), {name: unliteral(arg) for name, arg in kws.items()}
        )

    return get_for_types


OWN_SOURCE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _stamp(kernel: Any) -> str:
    """Return a digest of everything that the cached code depends on; the code is valid as long as it stays the same.

    Numba's own stamp covers only the file of a kernel. Imported kernels and constants are compiled into it as well. If
    an upgrade changed only these, outdated code would run.
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
