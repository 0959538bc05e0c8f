"""What hides a part of the scene in a frame: a tool that reaches in, dirt on the lens, a logo, a clock that runs."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti_lab.endoscopy.endoscope_settings import Obstacles
from smalti_lab.endoscopy.endoscope_view import FieldsOfView
from smalti_lab.synthetic.degradation import draw_drift

STEEL = (150.0, 155.0, 162.0)
DIRT = (60.0, 42.0, 36.0)
INK = (245.0, 245.0, 245.0)

TOOL_FRAMES = 40.0
"""The tool moves over so many frames."""

TOOL_DEPTH, TOOL_HALF_WIDTH = 1.1, 0.11
"""How far the tool reaches in at most, and its half width, in radii of the field of view."""

DIRT_OPACITY = 0.45
FRAMES_A_SECOND = 25


@dataclass(frozen=True, slots=True, eq=False)
class Obstructions:
    """The obstacles of every frame."""

    settings: Obstacles
    fields: FieldsOfView
    reach: NDArray[np.float64]  # (N,): how deep the tool reaches in, 0 to 1; negative if it is not in view
    angle: NDArray[np.float64]  # (N,): from where
    dirt: NDArray[np.float32]  # (h, w): share of each pixel

    def tool(self, n: int) -> NDArray[np.float32]:
        """Return the share of each pixel (h, w) of frame n that the tool hides: a rod with a round tip."""
        fields, radius = self.fields, self.fields.radius_px
        x, y = fields.centres[n]
        columns, rows = np.arange(fields.width) - x, (np.arange(fields.height) - y)[:, None]
        inward = -(columns * np.cos(self.angle[n]) + rows * np.sin(self.angle[n]))
        beside = np.abs(rows * np.cos(self.angle[n]) - columns * np.sin(self.angle[n]))
        tip = (TOOL_DEPTH * self.reach[n] - 1) * radius
        half = TOOL_HALF_WIDTH * radius
        outside = np.where(inward <= tip - half, beside, np.hypot(beside, inward - tip + half)) - half
        shown = np.clip(0.5 - outside / 2, 0, 1) if self.reach[n] >= 0 else np.zeros_like(outside)
        return np.asarray(shown, np.float32)

    def overlays(self, n: int) -> NDArray[np.float32]:
        """Return the same of the logo and the clock."""
        width, height = self.fields.width, self.fields.height
        ink = np.zeros((height, width), np.uint8)
        size, thick = width / 700, max(1, round(width / 300))
        if self.settings.logo:
            left, top = round(0.36 * width), round(0.13 * height)
            cv2.rectangle(ink, (left, top), (left + round(0.24 * width), top + round(0.07 * height)), 255, thick)
            place = (left + round(0.02 * width), top + round(0.05 * height))
            cv2.putText(ink, "SCOPE 7", place, cv2.FONT_HERSHEY_SIMPLEX, size, 255, thick, cv2.LINE_AA)
        if self.settings.clock:
            # The minutes run as fast as seconds, so that every digit but the first changes in a short sequence.
            seconds = 60 * n // FRAMES_A_SECOND + 17 * n
            text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            place = (round(0.36 * width), round(0.88 * height))
            cv2.putText(ink, text, place, cv2.FONT_HERSHEY_SIMPLEX, size, 255, thick, cv2.LINE_AA)
        return np.asarray(ink / np.float32(255), np.float32)


def draw_obstructions(settings: Obstacles, fields: FieldsOfView, rng: np.random.Generator) -> Obstructions:
    """Draw the obstacles of all frames."""
    frames = len(fields.centres)
    motion = draw_drift(frames, TOOL_FRAMES, rng)
    level = np.quantile(motion, 1 - settings.tool) if settings.tool else np.inf
    most = max(float(motion.max() - level), 1e-9)
    reach = np.where(motion >= level, (motion - level) / most, -1.0) if settings.tool else np.full(frames, -1.0)
    angle = rng.uniform(0, 2 * np.pi) + 0.4 * draw_drift(frames, TOOL_FRAMES, rng)
    return Obstructions(settings, fields, reach, angle, _draw_dirt(settings.dirt, fields, rng))


def _draw_dirt(count: int, fields: FieldsOfView, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw scratches, thin and faint, and specks."""
    dirt = np.zeros((fields.height, fields.width), np.float32)
    middle, radius = fields.centres.mean(axis=0), fields.radius_px
    for k in range(count):
        start = middle + 0.7 * radius * rng.uniform(-1, 1, 2) * np.sqrt(0.5)
        one = np.zeros_like(dirt)
        if k % 2:
            cv2.circle(one, tuple(map(round, start)), round(rng.uniform(3, 6)), 1.0, -1)
        else:
            turn, length = rng.uniform(0, 2 * np.pi), rng.uniform(0.15, 0.35) * radius
            end = start + length * np.array([np.cos(turn), np.sin(turn)])
            cv2.line(one, tuple(map(round, start)), tuple(map(round, end)), 1.0, 2)
        dirt = np.maximum(dirt, cv2.GaussianBlur(one, (0, 0), 0.8))
    return np.asarray(DIRT_OPACITY * dirt, np.float32)
