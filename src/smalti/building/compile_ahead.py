"""Kernels compiled in another process, so that the first build after an installation waits for half of them.

Numba compiles a kernel when it is called for the first time. Compilation holds the interpreter's lock, so a thread
would not help. `kernels.txt` lists what builds call, in their order. The build itself begins at the top of the list,
the other process at the bottom, until they meet. `compiled.py` sees to it that nothing is compiled twice.

`benchmarks/first_use.py --record` writes the list. A test fails if a build calls a kernel that is not on it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.registry import CPUDispatcher

from smalti.compiled import cores, is_cached

# Numba has types in some places only.
types: Any = numba.types
Dispatcher: Any = CPUDispatcher

KERNELS = Path(__file__).with_name("kernels.txt")

LEAST_MISSING = 10
"""A process of its own pays for so many kernels: it takes a second to start."""


@contextlib.contextmanager
def compiling_ahead() -> Iterator[None]:
    """Compile what a build calls and is not compiled yet in another process, which ends at the latest with this one."""
    if cores() < 2 or sum(not is_cached(*called) for called in kernels()) < LEAST_MISSING:
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without it, everything works, and takes longer
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            stack.enter_context(child)  # closes its input, which ends it, and waits
        yield


def kernels() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the kernels that builds call, and the types of their arguments, in the order of the calls."""
    listed = []
    for line in KERNELS.read_text().splitlines():
        name, _, signature = line.partition(" ")
        module, _, function = name.rpartition(".")
        kernel = getattr(importlib.import_module(module), function)
        if isinstance(kernel, CPUDispatcher):  # not if NUMBA_DISABLE_JIT is set
            listed.append((kernel, _read(signature)))
    return listed


@contextlib.contextmanager
def recording() -> Iterator[list[str]]:
    """Record kernels when they are called for the first time in this process, as lines of `kernels.txt`."""
    lines: list[str] = []
    compile_for_args = Dispatcher._compile_for_args

    def record(kernel: Any, *args: Any, **kws: Any) -> Any:
        module = kernel.py_func.__module__
        if module.startswith("smalti."):
            signature = ", ".join(_write(kernel.typeof_pyval(arg)) for arg in args)
            lines.append(f"{module}.{kernel.py_func.__name__} ({signature},)")
        return compile_for_args(kernel, *args, **kws)

    Dispatcher._compile_for_args = record
    try:
        yield lines
    finally:
        Dispatcher._compile_for_args = compile_for_args


def _write(kind: Any) -> str:
    """Write a type as Python, so that `_read` returns it."""
    if isinstance(kind, types.Array):
        inner = {"C": "::1", "A": ":"}[kind.layout]
        array = f"{kind.dtype}[{', '.join([':'] * (kind.ndim - 1) + [inner])}]"
        return array if kind.mutable else f"readonly({array})"
    if isinstance(kind, types.BaseTuple):
        parts = f"({''.join(_write(part) + ', ' for part in kind).rstrip()})"
        named = getattr(kind, "instance_class", tuple)
        return parts if named is tuple else f"named('{named.__module__}', '{named.__name__}', {parts})"
    return str(kind)


def _read(signature: str) -> tuple[Any, ...]:
    """Return the types of arguments."""
    names = {**vars(types), "bool": types.boolean, "readonly": _readonly, "named": _named}
    return tuple(_type(part) for part in eval(signature, names))


def _type(part: Any) -> Any:
    return types.BaseTuple.from_types(tuple(_type(of) for of in part)) if isinstance(part, tuple) else part


def _readonly(array: Any) -> Any:
    return array.copy(readonly=True)


def _named(module: str, name: str, parts: tuple[Any, ...]) -> Any:
    return types.BaseTuple.from_types(parts, getattr(importlib.import_module(module), name))


def main() -> None:
    """Compile from the last kernel to the first, until all is done or whoever started this ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for kernel, signature in reversed(kernels()):
        if not is_cached(kernel, signature):
            kernel.compile(signature)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # returns when the other end is closed
    os._exit(0)


if __name__ == "__main__":
    main()
