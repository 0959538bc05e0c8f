"""Which frame is drawn at which pixel, window by window."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Executor
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from smalti.geometry.homographies import invert_homographies
from smalti.geometry.lens import Lens
from smalti.rendering.canvas import Canvas, Window, boxes_within, frame_boxes
from smalti.rendering.exposure import Exposure
from smalti.rendering.frame_survey import Survey
from smalti.rendering.sampling_kernels import Feather, bending_of
from smalti.rendering.seams.seam_candidates import NONE, Candidates, enter
from smalti.rendering.seams.seam_labels import MARGIN, choose_frames
from smalti.rendering.seams.seam_pixels import assign_pixels

BLOCK = 256
"""Side of a block in cells. The frames of a block are chosen at once."""


class Patchwork:
    """One frame for every pixel of a canvas, with seams that are hard to see.

    Seams are found on cells of several pixels, in blocks, as they are needed. The result does not depend on the order.
    """

    def __init__(
        self,
        canvas: Canvas,
        mosaic_from_frame: NDArray[np.float64],
        lens: Lens,
        selected: NDArray[np.int64],
        quality: NDArray[np.float64],
        feather: Feather,
        survey: Survey,
        exposure: Exposure,
    ) -> None:
        """Take the maps of all frames. Only the `selected` frame indices are used."""
        self._canvas = canvas
        self._canvas_from_frame = canvas.canvas_from_frame(mosaic_from_frame)
        self.frame_from_canvas = invert_homographies(self._canvas_from_frame)
        """(n, 3, 3): for all frames, to undistorted pixels."""
        self.lens = lens
        self._selected, self._quality = selected, quality
        self._boxes = frame_boxes(self._canvas_from_frame[selected], lens.rim)
        self._feather, self._survey, self._exposure = feather, survey, exposure
        zoom = np.median(np.sqrt(np.abs(np.linalg.det(self._canvas_from_frame[:, :2, :2]))))
        self.cell = max(1, 2 ** round(math.log2(max(survey.cell * zoom, 1.0))))
        """Side of a cell in canvas pixels."""
        self._across, self._down = (-(-side // self.cell) for side in (canvas.width, canvas.height))
        self._blocks: OrderedDict[tuple[int, int], NDArray[np.int32]] = OrderedDict()
        self._most_blocks = 4 * (-(-self._across // BLOCK) + 2)
        self._lock = Lock()

    def prepare(self, window: Window, pool: Executor) -> None:
        """Find the seams around a window of pixels, on all cores."""
        missing = [block for block in self._blocks_in(self._cells_of(window)) if block not in self._blocks]
        for block, chosen in zip(missing, pool.map(self._choose, missing), strict=True):
            self._keep(block, chosen)

    def indices(self, window: Window, step: int = 1) -> NDArray[np.int32]:
        """Return (h, w): the index of the frame at each pixel, NONE where no frame is.

        The window may reach beyond the canvas, where no frame is. With a `step` it lies inside the canvas, and only
        every `step`-th column and row is looked at, from the first on.
        """
        indices = np.full((-(-window.height // step), -(-window.width // step)), NONE, dtype=np.int32)
        inside = window.intersect(self._canvas.window)
        assert step == 1 or inside == window, "with a step, the window lies inside the canvas"
        if inside.is_empty:
            return indices
        cells = self._cells_of(inside)
        touching, boxes = self._touching(inside)
        rim = self.lens.rim
        low, high = rim.min(axis=0) - 0.5, rim.max(axis=0) + 0.5
        worth = self._survey.worths(touching)
        assigned = np.full((-(-inside.height // step), -(-inside.width // step)), NONE, dtype=np.int32)
        assign_pixels(
            self._gather(cells),
            cells.left,
            cells.top,
            self.cell,
            self.frame_from_canvas,
            bending_of(self.lens),
            (float(low[0]), float(low[1]), float(high[0]), float(high[1])),
            touching,
            boxes,
            self._feather.weights,
            self._feather.is_solid and not len(worth),
            worth,
            self._survey.cell,
            inside.left,
            inside.top,
            step,
            assigned,
        )
        if step > 1:
            return assigned
        indices[inside.slices_in(window)] = assigned
        return indices

    def _cells_of(self, window: Window) -> Window:
        """Return the cells whose centres surround the pixels of a window."""
        left, top = (math.floor((start + 0.5) / self.cell - 0.5) for start in (window.left, window.top))
        right, bottom = (math.floor((end - 0.5) / self.cell - 0.5) + 2 for end in (window.right, window.bottom))
        return Window.between(left, top, right, bottom)

    def _gather(self, cells: Window) -> NDArray[np.int32]:
        """Return the chosen frame indices of a window of cells, NONE beyond the canvas."""
        gathered = np.full((cells.height, cells.width), NONE, dtype=np.int32)
        for row, column in self._blocks_in(cells):
            chosen = self._block((row, column))
            block = Window(column * BLOCK, row * BLOCK, chosen.shape[1], chosen.shape[0])
            common = block.intersect(cells)
            gathered[common.slices_in(cells)] = chosen[common.slices_in(block)]
        return gathered

    def _blocks_in(self, cells: Window) -> Iterable[tuple[int, int]]:
        rows = range(max(cells.top, 0) // BLOCK, (min(cells.bottom, self._down) - 1) // BLOCK + 1)
        columns = range(max(cells.left, 0) // BLOCK, (min(cells.right, self._across) - 1) // BLOCK + 1)
        return ((row, column) for row in rows for column in columns)

    def _block(self, block: tuple[int, int]) -> NDArray[np.int32]:
        with self._lock:
            if block in self._blocks:
                self._blocks.move_to_end(block)
                return self._blocks[block]
        chosen = self._choose(block)
        self._keep(block, chosen)
        return chosen

    def _keep(self, block: tuple[int, int], chosen: NDArray[np.int32]) -> None:
        with self._lock:
            self._blocks[block] = chosen
            while len(self._blocks) > self._most_blocks:
                self._blocks.popitem(last=False)

    def _choose(self, block: tuple[int, int]) -> NDArray[np.int32]:
        """Choose the frames of a block of cells."""
        everything = Window(0, 0, self._across, self._down)
        own = Window(block[1] * BLOCK, block[0] * BLOCK, BLOCK, BLOCK).intersect(everything)
        around = own.grow(MARGIN).intersect(everything)
        return choose_frames(self._candidates(around))[own.slices_in(around)].copy()

    def _candidates(self, cells: Window) -> Candidates:
        candidates = Candidates.over(cells)
        survey = self._survey
        half = (self.cell - 1) / 2
        canvas_from_cell = np.array([[self.cell, 0.0, half], [0.0, self.cell, half], [0.0, 0.0, 1.0]])
        around = Window(
            cells.left * self.cell, cells.top * self.cell, cells.width * self.cell, cells.height * self.cell
        )
        for index, box in zip(*self._touching(around), strict=True):
            first, last = box[:2] // self.cell, -(-box[2:] // self.cell)
            light = self._exposure.light(index)
            enter(
                candidates.indices,
                candidates.merits,
                candidates.colours,
                int(index),
                self._quality[index],
                survey.frames([int(index)])[0],
                self._feather.weights,
                self.frame_from_canvas[index] @ canvas_from_cell,
                bending_of(self.lens),
                survey.cell_from_frame,
                cells.left,
                cells.top,
                (int(first[0]), int(first[1]), int(last[0]), int(last[1])),
                light.gains,
                light.flatness,
                light.table_from_pixels(np.eye(3)),
            )
        return candidates

    def _touching(self, window: Window) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the selected frames that touch a window, and the boxes (n, 4) of pixels they touch."""
        touching, boxes = boxes_within(self._boxes, window)
        return self._selected[touching], boxes
