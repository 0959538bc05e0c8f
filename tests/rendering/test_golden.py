"""A mosaic as it was when people looked at it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

from smalti.rendering.mosaic import Mosaic
from smalti_lab.synthetic.camera_path import raster
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

GOLDEN = Path(__file__).parent / "golden" / "multiband.png"


def render() -> np.ndarray:
    """Twelve frames with changing exposure and a dark rim."""
    scene = procedural_scene(180, 140, seed=11)
    camera = raster((180, 140), 12, (80, 60), step=0.3, sidelap=0.5)
    sequence = SyntheticSequence(scene, camera, Degradation(exposure=0.2, vignetting=0.3), seed=4)
    world = {k: np.vstack([matrix, [0, 0, 1]]) for k, matrix in enumerate(sequence.mosaic_from_frame)}
    return Mosaic(sequence, world, 80, 60).image()


def test_the_mosaic_looks_as_it_did():
    """Renew after a change that is meant, look at the file, and say so in the commit:

    SMALTI_RENEW_GOLDEN=1 .venv/bin/python -m pytest tests/rendering/test_golden.py
    """
    image = render()
    if os.environ.get("SMALTI_RENEW_GOLDEN"):
        Image.fromarray(image).save(GOLDEN, optimize=True)
    golden = np.asarray(Image.open(GOLDEN))
    assert GOLDEN.stat().st_size < 60_000
    assert image.shape == golden.shape
    np.testing.assert_array_equal(image[..., 3], golden[..., 3])
    difference = abs(image.astype(int) - golden)
    assert difference.mean() < 0.5
    assert difference.max() < 8
