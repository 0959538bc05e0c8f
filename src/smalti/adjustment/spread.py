"""How surely every point of every frame is placed in one of the frames.

The point p of frame n lies in frame r at w = Θ_r⁻¹ Θ_n p̃. In local increments Θ ← Θ (I + δ) it moves by
Q δ_n p̃ - δ_r w̃, Q being the linear part of Θ_r⁻¹ Θ_n. Relative places do not feel how the common motion is taken out:
with r taken out of the system altogether δ_r is zero, and what remains of the covariance is every frame's own block of
the inverse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.cholesky import BlockCholesky, NotPositiveDefiniteError
from smalti.adjustment.refinement import normal_blocks
from smalti.adjustment.selected import inverse_diagonal
from smalti.errors import SingularSystemError
from smalti.geometry.affine import square
from smalti.records import Transforms


def spread_relative_to(adjustment: Adjustment, mosaic_from_frame: Transforms, frame: int) -> NDArray[np.float64]:
    """Return matrices S (N, 3, 3), symmetric: the point (x, y) of frame n lies in `frame` to within x̃ᵀ S_n x̃ px².

    x̃ is (x, y, 1) in pixels of frame n, and the variance that of both coordinates together, in pixels of `frame`; S is
    zero for `frame` itself. It is linearised about the given maps (N, 2, 3), pixels.
    """
    held = adjustment.with_reference(frame)
    maps = held.in_units(mosaic_from_frame)[held.free]  # Θ_r⁻¹ Θ_n
    tangent = held.family.tangent
    own = _own_covariances(held, mosaic_from_frame)
    stretch = np.swapaxes(maps[:, :, :2], 1, 2) @ maps[:, :, :2]  # QᵀQ
    # tr(Q δ p̃ p̃ᵀ δᵀ Qᵀ). The noise of a pseudo-point is 1 px by construction of the link: px², whatever the unit.
    in_units = np.einsum("npq,cpa,dqb,ncd->nab", stretch, tangent, tangent, own, optimize=True)
    unit_from_pixels = square(held.outline.unit_from_pixels)
    spread = np.zeros((held.frames, 3, 3))
    spread[held.free] = unit_from_pixels.T @ in_units @ unit_from_pixels
    return (spread + np.swapaxes(spread, 1, 2)) / 2


def _own_covariances(held: Adjustment, mosaic_from_frame: Transforms) -> NDArray[np.float64]:
    """Return the covariance (N - 1, f, f) of δ_n for every frame but the reference, which is known."""
    diagonal, off_diagonal = normal_blocks(held, held.in_units(mosaic_from_frame))
    inner = (held.ends_free >= 0).all(axis=1)
    try:
        factor = BlockCholesky(held.pattern, diagonal[held.free], off_diagonal[inner])
    except NotPositiveDefiniteError as failure:
        # Differs from `LocalCovariance.centres`, which then steadies all frames: enough to choose a question by, but
        # ± px that people read would be far too small.
        raise SingularSystemError(
            f"frame {int(held.free[failure.node])}: the links do not determine how it lies to frame {held.reference}, "
            "add links between the two"
        ) from None
    return inverse_diagonal(*factor.arrays)[held.pattern.place]
