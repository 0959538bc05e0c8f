"""Memory stays within what was set, whatever the size of the mosaic."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
from smalti.rendering.mosaic import Mosaic

side, path = int(sys.argv[1]), sys.argv[2]
y, x = np.mgrid[:600, :800]
frame = np.stack([x // 4 % 256, y // 4 % 256, (x + y) // 8 % 256], axis=2).astype(np.uint8)


class Endless:
    def read_many(self, indices):
        return ((index, np.roll(frame, 7 * index, axis=1)) for index in indices)


world = {k: np.array([[1, 0, 620.0 * (k % side)], [0, 1, 440.0 * (k // side)], [0, 0, 1]]) for k in range(side * side)}
mosaic = Mosaic(Endless(), world, 800, 600, memory_bytes=2**29)
canvas = mosaic.canvas()
print(canvas.width * canvas.height, flush=True)
mosaic.save(path)
# Not getrusage, which begins with what the process had that started this one.
status = open("/proc/self/status").read()
print(status.split("VmHWM:")[1].split()[0])
"""


def peak_megabytes(side: int, path) -> tuple[float, float]:
    """Megapixels of a mosaic and the most memory that a program takes to render it."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(side), str(path)], capture_output=True, text=True, check=True
    )
    pixels, kilobytes = map(int, run.stdout.split())
    return pixels / 1e6, kilobytes / 1024


@pytest.mark.parametrize(("side", "megapixels"), [(8, 19)])
def test_a_mosaic_far_larger_than_its_memory_stays_within_it(tmp_path, side, megapixels):
    # Once for a new installation code is compiled, which takes memory of its own.
    peak_megabytes(2, tmp_path / "m.tif")
    pixels, peak = peak_megabytes(side, tmp_path / "m.tif")
    # As floats, all of it would take 12 bytes a pixel; the program alone takes some 250 MB.
    assert pixels > megapixels * 0.9
    assert peak < 600
