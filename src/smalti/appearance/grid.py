"""Signatures of frames by patches on a grid: for sequences of so little contrast that keypoints say nothing.

No network takes the place of the patches: no package carries weights, and nothing is fetched. Whoever has one gives it
as `describe`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from smalti.appearance.patches import describe_patches
from smalti.appearance.words import count_words, learn_words, make_signatures
from smalti.errors import InputError

WORDS = 600
"""As in the paper's study of low contrast."""

SAMPLED_FRAMES = 64
TRAINING_DESCRIPTORS = 20_000

View = tuple[NDArray[np.uint8], NDArray[np.bool_] | None]
"""A frame in gray (h, w), and where it shows the scene (h, w), None for everywhere."""

Describe = Callable[[NDArray[np.uint8], NDArray[np.bool_] | None], NDArray[np.float32]]
"""What says of a view what its patches look like, (n, d)."""


def grid_signatures(
    look: Callable[[Iterable[int]], Iterable[View]], frames: int, seed: int = 0, describe: Describe = describe_patches
) -> NDArray[np.float64]:
    """Return how often each of the frames shows each word (N, D), rows of length 1.

    `look` gives the views of the frames with these numbers, ascending: first of a sample to learn the words on, then of
    all, one by one.
    """
    sample = np.unique(np.linspace(0, frames - 1, min(SAMPLED_FRAMES, frames)).round().astype(int))
    words = GridWords.learn(look(sample.tolist()), seed, describe)
    return make_signatures([words.count(gray, mask) for gray, mask in look(range(frames))])


@dataclass(frozen=True, slots=True, eq=False)
class GridWords:
    """The words (D, d) of a sequence, for those who go through its frames but once."""

    words: NDArray[np.float32]
    describe: Describe = describe_patches

    @classmethod
    def learn(cls, sample: Iterable[View], seed: int = 0, describe: Describe = describe_patches) -> Self:
        """Learn the words by k-means on frames spread over the sequence: at most one for every five patches.

        Of all patches a fair choice is kept, those with the lowest lots, so that memory does not grow with the sample.
        """
        rng = np.random.default_rng(seed)
        lots, chosen = np.empty(0), np.empty((0, 0), dtype=np.float32)
        for gray, mask in sample:
            descriptors = describe(gray, mask)
            lots = np.concatenate([lots, rng.random(len(descriptors))])
            lowest = np.argsort(lots, kind="stable")[:TRAINING_DESCRIPTORS]
            together = np.concatenate([chosen, descriptors]) if len(chosen) else descriptors
            lots, chosen = lots[lowest], together[lowest]
        if not len(chosen):
            raise InputError("no frame shows a patch of the scene that has any detail: give a larger field of view")
        return cls(learn_words(chosen, max(1, min(WORDS, len(chosen) // 5)), rng), describe)

    def count(self, gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Return how often a frame shows each word, (D,)."""
        return count_words(self.words, self.describe(gray, mask))
