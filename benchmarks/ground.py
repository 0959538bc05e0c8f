"""The world of benchmarks/engine.py: the paper's raster over a textured ground, of any length.

Keypoints are scattered over the ground. Each shows one of 1,000 visual words, and a frame counts those inside it. So
frames that overlap look alike, places far away share words by chance, and one place in five is a twin of another one.
Nothing here has the size of all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.records import Answer, Landmarks, Pair, Points, Verdict
from smalti_lab.experiments.worlds import CONTROL_POINTS, OUTLINE, RASTER_STEP, World
from smalti_lab.simulated_agents import OracleAgent

WORDS = 1000
KEYPOINTS = 100
"""Keypoints of a frame, on average."""

UNEVENNESS = 0.7
"""σ of the logarithm of a word's frequency."""

PLACE_PX = 200.0
TWINS = 0.2
MISSED, FALSE = 0.2, 10.0
"""Share of its keypoints that a frame misses; keypoints that it alone has, on average."""

FRAMES_AT_ONCE = 5000
EVERY_NO = 6
"""One given answer in so many is a no."""

SPACING = 17
"""Frames on the way out from one given answer to the next, at every size. The last is at the turning point."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A sequence, the appearance of its frames, and an agent that knows the truth."""

    world: World
    looks: sparse.csr_array  # (N, words), rows of length 1
    agent: OracleAgent

    @classmethod
    def of(cls, frames: int, seed: int) -> Ground:
        """Make the ground and the signatures. The noise is 1 px, drawn for each pair from (seed, i, j)."""
        rng = np.random.default_rng(seed)
        positions = raster_positions(frames)
        looks = count_words(positions, *scatter_keypoints(positions, rng), rng)
        world = World("textured raster", positions, WeightedSignatures(looks))
        return cls(world, looks, OracleAgent(world.mosaic_from_frame, OUTLINE, CONTROL_POINTS, seed=seed))

    @cached_property
    def chain(self) -> list[Landmarks]:
        """The landmarks of all consecutive pairs."""
        answers = (self.agent.answer(Pair(n, n + 1)) for n in range(self.world.frames - 1))
        return [answer.landmarks for answer in answers if answer.landmarks is not None]

    def replayed_answers(self, count: int) -> list[Answer]:
        """Return answers at evenly spaced places, all along the way or, if it is long, up to its turning point.

        A yes joins the way out with the way back. A no separates a frame from the one elsewhere that looks most like
        it.
        """
        frames = self.world.frames
        turn = frames // 2 - 2
        reach = min(turn, SPACING * count)
        places = (turn - reach + (np.arange(count) + 0.5) / count * reach).astype(np.int64).tolist()
        pairs = [
            self._lookalike(place) if n % EVERY_NO == EVERY_NO - 1 else Pair(place, frames - 1 - place)
            for n, place in enumerate(places)
        ]
        return [self.agent.answer(pair) for pair in pairs]

    def answer_of(
        self, verdict: Verdict, ranked: Iterable[Pair], answered: Set[Pair], rng: np.random.Generator
    ) -> Answer:
        """Return the first answer of this kind, or one at a random place like those that are replayed."""
        for pair in chain(ranked, self._random_pairs(verdict, rng)):
            if pair not in answered:
                answer = self.agent.answer(pair)
                if answer.verdict is verdict:
                    return answer
        raise AssertionError("random pairs do not end")

    def _random_pairs(self, verdict: Verdict, rng: np.random.Generator) -> Iterator[Pair]:
        frames = self.world.frames
        while True:
            place = int(rng.integers(frames // 2 - 2))
            yield self._lookalike(place) if verdict is Verdict.NO else Pair(place, frames - 1 - place)

    def _lookalike(self, frame: int) -> Pair:
        likeness = self.looks @ self.looks[[frame]].toarray()[0]
        x = self.world.positions[:, 0]
        likeness[np.abs(x - x[frame]) < OUTLINE.width] = -1.0
        other = int(np.argmax(likeness))
        return Pair(min(frame, other), max(frame, other))


def raster_positions(frames: int) -> Points:
    """Return the positions (N, 2) of `smalti_lab.experiments.worlds.raster`, which also has a matrix of all pairs."""
    n = np.arange(1, frames + 1)
    out = n <= frames / 2
    return np.column_stack([np.where(out, n, frames - n + 1) * RASTER_STEP, np.where(out, 0.0, RASTER_STEP)])


def scatter_keypoints(positions: Points, rng: np.random.Generator) -> tuple[Points, NDArray[np.int64]]:
    """Return the positions of keypoints (n, 2), in the order of x, and their words (n,)."""
    low, high = positions.min(axis=0), positions.max(axis=0) + np.array([OUTLINE.width, OUTLINE.height])
    places = int(np.ceil((high[0] - low[0]) / PLACE_PX))
    share = PLACE_PX * (high[1] - low[1]) / OUTLINE.area
    shape = (places, round(KEYPOINTS * share))
    x = np.sort(rng.uniform(0.0, PLACE_PX, shape), axis=1)
    y = rng.uniform(low[1], high[1], shape)
    frequency = rng.lognormal(0.0, UNEVENNESS, WORDS)
    words = rng.choice(WORDS, size=shape, p=frequency / frequency.sum())
    twin_of = np.where(rng.random(places) < TWINS, rng.integers(0, places, places), np.arange(places))
    begins = low[0] + PLACE_PX * np.arange(places)
    points = np.stack([x[twin_of] + begins[:, None], y[twin_of]], axis=-1)
    return points.reshape(-1, 2), words[twin_of].ravel()


def count_words(
    positions: Points, points: Points, words: NDArray[np.int64], rng: np.random.Generator
) -> sparse.csr_array:
    """Return how often each frame shows each word (N, words), scaled to length 1."""
    parts = []
    for begin in range(0, len(positions), FRAMES_AT_ONCE):
        corner = positions[begin : begin + FRAMES_AT_ONCE]
        first = np.searchsorted(points[:, 0], corner[:, 0])
        counts = np.searchsorted(points[:, 0], corner[:, 0] + OUTLINE.width) - first
        row = np.repeat(np.arange(len(corner)), counts)
        point = np.arange(len(row)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        below = points[point, 1] - corner[row, 1]
        seen = (below >= 0.0) & (below < OUTLINE.height) & (rng.random(len(row)) >= MISSED)
        false = rng.poisson(FALSE, len(corner))
        row = np.concatenate([row[seen], np.repeat(np.arange(len(corner)), false)]).astype(np.int32)
        word = np.concatenate([words[point[seen]], rng.integers(0, WORDS, false.sum())]).astype(np.int32)
        parts.append(sparse.coo_array((np.ones(len(row)), (row, word)), shape=(len(corner), WORDS)).tocsr())
    looks: sparse.csr_array = sparse.vstack(parts, format="csr")
    looks.data /= np.repeat(np.sqrt((looks**2).sum(axis=1)), np.diff(looks.indptr))
    return looks
