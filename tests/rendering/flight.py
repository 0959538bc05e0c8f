"""A camera whose exposure jumps flies over a textured scene; what a mosaic of its frames should be is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic import Mosaic
from smalti_lab.synthetic.camera_path import raster
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.rendering.scene import Frames

WIDTH, HEIGHT, FRAMES = 192, 144, 40
VIGNETTING = 0.4


@dataclass(frozen=True, eq=False)
class SteppedSequence(SyntheticSequence):
    """Its exposure goes 30 % up or down every few frames, with or without regard to where the camera is."""

    regular: bool = False

    @cached_property
    def gains(self) -> np.ndarray:
        if self.regular:
            # Steps of as many frames as nearly half a strip: they go with the place.
            return 0.7 * np.where(np.arange(len(self)) // 5 % 2 == 0, 1.3, 0.7)
        steps = np.random.default_rng(6).permutation(np.repeat([0.7, 1.0, 1.3], 14))[: len(self)]
        return 0.7 * np.repeat(steps[::2], 2)


@cache
def sequence(regular: bool = False) -> SteppedSequence:
    scene = procedural_scene(640, 480, seed=3)
    camera = raster((640, 480), FRAMES, (WIDTH, HEIGHT), step=0.25, sidelap=0.5)
    return SteppedSequence(scene, camera, Degradation(vignetting=VIGNETTING), regular=regular)


@cache
def frames(regular: bool = False) -> dict[int, np.ndarray]:
    return dict(sequence(regular).read_many(range(FRAMES)))


def world() -> dict[int, np.ndarray]:
    return {k: np.vstack([matrix, [0, 0, 1]]) for k, matrix in enumerate(sequence().mosaic_from_frame)}


@cache
def mosaic(regular: bool = False) -> Mosaic:
    return Mosaic(Frames(frames(regular)), world(), WIDTH, HEIGHT)


@cache
def render(blend: str, even_light: bool, regular: bool = False) -> np.ndarray:
    flown = mosaic(regular)
    return flown.render(flown.canvas(), blend, even_light=even_light)


def truth(canvas: Canvas) -> np.ndarray:
    left, top = int(canvas.left), int(canvas.top)
    return sequence().scene[top : top + canvas.height, left : left + canvas.width].astype(float)


def errors(image: np.ndarray) -> np.ndarray:
    """(h, w, 3): what is left beside the truth after the best global gain, NaN where nothing is."""
    expected = truth(mosaic().canvas())
    covered = image[..., 3] > 0
    colours = image[..., :3].astype(float)
    gain = (colours[covered] * expected[covered]).sum() / (colours[covered] ** 2).sum()
    return np.where(covered[..., None], gain * colours - expected, np.nan)


def psnr(image: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.nanmean(errors(image) ** 2)))
