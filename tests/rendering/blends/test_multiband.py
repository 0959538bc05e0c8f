from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.blends.seam_blends import levels_for, reach_of
from smalti.rendering.mosaic import Mosaic
from tests.rendering.scene import Frames, shift, tilt, turn
from tests.rendering.worlds import HEIGHT, WIDTH, WORLDS, disc, mosaic_of


def render(frames, world, blend="multiband", scale=1.0, mask=None) -> np.ndarray:
    height, width = next(iter(frames.values())).shape[:2]
    mosaic = Mosaic(Frames(frames), world, width, height, mask)
    return mosaic.render(mosaic.canvas(scale), blend, even_light=False)


@pytest.mark.parametrize(
    ("matrix", "scale"), [(shift(3, 4), 1.0), (turn(31), 1.7), (turn(-8) @ tilt(1e-3, 5e-4), 0.35)]
)
@pytest.mark.parametrize("mask", [None, disc()], ids=["whole", "disc"])
def test_one_frame_is_that_frame_whatever_its_bands(matrix, scale, mask):
    frames = {4: np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)}
    banded, plain = (render(frames, {4: matrix}, blend, scale, mask) for blend in ("multiband", "none"))
    # What the levels add and take away is rounded.
    assert np.mean(banded != plain) < 1e-3
    assert abs(banded.astype(int) - plain).max() <= 1


@pytest.mark.parametrize("axis", [0, 1])
def test_frames_of_different_brightness_change_over_smoothly_and_without_a_halo(axis):
    world = {0: shift(0, 0), 1: shift(*np.roll([200, 0], axis))}
    frames = {k: np.full((300, 300, 3), 100 + 60 * k, dtype=np.uint8) for k in world}
    image = render(frames, world)[..., :3].astype(int)
    lines = image.transpose(1, 0, 2)[..., 0] if axis else image[..., 0]
    assert lines.min() == 100
    assert lines.max() == 160
    assert (np.diff(lines, axis=1) >= 0).all()
    # 60 levels over bands of 16 pixels and their neighbours.
    assert np.diff(lines, axis=1).max() <= 4
    changing = (lines > 101) & (lines < 159)
    assert 20 < changing.sum(axis=1).mean() < 100


def test_far_from_seams_every_frame_is_shown_as_it_is():
    rng = np.random.default_rng(1)
    world = {0: shift(0, 0), 1: shift(200, 0)}
    frames = {k: rng.integers(60, 200, (300, 300, 3), dtype=np.uint8) for k in world}
    image = render(frames, world)[..., :3]
    np.testing.assert_array_equal(image[:, :120], frames[0][:, :120])
    np.testing.assert_array_equal(image[:, -120:], frames[1][:, -120:])


def test_detail_is_not_mixed_at_seams():
    """Each side keeps its own grain up to the seam: nothing is blurred."""
    rng = np.random.default_rng(2)
    world = {0: shift(0, 0), 1: shift(200, 0)}
    frames = {
        k: (120 + 30 * k + rng.choice([-20, 20], (300, 300, 1))).repeat(3, axis=2).astype(np.uint8) for k in world
    }
    grain = np.diff(render(frames, world)[..., 1].astype(float), axis=0).std(axis=0)
    assert grain.min() > 0.85 * np.median(grain)


@pytest.mark.parametrize("side", [1, 31, 32, 10**5])
def test_bands_are_narrow_beside_frames(side):
    levels = levels_for(side)
    assert 1 <= levels <= 6
    assert 2**levels <= max(side / 16, 2)
    assert reach_of(levels) >= 2 ** (levels + 2)


def test_the_mosaic_is_nearly_the_same_without_bands_where_frames_agree():
    """Frames that show the same have no seams to hide."""
    mosaic = mosaic_of(WORLDS["shifts"])
    pictures = [mosaic.render(mosaic.canvas(), blend, even_light=False).astype(int) for blend in ("multiband", "none")]
    difference = abs(pictures[0] - pictures[1])
    assert np.quantile(difference, 0.99) <= 1
