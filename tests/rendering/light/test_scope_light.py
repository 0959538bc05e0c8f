"""A scope lights the middle of its round field three times as much as the rim, and its lamp moves."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest

from smalti.rendering.mosaic import BLENDS, Mosaic
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings, Hand, Tissue
from tests.rendering.scene import Frames

SETTINGS = EndoscopeSettings(
    50, 160, 160, hand=Hand(slowest_px=3, fastest_px=8, visits=0.7), tissue=Tissue(deformation_px=0, contrast=14)
)


def smooth_scene() -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal((700, 700)).astype(np.float32)
    waves = [cv2.GaussianBlur(noise, (0, 0), sigma) * sigma for sigma in (3, 9, 27)]
    grey = np.clip(128 + 40 * sum(waves) / np.std(sum(waves)), 0, 255).astype(np.uint8)
    return np.dstack([grey] * 3)


@cache
def scope() -> tuple[Mosaic, dict[int, np.ndarray], np.ndarray]:
    """Return the mosaic by the true maps, the frames and the field of view."""
    sequence = EndoscopeSequence(smooth_scene(), SETTINGS, seed=1)
    frames = {n: sequence.frame(n) for n in range(len(sequence))}
    field = np.logical_and.reduce([sequence.field(n) for n in frames])
    field = cv2.erode(field.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    world = {n: sequence.motion.plane_from_frame[n] for n in frames}
    return Mosaic(Frames(frames), world, 160, 160, field), frames, field


def clipped_share(colours: np.ndarray) -> float:
    """Return the share of pixels (n, 3) with a clipped channel."""
    return float((colours == 255).any(axis=1).mean())


def render(blend: str, even_light: bool = True) -> np.ndarray:
    mosaic = scope()[0]
    image = mosaic.render(mosaic.canvas(), blend, even_light=even_light)
    return image[image[..., 3] > 0][:, :3]


@pytest.mark.parametrize("blend", BLENDS)
def test_nothing_clips_that_did_not_clip_in_its_frame(blend):
    _, frames, field = scope()
    in_frames = np.mean([clipped_share(frame[field]) for frame in frames.values()])
    assert in_frames < 0.002
    assert clipped_share(render(blend)) <= in_frames


def test_an_unclipped_highlight_at_the_rim_is_not_clipped_by_the_correction():
    mosaic, _, field = scope()
    highlight = np.full((160, 160, 3), 254, dtype=np.uint8)
    exposure = mosaic._layout.exposure(even_light=True)
    assert exposure.white > 2 * 255
    alone = Mosaic(Frames({0: highlight}), {0: np.eye(3)}, 160, 160, field)
    alone._layout.plan()
    alone._layout.exposure = lambda even_light: exposure
    for blend in BLENDS:
        image = alone.render(alone.canvas(), blend)
        assert image[image[..., 3] > 0].shape[0] == field.sum()
        assert image[..., :3].max() == 254, blend


def test_the_light_is_even_and_not_dark():
    even, raw = render("multiband").max(axis=1), render("multiband", even_light=False).max(axis=1)
    # Without the light, only the tissue is left.
    assert even.std() / even.mean() < 0.6 * raw.std() / raw.mean()
    assert np.median(even) > np.median(raw)
