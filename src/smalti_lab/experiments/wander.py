"""A free path with many loops, over a scene in which some places look alike."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates, uniform_filter

from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.records import Points
from smalti_lab.experiments.worlds import OUTLINE, World, check_frames

STEP = 30.0
"""Pixels from frame to frame, a little less than on the raster."""

REGION_FRAMES = 600
RADIUS = 450.0
"""Radius of the region for so many frames. Its area grows with their number, so that places are seen equally often."""

REACHED = 120.0
"""Pixels from a target at which the camera turns to the next one."""

LARGEST_TURN = 0.3
"""Radians a step. The camera's path is smooth."""

TURN_PERSISTENCE = 0.8
"""The fraction of the turn of one step that is left in the next."""

TURN_NOISE = 0.05
"""Deviation of the random part of every turn, radians."""

WORDS = 200
WORDS_SHOWN = 35
"""In a frame, on average."""

CELL = 25.0
"""Pixels; the scene is a grid of such cells."""

ALIKE_WITHIN = 60.0
"""Pixels over which the appearance of a place changes: the deviation of the smoothing."""

CONTRAST = 1.5
"""Deviation of a word's log frequency over the plane."""

TEXTURES = 2
"""Textures that occur in several places: a field, a pattern of tiles."""

PATCHES = 7
"""In the region of `REGION_FRAMES` frames."""

PATCH_RADIUS = 110.0
PATCH_PURITY = 0.9
"""The share of the texture in the middle of its patch."""


def wander(frames: int, seed: int) -> World:
    """A smooth random walk that comes back to places, and signatures with false matches, both drawn by the seed."""
    check_frames("wander", frames)
    path, scene = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    positions = walk(frames, RADIUS * math.sqrt(frames / REGION_FRAMES), path)
    return World("wander", positions, WeightedSignatures(word_frequencies(positions, scene)))


def walk(frames: int, radius: float, rng: np.random.Generator) -> Points:
    """Return the positions (N, 2) of a camera that goes to one target after the other, none farther than `radius`."""
    positions = np.zeros((frames, 2))
    heading, turn = rng.uniform(0.0, 2.0 * math.pi), 0.0
    aim = _anywhere(radius, rng)
    for n in range(1, frames):
        x, y = positions[n - 1]
        while math.dist((x, y), aim) < min(REACHED, radius / 2):
            aim = _anywhere(radius, rng)
        towards = math.remainder(math.atan2(aim[1] - y, aim[0] - x) - heading, 2.0 * math.pi)
        wanted = max(-LARGEST_TURN, min(LARGEST_TURN, towards))
        turn = TURN_PERSISTENCE * turn + (1.0 - TURN_PERSISTENCE) * wanted + rng.normal(0.0, TURN_NOISE)
        heading += turn
        positions[n] = x + STEP * math.cos(heading), y + STEP * math.sin(heading)
    return positions


def _anywhere(radius: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return a uniformly random point of the region."""
    distance, angle = radius * math.sqrt(rng.uniform()), rng.uniform(0.0, 2.0 * math.pi)
    return distance * math.cos(angle), distance * math.sin(angle)


def word_frequencies(positions: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the frequency of each word in each frame (N, D), rows of length 1.

    The frequencies of words vary smoothly over the plane. Some patches along the path have the texture of one of a few
    kinds; all patches of a kind look the same. Each frame has its own counting error, because keypoints that are found
    in one frame are missed in the next.
    """
    corner = positions.min(axis=0) - OUTLINE.width
    shape = tuple(np.ceil((np.ptp(positions, axis=0) + 2 * OUTLINE.width) / CELL).astype(int))
    patches = rng.choice(positions, math.ceil(PATCHES * len(positions) / REGION_FRAMES), replace=False) - corner
    frequency = _with_patches(_word_grid(shape, rng), patches, rng)
    shown = uniform_filter(frequency, size=(0, round(OUTLINE.width / CELL), round(OUTLINE.height / CELL)))
    at = ((positions - corner) / CELL - 0.5).T
    expected = np.stack([map_coordinates(of_word, at, order=1, mode="nearest") for of_word in shown], axis=1)
    counts = rng.poisson(WORDS_SHOWN * expected) + 0.0
    signatures: NDArray[np.float64] = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return signatures


def _word_grid(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the frequency of every word on the grid (D, x, y), sum 1."""
    smooth = gaussian_filter(rng.normal(size=(WORDS, *shape)), sigma=(0, ALIKE_WITHIN / CELL, ALIKE_WITHIN / CELL))
    return _as_frequency(smooth / smooth.std())


def _with_patches(places: NDArray[np.float64], patches: Points, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the frequencies with the same few textures at the patches, given by their centres."""
    x, y = np.meshgrid(*(CELL * (np.arange(length) + 0.5) for length in places.shape[1:]), indexing="ij")
    textures = _as_frequency(rng.normal(size=(WORDS, TEXTURES)))
    for number, (middle_x, middle_y) in enumerate(patches):
        distance = np.hypot(x - middle_x, y - middle_y)
        share = PATCH_PURITY * np.exp(-((distance / PATCH_RADIUS) ** 4))
        places = (1.0 - share) * places + share * textures[:, number % TEXTURES, None, None]
    return places


def _as_frequency(unit_deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    frequency = np.exp(CONTRAST * unit_deviation)
    shares: NDArray[np.float64] = frequency / frequency.sum(axis=0)
    return shares
