"""The lamp at the scope's tip, glints, and floating particles."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.records import Points
from smalti_lab.endoscopy.endoscope_settings import Light
from smalti_lab.endoscopy.endoscope_view import FieldsOfView
from smalti_lab.synthetic.degradation import draw_drift

WANDER_FRAMES = 50.0
WANDER = 0.4
SPOT = 0.5
BRIGHTNESS = 1.6
"""How far the spot moves and how wide it is, in radii of the field of view, and how bright its middle is."""

RIPPLES = 512
RIPPLE_PX = 5.0
RIPPLE_PACES = (0.35, 0.75)
"""Two layers of ripples in the fluid follow the tissue, each at a fraction of its speed. A glint is where they meet."""

STEEP = 2.3
SOFT = 0.35
LEAN = 3.0
"""How steep ripples must be to glint in the middle of the spot, in standard deviations.

Then how soft the rim of a glint is, and how much steeper the ripples must be far away from the spot.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Lighting:
    """The light of every frame."""

    light: Light
    fields: FieldsOfView
    gains: NDArray[np.float64]  # (N,), exposure
    spots: Points  # (N, 2), frame pixels
    pan: Points  # (N, 2), frame pixels
    ripples: NDArray[np.float32]  # (2, RIPPLES, RIPPLES), periodic

    def shade(self, n: int) -> NDArray[np.float32]:
        """Return the light of each pixel of frame n: (h, w), about 1."""
        light, radius = self.light, self.fields.radius_px
        x, y = self._offsets(self.fields.centres[n])
        falloff = np.maximum(1 - light.vignetting * (x**2 + y[:, None] ** 2) / radius**2, 0)
        lit = (1 - light.spot) + light.spot * BRIGHTNESS * self._spot(n)
        return np.asarray(float(self.gains[n]) * falloff * lit, np.float32)

    def glints(self, n: int) -> NDArray[np.float32]:
        """Return the share of highlight of each pixel of frame n: (h, w), 0 to 1."""
        height, width = self.fields.height, self.fields.width
        steepness = LEAN * (self._spot(n) - 1)
        for layer, pace in zip(self.ripples, RIPPLE_PACES, strict=True):
            right, down = np.rint(pace * self.pan[n]).astype(np.int64)
            rows, columns = (np.arange(height) - down) % RIPPLES, (np.arange(width) - right) % RIPPLES
            steepness += np.float32(self.light.wetness) * layer[rows][:, columns]
        return np.asarray(np.clip((steepness - STEEP) / SOFT, 0, 1), np.float32)

    def _spot(self, n: int) -> NDArray[np.float32]:
        """Return the spot of frame n: (h, w), 1 in its middle and less around."""
        x, y = self._offsets(self.spots[n])
        width = SPOT * self.fields.radius_px
        return np.asarray(np.exp(-0.5 * (y / width) ** 2)[:, None] * np.exp(-0.5 * (x / width) ** 2), np.float32)

    def _offsets(self, point: Points) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the distances of the columns (w,) and rows (h,) from a point."""
        return (
            np.arange(self.fields.width, dtype=np.float32) - np.float32(point[0]),
            np.arange(self.fields.height, dtype=np.float32) - np.float32(point[1]),
        )


def draw_lighting(
    light: Light, gains: NDArray[np.float64], fields: FieldsOfView, pan: Points, rng: np.random.Generator
) -> Lighting:
    """Draw the light of all frames. Their exposure (N,) is given."""
    frames = len(fields.centres)
    wander = np.stack([draw_drift(frames, WANDER_FRAMES, rng) for _ in range(2)], axis=1)
    noise = rng.standard_normal((2, RIPPLES, RIPPLES)).astype(np.float32)
    ripples = np.stack([_smooth_periodic(layer) for layer in noise]) / np.sqrt(2)
    spots = fields.centres + WANDER * fields.radius_px * wander
    return Lighting(light, fields, gains, spots, pan, np.asarray(ripples, np.float32))


def _smooth_periodic(noise: NDArray[np.float32]) -> NDArray[np.float32]:
    """Blur noise across its borders, and scale it to deviation 1."""
    reach = int(4 * RIPPLE_PX)
    wide = cv2.copyMakeBorder(noise, reach, reach, reach, reach, cv2.BORDER_WRAP)
    smooth = cv2.GaussianBlur(wide, (0, 0), RIPPLE_PX)[reach:-reach, reach:-reach]
    return np.asarray(smooth / smooth.std(), np.float32)


LIFE_FRAMES = (40.0, 160.0)
RADIUS_PX = (1.2, 7.0)
FASTEST_PX = 2.5
FADE_FRAMES = 8.0
OUTSIDE_PX = 30.0
"""A particle that is so far outside the frame leaves, and another one enters on the other side."""


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
    pace: NDArray[np.float64]  # (m,), fraction of the tissue's motion that it follows
    radius: NDArray[np.float64]  # (m,)
    softness: NDArray[np.float64]  # (m,), width of its rim
    opacity: NDArray[np.float64]  # (m,)

    def places(self, n: int) -> tuple[NDArray[np.int64], Points]:
        """Return the particles that exist in frame n, and their positions: (k,) and (k, 2)."""
        age = n - self.born
        alive = np.flatnonzero((age >= 0) & (age < self.life))
        moved = self.start[alive] + age[alive, None] * self.velocity[alive] + self.pace[alive, None] * self.pan[n]
        size = np.array([self.width, self.height]) + 2 * OUTSIDE_PX
        return alive, moved % size - OUTSIDE_PX

    def cover(self, n: int) -> NDArray[np.float32]:
        """Return the share of each pixel of frame n that particles hide: (h, w), 0 to 1."""
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
            # Smooth at both ends, because an out-of-focus disc has no sharp rim.
            part = self.opacity[one] * fade * edge * edge * (3 - 2 * edge)
            clear[np.ix_(rows, columns)] *= (1 - part).astype(np.float32)
        return 1 - clear


def draw_particles(count: float, size: tuple[int, int], pan: Points, rng: np.random.Generator) -> Particles:
    """Draw particles such that `count` exist at a time on average."""
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
