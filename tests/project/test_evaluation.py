"""Evaluation: distances in frame i, by numbers that can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import ProjectError
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import Placement
from smalti.project.evaluation import evaluate
from smalti.records import Landmarks, Pair
from tests.project.entries import shifted


def landmarks(i: int, j: int, points_i: list[list[float]], points_j: list[list[float]]) -> Landmarks:
    return Landmarks(Pair(i, j), np.array(points_i), np.array(points_j))


def placed(number: int, final: list[list[float]], part: int = 0) -> Placement:
    return Placement(number, part, np.eye(3), np.array(final, dtype=float), 0.5)


def test_distances_are_what_they_are_by_hand():
    # Frame 1 lies 10 to the right: its (0, 0) and (5, 5) are (10, 0) and (15, 5) of frame 0.
    record = landmarks(0, 1, [[13.0, 4.0], [15.0, 5.0]], [[0.0, 0.0], [5.0, 5.0]])
    found = evaluate([shifted(0, 0), shifted(1, 10)], [record])
    assert found.relative_rmsd_px == pytest.approx(np.sqrt(25 / 2))
    assert found.median_px == pytest.approx(2.5)


def test_distances_are_measured_in_the_pixels_of_frame_i():
    # Frame 0 shows the mosaic at half size: 4 mosaic pixels are 2 of its own.
    large = placed(0, [[2, 0, 0], [0, 2, 0], [0, 0, 1]])
    record = landmarks(0, 1, [[5.0, 0.0]], [[4.0, 0.0]])
    found = evaluate([large, shifted(1, 10)], [record])
    assert found.relative_rmsd_px == pytest.approx(2.0)


def test_the_final_maps_count_with_their_perspective():
    # (8, 4) of frame 1 is divided by 1 + 8/8 = 2.
    tilted = placed(1, [[1, 0, 0], [0, 1, 0], [1 / 8, 0, 1]])
    found = evaluate([shifted(0, 0), tilted], [landmarks(0, 1, [[4.0, 5.0]], [[8.0, 4.0]])])
    assert found.relative_rmsd_px == pytest.approx(3.0)


def test_frames_that_lie_right_have_no_error():
    points, moved = [[1.0, 2.0], [30.0, 4.0], [5.0, 60.0]], [[8.0, -1.0], [37.0, 1.0], [12.0, 57.0]]
    found = evaluate([shifted(4, 100, 20), shifted(9, 107, 17)], [landmarks(4, 9, moved, points)])
    assert found.relative_rmsd_px == pytest.approx(0.0, abs=1e-12)


def test_with_a_lens_distances_are_measured_where_they_are_seen():
    lens = Lens(Outline.of_pixels(200, 100), 0.1, -0.02)
    points = np.array([[20.0, 10.0], [150.0, 40.0], [99.5, 90.0]])
    seen = lens.distort(lens.undistort(points) + np.array([30.0, -5.0]))
    record = landmarks(0, 1, (seen + np.array([3.0, 4.0])).tolist(), points.tolist())
    placements = [shifted(0, 0), shifted(1, 30, -5)]
    assert evaluate(placements, [record], lens).relative_rmsd_px == pytest.approx(5.0)
    exact = landmarks(0, 1, seen.tolist(), points.tolist())
    assert evaluate(placements, [exact], lens).relative_rmsd_px < 1e-9
    assert evaluate(placements, [exact]).relative_rmsd_px > 0.5


def test_a_lens_that_bends_nothing_changes_nothing():
    record = landmarks(0, 1, [[13.0, 4.0], [15.0, 5.0]], [[0.0, 0.0], [5.0, 5.0]])
    placements = [shifted(0, 0), shifted(1, 10)]
    assert evaluate(placements, [record], Lens(Outline.of_pixels(40, 30))) == evaluate(placements, [record])


def test_every_landmark_counts_once_whatever_its_pair():
    records = [
        landmarks(0, 1, [[1.0, 0.0]], [[0.0, 0.0]]),
        landmarks(0, 2, [[3.0, 0.0]] * 3, [[0.0, 0.0]] * 3),
    ]
    found = evaluate([shifted(n, 0) for n in range(3)], records)
    assert found.relative_rmsd_px == pytest.approx(np.sqrt((1 + 3 * 9) / 4))
    assert found.median_px == pytest.approx(3.0)
    assert (found.pairs, found.landmarks) == (2, 4)


def test_the_mosaic_as_a_whole_may_lie_anywhere():
    record = landmarks(0, 1, [[13.0, 4.0], [15.0, 5.0]], [[0.0, 0.0], [5.0, 5.0]])
    moved = np.array([[0.6, -0.8, 50], [0.8, 0.6, -9], [0, 0, 1]])
    maps = [np.array(one.final) for one in (shifted(0, 0), shifted(1, 10))]
    found = evaluate([placed(n, (moved @ one).tolist()) for n, one in enumerate(maps)], [record])
    assert found.relative_rmsd_px == pytest.approx(np.sqrt(25 / 2))


def test_pairs_apart_are_counted_apart_and_not_measured():
    placements = [shifted(0, 0), shifted(1, 10), shifted(2, 0, part=1), shifted(3, 5, part=1)]
    records = [
        landmarks(0, 1, [[10.0, 1.0]], [[0.0, 0.0]]),
        landmarks(1, 2, [[999.0, 0.0]] * 4, [[0.0, 0.0]] * 4),  # on two mosaics
        landmarks(2, 3, [[5.0, 3.0]], [[0.0, 0.0]]),
        landmarks(0, 8, [[999.0, 0.0]] * 2, [[0.0, 0.0]] * 2),  # 8 is on none
        landmarks(8, 9, [[999.0, 0.0]], [[0.0, 0.0]]),
    ]
    found = evaluate(placements, records)
    assert found.relative_rmsd_px == pytest.approx(np.sqrt((1 + 9) / 2))
    assert (found.pairs, found.landmarks) == (2, 2)
    assert (found.pairs_apart, found.landmarks_apart) == (3, 7)
    assert found.frames_placed == 4


@pytest.mark.parametrize("records", [[], [landmarks(0, 7, [[0.0, 0.0]], [[0.0, 0.0]])]], ids=["none", "apart"])
def test_nothing_to_measure_is_an_error(records):
    with pytest.raises(ProjectError, match="nothing to evaluate"):
        evaluate([shifted(0, 0)], records)
