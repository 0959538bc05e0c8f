"""A scene seen by a camera on a path: frames rendered on demand, each with its exact map."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.linear_maps import apply, compose, invert
from smalti.geometry.outline import Outline
from smalti.records import PairNumbers, Points, Transforms
from smalti_lab.synthetic.camera_path import CameraPath
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.resampling import resample
from smalti_lab.synthetic.truth import LEAST_OVERLAP, PairErrors, find_overlaps, measure_errors


class RenderedFrames(ABC):
    """Frames rendered on demand. There is no file, and no frame is damaged."""

    path = Path("synthetic")
    scale = 1.0
    warnings: tuple[str, ...] = ()

    @property
    @abstractmethod
    def width(self) -> int:
        """Width of a frame in pixels."""

    @property
    @abstractmethod
    def height(self) -> int:
        """Height of a frame in pixels."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render frame n: (height, width, 3), RGB."""

    def read(self, index: int) -> NDArray[np.uint8]:
        """Render the frame with this number."""
        return self.frame(index)

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Render frames one after the other."""
        for index in indices:
            yield index, self.frame(index)

    def close(self) -> None:  # a source must have it  # noqa: B027
        """Do nothing: no file is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class SyntheticSequence(RenderedFrames):
    """Frames cut from a scene; a source of frames.

    Frame n is always the same. `path` is, as in any source, where the frames come from. The camera's own path is
    `camera`.
    """

    scene: NDArray[np.uint8]  # (h, w, 3)
    camera: CameraPath
    degradation: Degradation = field(default_factory=Degradation)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.scene.ndim != 3 or self.scene.shape[2] != 3 or self.scene.dtype != np.uint8:
            raise UsageError(f"a scene is (h, w, 3) of uint8, this one is {self.scene.shape} of {self.scene.dtype}")
        size = Outline.of_pixels(self.scene.shape[1], self.scene.shape[0])
        inside = size.contains(self.camera.footprints, tolerance=1e-6).all(axis=1)
        if not inside.all():
            raise UsageError(
                f"path '{self.camera.name}': frame {int(np.argmin(inside))} leaves the scene of {size.width:.0f} × "
                f"{size.height:.0f} pixels; make the path for that size"
            )

    def __len__(self) -> int:
        return len(self.camera)

    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render frame n: (height, width, 3), RGB."""
        if not 0 <= n < len(self):
            raise UsageError(f"frame {n}: the sequence has frames 0 to {len(self) - 1}")
        motion = self._motion(n)
        margin = self.degradation.margin(motion)
        sharp = resample(self.scene, self.mosaic_from_frame[n], self.width, self.height, margin)
        return self.degradation.apply(sharp, motion, self.gains[n], np.random.default_rng([self.seed, 3, n]))

    @property
    def mosaic_from_frame(self) -> Transforms:
        """(N, 2, 3): the truth, in scene pixels."""
        return self.camera.mosaic_from_frame

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """(N,): each frame's exposure."""
        return self.degradation.gains(len(self), self.seed)

    def overlapping_pairs(self, least: float = LEAST_OVERLAP) -> PairNumbers:
        """Return the pairs (n, 2), i < j, that share at least this fraction of the smaller one's footprint."""
        return find_overlaps(self.mosaic_from_frame, self.outline, least)

    def truth_error(self, mosaic_from_frame: NDArray[np.float64], frames: Iterable[int] | None = None) -> PairErrors:
        """Compare estimated maps, (n, 2, 3) or (n, 3, 3), with the truth, over all pairs that overlap by a tenth.

        `frames` are the numbers of the placed frames, in the order of the maps; all by default.
        """
        return measure_errors(mosaic_from_frame, self.mosaic_from_frame, self.outline, frames)

    def points_in(self, i: int, j: int, points_j: Points) -> Points:
        """Return where points (n, 2) of frame j lie in frame i."""
        maps = self.mosaic_from_frame
        return apply(compose(invert(maps[i]), maps[j]), points_j)

    def field(self, n: int) -> NDArray[np.bool_]:
        """Return which pixels (h, w) of frame n show the scene: all."""
        return np.ones((self.height, self.width), dtype=np.bool_)

    @property
    def outline(self) -> Outline:
        """The frame's outline in its own pixels."""
        return self.camera.outline

    # The interface of a source of frames.

    @property
    def width(self) -> int:
        """Width of a frame in pixels."""
        return self.camera.width

    @property
    def height(self) -> int:
        """Height of a frame in pixels."""
        return self.camera.height

    @property
    def labels(self) -> tuple[str, ...]:
        """One for each frame."""
        return tuple(f"{self.camera.name} {n}" for n in range(len(self)))

    @property
    def files(self) -> tuple[Path, ...]:
        """None: the frames are computed."""
        return ()

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything that the frames depend on."""
        digest = hashlib.sha256(repr((self.scene.shape, self.width, self.height, self.degradation, self.seed)).encode())
        digest.update(np.ascontiguousarray(self.scene).data)
        digest.update(self.mosaic_from_frame.tobytes())
        return digest.hexdigest()[:16]

    def _motion(self, n: int) -> Points:
        """Return the motion to the next frame, or for the last frame from the one before, pixels of frame n: (2,)."""
        if len(self) == 1:
            return np.zeros(2)
        here = min(n, len(self) - 2)
        ends = apply(invert(self.mosaic_from_frame[n]), self.camera.centres[here : here + 2])
        motion: Points = ends[1] - ends[0]
        return motion
