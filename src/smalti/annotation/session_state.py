"""What a session needs of a state, for this engine and for the paper's; and the surprise of an answer, as χ²."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2 as chi2_distribution, norm

from smalti.active_loop import ActiveLoop
from smalti.engine.links import Link, projected_and_rows
from smalti.engine.variance_components import PERSON
from smalti.geometry.homographies import ENTRIES, Family
from smalti.geometry.outline import Outline
from smalti.paper.paper_loop import PaperLoop
from smalti.project.entries import LIGHT
from smalti.records import Author, Homographies, Landmarks, Pair, PairNumbers, as_numbers

AnyLoop: TypeAlias = ActiveLoop | PaperLoop

UNJOINED = (100.0, 100.0, 1.0, 0.3, 0.1, 0.1, 0.05, 0.05)
"""Standard deviations, direction by direction, of the relative position of frames that nothing joins.

So a first landmark shifts and does not turn. Two turn and scale. More are needed for the other directions, which
cameras hardly use.
"""

RANK_OF_SCALE = 4
"""From this rank of a link on, its landmarks determine the scale between its frames."""


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """The predicted map from frame j to frame i."""

    i_from_j: Homographies  # (3, 3), undistorted pixels
    covariance: NDArray[np.float64]  # (8, 8), of the entries of E, units of the frame: i_from_j ← i_from_j exp(E)
    joined: bool  # both are on one mosaic; otherwise this is a guess
    noise: float  # of people's landmarks so far, relative to the usual noise

    def known_px(self, landmarks: Landmarks, state: AnyLoop) -> float:
        """Return the RMS uncertainty of landmarks in frame i."""
        to_unit = _unit_from_pixels(state.outline)
        points = state.lens.undistort(landmarks.points_j) @ to_unit[:2, :2].T + to_unit[:2, 2]
        _, rows = projected_and_rows(to_unit @ self.i_from_j @ np.linalg.inv(to_unit), points)
        return state.outline.unit * float(np.sqrt(np.einsum("nae,ef,naf->", rows, self.covariance, rows) / len(points)))


def expect(state: AnyLoop, pair: Pair) -> Expected:
    """Return the predicted map between the frames of a pair."""
    if isinstance(state, PaperLoop):
        maps = state.mosaic_from_frame
        return Expected(np.linalg.inv(maps[pair.i]) @ maps[pair.j], _papers_increments(state, pair), True, 1.0)
    i_from_j, covariance = state.covariance.expect(pair.i, pair.j)
    joined = bool(state.part[pair.i] == state.part[pair.j])
    if not joined:
        covariance = _unjoined(state.estimate.family)
    return Expected(i_from_j, covariance, joined, state.estimate.noise_model.noise[PERSON])


def references_of(state: AnyLoop) -> NDArray[np.int64]:
    """Return the reference frame of each part."""
    return np.array([state.reference]) if isinstance(state, PaperLoop) else state.estimate.system.references


def sigma_px_of(state: AnyLoop) -> NDArray[np.float64]:
    """Return the uncertainty of every frame's centre (N,) relative to the reference of its part."""
    own, frames = references_of(state)[state.part], np.arange(state.frames)
    if isinstance(state, PaperLoop):
        spread = state.view.centres.spread_squared[frames, own]
    else:
        spread = (
            state.estimate.conservative_covariance.of_pairs(np.column_stack([frames, own])).cov[:, 0, ::2].sum(axis=1)
        )
    return np.where(frames == own, 0.0, np.sqrt(spread))


def accepted_of(state: AnyLoop) -> PairNumbers:
    """Return the pairs (n, 2) whose links are accepted."""
    if isinstance(state, PaperLoop):
        return as_numbers([*state.chain, *state.links])
    return state.estimate.system.ends


def contradicted_of(state: AnyLoop) -> set[Pair]:
    """Return the pairs whose yes contradicts the others."""
    if isinstance(state, PaperLoop):
        return set(state.rejected)
    estimate = state.estimate
    weights = zip(estimate.system.place_of, estimate.noise_model.robust_weights.tolist(), strict=True)
    return {pair for pair, weight in weights if weight < LIGHT} | set(state.rejected)


def chi2_of(state: AnyLoop) -> dict[Pair, float]:
    """Return how strongly each link contradicts the others, if the method computes it."""
    return {} if isinstance(state, PaperLoop) else state.estimate.chi2()


def degrees_of(state: AnyLoop, landmarks: Landmarks) -> int:
    """Return how many directions of a map landmarks determine."""
    if isinstance(state, PaperLoop):
        family = state.adjustment.family
        return family.planes * family.size
    return max(state.link_of(landmarks).rank, 1)


def scales_of(state: AnyLoop, landmarks: Landmarks) -> tuple[float, float]:
    """Return the largest and the smallest scale of frame j in frame i; 1 and 1 if the landmarks do not determine it.

    Raises if no camera can produce their map.
    """
    link = state.link_of(landmarks)
    if isinstance(link, Link):
        if link.rank < RANK_OF_SCALE:
            return 1.0, 1.0
        # In the middle of the landmarks. Elsewhere few landmarks determine little.
        mapped = link.i_from_j @ np.append(link.points_j.mean(axis=0), 1.0)
        slopes = (link.i_from_j[:2, :2] - np.outer(mapped[:2] / mapped[2], link.i_from_j[2, :2])) / mapped[2]
    else:
        slopes = link.i_from_j[:, :2]
    largest, smallest = np.linalg.svd(slopes, compute_uv=False)
    return float(largest), float(smallest)


def steps_to_question(state: AnyLoop) -> list[Callable[[], object]]:
    """Return the computations before the next question is known, piece by piece."""
    if isinstance(state, PaperLoop):
        return [lambda: state.view, lambda: state.view.centres, lambda: state.best]
    return [
        lambda: state.estimate,
        lambda: state.covariance.stretches,
        lambda: state.posterior,
        lambda: state.best,
    ]


def _papers_increments(state: PaperLoop, pair: Pair) -> NDArray[np.float64]:
    """Return the covariance (8, 8) of the increment of i_from_j by the paper's linear mosaic.

    P = Θ_i⁻¹ Θ_j moves by L_i⁻¹ (dΘ_j - dΘ_i P), and P exp(E) by P E.
    """
    maps = state.linear_mosaic[[pair.i, pair.j]]
    i, j = np.concatenate([maps, np.tile([[[0.0, 0.0, 1.0]]], (2, 1, 1))], axis=1)
    relative, inverse = np.linalg.solve(i, j), np.linalg.inv(i[:2, :2])
    to_unit = _unit_from_pixels(state.outline)
    outer = _kron(np.linalg.inv(relative[:2, :2]) / state.outline.unit, np.linalg.inv(to_unit).T)
    by_maps = outer @ np.hstack([_kron(-inverse, relative.T), _kron(inverse, np.eye(3))])
    covariance = np.zeros((ENTRIES, ENTRIES))
    covariance[:6, :6] = by_maps @ state.haralick.joint(pair) @ by_maps.T
    return covariance


def _unjoined(family: Family) -> NDArray[np.float64]:
    by_entry = family.by_entry * np.array(UNJOINED[: family.freedom])[:, None]
    return np.asarray(by_entry.T @ by_entry)


def _kron(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the matrix that maps the entries of X, row by row, to those of A X Bᵀ."""
    return np.asarray(np.kron(a, b), dtype=np.float64)


def _unit_from_pixels(outline: Outline) -> Homographies:
    return np.vstack([outline.unit_from_pixels, [0.0, 0.0, 1.0]])


QUESTIONED_TAIL = 5e-7
"""The share of correct links that are at least as surprising, if the noise is as stated."""

FEWEST_SURPRISES = 3
FIRST_SCALE = 4.0
"""By how much χ² may be too large before answers have shown the true factor.

Chains drift by more than their noise where relief or a lens distorts every link the same way.
"""


@dataclass(frozen=True, slots=True)
class Surprise:
    """χ² of a link against the prediction of the others."""

    chi2: float
    degrees: int

    @property
    def excess(self) -> float:
        """The ratio of χ² to its median."""
        return self.chi2 / float(chi2_distribution.median(self.degrees))

    def is_more_than(self, earlier: Sequence[Surprise]) -> bool:
        """Tell whether it is more than the earlier links let expect."""
        return self.chi2 / scale_of(earlier) > float(chi2_distribution.isf(QUESTIONED_TAIL, self.degrees))

    def sigmas(self, earlier: Sequence[Surprise]) -> float:
        """Return the number of σ of a normal variable that is as surprising, given the earlier links."""
        scaled = self.chi2 / scale_of(earlier)
        tail = float(chi2_distribution.sf(scaled, self.degrees))
        return float(norm.isf(tail / 2)) if tail > 1e-280 else math.sqrt(scaled)


def surprise_of(loop: AnyLoop, landmarks: Landmarks, author: Author) -> Surprise:
    """Return how surprising a yes is in a state."""
    return Surprise(loop.surprise(landmarks, author), degrees_of(loop, landmarks))


def scale_of(earlier: Sequence[Surprise]) -> float:
    """Return the factor by which χ² of correct links is too large."""
    if len(earlier) < FEWEST_SURPRISES:
        return FIRST_SCALE
    return max(1.0, float(np.median([surprise.excess for surprise in earlier])))
