"""Drawn vessels with known centre lines, and a walk of a camera over them."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import compose, invert, square
from smalti.records import Pair, Points
from smalti_lab.synthetic.camera_path import Handling, raster
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

SIZE = (320, 240)
HAND_PX = 3.0
WIDTH_PX = 2.5
"""Standard deviation of a vessel's Gaussian profile."""

SHARE = np.linspace(0.0, 1.0, 3000)
STRAIGHT = np.column_stack([-60 + 440 * SHARE, 60 + 80 * SHARE])
ARC = np.column_stack([160 + 130 * np.cos(3.9 - 2.2 * SHARE), 220 + 130 * np.sin(3.3 + 1.9 * SHARE)])
WAVE = np.column_stack([-60 + 440 * SHARE, 120 + 25 * np.sin(7.5 * SHARE - 0.5)])
LINES = {"straight": STRAIGHT, "arc": ARC, "wave": WAVE}

SCENE = (800, 620)


def draw(line: Points | None, rng: np.random.Generator, noise: float = 3.0, depth: float = 30.0, texture: float = 0.0):
    """A frame with a vessel, darker than its surroundings where `depth` is positive; None: without one."""
    width, height = SIZE
    picture = np.full((height, width), 120.0)
    if line is not None:
        x, y = np.meshgrid(np.arange(width), np.arange(height))
        pixels = np.column_stack([x.ravel(), y.ravel()])
        near = cKDTree(line).query(pixels, distance_upper_bound=5 * WIDTH_PX)[0].reshape(height, width) ** 2
        picture -= depth * np.exp(-near / (2 * WIDTH_PX**2))
    if texture:
        cloth = gaussian_filter(rng.normal(size=picture.shape), 4.0)
        picture += texture * cloth / cloth.std()
    return np.clip(np.rint(picture + rng.normal(0.0, noise, picture.shape)), 0, 255).astype(np.uint8)


def drawn_along(line: Points, rng: np.random.Generator, hand_px: float = HAND_PX, count: int = 20) -> Points:
    """A stroke as a quick hand draws it."""
    at = line[np.linspace(0, len(line) - 1, count).astype(int)]
    return at + rng.normal(0.0, hand_px, at.shape)


def inside(line: Points, first: float = 0.2, last: float = 0.8) -> Points:
    """The middle part of a line."""
    return line[int(first * len(line)) : int(last * len(line))]


def off_line(points: Points, line: Points) -> NDArray[np.float64]:
    """Distances (n,), with their sign, of points from a line."""
    nearest = cKDTree(line).query(points)[1]
    tangents = np.gradient(line, axis=0)[nearest]
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    away = points - line[nearest]
    return away[:, 1] * tangents[:, 0] - away[:, 0] * tangents[:, 1]


@cache
def vessel_lines() -> tuple[Points, ...]:
    """Vessels of a scene: bent ones in several directions."""
    share, (width, height) = np.linspace(0, 1, 400), SCENE
    down = [width * k / 6 + 40 * np.sin(9 * share + k) + 60 * (share - 0.5) for k in range(1, 6)]
    right = [height * k / 5 + 35 * np.sin(11 * share + 2 * k) for k in range(1, 5)]
    return (
        *(np.column_stack([x, height * share]) for x in down),
        *(np.column_stack([width * share, y]) for y in right),
    )


@cache
def vessel_walk() -> SyntheticSequence:
    """Ten frames in strips over tissue with vessels and little else."""
    rng = np.random.default_rng(7)
    tissue = np.full((SCENE[1], SCENE[0], 3), (190.0, 120.0, 100.0))
    cloth = gaussian_filter(rng.normal(size=tissue.shape[:2]), 2.0)
    tissue += 7.0 * (cloth / cloth.std())[:, :, None]
    vessels = np.zeros(tissue.shape[:2], np.uint8)
    for line in vessel_lines():
        fixed = np.rint(line * 16).astype(np.int32)
        cv2.polylines(vessels, [fixed[:, None]], False, 255, 5, cv2.LINE_AA, 4)
    tissue -= 45.0 * gaussian_filter(vessels / 255.0, 1.2)[:, :, None]
    scene = np.clip(tissue, 0, 255).astype(np.uint8)
    camera = raster(SCENE, 10, SIZE, handling=Handling(heading_degrees=6, zoom=0.03), sidelap=0.5, step=0.3, seed=3)
    return SyntheticSequence(scene, camera, Degradation(noise=4.0))


def true_map(pair: Pair) -> NDArray[np.float64]:
    """i_from_j, (3, 3), of the walk."""
    maps = vessel_walk().mosaic_from_frame
    return square(compose(invert(maps[pair.i]), maps[pair.j]))


def vessels_in(pair: Pair) -> list[tuple[Points, Points]]:
    """The vessels that both frames of the walk show, longest first: their centre lines in i and in j."""
    maps = vessel_walk().mosaic_from_frame
    found = []
    for line in vessel_lines():
        of_i, of_j = (apply_map(square(invert(maps[n])), line) for n in (pair.i, pair.j))
        both = np.logical_and(*(vessel_walk().outline.scaled(0.9).contains(points) for points in (of_i, of_j)))
        runs = np.split(np.arange(len(line)), np.flatnonzero(np.diff(both)) + 1)
        longest = max((run for run in runs if both[run[0]]), key=len, default=None)
        if longest is not None and len(longest) > 20:
            found.append((of_i[longest], of_j[longest]))
    return sorted(found, key=lambda two: -np.ptp(two[0], axis=0).max())


def bare_place(pair: Pair) -> Points:
    """The place (2,) of i, seen by both frames, that is farthest from every vessel."""
    x, y = np.meshgrid(np.arange(40.0, SIZE[0] - 40.0, 5.0), np.arange(50.0, SIZE[1] - 50.0, 5.0))
    places = np.column_stack([x.ravel(), y.ravel()])
    in_j = apply_map(np.linalg.inv(true_map(pair)), places)
    places = places[vessel_walk().outline.scaled(0.7).contains(in_j)]
    in_scene = apply_map(square(vessel_walk().mosaic_from_frame[pair.i]), places)
    distances, _ = cKDTree(np.vstack(vessel_lines())).query(in_scene)
    return places[np.argmax(distances)]
