"""What is seen around a frame: a place looks like all that the camera shows of it while it stays there.

Keypoints that are found in one frame are missed in the next, so that two frames of the same place may look less alike
than two of different ones. Neighbours in time show much the same; what they show together is known better.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from smalti.engine.estimate import Estimate
from smalti.overlap.external import ExternalModel
from smalti.records import PairNumbers

REACH = 0.5
"""Of a frame's size: neighbours count until the camera has moved so far, and half of what they show is new."""

MOST_NEIGHBOURS = 4
"""On either side: where the camera is slow, some of those within reach, evenly spread."""


def steadied(external: ExternalModel, first: Estimate, chain: PairNumbers) -> ExternalModel:
    """Return an external model by what is seen around frames, where it can tell; neighbours are joined by the chain."""
    steady = getattr(external, "steadied", None)
    if steady is None:
        return external
    reach = frames_in_reach(first)
    if not reach:
        return external
    found: ExternalModel = steady(neighbours(first.frames, chain, reach))
    return found


def frames_in_reach(first: Estimate) -> int:
    """Return after how many frames the camera has moved so far, as links of consecutive frames tell; 0 if after one."""
    system, outline = first.system, first.outline
    offset = np.abs(system.offsets[system.steps]) * outline.unit
    step = np.minimum((offset / (outline.width, outline.height)).max(axis=1), 1.0)
    if not len(step) or float(step.mean()) > REACH:
        return 0
    return round(REACH / max(float(step.mean()), 1.0 / first.frames))


def neighbours(frames: int, chain: PairNumbers, reach: int) -> csr_array:
    """Return a matrix (N, N): one where two frames are at most so far apart in time and joined by the chain.

    As many before a frame as after it, so that what is seen around it is seen about its place.
    """
    joined = np.zeros(frames, dtype=np.bool_)
    joined[chain[np.diff(chain, axis=1)[:, 0] == 1, 1]] = True
    stretch = np.cumsum(~joined)
    first = np.arange(frames)
    ends = [(first, first)]
    for apart in np.unique(np.rint(np.linspace(0, reach, min(reach, MOST_NEIGHBOURS) + 1)).astype(np.int64))[1:]:
        middle = first[apart : frames - apart]
        middle = middle[stretch[middle - apart] == stretch[middle + apart]]
        ends += [(middle, middle - apart), (middle, middle + apart)]
    rows, columns = (np.concatenate(side) for side in zip(*ends, strict=True))
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(frames, frames))
