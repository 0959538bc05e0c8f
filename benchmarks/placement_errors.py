"""Errors of a built mosaic against the truth of a synthetic set.

Every error is that of a frame's points, from border to border, in pixels. The mosaic of a flat scene is determined up
to its position, turn and scale at best, and up to a homography if the camera is not known: so it is laid on the truth
by the best similarity, by the best homography, and not at all (*relative*: points of one frame in another that
overlaps). A frame is within a limit if all its points are, for relative errors in every frame that it overlaps. A frame
that is not on the largest mosaic is within none.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sets import FrameSet
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.records import Points
from smalti_lab.synthetic.truth import measure_errors

POINTS_A_SIDE = 5
MOST_COMPARED = 1500
"""Frames of which all pairs are compared for the relative error; of more, so many at equal distances."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Of the frames on the largest mosaic, px; and shares of all frames that show something."""

    rms: float
    max: float
    within_half_px: float
    within_1_px: float


def judge(frame_set: FrameSet, project: Path) -> dict[str, Any]:
    """Compare `transforms.json` of a project with the truth of its set."""
    assert frame_set.truth is not None, "the set has a truth"
    content = json.loads((project / "transforms.json").read_text())
    truth = np.load(frame_set.truth)[:: frame_set.every]
    blank = np.zeros(len(truth), np.bool_) if frame_set.blank is None else np.load(frame_set.blank)[:: frame_set.every]
    main = [frame for frame in content["frames"] if frame["part"] == 0]
    numbers = np.array([frame["frame"] for frame in main])
    maps = np.array([frame["final"] for frame in main])
    size = content["frame_width"], content["frame_height"]
    outline, lens = Outline.of_pixels(*size), None
    if content["lens"] is not None:
        lens = Lens(outline, content["lens"]["k1"], content["lens"]["k2"])
    shows = ~blank[numbers]
    grid = _grid(outline, frame_set.margin)
    true_points = project_points(truth[numbers], grid)
    own_points = project_points(maps, grid if lens is None else lens.undistort(grid))
    laid = np.stack([_lay_by_similarity(own_points, true_points, shows), _lay(own_points, true_points, shows)])
    found = np.linalg.norm(laid - true_points, axis=3)  # (2, n, points)
    total = int((~blank).sum())
    # Parts that blank tiles surround show something, but no match can place them.
    matched = shows & np.array([frame["placed_by"] != "neighbours" for frame in main])
    judged: dict[str, Any] = {
        "frames_on_largest": int(shows.sum()),
        "frames_that_show_something": total,
        "placed_by_neighbours": int((shows & ~matched).sum()),
        "matched": asdict(_summarise(found[0][matched], int(matched.sum()))),
        "similarity": asdict(_summarise(found[0][shows], total)),
        "homography": asdict(_summarise(found[1][shows], total)),
        "relative": asdict(_compare(maps[shows], numbers[shows], truth, outline, lens, total)),
    }
    if blank.any():
        judged["blank"] = {"frames": int(blank.sum()), "placed": int((~shows).sum())}
        if not shows.all():
            judged["blank"]["similarity"] = asdict(_summarise(found[0][~shows], int(blank.sum())))
    return judged


def _grid(outline: Outline, margin: float) -> Points:
    x = np.linspace(outline.left + margin * outline.width, outline.right - margin * outline.width, POINTS_A_SIDE)
    y = np.linspace(outline.top + margin * outline.height, outline.bottom - margin * outline.height, POINTS_A_SIDE)
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def _lay_by_similarity(own: Points, true: Points, shows: NDArray[np.bool_]) -> Points:
    """Move points (n, m, 2) onto the true ones, by a fit to those of the frames that show something."""
    source, target = (points @ np.array([1.0, 1.0j]) for points in (own, true))
    from_mean, to_mean = source[shows].mean(), target[shows].mean()
    centred = source[shows].ravel() - from_mean
    turn = np.vdot(centred, target[shows].ravel() - to_mean) / np.vdot(centred, centred).real
    moved = turn * (source - from_mean) + to_mean
    return np.stack([moved.real, moved.imag], axis=-1)


def _lay(own: Points, true: Points, shows: NDArray[np.bool_]) -> Points:
    """Do the same by a homography."""
    homography, _ = cv2.findHomography(own[shows].reshape(-1, 2), true[shows].reshape(-1, 2), 0)
    return project_points(np.asarray(homography, np.float64), own.reshape(-1, 2)).reshape(own.shape)


def _summarise(distances: NDArray[np.float64], total: int) -> Errors:
    """Sum up the distances (n, m) of the points of n frames, of `total`."""
    worst = distances.max(axis=1)
    rms = float(np.sqrt(np.mean(distances**2)))
    return Errors(rms, float(worst.max()), float((worst <= 0.5).sum() / total), float((worst <= 1.0).sum() / total))


def _compare(
    maps: NDArray[np.float64],
    numbers: NDArray[np.int64],
    truth: NDArray[np.float64],
    outline: Outline,
    lens: Lens | None,
    total: int,
) -> Errors:
    chosen = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), MOST_COMPARED)).round().astype(int))
    errors = measure_errors(maps[chosen], truth, outline, numbers[chosen], lens)
    worst = errors.worst_of_frame[numbers[chosen]]
    share = len(numbers) / total
    return Errors(errors.rms, errors.max, float(np.mean(worst <= 0.5)) * share, float(np.mean(worst <= 1.0)) * share)
