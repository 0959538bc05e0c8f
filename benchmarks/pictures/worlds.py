"""Sequences with known truth for every pixel: frames of a scene under light that changes from frame to frame."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.linear_maps import square
from smalti.rendering.canvas import Canvas
from smalti.rendering.mosaic import Mosaic
from smalti_lab.synthetic.camera_path import Handling, raster, wander
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import load_scene, procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[3] / "shared" / "data"))
PICTURE = DATA / "large_images" / "caliterra_IMG_9419_4000x3000.jpg"
FRAME = (640, 480)
HANDLING = Handling(heading_degrees=8, zoom=0.03, shake_px=2, shake_degrees=0.5)
DEGRADATION = Degradation(exposure=0.3, noise=2, vignetting=0.4)
EVEN_LIGHT = Degradation(noise=2)
SEED = 4


class SteppedSequence(SyntheticSequence):
    """A sequence whose exposure is drawn for every frame, uniformly within 1 ± `exposure`."""

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """(N,): each frame's exposure."""
        rng = np.random.default_rng([self.seed, 2])
        return np.asarray(1 + self.degradation.exposure * rng.uniform(-1, 1, len(self)), np.float64)


class KeptFrames:
    """Frames that are rendered once, because they are read again and again."""

    def __init__(self, frames: Mapping[int, NDArray[np.uint8]]) -> None:
        self._frames = frames

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield frames by their numbers."""
        return ((index, self._frames[index]) for index in indices)


@dataclass(frozen=True, eq=False)
class World:
    """Frames, and the scene from which they are cut."""

    name: str
    sequence: SyntheticSequence

    @cached_property
    def frames(self) -> dict[int, NDArray[np.uint8]]:
        """All frames by their numbers."""
        return {n: self.sequence.frame(n) for n in range(len(self.sequence))}

    @property
    def maps(self) -> dict[int, NDArray[np.float64]]:
        """Scene from frame, (3, 3), exact."""
        return dict(enumerate(square(self.sequence.mosaic_from_frame)))

    def mosaic(self, frames: Mapping[int, NDArray[np.uint8]] | None = None) -> Mosaic:
        """Return the mosaic of its frames, or of others with the same maps."""
        return Mosaic(KeptFrames(frames or self.frames), self.maps, *FRAME)

    def truth(self, canvas: Canvas) -> NDArray[np.uint8]:
        """Return the scene (h, w, 3) under a canvas of scale 1, whose pixels are the scene's own."""
        assert canvas.scale == 1, "the scene is known at its own pixels"
        left, top = int(canvas.left), int(canvas.top)
        # A canvas may begin or end half a pixel beyond the scene, where no frame is.
        padded = np.pad(self.sequence.scene, ((1, 1), (1, 1), (0, 0)), mode="edge")
        return padded[top + 1 : top + 1 + canvas.height, left + 1 : left + 1 + canvas.width]


def make_worlds() -> Iterator[World]:
    """Make a drone's strips over synthetic farmland and, if the data is there, a walk over a real picture."""
    yield make_farmland()
    if not PICTURE.exists():
        print(f"(no {PICTURE}: the walk over a real picture is left out)", file=sys.stderr)
        return
    walk = wander((4000, 3000), 90, FRAME, step=0.3, handling=HANDLING, seed=SEED)
    yield World("caliterra picture, walk", SteppedSequence(load_scene(PICTURE), walk, DEGRADATION, SEED))


def make_farmland(degradation: Degradation = DEGRADATION) -> World:
    """Make a drone's strips over synthetic farmland."""
    scene = procedural_scene(2400, 1800, seed=SEED)
    path = raster((2400, 1800), 40, FRAME, step=0.25, sidelap=0.35, handling=HANDLING, seed=SEED)
    light = "" if degradation.exposure else ", even light"
    return World(f"farmland, strips{light}", SteppedSequence(scene, path, degradation, SEED))
