"""From labels of cells to labels of pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.frame_survey import CLEAR, HIDDEN
from smalti.rendering.sampling_kernels import Bending, covers, distorted_position, position, weight_at, worth_at
from smalti.rendering.seams.seam_candidates import NONE

_RIM_BLOCK = 32  # side in pixels of blocks that are handled together


@compiled
def assign_pixels(
    chosen: NDArray[np.int32],
    cells_left: int,
    cells_top: int,
    cell: int,
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    extent: tuple[float, float, float, float],
    touching: NDArray[np.int64],
    boxes: NDArray[np.int64],
    weights: NDArray[np.float32],
    solid: bool,
    worth: NDArray[np.uint8],
    survey_cell: int,
    left: int,
    top: int,
    step: int,
    indices: NDArray[np.int32],
) -> None:
    """Fill `indices`: of the frames of the four cells around a pixel, the one with the most votes that covers it.

    Only every `step`-th pixel is looked at, from (left, top) on. The votes are the weights of linear interpolation, so
    that seams run smoothly through cells. On the rim of the mosaic it may be that none of the four covers the pixel.
    Then the frame is taken in which the pixel is deepest inside. `touching` (n,) are the frames for this choice and
    `boxes` (n, 4) the pixels they reach: left, top, right, bottom. `extent` is the extent of a frame in its own
    undistorted pixels, in the same order. `solid` tells that frames have no masked pixels.

    `worth` (n, rows, columns) is that of the cells, `survey_cell` pixels wide, of the frames that touch the window, or
    empty: a frame that is clear at the pixel precedes a doubtful one, and hidden ones are out of the question.
    """
    height, width = indices.shape
    votes = np.empty(4, dtype=np.float64)
    frames = np.empty(4, dtype=np.int64)
    near = np.empty(len(touching), dtype=np.int64)
    rank = np.full(len(frame_from_canvas) if len(worth) else 0, -1, dtype=np.int64)  # of a frame among the touching
    if len(worth):
        for n in range(len(touching)):
            rank[touching[n]] = n
    side = max(_RIM_BLOCK // step, 1)
    for block_top in range(0, height, side):
        for block_left in range(0, width, side):
            right, bottom = min(block_left + side, width), min(block_top + side, height)
            block = (
                left + step * block_left,
                top + step * block_top,
                left + step * (right - 1),
                top + step * (bottom - 1),
            )
            only = _only_one(chosen, cells_left, cells_top, cell, block)
            if only >= 0 and solid and _is_inside(frame_from_canvas[only], bending, weights, block):
                indices[block_top:bottom, block_left:right] = only
                continue
            nearby = -1
            for row in range(block_top, bottom):
                y_canvas = top + step * row
                v = (y_canvas + 0.5) / cell - 0.5 - cells_top
                first_row = int(v)
                ty = v - first_row
                for column in range(block_left, right):
                    x_canvas = left + step * column
                    best = NONE
                    if only != NONE:
                        u = (x_canvas + 0.5) / cell - 0.5 - cells_left
                        first_column = int(u)
                        tx = u - first_column
                        frames[0], votes[0] = chosen[first_row, first_column], (1 - ty) * (1 - tx)
                        frames[1], votes[1] = chosen[first_row, first_column + 1], (1 - ty) * tx
                        frames[2], votes[2] = chosen[first_row + 1, first_column], ty * (1 - tx)
                        frames[3], votes[3] = chosen[first_row + 1, first_column + 1], ty * tx
                        if len(worth):
                            best = _elect_clear(
                                frames,
                                votes,
                                frame_from_canvas,
                                bending,
                                weights,
                                worth,
                                rank,
                                survey_cell,
                                x_canvas,
                                y_canvas,
                            )
                        else:
                            best = _elect(frames, votes, frame_from_canvas, bending, weights, x_canvas, y_canvas)
                    if best == NONE:
                        if nearby < 0:
                            nearby = _find_near(touching, boxes, frame_from_canvas, extent, block, near)
                        deepest = np.float32(0.0)
                        for n in range(nearby):
                            x, y = distorted_position(frame_from_canvas[near[n]], bending, x_canvas, y_canvas)
                            weight = weight_at(weights, x, y)
                            if weight > 0.0 and len(worth):
                                worth_here = worth_at(worth[rank[near[n]]], survey_cell, x, y)
                                if worth_here == HIDDEN:
                                    continue
                                if worth_here == CLEAR:
                                    weight += np.float32(1.0)
                            if weight > deepest:
                                best, deepest = near[n], weight
                    indices[row, column] = best


@compiled
def _only_one(
    chosen: NDArray[np.int32], cells_left: int, cells_top: int, cell: int, block: tuple[int, int, int, int]
) -> int:
    """Return the common label of all cells around a block, which may be NONE, or -2 if they differ.

    A block is given by its first and last pixels: left, top, right, bottom.
    """
    first_column, last_column = (
        int((block[0] + 0.5) / cell - 0.5 - cells_left),
        int((block[2] + 0.5) / cell - 0.5 - cells_left),
    )
    first_row, last_row = int((block[1] + 0.5) / cell - 0.5 - cells_top), int((block[3] + 0.5) / cell - 0.5 - cells_top)
    only: int = chosen[first_row, first_column]
    for row in range(first_row, last_row + 2):
        for column in range(first_column, last_column + 2):
            if chosen[row, column] != only:
                return -2
    return only


@compiled
def _is_inside(
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    weights: NDArray[np.float32],
    block: tuple[int, int, int, int],
) -> bool:
    """Tell whether a frame without masked pixels covers the four corners of a block, and so the block."""
    for x, y in ((block[0], block[1]), (block[2], block[1]), (block[0], block[3]), (block[2], block[3])):
        u, v = distorted_position(frame_from_canvas, bending, x, y)
        if not covers(weights, u, v):
            return False
    if len(bending.scales) == 0:
        return True
    # The sides of a distorted frame may enter between two corners. Then they cross the border of the block.
    for x in range(block[0], block[2] + 1):
        for y in (block[1], block[3]):
            u, v = distorted_position(frame_from_canvas, bending, x, y)
            if not covers(weights, u, v):
                return False
    for y in range(block[1], block[3] + 1):
        for x in (block[0], block[2]):
            u, v = distorted_position(frame_from_canvas, bending, x, y)
            if not covers(weights, u, v):
                return False
    return True


@compiled
def _elect(
    frames: NDArray[np.int64],
    votes: NDArray[np.float64],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    weights: NDArray[np.float32],
    canvas_x: int,
    canvas_y: int,
) -> int:
    """Return the frame with the most votes, of four, that covers a pixel."""
    if frames[0] == frames[1] == frames[2] == frames[3]:
        votes[0], votes[1], votes[2], votes[3] = 1.0, 0.0, 0.0, 0.0
    best, most = NONE, 0.0
    for n in range(4):
        if frames[n] == NONE or votes[n] <= 0.0:
            continue
        total = 0.0
        for k in range(4):
            if frames[k] == frames[n]:
                total += votes[k]
        if total > most:
            x, y = distorted_position(frame_from_canvas[frames[n]], bending, canvas_x, canvas_y)
            if covers(weights, x, y):
                best, most = frames[n], total
    return best


@compiled
def _elect_clear(
    frames: NDArray[np.int64],
    votes: NDArray[np.float64],
    frame_from_canvas: NDArray[np.float64],
    bending: Bending,
    weights: NDArray[np.float32],
    worth: NDArray[np.uint8],
    rank: NDArray[np.int64],
    survey_cell: int,
    canvas_x: int,
    canvas_y: int,
) -> int:
    """Return the same where frames have masks of their own: clear frames first, hidden ones never."""
    if frames[0] == frames[1] == frames[2] == frames[3]:
        votes[0], votes[1], votes[2], votes[3] = 1.0, 0.0, 0.0, 0.0
    best, most = NONE, 0.0
    for n in range(4):
        if frames[n] == NONE or votes[n] <= 0.0:
            continue
        total = 0.0
        for k in range(4):
            if frames[k] == frames[n]:
                total += votes[k]
        if total + 1.0 > most:
            x, y = distorted_position(frame_from_canvas[frames[n]], bending, canvas_x, canvas_y)
            if not covers(weights, x, y):
                continue
            worth_here = worth_at(worth[rank[frames[n]]], survey_cell, x, y)
            if worth_here == CLEAR:
                total += 1.0
            if worth_here != HIDDEN and total > most:
                best, most = frames[n], total
    return best


@compiled
def _find_near(
    touching: NDArray[np.int64],
    boxes: NDArray[np.int64],
    frame_from_canvas: NDArray[np.float64],
    extent: tuple[float, float, float, float],
    block: tuple[int, int, int, int],
    near: NDArray[np.int64],
) -> int:
    """Fill `near` with the frames that may cover a pixel of a block. Return their number."""
    found = 0
    for n in range(len(boxes)):
        if boxes[n, 0] > block[2] or boxes[n, 2] <= block[0] or boxes[n, 1] > block[3] or boxes[n, 3] <= block[1]:
            continue
        low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
        for x, y in ((block[0], block[1]), (block[2], block[1]), (block[0], block[3]), (block[2], block[3])):
            u, v = position(frame_from_canvas[touching[n]], x, y)
            low_x, low_y, high_x, high_y = min(low_x, u), min(low_y, v), max(high_x, u), max(high_y, v)
        # A block that lies beyond one side of the frame does not touch it.
        if high_x < extent[0] or high_y < extent[1] or low_x > extent[2] or low_y > extent[3]:
            continue
        near[found] = touching[n]
        found += 1
    return found
