"""Compute signatures of low-contrast frames: visual words of gradient orientations in patches on a grid.

`grid_signatures` does all of it. Where there are no keypoints, every patch is described. Descriptors have length 1, so
that they do not depend on local brightness and contrast. Slow changes of the light are subtracted before.

No neural network describes the patches: no package carries weights, and Smalti downloads nothing. Users can pass one as
`describe`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.appearance.visual_words import count_words, learn_words, make_signatures
from smalti.errors import InputError

STRIDE_PX = 5
"""Step from patch to patch, as in the paper's study of low contrast. The lengths below are in strides."""

CELL = 4
"""A patch is 3 × 3 cells of this side. Differs from the paper: its patches are 3 strides wide.

Larger patches distinguish places better (benchmarks/appearance.py)."""

SHADE = 3.0
"""Standard deviation of the blur that estimates the light: slower variations are subtracted."""

WORDS = 600
"""As in the paper's study of low contrast."""

SAMPLED_FRAMES = 64
TRAINING_DESCRIPTORS = 20_000

_CELLS = 3
_ORIENTATIONS = 8
DESCRIPTOR_LENGTH = _CELLS * _CELLS * _ORIENTATIONS

_LEAST_SHOWN = 0.5  # share of the pixels of a stride that the mask shows
_LEAST_COVERED = 0.9  # share of a patch where gradients are known
_LEAST_CONTRAST = 1e-2  # gray levels per stride: less is rounding

View = tuple[NDArray[np.uint8], NDArray[np.bool_] | None]
"""A frame in gray (h, w), and where it shows the scene (h, w); None for everywhere."""

Describe = Callable[[NDArray[np.uint8], NDArray[np.bool_] | None], NDArray[np.float32]]
"""Returns the descriptors (n, d) of a view's patches."""


def describe_patches(
    gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None, *, cell: int = CELL, shade: float = SHADE
) -> NDArray[np.float32]:
    """Return descriptors (n, DESCRIPTOR_LENGTH), of length 1, of a frame's patches inside the mask (h, w)."""
    level, shown = _reduce(gray, np.ones(gray.shape, dtype=bool) if mask is None else mask)
    patch = cell * _CELLS
    height, width = level.shape[0] - patch + 1, level.shape[1] - patch + 1
    if min(height, width) < 1:
        return np.empty((0, DESCRIPTOR_LENGTH), dtype=np.float32)
    across, down, known = _find_gradients(level, shown, shade)
    y, x = np.nonzero(_average(known, patch)[:height, :width] >= _LEAST_COVERED)
    angles = np.arange(_ORIENTATIONS, dtype=np.float32) * np.float32(2 * np.pi / _ORIENTATIONS)
    maps = [_average(np.maximum(across * np.cos(angle) + down * np.sin(angle), 0), cell) for angle in angles]
    histograms = np.stack(maps, axis=-1)
    corners = [(cell * row, cell * column) for row in range(_CELLS) for column in range(_CELLS)]
    descriptors = np.concatenate([histograms[y + below, x + right] for below, right in corners], axis=1)
    lengths = np.linalg.norm(descriptors, axis=1, keepdims=True)
    textured = lengths[:, 0] > _LEAST_CONTRAST  # flat patches have no descriptor
    unit: NDArray[np.float32] = descriptors[textured] / lengths[textured]
    return unit


def grid_signatures(
    read_views: Callable[[Iterable[int]], Iterable[View]],
    frames: int,
    seed: int = 0,
    describe: Describe = describe_patches,
) -> NDArray[np.float64]:
    """Return the word histogram of every frame (N, D), rows of length 1.

    `read_views` returns the views of frames with the given ascending numbers. It is called for a sample on which the
    words are learned, and then for all frames.
    """
    sample = np.unique(np.linspace(0, frames - 1, min(SAMPLED_FRAMES, frames)).round().astype(int))
    words = GridWords.learn(read_views(sample.tolist()), seed, describe)
    return make_signatures([words.count(gray, mask) for gray, mask in read_views(range(frames))])


@dataclass(frozen=True, slots=True, eq=False)
class GridWords:
    """The words (D, d) of a sequence, for callers that read its frames only once."""

    words: NDArray[np.float32]
    describe: Describe = describe_patches

    @classmethod
    def learn(cls, sample: Iterable[View], seed: int = 0, describe: Describe = describe_patches) -> Self:
        """Learn the words by k-means on frames spread over the sequence: at most one word per five patches.

        A uniform random subset of all patches is kept (those with the lowest random numbers), so that memory does not
        grow with the sample.
        """
        rng = np.random.default_rng(seed)
        draws, chosen = np.empty(0), np.empty((0, 0), dtype=np.float32)
        for gray, mask in sample:
            descriptors = describe(gray, mask)
            draws = np.concatenate([draws, rng.random(len(descriptors))])
            lowest = np.argsort(draws, kind="stable")[:TRAINING_DESCRIPTORS]
            together = np.concatenate([chosen, descriptors]) if len(chosen) else descriptors
            draws, chosen = draws[lowest], together[lowest]
        if not len(chosen):
            raise InputError("no frame shows a patch of the scene that has any detail: give a larger field of view")
        return cls(learn_words(chosen, max(1, min(WORDS, len(chosen) // 5)), rng), describe)

    def count(self, gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Return how often a frame shows each word, (D,)."""
        return count_words(self.words, self.describe(gray, mask))


def _reduce(gray: NDArray[np.uint8], mask: NDArray[np.bool_]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the mean level of each stride inside the mask, and 1 where enough of it is inside, else 0."""
    height, width = gray.shape[0] // STRIDE_PX, gray.shape[1] // STRIDE_PX
    if min(height, width) < 1:
        return np.zeros((0, 0), dtype=np.float32), np.zeros((0, 0), dtype=np.float32)
    rows, columns = slice(height * STRIDE_PX), slice(width * STRIDE_PX)
    weight = mask[rows, columns].astype(np.float32)
    share = cv2.resize(weight, (width, height), interpolation=cv2.INTER_AREA)
    level = cv2.resize(gray[rows, columns] * weight, (width, height), interpolation=cv2.INTER_AREA)
    shown = np.asarray(share >= _LEAST_SHOWN, dtype=np.float32)
    return np.asarray(level / np.maximum(share, _LEAST_SHOWN) * shown, dtype=np.float32), shown


def _find_gradients(
    level: NDArray[np.float32], shown: NDArray[np.float32], shade: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return the gradient across and down without that of the light, and 1 where it is known, else 0."""
    weight = np.maximum(cv2.GaussianBlur(shown, (0, 0), shade), 1e-3)
    detail = level - cv2.GaussianBlur(level, (0, 0), shade) / weight
    known = cv2.erode(shown, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_REPLICATE)
    across, down = (cv2.Sobel(detail, cv2.CV_32F, *order, scale=1 / 8) * known for order in ((1, 0), (0, 1)))
    return across, down, np.asarray(known, dtype=np.float32)


def _average(values: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Return the mean over the square that begins at each position."""
    means = cv2.boxFilter(values, -1, (side, side), anchor=(0, 0), borderType=cv2.BORDER_CONSTANT)
    return np.asarray(means, dtype=np.float32)
