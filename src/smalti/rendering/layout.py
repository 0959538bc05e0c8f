"""The layout of a mosaic: its frames and their maps. Light and frame selection are computed once, when needed."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smalti.errors import OutputError, UsageError
from smalti.frames.visibility import PartFinder
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.rendering.canvas import Canvas, frame_boxes
from smalti.rendering.exposure import Exposure, average_view, estimate_exposure, plain_exposure
from smalti.rendering.frame_cache import FrameCache, FramePyramid, FrameReader
from smalti.rendering.frame_survey import NO_WORTH, Survey, fill_hidden, find_neighbours
from smalti.rendering.light_comparison import compare, valid_cells
from smalti.rendering.sampling_kernels import Feather
from smalti.rendering.seams.patchwork import Patchwork
from smalti.rendering.seams.seam_candidates import select_frames


class Layout:
    """The frames of a mosaic, their maps, lens and mask.

    A frame's index is its rank in the order of frame numbers.
    """

    def __init__(
        self,
        frames: FrameReader,
        mosaic_from_frame: Mapping[int, NDArray[np.float64]],
        width: int,
        height: int,
        mask: NDArray[np.bool_] | None,
        sigma_px: Mapping[int, float],
        folder: Path | None,
        lens: Lens | None = None,
        say: Callable[[str], None] = lambda message: None,
        finder: PartFinder | None = None,
    ) -> None:
        self.numbers = sorted(mosaic_from_frame)
        for number in self.numbers:
            if np.shape(mosaic_from_frame[number]) != (3, 3):
                raise UsageError(f"frame {number}: its map has shape {np.shape(mosaic_from_frame[number])}, not (3, 3)")
        if mask is not None and mask.shape != (height, width):
            raise UsageError(f"the mask has shape {mask.shape}, the frames have {(height, width)}: make them equal")
        maps = np.array([mosaic_from_frame[number] for number in self.numbers], dtype=np.float64).reshape(-1, 3, 3)
        # A map times a number is the same map. Choose the one with depth 1 at the centre of the frame.
        depths = maps[:, 2] @ np.array([(width - 1) / 2, (height - 1) / 2, 1.0])
        self.mosaic_from_frame = maps / np.where(np.isfinite(depths) & (depths != 0), depths, 1.0)[:, None, None]
        self.width, self.height = width, height
        self.lens = Lens(Outline.of_pixels(width, height)) if lens is None else lens
        """From undistorted pixels, which the maps take, to distorted pixels."""
        _check_lens(self.lens, width, height)
        self.mask = np.ones((height, width), dtype=np.bool_) if mask is None else mask.astype(np.bool_)
        self.feather = Feather(self.mask)
        self.sigma_px = np.array([sigma_px.get(number, 0.0) for number in self.numbers])
        self.keeps_results = folder is not None
        """Whether another run can use the intermediate results."""
        self._folder = Path(tempfile.mkdtemp(prefix="smalti-")) if folder is None else folder
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._frames = frames
        self.finder = finder
        """Finds the frames' own masks; None if they have none."""
        self.say = say
        self._plan: RenderPlan | None = None
        self._last_patchwork: tuple[tuple[Canvas, bool], Patchwork] | None = None

    @property
    def folder(self) -> Path:
        """The folder of the intermediate results."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self._folder}: cannot be made ({error.strerror}); check the permissions") from error
        return self._folder

    def plan(self, on_frame: Callable[[], None] = lambda: None) -> RenderPlan:
        """Return the comparison of the frames. The first call reads every frame once."""
        if self._plan is None:
            self._plan = make_render_plan(
                self._frames,
                self.numbers,
                self.mosaic_from_frame,
                self.lens,
                self.mask,
                self.sigma_px,
                self.folder,
                self.finder,
                on_frame,
                self.say,
            )
        else:
            for _ in self.numbers:
                on_frame()
        return self._plan

    def exposure(self, even_light: bool) -> Exposure:
        """Return the light correction of each frame, or one that changes nothing."""
        return self.plan().exposure if even_light else plain_exposure(len(self.numbers), self.mask)

    def patchwork(self, canvas: Canvas, even_light: bool) -> Patchwork:
        """Return which frame is drawn at which pixel. The last patchwork is kept."""
        key = (canvas, even_light)
        if self._last_patchwork is None or self._last_patchwork[0] != key:
            plan = self.plan()
            patchwork = Patchwork(
                canvas,
                self.mosaic_from_frame,
                self.lens,
                select_frames(
                    self.mosaic_from_frame, self.lens, self.feather.weights, plan.quality, worth_of=self.worth
                ),
                plan.quality,
                self.feather,
                plan.survey,
                self.exposure(even_light),
            )
            self._last_patchwork = (key, patchwork)
        return self._last_patchwork[1]

    def worth(self, index: int) -> NDArray[np.uint8]:
        """Return what the survey's cells of a frame are worth, empty if frames have no masks of their own."""
        return NO_WORTH if self.finder is None else self.plan().survey.worth(index)

    def own_masks(self) -> str:
        """Return a digest of the worth of all cells of all frames, empty if frames have no masks of their own."""
        if self.finder is None:
            return ""
        digest = hashlib.sha256()
        for index in range(len(self.numbers)):
            digest.update(self.worth(index).tobytes())
        return digest.hexdigest()

    def frame_cache(self, canvas: Canvas, levels: int, max_bytes: int) -> FrameCache:
        """Return the frames at the resolution of the canvas, with `levels` pyramid levels each."""
        canvas_from_frame = canvas.canvas_from_frame(self.mosaic_from_frame)

        def make(index: int, frame: NDArray[np.uint8]) -> FramePyramid:
            filled = fill_hidden(self.feather.fill_masked(frame), self.worth(index))
            return FramePyramid.of(filled, canvas_from_frame[index], levels)

        shape = (self.height, self.width, 3)
        return FrameCache(self._frames, self.numbers, shape, make, self.folder, max_bytes)

    def boxes(self, canvas: Canvas, reach: int = 0) -> NDArray[np.int64]:
        """Return (n, 4): left, top, right and bottom of the canvas area that each frame may affect."""
        boxes = frame_boxes(canvas.canvas_from_frame(self.mosaic_from_frame), self.lens.rim)
        return np.asarray(boxes + np.array([-reach, -reach, reach, reach]), dtype=np.int64)


def _check_lens(lens: Lens, width: int, height: int) -> None:
    if lens.outline != Outline.of_pixels(width, height):
        raise UsageError(f"the lens is of frames with {lens.outline}, these have {width} × {height} pixels")
    if not np.isfinite([lens.k1, lens.k2]).all() or lens.folds:
        raise UsageError(
            f"lens k1 = {lens.k1:g}, k2 = {lens.k2:g}: it folds the frames over; give the right one or none"
        )


@dataclass(frozen=True, slots=True, eq=False)
class RenderPlan:
    """The light and the quality of all frames, by index."""

    survey: Survey
    exposure: Exposure  # as estimated
    quality: NDArray[np.float64]  # (n,), between 0 and 1


def make_render_plan(
    frames: FrameReader,
    numbers: list[int],
    mosaic_from_frame: NDArray[np.float64],
    lens: Lens,
    mask: NDArray[np.bool_],
    sigma_px: NDArray[np.float64],
    folder: Path,
    finder: PartFinder | None,
    on_frame: Callable[[], None],
    say: Callable[[str], None],
) -> RenderPlan:
    """Read every frame once, and compare frames that show the same part of the scene."""
    height, width = mask.shape
    survey = Survey(folder, numbers, width, height, mask, finder)
    survey.read_frames(frames, on_frame, say)
    pairs = find_neighbours(mosaic_from_frame, lens.outline)
    valid = valid_cells(mask, survey)
    comparison = compare(survey, mosaic_from_frame, lens, pairs, valid)
    exposure = estimate_exposure(len(numbers), comparison, average_view(survey, mosaic_from_frame, valid), mask)
    return RenderPlan(survey, exposure, rate_frames(exposure.sharpness, sigma_px))


def rate_frames(sharpness: NDArray[np.float64], sigma_px: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,), between 0 and 1: the sharper and the more certain, the better.

    `sharpness` is logarithmic. `sigma_px` is the position uncertainty of each frame, 0 where it is unknown.
    """
    sharp = np.exp(0.7 * np.clip(sharpness - np.quantile(sharpness, 0.9), -1.5, 0.0))
    certain = (np.median(sigma_px) + 1.0) / (np.median(sigma_px) + 1.0 + sigma_px)
    rated = sharp * certain
    return np.asarray(rated / rated.max())
