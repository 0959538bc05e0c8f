"""The picture that a synthetic camera flies over."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import InputError, UsageError
from smalti_lab.synthetic.houses import draw_gardens, draw_roofs, draw_shadows, settle
from smalti_lab.synthetic.roads import draw_bounds, draw_cars, draw_curve, draw_lane, draw_river, draw_road
from smalti_lab.synthetic.terrain import divide_land, fractal_noise, paint_ground
from smalti_lab.synthetic.trees import draw_tree_shadows, draw_trees, plant

SMALLEST_SCENE = 64
SHADE = 118
"""Light in a shadow, of 255."""

SATURATION = 0.8
GRAIN = 5.0
"""Grey levels of the finest texture."""


def procedural_scene(width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """Paint farmland seen from above, from noise alone: (height, width, 3), RGB.

    It has fields with rows and tracks, a river, roads, villages, hedges and woods. All have texture at every scale from
    one pixel up, so that no two places look the same.
    """
    if min(width, height) < SMALLEST_SCENE:
        raise UsageError(f"a scene of {width} × {height} is too small, give at least {SMALLEST_SCENE} pixels a side")
    rng = np.random.default_rng(seed)
    parcels = divide_land(width, height, rng)
    picture = paint_ground(width, height, parcels, rng)
    draw_bounds(picture, parcels, rng)

    river = draw_curve(width, height, rng, upright=True, place=rng.uniform(0.25, 0.75), bends=230)
    roads = [
        draw_curve(width, height, rng, upright=False, place=rng.uniform(0.25, 0.45), bends=90),
        draw_curve(width, height, rng, upright=True, place=rng.uniform(0.1, 0.9), bends=110),
    ]
    lanes = [
        draw_curve(width, height, rng, upright=upright, place=rng.uniform(*between), bends=140)
        for upright, between in ((False, (0.65, 0.9)), (True, (0.05, 0.95)), (False, (0.02, 0.2)))
    ]
    draw_river(picture, river, rng)
    for lane in lanes:
        draw_lane(picture, lane)
    for road in roads:
        draw_road(picture, road)
    for road in roads:
        draw_cars(picture, road, rng)

    taken = np.zeros((height, width), np.uint8)
    for curve, breadth in ((river, 130), *((curve, 44) for curve in (*roads, *lanes))):
        cv2.polylines(taken, [np.round(curve).astype(np.int32)], False, (1,), breadth)
    houses = settle([*roads, *lanes], taken, 0.8, rng)
    trees = plant(parcels, [river], np.array([house.centre for house in houses]).reshape(-1, 2), rng).where_free(taken)

    rough = fractal_noise(width, height, 8, 2, rng, roughness=0.8)
    shade = np.full((height, width), 255, np.uint8)
    draw_gardens(picture, houses)
    draw_shadows(shade, houses, SHADE)
    draw_tree_shadows(shade, trees, rough, SHADE)
    _darken(picture, shade)
    draw_roofs(picture, houses, rng)
    draw_trees(picture, trees, rough, rng)
    return _finish(picture, rough)


def load_scene(path: str | Path) -> NDArray[np.uint8]:
    """Read a picture from a file as a scene: (height, width, 3), RGB."""
    try:
        encoded = np.fromfile(path, np.uint8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read as a scene ({error.strerror}); give an image file") from error
    decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB) if len(encoded) else None
    if decoded is None:
        raise InputError(f"{path}: is no image that can be decoded; give a JPEG, PNG or TIFF file")
    return np.asarray(decoded, np.uint8)


def _darken(picture: NDArray[np.uint8], shade: NDArray[np.uint8]) -> None:
    soft = cv2.GaussianBlur(shade, (0, 0), 1.0)
    for c in range(3):
        picture[..., c] = cv2.multiply(picture[..., c], soft, scale=1 / 255)


def _finish(picture: NDArray[np.uint8], rough: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Give roads and roofs some texture, and remove detail that is finer than a pixel can show.

    A scene without detail at the limit of its resolution can be resampled between its pixels without loss.
    """
    # Haze: from far above, colours are a little paler than from close by.
    paler = np.full((3, 3), (1 - SATURATION) / 3) + SATURATION * np.eye(3)
    picture = np.asarray(cv2.transform(picture, paler), np.uint8)
    grain = np.float32(GRAIN) * rough
    for c in range(3):
        picture[..., c] = cv2.add(picture[..., c], grain, dtype=cv2.CV_8U)
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), 0.6), np.uint8)
