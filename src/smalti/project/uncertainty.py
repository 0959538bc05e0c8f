"""How surely every place of a mosaic is known, relative to any of its frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import Link, fit_link, stacked
from smalti.adjustment.motion import calm
from smalti.adjustment.spread import spread_relative_to
from smalti.errors import ProjectError, SingularSystemError
from smalti.geometry.affine import homogeneous
from smalti.project.entries import LinkState, Placement, Role
from smalti.project.project import Project
from smalti.records import Author, Pair, Points


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The predicted variance of where the points of a part's frames lie in one of these frames.

    It is that of the affine maps, also where homographies were fitted in the end: the questions were chosen by it.
    """

    part: int
    relative_to: int
    spread: Mapping[int, NDArray[np.float64]]  # (3, 3) by frame: (x, y, 1) S (x, y, 1)ᵀ is the variance in px²

    @classmethod
    def of(cls, project: Project, part: int = 0, relative_to: int | None = None) -> Uncertainty:
        """Compute it for a finished project, relative to a frame, by default to the one whose pixels are the mosaic's.

        A frame that was set aside hangs on the one link that placed it, which counts as any other.
        """
        placements = {placement.number: placement for placement in project.placements if placement.part == part}
        if not placements:
            raise ProjectError(f"{project.folder}: has no mosaic of part {part}; it has {project.parts} in all, from 0")
        if relative_to is None:
            relative_to = int(project.store.fact("references")[part])
        if relative_to not in placements:
            raise ProjectError(
                f"{project.folder}: frame {relative_to} is not on the mosaic of part {part}; name one that is, "
                f"such as {min(placements)}"
            )
        numbers = sorted(placements)
        links = list(_weighted_links(project, placements))
        try:
            adjustment = Adjustment(len(numbers), project.outline, links)
            affine = np.array([placements[number].affine for number in numbers])
            spread = spread_relative_to(adjustment, affine, numbers.index(relative_to))
        except SingularSystemError:
            raise ProjectError(
                f"{project.folder}: its links do not determine how frames of part {part} lie to frame {relative_to}; "
                "name another frame, or build it again"
            ) from None
        return cls(part, relative_to, dict(zip(numbers, spread, strict=True)))

    def at(self, number: int, points: Points) -> NDArray[np.float64]:
        """Return the standard deviation (n,), px, of where points (n, 2) of a frame lie."""
        if number not in self.spread:
            raise ProjectError(f"frame {number} is not on the mosaic of part {self.part}; name one that is")
        rows = homogeneous(np.asarray(points, dtype=np.float64))
        variance: NDArray[np.float64] = np.sum(rows @ self.spread[number] * rows, axis=1)
        return np.sqrt(np.maximum(variance, 0.0))  # to rounding, a place that is known has any sign


def _weighted_links(project: Project, placements: Mapping[int, Placement]) -> Iterator[Link]:
    """Yield the links by which the frames were placed, numbered from 0, as strong as they were in the finish."""
    place = {number: n for n, number in enumerate(sorted(placements))}
    weights = {entry.pair: entry.weight for entry in project.links if entry.state is LinkState.BELIEVED}
    noise = float(project.store.fact("noise"))
    chain, matcher, person, *_ = project.store.fact("noise_factors", (1.0, 1.0, 1.0))
    turn = project.store.fact("turn", None)
    for entry in project.placed_by:
        pair, landmarks = entry.answer.pair, entry.answer.landmarks
        weight = 1.0 if entry.role is Role.ASIDE else weights.get(pair)
        if landmarks is None or weight is None or pair.i not in place or pair.j not in place:
            continue
        link = fit_link(landmarks.of_pair(Pair(place[pair.i], place[pair.j])))
        if entry.role is not Role.LOOP:
            own_noise = noise * chain
        else:
            own_noise = person if entry.answer.author is Author.PERSON else noise * matcher
        link = replace(link, root=link.root / own_noise)
        if entry.role is Role.CHAIN and turn is not None:
            maps, roots = calm(*stacked([link]), turn)
            link = link.changed(maps[0], roots[0])
        yield replace(link, root=link.root * np.sqrt(weight))
