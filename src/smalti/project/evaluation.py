"""How far a mosaic is from landmarks that were not part of it: those of a table, and those that people left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smalti.engine.estimate import Estimate
from smalti.engine.variance_components import PERSON
from smalti.errors import ProjectError
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.project.entries import AnswerEntry, Placement
from smalti.project.facts import LeftOutPlaces
from smalti.records import Landmarks, as_numbers


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
        distance = _distances(by_number, record, lens)
        if distance is None:
            pairs_apart += 1
            landmarks_apart += len(record)
            continue
        distances.append(distance)
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


def hold_left_out(
    answers: Iterable[AnswerEntry],
    placements: Iterable[Placement],
    lens: Lens,
    final: Estimate | None,
    numbers: FrameNumbers,
) -> LeftOutPlaces:
    """Hold the landmarks that people left out of their links against the final maps, beside what `final` predicts.

    Predicted is the RMS distance due to the uncertainty of the mosaic there and to the noise of the landmark itself.
    Without an estimate, as by the paper's method, nothing is.
    """
    by_number = {placement.number: placement for placement in placements}
    rows: list[tuple[int, int, float, float | None]] = []
    for entry in answers:
        left_out = entry.left_out
        distances = None if left_out is None else _distances(by_number, left_out, lens)
        if left_out is None or distances is None:
            continue
        predicted: list[float | None] = [None] * len(left_out)
        if final is not None and numbers.knows(entry.answer.pair):
            predicted = [*_predict(left_out.of_pair(numbers.pair_in_engine(entry.answer.pair)), lens, final).tolist()]
        rows += [
            (entry.place, number, distance, expected)
            for number, (distance, expected) in enumerate(zip(distances.tolist(), predicted, strict=True))
        ]
    return LeftOutPlaces(tuple(rows))


def _predict(landmarks: Landmarks, lens: Lens, final: Estimate) -> NDArray[np.float64]:
    """Return the predicted RMS distance (n,), px, of landmarks in engine numbers from the mosaic."""
    to_unit = final.outline.unit_from_pixels
    points = lens.undistort(landmarks.points_j) @ to_unit[:, :2].T + to_unit[:, 2]
    covariance = final.conservative_covariance
    links = covariance.predicted_links(as_numbers([landmarks.pair]), points[None])
    of_mosaic = np.diagonal(covariance.of_predicted_links(links)[0]).reshape(-1, 2).sum(axis=1)
    sigma = np.asarray(landmarks.sigma) * final.noise_model.noise[PERSON]
    return np.asarray(np.sqrt(of_mosaic + 2.0 * sigma**2))


def _distances(by_number: Mapping[int, Placement], record: Landmarks, lens: Lens | None) -> NDArray[np.float64] | None:
    """Return the distances (n,) of landmarks from the final maps; None if their frames are not on one mosaic."""
    i, j = by_number.get(record.pair.i), by_number.get(record.pair.j)
    if i is None or j is None or i.part != j.part:
        return None
    i_from_j = np.linalg.inv(i.final) @ j.final
    if lens is None:
        mapped = project_points(i_from_j, record.points_j)
    else:
        mapped = lens.distort(project_points(i_from_j, lens.undistort(record.points_j)))
    return np.asarray(np.linalg.norm(record.without_along(mapped - record.points_i), axis=1))
