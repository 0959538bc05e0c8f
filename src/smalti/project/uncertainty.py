"""The uncertainty of every place of a mosaic, from the engine's state behind a finished project."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.engine.estimate import Estimate
from smalti.engine.robust_estimate import final_estimate
from smalti.errors import ProjectError
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import family_named
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import Role, number_usable
from smalti.project.project import Project
from smalti.records import Answer, Points


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The predicted variance of where the points of a part's frames lie in one of these frames."""

    part: int
    relative_to: int
    spread: Mapping[int, NDArray[np.float64]]  # (6, 6) by frame: m S mᵀ is the variance in px², m the monomials
    lens: Lens

    @classmethod
    def of(
        cls, project: Project, part: int = 0, relative_to: int | None = None, *, mosaics: FinishedMosaics | None = None
    ) -> Uncertainty:
        """Compute it for a finished project, relative to a frame, by default to the one whose pixels are the mosaic's.

        A frame that the engine does not use is known as the one beside which it was laid, or as the nearest keyframe.
        A tile that lies where its neighbours say is known as well as these say. Who has the project's `mosaics` gives
        them; otherwise they are computed again.
        """
        placed = {placement.number: placement for placement in project.placements if placement.part == part}
        if not placed:
            raise ProjectError(f"{project.folder}: has no mosaic of part {part}; it has {project.parts} in all, from 0")
        if relative_to is None:
            relative_to = project.outcome.references[part]
        if relative_to not in placed:
            raise ProjectError(
                f"{project.folder}: frame {relative_to} is not on the mosaic of part {part}; name one that is, "
                f"such as {min(placed)}"
            )
        if project.outcome.method == "paper" and relative_to == project.outcome.references[part]:
            # Haralick's covariance of the centres is kept; what is known of other points is not.
            return cls(part, relative_to, {n: _constant(one.sigma_px) for n, one in placed.items()}, project.lens)
        by_neighbours = set(project.outcome.by_neighbours)
        by_spots = set(project.outcome.by_spots)
        if relative_to in by_neighbours | by_spots:
            raise ProjectError(
                f"{project.folder}: no match places frame {relative_to}, it lies where its neighbours say; name another"
            )
        mosaics = state_of(project).mosaics if mosaics is None else mosaics
        numbers = mosaics.numbers
        beside = _nearest(numbers, placed)
        for answer in mosaics.asides:
            if answer.landmarks is not None:
                one, other = answer.pair.i, answer.pair.j
                beside[one if one not in numbers else other] = other if one not in numbers else one
        nearest = beside.get(relative_to, relative_to)
        forms = _in_pixels(
            mosaics.final.conservative_covariance.spread_relative_to(numbers.in_engine(nearest)), project.outline
        )
        spread = {
            number: _constant(placed[number].sigma_px)
            if number in by_neighbours or number in by_spots
            else forms[numbers.in_engine(beside.get(number, number))]
            for number in sorted(placed)
        }
        return cls(part, relative_to, spread, project.lens)

    def at(self, number: int, points: Points) -> NDArray[np.float64]:
        """Return the standard deviation (n,), px, of where points (n, 2) of a frame lie."""
        if number not in self.spread:
            raise ProjectError(f"frame {number} is not on the mosaic of part {self.part}; name one that is")
        x, y = self.lens.undistort(np.asarray(points, dtype=np.float64)).T
        terms = np.column_stack([np.ones_like(x), x, y, x * x, x * y, y * y])
        variance: NDArray[np.float64] = np.sum(terms @ self.spread[number] * terms, axis=1)
        return np.sqrt(np.maximum(variance, 0.0))  # to rounding, a place that is known has any sign


def _nearest(numbers: FrameNumbers, placed: Collection[int]) -> dict[int, int]:
    """Return the nearest placed frame that the engine knows, for every one that it does not know."""
    known = np.array([number for number in numbers if number in placed])
    others = [number for number in sorted(placed) if number not in numbers]
    if not len(known):
        return {}
    after = np.searchsorted(known, others)
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(known) - 1)
    nearer = np.where(others - known[before] <= known[after] - others, before, after)
    return dict(zip(others, known[nearer].tolist(), strict=True))


def _constant(sigma_px: float) -> NDArray[np.float64]:
    form = np.zeros((6, 6))
    form[0, 0] = sigma_px**2
    return form


def _in_pixels(forms: NDArray[np.float64], outline: Outline) -> NDArray[np.float64]:
    """Return forms (N, 6, 6) in monomials of units as forms in monomials of pixels."""
    x, y = outline.centre
    unit = outline.unit
    # Of (1, x, y, x², xy, y²) in units, each in those of pixels.
    terms = np.zeros((6, 6))
    terms[0, 0] = 1.0
    terms[1, [0, 1]] = np.array([-x, 1.0]) / unit
    terms[2, [0, 2]] = np.array([-y, 1.0]) / unit
    terms[3, [0, 1, 3]] = np.array([x * x, -2.0 * x, 1.0]) / unit**2
    terms[4, [0, 1, 2, 4]] = np.array([x * y, -y, -x, 1.0]) / unit**2
    terms[5, [0, 2, 5]] = np.array([y * y, -2.0 * y, 1.0]) / unit**2
    return np.asarray(terms.T @ forms @ terms)


@dataclass(frozen=True, slots=True, eq=False)
class FinishedMosaics:
    """The finished mosaics, in the numbers of the engine."""

    numbers: FrameNumbers
    final: Estimate
    asides: tuple[Answer, ...]  # of frames that were set aside, in the numbers of the source


@dataclass(frozen=True, eq=False)
class FinishedState:
    """The chain alone, and what was answered since, in the numbers of the engine."""

    numbers: FrameNumbers
    start: ActiveLoop
    answers: tuple[Answer, ...]  # in the order in which they were given
    asides: tuple[Answer, ...]  # of frames that were set aside, in the numbers of the source

    @property
    def loop(self) -> ActiveLoop:
        """The state after all answers."""
        return self.start.replay(self.answers)

    @cached_property
    def mosaics(self) -> FinishedMosaics:
        """The finished mosaics."""
        return FinishedMosaics(self.numbers, final_estimate(self.loop.estimate), self.asides)


def state_of(project: Project) -> FinishedState:
    """Compute the state of a finished project again: it is a function of its answers."""
    outcome = project.outcome
    if outcome.method == "paper":
        raise ProjectError(
            f"{project.folder}: its mosaic was made by the paper's method, which stores no states; build it with "
            "--method smalti for a film or a map of the uncertainty"
        )
    numbers = number_usable(project.frames)
    chain, answers, asides = [], [], []
    # With a smaller budget than before, the mosaic is made by the first of the answers only.
    counted = {link.pair for link in project.links}
    for entry in project.placed_by:
        pair = entry.answer.pair
        if entry.role is Role.ASIDE:
            asides.append(entry.answer)
        elif numbers.knows(pair) and (pair in counted or entry.answer.landmarks is None):
            answer = entry.answer.of_pair(numbers.pair_in_engine(pair))
            if entry.role.is_after_chain:
                answers.append(answer)
            elif answer.landmarks is not None:
                chain.append(answer.landmarks)
    start = ActiveLoop.start(
        len(numbers),
        project.outline,
        chain,
        family=family_named(outcome.family),
        reference=numbers.in_engine(outcome.references[0]) if outcome.references else "auto",
    )
    known = {landmarks.pair for landmarks in chain}
    loops = tuple(answer for answer in answers if answer.pair not in known)
    return FinishedState(numbers, start, loops, tuple(asides))
