"""A small flight over an invented landscape, drawn here: for `smalti annotate --demo`, which needs no data."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.interchange.atomic_files import naming, replacing_folder

FRAMES, WIDTH, HEIGHT = 48, 400, 300
SIDE = 1300
"""Pixels of the landscape's side."""

ROUNDS = 1.15
"""The flight is a circle and a little more, so that its end shows what its beginning showed."""

RADIUS = 330.0
NOISE = 4.0
SEED = 7


def write_demonstration(folder: Path) -> Path:
    """Write the frames to `folder`, unless they are there, and return it."""
    names = [f"{n:04d}.png" for n in range(FRAMES)]
    with naming(folder):
        if folder.is_dir() and sorted(path.name for path in folder.iterdir()) == names:
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    landscape = _draw_landscape(rng)
    with replacing_folder(folder) as part:
        for n, name in enumerate(names):
            encoded = cv2.imencode(".png", _view(landscape, n / (FRAMES - 1), rng))[1]
            with naming(folder):
                (part / name).write_bytes(encoded.tobytes())
    return folder


def _draw_landscape(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return fields, woods, roads and roofs (SIDE, SIDE, 3), BGR."""
    coarse, fine = (_waves(rng, sigma) for sigma in (60.0, 2.5))
    green = np.array([70.0, 130.0, 95.0]) + coarse[..., None] * [8, 14, 22] + fine[..., None] * [9, 14, 10]
    picture = np.ascontiguousarray(np.clip(green, 0, 255), dtype=np.uint8)
    for _ in range(140):
        centre = rng.uniform(0, SIDE, 2)
        field = cv2.boxPoints((tuple(centre), tuple(rng.uniform(40, 130, 2)), float(rng.uniform(0, 90))))
        shade = (float(rng.uniform(60, 110)), float(rng.uniform(110, 170)), float(rng.uniform(90, 180)))
        area = np.zeros(picture.shape[:2], np.uint8)
        cv2.fillConvexPoly(area, np.rint(field).astype(np.int32), 1)
        picture[area > 0] = np.clip(0.45 * picture[area > 0] + 0.55 * np.array(shade), 0, 255).astype(np.uint8)
    for _ in range(14):
        along = np.linspace(-200, SIDE + 200, 40)
        across = rng.uniform(0, SIDE) + np.cumsum(rng.normal(0, 14, len(along)))
        line = np.column_stack((along, across) if rng.random() < 0.5 else (across, along))
        cv2.polylines(picture, [np.rint(line).astype(np.int32)], False, (150, 155, 160), 7, cv2.LINE_AA)
    for _ in range(420):
        x, y = rng.uniform(0, SIDE, 2)
        if rng.random() < 0.25:
            roof = cv2.boxPoints(((x, y), tuple(rng.uniform(10, 22, 2)), float(rng.uniform(0, 90))))
            cv2.fillConvexPoly(picture, np.rint(roof).astype(np.int32), (60, 75, float(rng.uniform(120, 190))))
        else:
            cv2.circle(picture, (int(x), int(y)), int(rng.uniform(4, 11)), (40, float(rng.uniform(60, 95)), 50), -1)
    return picture


def _waves(rng: np.random.Generator, sigma: float) -> NDArray[np.float32]:
    """Return smooth noise (SIDE, SIDE) of deviation 1."""
    noise = cv2.GaussianBlur(rng.standard_normal((SIDE, SIDE)).astype(np.float32), (0, 0), sigma)
    return np.asarray(noise / noise.std(), np.float32)


def _view(landscape: NDArray[np.uint8], time: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the frame at a time from 0 to 1."""
    angle = 2 * np.pi * ROUNDS * time
    x, y = SIDE / 2 + RADIUS * np.array([np.cos(angle), np.sin(angle)]) + rng.normal(0, 3, 2)
    scene_from_frame = cv2.getRotationMatrix2D(((WIDTH - 1) / 2, (HEIGHT - 1) / 2), 12 * np.sin(3 * angle), 1.0)
    scene_from_frame[:, 2] += [x - (WIDTH - 1) / 2, y - (HEIGHT - 1) / 2]
    scene_from_frame[:, :2] *= 1 + 0.04 * np.sin(2 * angle)
    frame = cv2.warpAffine(landscape, scene_from_frame, (WIDTH, HEIGHT), flags=cv2.INTER_AREA | cv2.WARP_INVERSE_MAP)
    light = 1 + 0.1 * np.sin(5 * angle)
    lit = light * frame + rng.normal(0, NOISE, frame.shape)
    return np.asarray(np.clip(lit, 0, 255), dtype=np.uint8)
