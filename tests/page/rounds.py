"""A film of known truth: two rounds over the same ground, so blurred and noisy that a chain of its frames drifts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti_lab.simulated_agents import OracleAgent
from smalti_lab.synthetic.camera_path import Handling, circle
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_video
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

FRAMES = 40
WIDTH, HEIGHT = 320, 240
CLICK_SIGMA_PX = 1.5


@cache
def rounds() -> SyntheticSequence:
    scene_size = (1500, 1100)
    handling = Handling(heading_degrees=8, zoom=0.04, shake_px=1.0, shake_degrees=0.5)
    camera = circle(scene_size, FRAMES, (WIDTH, HEIGHT), step=0.38, revolutions=2, handling=handling, seed=5)
    return SyntheticSequence(procedural_scene(*scene_size, seed=4), camera, Degradation(noise=25.0, blur_px=1.5))


def write_rounds(folder: Path) -> Path:
    return write_video(rounds(), folder / "rounds.mp4", crf=18)


def careful_eye(seed: int = 0) -> OracleAgent:
    """What a careful person sees: every landmark a pixel or two from where it is."""
    x, y = np.linspace(24, WIDTH - 25, 4), np.linspace(24, HEIGHT - 25, 4)
    points: NDArray[np.float64] = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    # Not at the very rim, where a click beside the point is beside the frame.
    outline = rounds().outline.scaled(0.95)
    return OracleAgent(rounds().mosaic_from_frame, outline, points, sigma=CLICK_SIGMA_PX, seed=seed)
