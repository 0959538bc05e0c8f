"""A small synthetic flight in strips: frames whose true maps are known, made once for all tests."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np

from smalti.geometry.linear_maps import apply, compose, invert
from smalti.records import Pair
from smalti.registration.keypoints import Keypoints, find_keypoints
from smalti_lab.synthetic.camera_path import Handling, raster
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

FRAMES = 24
SCENE_SIZE, FRAME_SIZE = (900, 700), (240, 180)


@cache
def flight() -> SyntheticSequence:
    handling = Handling(heading_degrees=12, zoom=0.06, shake_px=1.0)
    camera = raster(SCENE_SIZE, FRAMES, FRAME_SIZE, sidelap=0.4, handling=handling, seed=4)
    return SyntheticSequence(procedural_scene(*SCENE_SIZE, seed=2), camera)


@cache
def gray(n: int) -> np.ndarray:
    return cv2.cvtColor(flight().frame(n), cv2.COLOR_RGB2GRAY)


@cache
def keypoints(n: int) -> Keypoints:
    return find_keypoints(gray(n))


def overlapping(least: float) -> list[Pair]:
    return [Pair(int(i), int(j)) for i, j in flight().overlapping_pairs(least)]


def apart() -> list[Pair]:
    touching = set(overlapping(1e-9))
    return [pair for i in range(FRAMES) for j in range(i + 1, FRAMES) if (pair := Pair(i, j)) not in touching]


def true_map(pair: Pair) -> np.ndarray:
    """i_from_j, (2, 3)."""
    maps = flight().mosaic_from_frame
    return compose(invert(maps[pair.i]), maps[pair.j])


def largest_error(i_from_j: np.ndarray, pair: Pair) -> float:
    """Pixels of frame i, over a grid of the points of j that i sees."""
    x, y = (np.linspace(0, side - 1, 9) for side in FRAME_SIZE)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    truth = apply(true_map(pair), grid)
    seen = flight().outline.contains(truth)
    assert seen.any()
    return float(np.linalg.norm(apply(i_from_j, grid) - truth, axis=1)[seen].max())
