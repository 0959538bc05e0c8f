from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.mosaic import Mosaic
from tests.rendering.scene import Frames, shift

SIDE = 40


def render(levels, x_of=lambda k: 0.0) -> np.ndarray:
    """The median of frames full of one grey level each."""
    frames = {k: np.full((SIDE, SIDE, 3), level, dtype=np.uint8) for k, level in enumerate(levels)}
    mosaic = Mosaic(Frames(frames), {k: shift(x_of(k), 0) for k in frames}, SIDE, SIDE)
    return mosaic.render(mosaic.canvas(), "median", even_light=False)


@pytest.mark.parametrize(
    ("levels", "expected"), [([70], 70), ([10, 200, 90], 90), ([10, 90, 110, 250], 100), ([50, 50, 50, 255, 255], 50)]
)
def test_the_colour_is_that_in_the_middle(levels, expected):
    image = render(levels)
    assert (image[..., :3] == expected).all()
    assert (image[..., 3] == 255).all()


def test_channels_have_their_own_middle():
    colours = [(10, 200, 30), (20, 100, 90), (30, 150, 60)]
    frames = {k: np.full((SIDE, SIDE, 3), colour, dtype=np.uint8) for k, colour in enumerate(colours)}
    mosaic = Mosaic(Frames(frames), dict.fromkeys(frames, np.eye(3)), SIDE, SIDE)
    image = mosaic.render(mosaic.canvas(), "median", even_light=False)
    assert image[20, 20].tolist() == [20, 150, 60, 255]


def test_a_frame_comes_and_goes_without_a_step():
    """Three frames, each with its border somewhere else: votes fade towards the rim."""
    line = render([100, 140, 120], lambda k: 15.0 * k)[20, :, 0].astype(int)
    assert (line[:15] == 100).all()
    # A border would be a step of 20 or 40.
    assert abs(np.diff(line)).max() <= 12


def test_many_frames_are_as_well_as_few():
    """More than there are slots for a pixel."""
    rng = np.random.default_rng(3)
    levels = rng.permutation(np.concatenate([rng.integers(118, 123, 40), np.full(12, 250), np.full(8, 5)]))
    image = render(levels.tolist())
    assert abs(image[..., :3].astype(int) - 120).max() <= 3
