"""Choose one frame for every cell of the canvas, so that the seams are hard to see.

The cost of a labelling is a sum over cells and over pairs of neighbouring cells with different frames. A cell costs
more near its frame's border, where the frame is less sharp than others, and where it shows what the other frames do
not: moving things, highlights. A seam costs by how much the two frames differ on both of its sides, and by how much
detail it cuts. The minimisation is tree-reweighted min-sum belief propagation (Wainwright, Jaakkola and Willsky 2005)
over the few candidates of each cell, all cells at a time. After n rounds a cell depends only on cells within n cells.
So windows with a margin of n cells meet exactly, whatever their size. Plain propagation keeps a straight seam through a
thing even where a seam around it costs a quarter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.rendering.seams.seam_candidates import NONE, SLOTS, Candidates

ROUNDS = 44
POLISHING = 4
MARGIN = ROUNDS + POLISHING
"""Cells around a window that affect its labels."""

# Grey levels, like differences of colours.
_CENTRAL = 8.0  # the border of a frame against its middle
_SHARP = 4.0  # half of the sharpest detail, or less; below that, it is another thing and not focus
_ODD = 1.0  # for each grey level of difference to what the others show
_ODD_FROM = 6.0  # smaller differences are noise
_LENGTH = 1.5  # for each cell of seam, whatever it cuts
_DETAIL = 0.25  # for each grey level of detail on the seam
_UNKNOWN = 10.0  # where the two sides of a seam cannot be compared
_DAMPING = 0.1
_IN_TREES = 0.65  # share of spanning trees with a given pair: half for a grid; more settles in fewer rounds
_NEVER = 1e9


def choose_frames(candidates: Candidates) -> NDArray[np.int32]:
    """Return (h, w): the index of the frame at each cell, NONE where no frame is."""
    costs = _cost_cells(candidates.indices, candidates.merits, candidates.colours)
    seams = _cost_seams(candidates.indices, _cost_clashes(candidates.indices, candidates.colours))
    slots = np.argmin(_propagate(costs, seams), axis=0)
    _polish(candidates.indices, costs, seams, slots)
    chosen = np.take_along_axis(candidates.indices, slots[..., None], axis=2)[..., 0]
    return np.asarray(chosen, dtype=np.int32)


@compiled
def _cost_cells(
    indices: NDArray[np.int32], merits: NDArray[np.float32], colours: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return (SLOTS, h, w): the cost of each candidate by itself."""
    height, width = indices.shape[:2]
    costs = np.full((SLOTS, height, width), np.float32(_NEVER), dtype=np.float32)
    for row in range(height):
        values = np.empty(SLOTS, dtype=np.float32)
        middle = np.empty(3, dtype=np.float32)
        for column in range(width):
            known, sharpest, best = 0, np.float32(0.0), np.float32(0.0)
            for slot in range(SLOTS):
                if indices[row, column, slot] != NONE:
                    known += 1
                    sharpest = max(sharpest, colours[row, column, slot, 3])
                    best = max(best, merits[row, column, slot])
            for channel in range(3):
                n = 0
                for slot in range(SLOTS):
                    if indices[row, column, slot] != NONE:
                        values[n] = colours[row, column, slot, channel]
                        n += 1
                for k in range(1, n):
                    value, at = values[k], k
                    while at > 0 and values[at - 1] > value:
                        values[at] = values[at - 1]
                        at -= 1
                    values[at] = value
                if n:
                    middle[channel] = (values[(n - 1) // 2] + values[n // 2]) / np.float32(2.0)
            for slot in range(SLOTS):
                if indices[row, column, slot] == NONE:
                    continue
                lost = best - merits[row, column, slot]
                blurred = np.log2((sharpest + np.float32(2.0)) / (colours[row, column, slot, 3] + np.float32(2.0)))
                cost = np.float32(_CENTRAL) * lost + np.float32(_SHARP) * min(blurred, np.float32(1.0))
                if known >= 3:
                    off = np.float32(0.0)
                    for channel in range(3):
                        off += abs(colours[row, column, slot, channel] - middle[channel]) / np.float32(3.0)
                    cost += np.float32(_ODD) * max(off - np.float32(_ODD_FROM), np.float32(0.0))
                costs[slot, row, column] = cost
    return costs


@compiled
def _cost_clashes(indices: NDArray[np.int32], colours: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (h, w, SLOTS, SLOTS): the cost at each cell of a seam between two candidates."""
    height, width = indices.shape[:2]
    clashes = np.zeros((height, width, SLOTS, SLOTS), dtype=np.float32)
    for row in range(height):
        for column in range(width):
            for a in range(SLOTS):
                for b in range(a):
                    if indices[row, column, a] == NONE or indices[row, column, b] == NONE:
                        continue
                    cost = np.float32(_LENGTH)
                    for channel in range(3):
                        difference = abs(colours[row, column, a, channel] - colours[row, column, b, channel])
                        cost += difference / np.float32(3.0)
                    detail = (colours[row, column, a, 3] + colours[row, column, b, 3]) / np.float32(2.0)
                    cost += np.float32(_DETAIL) * detail
                    clashes[row, column, a, b] = clashes[row, column, b, a] = cost
    return clashes


@compiled
def _cost_seams(indices: NDArray[np.int32], clashes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (2, SLOTS, SLOTS, h, w): the cost of candidate a beside b of the cell below (0) or on the right (1)."""
    height, width = indices.shape[:2]
    seams = np.zeros((2, SLOTS, SLOTS, height, width), dtype=np.float32)
    for axis in range(2):
        for row in range(height - 1 + axis):
            for column in range(width - axis):
                here, there = indices[row, column], indices[row + 1 - axis, column + axis]
                if here[0] == NONE or there[0] == NONE:
                    continue
                mine, theirs = clashes[row, column], clashes[row + 1 - axis, column + axis]
                for a in range(SLOTS):
                    for b in range(SLOTS):
                        if here[a] == there[b] or here[a] == NONE or there[b] == NONE:
                            continue
                        # The difference of the two frames on both sides of the seam, or on one side if only one has
                        # both frames.
                        total, sides = np.float32(0.0), 0
                        for slot in range(SLOTS):
                            if here[slot] == there[b]:
                                total += mine[a, slot]
                                sides += 1
                            if there[slot] == here[a]:
                                total += theirs[slot, b]
                                sides += 1
                        seams[axis, a, b, row, column] = total / np.float32(sides) if sides else np.float32(_UNKNOWN)
    return seams


def _propagate(costs: NDArray[np.float32], seams: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (SLOTS, h, w): the total cost of each candidate after all rounds."""
    messages = np.zeros((4, *costs.shape), dtype=np.float32)
    new_messages = np.zeros_like(messages)
    reweighted = seams / np.float32(_IN_TREES)
    total = costs.copy()
    for _ in range(ROUNDS):
        _update_messages(total, reweighted, messages, new_messages)
        messages, new_messages = new_messages, messages
        np.sum(messages, axis=0, out=total)
        total *= np.float32(_IN_TREES)
        total += costs
    return total


@compiled
def _update_messages(
    total: NDArray[np.float32],
    seams: NDArray[np.float32],
    messages: NDArray[np.float32],
    new_messages: NDArray[np.float32],
) -> None:
    """Fill `new_messages` with the messages to every cell from above, below, the left and the right: (4, SLOTS, h, w).

    Rows are the innermost loops, because they run on vectors.
    """
    _, height, width = total.shape
    lowest_cost = np.empty((SLOTS, width), dtype=np.float32)
    belief = np.empty(width, dtype=np.float32)
    least = np.empty(width, dtype=np.float32)
    for row in range(height):
        for direction in range(4):
            back = direction ^ 1
            source = row + (-1, 1, 0, 0)[direction]
            if source < 0 or source >= height:
                continue
            # Cells `first` to `last` of the row have a neighbour in that direction, `shift` beside them.
            shift = (0, 0, -1, 1)[direction]
            first, last = max(0, -shift), width - max(0, shift)
            length = last - first
            lowest_cost[:] = np.float32(np.inf)
            for a in range(SLOTS):
                # All that the neighbour believes, except for the message from here.
                total_there = total[a, source, first + shift : last + shift]
                sent = messages[back, a, source, first + shift : last + shift]
                for n in range(length):
                    belief[n] = total_there[n] - sent[n]
                for b in range(SLOTS):
                    # A seam is stored at its upper or left cell.
                    if direction == 0:
                        cost = seams[0, a, b, source]
                    elif direction == 1:
                        cost = seams[0, b, a, row]
                    elif direction == 2:
                        cost = seams[1, a, b, row]
                    else:
                        cost = seams[1, b, a, row]
                    mine = lowest_cost[b]
                    for n in range(length):
                        value = belief[n] + cost[n]
                        mine[n] = value if value < mine[n] else mine[n]
            least[:] = np.float32(np.inf)
            for b in range(SLOTS):
                mine = lowest_cost[b]
                for n in range(length):
                    least[n] = mine[n] if mine[n] < least[n] else least[n]
            for b in range(SLOTS):
                old, new = messages[direction, b, row, first:last], new_messages[direction, b, row, first:last]
                mine = lowest_cost[b]
                for n in range(length):
                    value = mine[n] - least[n]
                    new[n] = value + np.float32(_DAMPING) * (old[n] - value)


@compiled
def _polish(
    indices: NDArray[np.int32], costs: NDArray[np.float32], seams: NDArray[np.float32], slots: NDArray[np.int64]
) -> None:
    """Let every cell take the best candidate given those of its neighbours. This removes specks."""
    height, width = indices.shape[:2]
    for turn in range(POLISHING):
        for row in range(height):
            for column in range((row + turn) % 2, width, 2):
                if indices[row, column, 0] == NONE:
                    continue
                least = np.float32(np.inf)
                best = slots[row, column]
                for slot in range(SLOTS):
                    cost = costs[slot, row, column]
                    if row > 0:
                        cost += seams[0, slots[row - 1, column], slot, row - 1, column]
                    if row < height - 1:
                        cost += seams[0, slot, slots[row + 1, column], row, column]
                    if column > 0:
                        cost += seams[1, slots[row, column - 1], slot, row, column - 1]
                    if column < width - 1:
                        cost += seams[1, slot, slots[row, column + 1], row, column]
                    if cost < least:
                        least = cost
                        best = slot
                slots[row, column] = best
