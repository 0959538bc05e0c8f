"""A mosaic of any size from frames rendered on the fly.

SIDE × SIDE frames in strips to and fro; 100 × 100 of them are 2 gigapixels. The scene is periodic. Frame n is always
the same, and takes about a millisecond.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.mosaic import Mosaic
from smalti_lab.synthetic.resampling import resample
from smalti_lab.synthetic.scene import procedural_scene

WIDTH, HEIGHT = 640, 480
STEP_X, STEP_Y = 520, 384
"""Pixels between neighbours: 35 % of a frame's area is shared."""

JITTER = 12
"""Pixels by which a frame may deviate from its position in the raster, in all."""

PERIOD = 1024
DARKEST, BRIGHTEST = 25, 175
"""Range of the scene, so that no frame clips."""

SHIFTS = ((0.0, 0.0), (0.5, 0.25), (0.25, 0.75), (0.75, 0.5))
"""Fractions of a pixel by which frames are shifted against the scene."""

EXPOSURE, VIGNETTING = 0.25, 0.3
SEED = 9


class EndlessFrames:
    """SIDE × SIDE frames of a periodic scene."""

    def __init__(self, side: int) -> None:
        self.side = side
        scene = procedural_scene(PERIOD, PERIOD, SEED).astype(np.float32) / 255
        self.scene = np.rint(DARKEST + (BRIGHTEST - DARKEST) * scene).astype(np.uint8)
        """(PERIOD, PERIOD, 3): pixel (x, y) of the mosaic is that of the remainders."""
        wrapped = np.pad(self.scene, ((8, 8 + HEIGHT), (8, 8 + WIDTH), (0, 0)), mode="wrap")
        self._shifted = [_shift(wrapped, *shift) for shift in SHIFTS]
        x, y = np.arange(WIDTH) - (WIDTH - 1) / 2, np.arange(HEIGHT) - (HEIGHT - 1) / 2
        away = 4 * (x[None] ** 2 + y[:, None] ** 2) / (WIDTH**2 + HEIGHT**2)
        self._field = np.asarray(1 - VIGNETTING * away, np.float32)
        rng = np.random.default_rng(SEED)
        self._gains = 1 + EXPOSURE * rng.uniform(-1, 1, side * side)
        self._jitter = rng.integers(0, JITTER, (side * side, 2))
        self.seconds = 0.0
        """Time spent on rendering frames."""

    @property
    def maps(self) -> dict[int, NDArray[np.float64]]:
        """Mosaic from frame, (3, 3)."""
        maps = {}
        for n in range(self.side**2):
            x, y = self._corner(n)
            shift_x, shift_y = SHIFTS[n % len(SHIFTS)]
            maps[n] = np.array([[1.0, 0.0, x + shift_x], [0.0, 1.0, y + shift_y], [0.0, 0.0, 1.0]])
        return maps

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Render frames, one after the other."""
        for n in indices:
            began = time.perf_counter()
            x, y = (place % PERIOD for place in self._corner(n))
            frame = np.empty((HEIGHT, WIDTH, 3), np.uint8)
            part = self._shifted[n % len(SHIFTS)][y : y + HEIGHT, x : x + WIDTH]
            _expose(part, self._field, np.float32(self._gains[n]), frame)
            self.seconds += time.perf_counter() - began
            yield n, frame

    def truth(self, left: int, top: int, width: int, height: int) -> NDArray[np.uint8]:
        """Return the scene (h, w, 3) from a pixel of the mosaic on."""
        rows, columns = (top + np.arange(height)) % PERIOD, (left + np.arange(width)) % PERIOD
        return self.scene[rows[:, None], columns[None]]

    def _corner(self, n: int) -> tuple[int, int]:
        """Return the whole part of the position of a frame's first pixel."""
        row, along = divmod(n, self.side)
        column = along if row % 2 == 0 else self.side - 1 - along
        return STEP_X * column + int(self._jitter[n, 0]), STEP_Y * row + int(self._jitter[n, 1])


def main() -> None:
    """Render in a process of its own, with the arguments SIDE MEMORY_MB OUT.tif, and print the result."""
    side, memory_mb, out = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    frames = EndlessFrames(side)
    survey_ended = 0.0

    def watch(done: int, total: int) -> None:
        nonlocal survey_ended
        if done == side * side:
            survey_ended = time.perf_counter()

    with tempfile.TemporaryDirectory(dir=out.parent, prefix="rendering-") as folder:
        mosaic = Mosaic(frames, frames.maps, WIDTH, HEIGHT, memory_bytes=memory_mb * 2**20, folder=Path(folder))
        canvas = mosaic.canvas()
        began, busy = time.perf_counter(), time.process_time()
        mosaic.save(out, blend="multiband", on_progress=watch)
        seconds, busy_seconds = time.perf_counter() - began, time.process_time() - busy
    found = {
        "frames": side * side,
        "left": int(canvas.left),
        "top": int(canvas.top),
        "megapixels": canvas.width * canvas.height / 1e6,
        "seconds": seconds,
        "cpu_seconds": busy_seconds,
        "survey_seconds": survey_ended - began,
        "frames_seconds": frames.seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "file_mb": out.stat().st_size / 2**20,
    }
    print(json.dumps(found))


def _shift(wrapped: NDArray[np.uint8], x: float, y: float) -> NDArray[np.uint8]:
    """Return the scene from a position between its pixels on, a frame more than a period wide and high."""
    from_shifted = np.array([[1.0, 0.0, 8 + x], [0.0, 1.0, 8 + y]])
    shifted = resample(wrapped, from_shifted, PERIOD + WIDTH, PERIOD + HEIGHT)
    return np.clip(np.rint(shifted), 0, 255).astype(np.uint8)


@compiled
def _expose(scene: NDArray[np.uint8], field: NDArray[np.float32], gain: np.float32, frame: NDArray[np.uint8]) -> None:
    for row in range(frame.shape[0]):
        for column in range(frame.shape[1]):
            light = gain * field[row, column]
            for channel in range(3):
                bright = np.float32(scene[row, column, channel]) * light + np.float32(0.5)
                frame[row, column, channel] = np.uint8(min(bright, np.float32(255.0)))
