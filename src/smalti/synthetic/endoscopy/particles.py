"""Particles that float in the fluid between the scope and the tissue, each on its own way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.records import Points

LIFE_FRAMES = (40.0, 160.0)
RADIUS_PX = (1.2, 7.0)
FASTEST_PX = 2.5
FADE_FRAMES = 8.0
OUTSIDE_PX = 30.0
"""So far outside the frame a particle leaves on one side and another one enters on the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Particles:
    """All particles of a sequence; lengths in frame pixels."""

    width: int
    height: int
    pan: Points  # (N, 2)
    born: NDArray[np.float64]  # (m,), frame number
    life: NDArray[np.float64]  # (m,), frames
    start: Points  # (m, 2)
    velocity: Points  # (m, 2), a frame
    pace: NDArray[np.float64]  # (m,), which part of the tissue's motion it takes part in
    radius: NDArray[np.float64]  # (m,)
    softness: NDArray[np.float64]  # (m,), width of its rim
    opacity: NDArray[np.float64]  # (m,)

    def places(self, n: int) -> tuple[NDArray[np.int64], Points]:
        """Return which particles live in frame n, and where they are: (k,) and (k, 2)."""
        age = n - self.born
        alive = np.flatnonzero((age >= 0) & (age < self.life))
        moved = self.start[alive] + age[alive, None] * self.velocity[alive] + self.pace[alive, None] * self.pan[n]
        size = np.array([self.width, self.height]) + 2 * OUTSIDE_PX
        return alive, moved % size - OUTSIDE_PX

    def cover(self, n: int) -> NDArray[np.float32]:
        """Return how much of each pixel of frame n particles hide: (h, w), 0 to 1."""
        clear = np.ones((self.height, self.width), np.float32)
        alive, places = self.places(n)
        for one, (x, y) in zip(alive, places, strict=True):
            reach = self.radius[one] + self.softness[one]
            columns = np.arange(max(int(x - reach), 0), min(int(x + reach) + 2, self.width))
            rows = np.arange(max(int(y - reach), 0), min(int(y + reach) + 2, self.height))
            away = np.hypot(columns - x, (rows - y)[:, None])
            edge = np.clip((reach - away) / (2 * self.softness[one]), 0, 1)
            age = n - self.born[one]
            fade = min(age, self.life[one] - age, FADE_FRAMES) / FADE_FRAMES
            # Smooth at both ends: an out-of-focus disc has no rim.
            part = self.opacity[one] * fade * edge * edge * (3 - 2 * edge)
            clear[np.ix_(rows, columns)] *= (1 - part).astype(np.float32)
        return 1 - clear


def draw_particles(count: float, size: tuple[int, int], pan: Points, rng: np.random.Generator) -> Particles:
    """Draw so many particles that `count` live at a time on average."""
    frames = len(pan)
    shortest, longest = LIFE_FRAMES
    number = round(count * (frames + longest) * 2 / (shortest + longest))
    radius = RADIUS_PX[0] * (RADIUS_PX[1] / RADIUS_PX[0]) ** rng.random(number)
    focus = rng.random(number)
    angle = rng.uniform(0, 2 * np.pi, number)
    speed = FASTEST_PX * rng.random(number)
    return Particles(
        *size,
        pan,
        born=rng.uniform(-longest, frames, number),
        life=rng.uniform(shortest, longest, number),
        start=rng.uniform(0, 1, (number, 2)) * (np.array(size) + 2 * OUTSIDE_PX),
        velocity=np.stack([np.cos(angle), np.sin(angle)], axis=1) * speed[:, None],
        pace=rng.uniform(0.2, 1.7, number),
        radius=radius,
        softness=0.6 + radius * 0.9 * focus,
        opacity=0.9 - 0.65 * focus,
    )
