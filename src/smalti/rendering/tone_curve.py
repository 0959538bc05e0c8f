"""The tone curve: corrected light → what is shown. It keeps highlights below white."""

from __future__ import annotations

import numpy as np

from smalti.compiled import compiled

WHITE = 254.0
"""The brightest value that is not clipped."""

KNEE = 220.0
"""Up to here the curve changes nothing."""


@compiled
def shown(value: np.float32, white: float) -> np.float32:
    """Return a corrected value as it is shown: unchanged up to `KNEE`, and from there ever flatter, `white` at 254.

    The correction makes places brighter that a frame shows dark. A highlight there, not clipped in its frame, may
    become far brighter than 255. The curve depends on the corrected value alone, and this is the light of the scene:
    two frames that see a place get the same colour, so no seam becomes visible.
    """
    knee, room, reach = np.float32(KNEE), np.float32(WHITE - KNEE), np.float32(white - KNEE)
    if value <= knee or reach <= room:
        return value
    above = value - knee
    # Its slope is 1 at the knee, and it decreases all the way.
    return knee + above / (np.float32(1.0) + above * (np.float32(1.0) / room - np.float32(1.0) / reach))
