"""Image files, found and put in order."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from smalti.errors import InputError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".png", ".tif", ".tiff", ".bmp", ".webp", ".gif"})


def list_folder(folder: Path) -> list[Path]:
    """List the images of a folder, in natural order; other files and hidden ones do not count."""
    try:
        return _pick(folder, folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}), check your rights") from None


def list_pattern(pattern: str) -> list[Path]:
    """List the images whose paths match the pattern, in natural order."""
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    return _pick(Path(pattern), map(Path, matches))


def list_files(paths: Sequence[Path]) -> list[Path]:
    """Put the named files in natural order, for the shell sorts img10 before img2."""
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: is not a file; give images, one folder or one video")
    ordered = sorted(paths, key=natural_key)
    for one, next_one in pairwise(ordered):
        if one == next_one:
            raise InputError(f"{one}: is given twice; give every image once")
    return ordered


def natural_key(path: Path) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Return a key that sorts img2 before img10 and IMG3 between them."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", str(path).casefold())
    numbered = tuple((0, int(piece), "") if piece.isdigit() and piece.isascii() else (1, 0, piece) for piece in pieces)
    return numbered, str(path)


def _pick(location: Path, paths: Iterable[Path]) -> list[Path]:
    images = [
        path
        for path in paths
        if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".") and path.is_file()
    ]
    if not images:
        raise InputError(f"{location}: holds no images (JPEG, PNG, TIFF, BMP or WebP); check the path")
    if len(images) < 2:
        raise InputError(f"{location}: holds a single image, {images[0].name}; a mosaic needs 2 or more")
    return sorted(images, key=natural_key)
