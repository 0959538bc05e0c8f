"""What would come of an answer: the state after it, the error, and how many more the target is away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smalti.adjustment.link import fit_link
from smalti.annotation.handwriting import SIGMA_PX
from smalti.annotation.messages import Origin
from smalti.errors import LandmarkError
from smalti.geometry.affine import apply
from smalti.loop import ActiveLoop
from smalti.records import Answer, Author, Landmarks, Pair

GRID = 7
"""Points along each side of a frame that a person might have marked where the frames overlap."""

LANDMARKS = 6
"""That a person typically gives."""

FARTHEST = 20
"""Answers that are looked ahead."""


def suppose_yes(loop: ActiveLoop, pair: Pair) -> Answer:
    """Return the answer that a person would give if the frames lay as the mosaic says."""
    i_from_j = loop.agreement.expect(pair.i, pair.j).target_from_source
    outline = loop.adjustment.outline
    x = np.linspace(outline.left, outline.right, GRID)
    y = np.linspace(outline.top, outline.bottom, GRID)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    seen = grid[outline.contains(apply(i_from_j, grid))]
    for points in (seen, grid):
        # The noise of all points together is that of the few that people give.
        sigma = SIGMA_PX[Origin.CLICKED] * max(1.0, np.sqrt(len(points) / LANDMARKS))
        landmarks = Landmarks(pair, apply(i_from_j, points), points, float(sigma))
        try:
            fit_link(landmarks)
        except LandmarkError:
            # They meet in a corner at most, as far as is known: then where they do is not known either.
            continue
        return Answer.yes(landmarks, author=Author.PERSON)
    raise AssertionError("a frame's own corners determine a map")


def count_answers(
    loop: ActiveLoop, target_px: float, step: Callable[[ActiveLoop, Pair], ActiveLoop | None]
) -> tuple[int, bool]:
    """Return how many more yes answers bring the bound on the error to a target, and whether even so many do not.

    `step` gives the state after a supposed yes, or None to give up.
    """
    for count in range(FARTHEST):
        if loop.error_bound_px <= target_px:
            return count, False
        if loop.best is None:
            return count, True
        after = step(loop, loop.best.pair)
        if after is None:
            return count, True
        loop = after
    return FARTHEST, True
