"""Small frames at known places of a scene, and how far a build's file of transforms is from them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti_lab.synthetic.camera_path import CameraPath, Handling, wander
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

SCENE = (700, 500)
FRAME = (240, 180)
FRAMES = 12


@cache
def land(seed: int = 7) -> NDArray[np.uint8]:
    return procedural_scene(*SCENE, seed)


@cache
def walk(frames: int = FRAMES, seed: int = 3) -> SyntheticSequence:
    """A walk that comes back to places."""
    camera = wander(SCENE, frames, FRAME, step=0.2, handling=Handling(heading_degrees=8, zoom=0.05), seed=seed)
    return SyntheticSequence(land(), camera)


def flown(maps: NDArray[np.float64], seed: int = 7) -> SyntheticSequence:
    """Frames at the places that are given."""
    return SyntheticSequence(land(seed), CameraPath("flown", *FRAME, maps))


def shifts(x: list[float], y: list[float]) -> NDArray[np.float64]:
    """Return maps (n, 2, 3) that put the corner of a frame at (x, y)."""
    maps = np.tile(np.eye(2, 3), (len(x), 1, 1))
    maps[:, 0, 2], maps[:, 1, 2] = x, y
    return maps


def read_maps(folder: Path) -> dict[int, NDArray[np.float64]]:
    """Return the final map (3, 3) of every placed frame, as the file says."""
    content = json.loads((folder / "transforms.json").read_text(encoding="utf-8"))
    return {frame["frame"]: np.array(frame["final"]) for frame in content["frames"]}


def truth_error_px(sequence: SyntheticSequence, folder: Path) -> float:
    """Return the RMS error of the placed frames against the truth."""
    maps = read_maps(folder)
    return sequence.truth_error(np.array(list(maps.values())), list(maps)).rms
