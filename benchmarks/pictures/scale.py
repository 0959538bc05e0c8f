"""Mosaics of many sizes within the same memory: is the time proportional to the area?"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from pictures.endless import EndlessFrames
from pictures.measures import decibels, errors_of

BENCHMARKS = Path(__file__).resolve().parents[1]
# Imported, not run as a script: Numba stores compiled code under the module's name, which must always be the same.
RENDER = "from pictures.endless import main; main()"
SIDE_OF_2_GIGAPIXELS = 100
SAMPLES = 6
"""Tiles a side that are compared with the truth, spread over the mosaic."""

COLUMNS = {
    "frames": "frames",
    "megapixels": "Mpx",
    "seconds": "seconds",
    "seconds_per_megapixel": "s/Mpx",
    "ratio": "ratio",
    "cpu_per_megapixel": "CPU s/Mpx",
    "cpu_ratio": "ratio",
    "survey_seconds": "of it survey",
    "frames_seconds": "making frames",
    "peak_mb": "peak MB",
    "memory_mb": "allowed MB",
    "psnr_db": "PSNR dB",
    "file_mb": "file MB",
}


def measure_scale(gigapixels: Sequence[float], memory_mb: int, folder: Path | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each size. A tiny one, not shown, comes first and compiles everything."""
    first: tuple[float, float] | None = None
    for size in (0.003, *gigapixels):
        side = max(2, round(SIDE_OF_2_GIGAPIXELS * math.sqrt(size / 2)))
        with tempfile.TemporaryDirectory(prefix="smalti-scale-", dir=folder) as scratch:
            out = Path(scratch).resolve() / "mosaic.tif"
            command = [sys.executable, "-c", RENDER, str(side), str(memory_mb), str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
            if done.returncode:
                raise SystemExit(f"{size} gigapixels: {done.stderr.strip().splitlines()[-1]}")
            if size == 0.003:
                continue
            found = json.loads(done.stdout)
            psnr = _judge(out, EndlessFrames(side), found["left"], found["top"])
        pace, work = (found[key] / found["megapixels"] for key in ("seconds", "cpu_seconds"))
        first = first or (pace, work)
        row = {key: round(value, 1) for key, value in found.items()}
        row |= {"gigapixels": size, "memory_mb": memory_mb, "psnr_db": round(psnr, 2)}
        row |= {"seconds_per_megapixel": round(pace, 4), "ratio": round(pace / first[0], 2)}
        yield row | {"cpu_per_megapixel": round(work, 4), "cpu_ratio": round(work / first[1], 2)}


def _judge(file: Path, frames: EndlessFrames, left: int, top: int) -> float:
    """Return the PSNR of tiles from all over a mosaic, after one gain for all of them."""
    images, truths = [], []
    with tifffile.TiffFile(file) as tiff:
        page = tiff.pages.first
        side = page.tilewidth
        down, across = page.imagelength // side, page.imagewidth // side
        for row in np.linspace(0, down - 1, SAMPLES).round().astype(int):
            for column in np.linspace(0, across - 1, SAMPLES).round().astype(int):
                images.append(_read_tile(tiff, int(row) * -(-page.imagewidth // side) + int(column)))
                truths.append(frames.truth(left + int(column) * side, top + int(row) * side, side, side))
    image, truth = np.concatenate(images), np.concatenate(truths)
    return decibels(errors_of(image, truth, image[..., 3] > 0))


def _read_tile(tiff: tifffile.TiffFile, index: int) -> NDArray[np.uint8]:
    page = tiff.pages.first
    tiff.filehandle.seek(page.dataoffsets[index])
    content = tiff.filehandle.read(page.databytecounts[index])
    tile: NDArray[np.uint8] = np.asarray(page.decode(content, index)[0], np.uint8)[0]
    return tile
