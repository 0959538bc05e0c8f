"""How far a mosaic is from landmarks that were not part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.errors import ProjectError
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.project.entries import Placement
from smalti.records import Landmarks


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The paper's relative error: distances in frame i between its landmarks and those of j mapped there."""

    relative_rmsd_px: float
    median_px: float
    pairs: int
    landmarks: int
    frames_placed: int
    pairs_apart: int  # their frames lie on different mosaics, or on none
    landmarks_apart: int


def evaluate(placements: Iterable[Placement], records: Iterable[Landmarks], lens: Lens | None = None) -> Evaluation:
    """Hold landmarks against the final maps; both they and the distances are in pixels as they are seen."""
    by_number: Mapping[int, Placement] = {placement.number: placement for placement in placements}
    distances: list[NDArray[np.float64]] = []
    pairs_apart = landmarks_apart = 0
    for record in records:
        i, j = by_number.get(record.pair.i), by_number.get(record.pair.j)
        if i is None or j is None or i.part != j.part:
            pairs_apart += 1
            landmarks_apart += len(record)
            continue
        i_from_j = np.linalg.inv(i.final) @ j.final
        if lens is None:
            mapped = project_points(i_from_j, record.points_j)
        else:
            mapped = lens.distort(project_points(i_from_j, lens.undistort(record.points_j)))
        distances.append(np.linalg.norm(record.without_along(mapped - record.points_i), axis=1))
    if not distances:
        raise ProjectError("no pair of the landmarks has both its frames on one mosaic: there is nothing to evaluate")
    together = np.concatenate(distances)
    return Evaluation(
        relative_rmsd_px=float(np.sqrt(np.mean(together**2))),
        median_px=float(np.median(together)),
        pairs=len(distances),
        landmarks=len(together),
        frames_placed=len(by_number),
        pairs_apart=pairs_apart,
        landmarks_apart=landmarks_apart,
    )
