"""The records that stages exchange: pairs, landmarks, answers, expectations, suggestions; and the array types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from smalti.errors import LandmarkError, PairError

Points: TypeAlias = NDArray[np.float64]
"""(n, 2), x before y, pixels."""

Transforms: TypeAlias = NDArray[np.float64]
"""(..., 2, 3) affine maps."""

Homographies: TypeAlias = NDArray[np.float64]
"""(..., 3, 3) maps of the plane with perspective."""

PairNumbers: TypeAlias = NDArray[np.int64]
"""(n, 2): the two frames of a pair in each row."""


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """Two frames by their 0-based numbers, the earlier one first."""

    i: int
    j: int

    def __post_init__(self) -> None:
        if not 0 <= self.i < self.j:
            raise PairError(f"pair ({self.i}, {self.j}): give two different frames, the earlier one first")

    def __str__(self) -> str:
        return f"({self.i}, {self.j})"

    def check_within(self, frames: int) -> None:
        """Raise if the pair names a frame that the sequence does not have."""
        if self.j >= frames:
            raise PairError(f"pair {self}: the sequence has frames 0 to {frames - 1} only")


def pair_key(i: NDArray[np.int64] | int, j: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Return pairs as single numbers that sort as the pairs do."""
    return np.asarray(i, dtype=np.int64) * 2**31 + np.asarray(j, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Landmarks:
    """Points that show the same scene in two frames: row k of one belongs to row k of the other, x before y.

    `sigma` is the standard deviation, in pixels, of the noise on each coordinate of `points_i`: one number for the
    pair, or one per landmark. The points of j count as exact. `method` is the registration method that found them;
    empty if it is not known, or if a person gave them.

    A landmark on a curve has a direction `along` it, a unit vector in frame i: there are no corners on a vessel, so it
    says where the curve is across this direction, and nothing about the position along it. All other landmarks have
    the direction (0, 0) and determine both coordinates.
    """

    pair: Pair
    points_i: Points
    points_j: Points
    sigma: float | NDArray[np.float64] = 1.0
    along: NDArray[np.float64] | None = None  # (n, 2); None: no landmark is on a curve
    method: str = ""

    def __post_init__(self) -> None:
        for name, given in (("points_i", self.points_i), ("points_j", self.points_j)):
            points = np.array(given, dtype=np.float64)
            if points.ndim != 2 or points.shape[1] != 2:
                raise LandmarkError(f"pair {self.pair}: {name} has shape {points.shape}, expected (n, 2)")
            if not np.isfinite(points).all():
                row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
                raise LandmarkError(f"pair {self.pair}: landmark {row} of {name} is not a finite number")
            points.setflags(write=False)
            object.__setattr__(self, name, points)
        if len(self.points_i) != len(self.points_j):
            raise LandmarkError(
                f"pair {self.pair}: {len(self.points_i)} points in frame {self.pair.i} but "
                f"{len(self.points_j)} in frame {self.pair.j}; each needs its partner"
            )
        sigma = np.array(self.sigma, dtype=np.float64)
        if sigma.shape not in ((), (len(self.points_i),)):
            raise LandmarkError(
                f"pair {self.pair}: sigma has shape {sigma.shape}, expected one number or one for each of the "
                f"{len(self.points_i)} landmarks"
            )
        if not (np.isfinite(sigma).all() and (sigma > 0).all()):
            raise LandmarkError(f"pair {self.pair}: sigma must be positive and finite, in pixels")
        sigma.setflags(write=False)
        object.__setattr__(self, "sigma", sigma)
        if self.along is not None:
            object.__setattr__(self, "along", self._checked_directions(self.along))

    def _checked_directions(self, given: NDArray[np.float64]) -> NDArray[np.float64] | None:
        along = np.array(given, dtype=np.float64)
        if along.shape != self.points_i.shape:
            raise LandmarkError(
                f"pair {self.pair}: the directions along curves have shape {along.shape}, expected "
                f"{self.points_i.shape}, one for each landmark"
            )
        length = np.linalg.norm(along, axis=1)
        if not (np.isclose(length, 1.0, atol=1e-6) | (length == 0.0)).all():
            raise LandmarkError(
                f"pair {self.pair}: a direction along a curve is no unit vector; (0, 0) stands for a landmark on none"
            )
        along.setflags(write=False)
        return along if length.any() else None

    def __len__(self) -> int:
        return len(self.points_i)

    def of_pair(self, pair: Pair) -> Landmarks:
        """Return the same landmarks under other numbers of the two frames, in the same order."""
        return Landmarks(pair, self.points_i, self.points_j, self.sigma, self.along, self.method)

    def without_along(self, off: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the part of offsets (n, 2) in frame i that the landmarks tell: of curves, that across them."""
        return off if self.along is None else without_direction(off[:, :, None], self.along)[:, :, 0]

    @property
    def directions(self) -> NDArray[np.float64]:
        """(n, 2): the direction along the curve of every landmark, (0, 0) for one on none."""
        return np.zeros_like(self.points_i) if self.along is None else self.along

    @property
    def determine_affine(self) -> bool:
        """Whether they determine an affine map: at least three, on no curve and not on one line in either frame."""
        if self.along is not None or len(self) < 3:
            return False
        return not (are_collinear(self.points_i) or are_collinear(self.points_j))

    @property
    def weights(self) -> NDArray[np.float64]:
        """(n,): 1/σ of every landmark."""
        return np.broadcast_to(1.0 / np.asarray(self.sigma), (len(self),))


def without_direction(rows: NDArray[np.float64], along: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return two rows for each landmark (n, 2, k) without their part in its direction `along` (n, 2)."""
    return np.asarray(rows - along[:, :, None] * np.einsum("na,nak->nk", along, rows)[:, None])


MIN_SPREAD_RATIO = 1e-3
"""Points are collinear if their spread across their main direction is below this fraction of the spread along it. An
affine map fitted to them could shear freely."""


def are_collinear(points: Points) -> bool:
    """Tell whether points (n, 2) lie on one line."""
    along, across = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(across <= MIN_SPREAD_RATIO * along)


class Verdict(StrEnum):
    """What an agent says about a pair."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


class Author(StrEnum):
    """Who gave an answer. A person's answer is never rejected, only questioned."""

    MATCHER = "matcher"
    PERSON = "person"


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """An agent's answer about a pair; a yes has landmarks, and any answer may have a reason in words.

    `failed` are the registration methods that were tried and found no map, in that order.
    """

    pair: Pair
    verdict: Verdict
    landmarks: Landmarks | None = None
    reason: str = ""
    author: Author = Author.MATCHER
    failed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))
        object.__setattr__(self, "author", Author(self.author))
        if (self.verdict is Verdict.YES) != (self.landmarks is not None):
            raise LandmarkError(f"pair {self.pair}: a yes comes with landmarks, any other answer without")
        if self.landmarks is not None and self.landmarks.pair != self.pair:
            raise PairError(f"pair {self.pair}: the landmarks belong to pair {self.landmarks.pair}")

    @property
    def is_failure(self) -> bool:
        """Whether the matcher could not tell: it found no map, and an overlap was not improbable."""
        return self.verdict is Verdict.UNSURE and self.author is Author.MATCHER

    def of_pair(self, pair: Pair) -> Answer:
        """Return the same answer under other numbers of the two frames, in the same order."""
        landmarks = None if self.landmarks is None else self.landmarks.of_pair(pair)
        return Answer(pair, self.verdict, landmarks, self.reason, self.author, self.failed)

    @property
    def method(self) -> str:
        """The registration method that said yes; empty if it is not known, and for any other answer."""
        return "" if self.landmarks is None else self.landmarks.method

    @classmethod
    def yes(cls, landmarks: Landmarks, reason: str = "", author: Author = Author.MATCHER) -> Answer:
        """Say that the frames overlap, and where."""
        return cls(landmarks.pair, Verdict.YES, landmarks, reason, author)

    @classmethod
    def no(cls, pair: Pair, reason: str = "", author: Author = Author.MATCHER) -> Answer:
        """Say that the frames show different places."""
        return cls(pair, Verdict.NO, None, reason, author)

    @classmethod
    def unsure(cls, pair: Pair, reason: str = "", author: Author = Author.MATCHER) -> Answer:
        """Say that one cannot tell."""
        return cls(pair, Verdict.UNSURE, None, reason, author)


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """The expected position of a pair's second frame in the first, before an agent looks."""

    i_from_j: Homographies  # (3, 3); (2, 3) for an affine one
    sigma_px: float  # of each coordinate of the centre of j in i; infinite if nothing is known
    overlap: float = 1.0  # probability that the frames overlap
    undistort: Callable[[Points], Points] | None = None  # the map relates undistorted points; None: there is no lens


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A pair to ask about, and why.

    `reasons` has the quantities that the strategy multiplied, by name, for display.
    """

    pair: Pair
    expected_reward: float
    reasons: dict[str, float] = field(default_factory=dict)


def as_numbers(pairs: Iterable[Pair]) -> PairNumbers:
    """Return pairs as an array (n, 2)."""
    return np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)
