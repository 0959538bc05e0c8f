"""What the lens shows of the tissue: through perspective and deformation, at exactly the mapped coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.records import Homographies, Points
from smalti.synthetic.endoscopy.field_of_view import FieldsOfView
from smalti.synthetic.endoscopy.hand import Motion
from smalti.synthetic.endoscopy.tissue import GREY, Deformation, displacement
from smalti.synthetic.resampling import HALF_WIDTH, weigh_pixels


def view_tissue(
    tissue: NDArray[np.uint8], motion: Motion, deformation: Deformation, fields: FieldsOfView, n: int, margin: int
) -> NDArray[np.float32]:
    """Return the tissue as frame n sees it, with `margin` more pixels on every side: (height, width), not clipped.

    Only what the field of view and a margin around it show is filled in.
    """
    view = np.full((fields.height + 2 * margin, fields.width + 2 * margin), GREY, np.float32)
    _sample(
        tissue,
        motion.room_from_frame[n],
        deformation.lattices[n],
        deformation.cell_px,
        max(float(motion.scale[n]), 1.0),
        fields.centres[n],
        fields.radius_px + margin + 1,
        margin,
        view,
    )
    return view


@compiled
def _sample(
    tissue: NDArray[np.uint8],
    room_from_frame: Homographies,
    lattice: NDArray[np.float64],
    cell_px: float,
    stretch: float,
    centre: Points,
    radius: float,
    margin: int,
    view: NDArray[np.float32],
) -> None:
    """Fill in what a frame sees inside a circle, by a kernel wider by `stretch`, the tissue's pixels a frame pixel."""
    rows, columns = tissue.shape
    h = room_from_frame
    weights_x = np.empty(int(2 * HALF_WIDTH * stretch) + 2, np.float32)
    weights_y = np.empty_like(weights_x)
    for v in range(view.shape[0]):
        for u in range(view.shape[1]):
            x, y = u - margin, v - margin
            if (x - centre[0]) ** 2 + (y - centre[1]) ** 2 > radius**2:
                continue
            depth = h[2, 0] * x + h[2, 1] * y + h[2, 2]
            room_x = (h[0, 0] * x + h[0, 1] * y + h[0, 2]) / depth
            room_y = (h[1, 0] * x + h[1, 1] * y + h[1, 2]) / depth
            e_x, e_y = displacement(lattice, cell_px, room_x, room_y)
            first_x, count_x = weigh_pixels(room_x + e_x, stretch, weights_x)
            first_y, count_y = weigh_pixels(room_y + e_y, stretch, weights_y)
            total = np.float32(0)
            for j in range(count_y):
                row = min(max(first_y + j, 0), rows - 1)
                line = np.float32(0)
                for i in range(count_x):
                    line += weights_x[i] * tissue[row, min(max(first_x + i, 0), columns - 1)]
                total += weights_y[j] * line
            view[v, u] = total
