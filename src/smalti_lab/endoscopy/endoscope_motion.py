"""The motion of a hand-held scope: position, distance, rotation and tilt in every frame."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings, Hand
from smalti_lab.synthetic.camera_path import Handling, follow_curve, view_tilted, wander
from smalti_lab.synthetic.degradation import draw_drift

HASTE_FRAMES = 8.0
PAUSE_FRAMES = 10.0
TURN_FRAMES = 60.0
ZOOM_FRAMES = 50.0
TILT_FRAMES = 80.0
"""Each of these changes over so many frames."""

KNOT_STEP = 0.2
"""Frame widths between the points through which the path is drawn."""

LEAST_RANGE = 0.5
"""Frame sides that the scope must be able to move along each side of the scene."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """The motion of the hand in every frame. The plane is that of the undeformed tissue, in scene pixels."""

    centres: Points  # (N, 2), plane point at the frame's middle
    turn: NDArray[np.float64]  # (N,), radians, clockwise on the screen
    scale: NDArray[np.float64]  # (N,), scene pixels a frame pixel in the middle of the frame
    plane_from_frame: Homographies  # (N, 3, 3)

    def step(self, n: int) -> Points:
        """Return the motion to the next frame, or for the last frame from the one before, pixels of frame n: (2,)."""
        here = min(n, len(self.centres) - 2)
        step = (self.centres[here + 1] - self.centres[here]) / self.scale[n]
        cos, sin = math.cos(self.turn[n]), math.sin(self.turn[n])
        return np.array([cos * step[0] + sin * step[1], cos * step[1] - sin * step[0]])

    @property
    def pan(self) -> Points:
        """(N, 2): how far the tissue has moved through the picture since the first frame, in frame pixels."""
        steps = np.array([self.step(n) for n in range(len(self.centres) - 1)])
        return np.concatenate([np.zeros((1, 2)), -np.cumsum(steps, axis=0)])


def move_hand(settings: EndoscopeSettings, scene_size: tuple[int, int], seed: int, rng: np.random.Generator) -> Motion:
    """Draw a path that stays inside the scene and comes back to places, and the handling of the scope.

    The seed is that of the path, which `wander` draws. Everything else comes from `rng`.
    """
    hand, frames = settings.hand, settings.frames
    centres = _draw_path(settings, scene_size, _draw_steps(hand, frames, rng), seed)
    scale = hand.scale * (1 + hand.zoom) ** draw_drift(frames, ZOOM_FRAMES, rng)
    centres = centres + hand.tremor_px * scale[:, None] * rng.standard_normal((frames, 2))
    turn = math.radians(hand.turn_degrees) * draw_drift(frames, TURN_FRAMES, rng)
    lean = [math.radians(hand.tilt_degrees) / math.sqrt(2) * draw_drift(frames, TILT_FRAMES, rng) for _ in range(2)]
    middle = Outline.of_pixels(settings.width, settings.height).centre
    return Motion(
        centres, turn, scale, view_tilted(centres, turn, scale, np.stack(lean, axis=1), hand.focal_px, middle)
    )


def _draw_steps(hand: Hand, frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the motion of the scope from each frame to the next, (frames - 1,), in frame pixels."""
    haste = (1 + draw_drift(frames - 1, HASTE_FRAMES, rng)) / 2
    # About one frame in seven falls into a pause, which the hand enters and leaves gently.
    rest = np.clip((draw_drift(frames - 1, PAUSE_FRAMES, rng) - 0.75) / 0.1, 0, 1)
    return np.asarray((hand.slowest_px + (hand.fastest_px - hand.slowest_px) * haste) * (1 - 0.95 * rest), np.float64)


def _draw_path(
    settings: EndoscopeSettings, scene_size: tuple[int, int], steps: NDArray[np.float64], seed: int
) -> Points:
    """Return points (frames, 2) on a smooth path, with the given steps between them."""
    hand = settings.hand
    run = hand.scale * np.concatenate([[0.0], np.cumsum(steps)])
    pace = KNOT_STEP * settings.width * hand.scale
    # A tilted frame shows a little more on one side.
    more = 1 + settings.width / hand.focal_px * math.tan(math.radians(hand.tilt_degrees))
    handling = Handling(hand.turn_degrees, (1 + hand.zoom) * more - 1, scale=hand.scale)
    size = (settings.width, settings.height)
    needed = [
        math.ceil(2 * r + LEAST_RANGE * hand.scale * side) for r, side in zip(handling.reach(*size), size, strict=True)
    ]
    if scene_size[0] < needed[0] or scene_size[1] < needed[1]:
        raise UsageError(
            f"endoscope: a scene of {scene_size[0]} × {scene_size[1]} pixels leaves no room to move a frame of "
            f"{size[0]} × {size[1]} about; give one of at least {needed[0]} × {needed[1]}"
        )
    knots = math.ceil(run[-1] / pace) + 4
    if hand.onward:
        return _move_on(run, np.array(scene_size) - 2 * np.array(handling.reach(*size)), scene_size)
    places = wander(scene_size, knots, size, step=KNOT_STEP, visits=hand.visits, handling=handling, seed=seed).centres
    return follow_curve(places, run)


def _move_on(run: NDArray[np.float64], free: NDArray[np.float64], scene_size: tuple[int, int]) -> Points:
    """Return points (frames, 2) on a wave along the scene's longer side, which never come back to a place."""
    longer = int(np.argmax(free))
    share = np.linspace(-0.5, 0.5, 257)
    wave = np.empty((len(share), 2))
    wave[:, longer] = free[longer] * share
    wave[:, 1 - longer] = 0.4 * free[1 - longer] * np.sin(4 * np.pi * share)
    points = follow_curve(Outline.of_pixels(*scene_size).centre + wave, run)
    if run[-1] > np.linalg.norm(np.diff(wave, axis=0), axis=1).sum():
        raise UsageError(
            f"endoscope: a scene of {scene_size[0]} × {scene_size[1]} pixels is too short to move on for "
            f"{run[-1]:.0f} pixels; give a longer scene or fewer frames"
        )
    return points
