"""How the light of one frame differs from that of the mosaic, ready to be made up for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS = 65
"""Points a side of the table of the field of view; between them it is linear."""


@dataclass(frozen=True, slots=True, eq=False)
class Light:
    """What the colours of a frame are multiplied by: a factor a channel, and one by the place in the field of view."""

    gains: NDArray[np.float32]  # (3,)
    flatness: NDArray[np.float32]  # (STEPS, STEPS): over the square about the centre, row by row
    centre: tuple[float, float]  # of the field, frame pixels
    radius: float  # half the side of the square, frame pixels

    def table_from_pixels(self, frame_from_pixels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (2, 2): scale and shift of x and of y that lead from such pixels to the table's rows and columns."""
        axes = []
        half = (STEPS - 1) / 2
        for axis in (0, 1):
            scale, shift = frame_from_pixels[axis, axis], frame_from_pixels[axis, 2]
            axes.append([half * scale / self.radius, half * ((shift - self.centre[axis]) / self.radius + 1)])
        return np.array(axes)
