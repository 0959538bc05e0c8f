"""A landmark moved to where its two sides look alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.annotation.messages import Side, Snapped, SnapPoint
from smalti.annotation.pictures import Pictures
from smalti.geometry.affine import invert
from smalti.registration.snapping import snap


def snap_landmark(request: SnapPoint, pictures: Pictures, mask: NDArray[np.bool_] | None) -> Snapped:
    """Move the side that is to be moved."""
    i, j = np.array([request.x_i, request.y_i]), np.array([request.x_j, request.y_j])
    i_from_j = np.array(request.i_from_j).reshape(2, 3)
    if not abs(np.linalg.det(i_from_j[:, :2])) > 1e-6:
        return Snapped(found=False, x=0.0, y=0.0, correlation=0.0, reason="the frames are not known well enough yet")
    if request.moving is Side.I:
        fixed, moving, fixed_point, moving_point, moving_from_fixed = request.j, request.i, j, i, i_from_j
    else:
        fixed, moving, fixed_point, moving_point, moving_from_fixed = request.i, request.j, i, j, invert(i_from_j)
    found = snap(
        pictures.gray(fixed),
        pictures.gray(moving),
        fixed_point,
        moving_point,
        moving_from_fixed,
        request.radius,
        mask,
        mask,
    )
    x, y = found.point.tolist()
    return Snapped(found=found.found, x=x, y=y, correlation=found.correlation, reason=found.reason)
