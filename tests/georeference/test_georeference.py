from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.errors import TableError, UsageError
from smalti.geometry.linear_maps import apply, square
from smalti.georeference.georeferencing import fit_georeference
from smalti.georeference.positions import Positions

LAWS = settings(derandomize=True, deadline=None, max_examples=40)
PLACE = (587_650.0, 3_338_100.0)  # metres, of the order of UTM


def similarity(metres_per_pixel: float, bearing_deg: float, place=PLACE) -> np.ndarray:
    """Of a mosaic whose up direction has that bearing: written by compass, not by the code under test."""
    bearing = np.radians(bearing_deg)
    up = np.array([np.sin(bearing), np.cos(bearing)])
    right = np.array([np.cos(bearing), -np.sin(bearing)])
    return np.column_stack([metres_per_pixel * right, -metres_per_pixel * up, place])


def strips(frames: int = 60) -> np.ndarray:
    """Centres of a lawn mower's path, in pixels."""
    k = np.arange(frames)
    strip, step = k // 10, k % 10
    return np.column_stack([320 + 600.0 * strip, 240 + 250.0 * np.where(strip % 2, 9 - step, step)])


def fit(centres: np.ndarray, metres: np.ndarray, epsg: int | None = 32614):
    positions = Positions({k: (float(e), float(n)) for k, (e, n) in enumerate(metres)}, epsg, ("lat", "lon"))
    return fit_georeference(positions, dict(enumerate(centres)))


def error_m(found, truth: np.ndarray, centres: np.ndarray) -> float:
    """The largest distance by which a frame lies off."""
    return float(np.linalg.norm(apply(found.world_from_mosaic, centres) - apply(truth, centres), axis=1).max())


@LAWS
@given(st.floats(1e-4, 50), st.floats(-179.9, 179.9), st.integers(3, 40), st.integers(0, 2**32 - 1))
def test_exact_positions_give_back_the_similarity(metres_per_pixel, bearing_deg, frames, seed):
    centres = np.random.default_rng(seed).uniform(-2000, 2000, (frames, 2))
    truth = similarity(metres_per_pixel, bearing_deg)
    found = fit(centres, apply(truth, centres))
    size = metres_per_pixel * 2000
    assert error_m(found, truth, centres) < 1e-8 + 1e-9 * size
    assert found.metres_per_pixel == pytest.approx(metres_per_pixel, rel=1e-5)
    assert (found.rotation_deg - bearing_deg + 180) % 360 - 180 == pytest.approx(0, abs=1e-3)
    assert found.residual_m < 1e-8 + 1e-9 * size
    assert found.outliers == ()
    assert found.epsg == 32614


@pytest.mark.parametrize(
    ("bearing_deg", "up", "right"),
    [(0, (0, 1), (1, 0)), (90, (1, 0), (0, -1)), (180, (0, -1), (-1, 0)), (-90, (-1, 0), (0, 1))],
)
def test_rotation_is_the_bearing_of_the_mosaics_up_direction(bearing_deg, up, right):
    # The first centre is the middle, the second lies above it, the third to its right.
    centres = np.array([[100.0, 100.0], [100.0, 0.0], [200.0, 100.0]])
    found = fit(centres, np.array([(0.0, 0.0), up, right]))
    assert (found.rotation_deg - bearing_deg + 180) % 360 - 180 == pytest.approx(0, abs=1e-9)
    assert found.metres_per_pixel == pytest.approx(0.01)


def test_the_map_reflects_since_y_goes_down_and_north_goes_up():
    centres = strips()
    found = fit(centres, apply(similarity(0.06, 25), centres))
    assert np.linalg.det(found.world_from_mosaic[:, :2]) == pytest.approx(-(0.06**2))


def test_noise_averages_out_and_is_reported_and_costs_few_frames():
    centres, truth = strips(), similarity(0.06, -140)
    surveys = [
        fit(centres, apply(truth, centres) + np.random.default_rng(seed).normal(0, 2.0, (60, 2))) for seed in range(50)
    ]
    assert max(error_m(found, truth, centres) for found in surveys) < 2.0
    # Two coordinates, less the four numbers that are fitted.
    reported = np.sqrt(np.mean([found.residual_m**2 for found in surveys]))
    assert reported == pytest.approx(2.0 * np.sqrt(2 * 116 / 120), rel=0.03)
    assert sum(len(found.outliers) for found in surveys) <= 6  # the threshold is for one in a thousand of 3000


WILD = {
    "scattered": np.arange(2, 60, 5),
    "the last fifth": np.arange(48, 60),
}


@pytest.mark.parametrize("frames", WILD)
@pytest.mark.parametrize("size_m", [60.0, 5e6])
def test_a_fifth_of_gross_errors_is_named_and_left_out(frames, size_m):
    rng, centres, truth = np.random.default_rng(3), strips(), similarity(0.06, 110)
    wild = WILD[frames]
    honest = apply(truth, centres) + rng.normal(0, 1.0, (60, 2))
    angles = rng.uniform(0, 2 * np.pi, len(wild))
    metres = honest.copy()
    metres[wild] += size_m * np.column_stack([np.cos(angles), np.sin(angles)])
    found = fit(centres, metres)
    assert found.outliers == tuple(wild)
    kept = np.setdiff1d(np.arange(60), wild)
    alone = fit(centres[kept], honest[kept])
    np.testing.assert_allclose(found.world_from_mosaic, alone.world_from_mosaic, rtol=1e-9, atol=1e-9)
    assert found.residual_m == pytest.approx(alone.residual_m)


def test_gross_errors_that_agree_with_each_other_are_left_out():
    centres, truth = strips(), similarity(0.06, 5)
    metres = apply(truth, centres) + np.random.default_rng(4).normal(0, 1.0, (60, 2))
    metres[20:32] = PLACE  # the receiver stood still for a fifth of the way
    metres[20:32] += [200, 150]
    assert fit(centres, metres).outliers == tuple(range(20, 32))


def test_rounding_is_not_taken_for_disagreement():
    centres = strips(500)
    assert fit(centres, apply(similarity(0.5, 90), centres)).outliers == ()


def test_residuals_are_the_distances_of_every_frame_those_left_out_too():
    centres, truth = strips(), similarity(0.06, 5)
    metres = apply(truth, centres)
    metres[17] += [300, -400]
    found = fit(centres, metres)
    assert set(found.residuals_m) == set(range(60))
    assert found.residuals_m[17] == pytest.approx(500)
    assert found.residuals_m[16] == pytest.approx(0, abs=1e-6)
    assert found.residual_m == pytest.approx(0, abs=1e-6)


def test_one_wild_position_among_four_is_found():
    centres, truth = np.array([[0.0, 0], [900, 100], [1000, 800], [50, 700]]), similarity(0.1, 30)
    metres = apply(truth, centres) + np.array([[0.1, 0], [0, -0.1], [-0.1, 0.1], [0, 0]])
    metres[2] += [500, 500]
    found = fit(centres, metres)
    assert found.outliers == (2,)
    assert error_m(found, truth, centres) < 0.5


def test_three_frames_are_never_outvoted():
    centres, truth = np.array([[0.0, 0], [900, 100], [1000, 800]]), similarity(0.1, 30)
    found = fit(centres, apply(truth, centres) + np.array([[3.0, 0], [0, 0], [0, 0]]))
    assert found.outliers == ()
    assert 0.5 < found.residual_m < 3


def test_a_long_stay_at_one_place_does_not_outweigh_the_way():
    rng, truth = np.random.default_rng(5), similarity(0.06, -60)
    centres = np.vstack([strips(), rng.normal((320, 240), 5.0, (120, 2))])
    found = fit(centres, apply(truth, centres) + rng.normal(0, 2.0, (180, 2)))
    assert found.rotation_deg == pytest.approx(-60, abs=1)
    assert found.metres_per_pixel == pytest.approx(0.06, rel=0.02)


def test_frames_on_a_line_suffice():
    centres = np.column_stack([np.linspace(0, 5000, 12), np.linspace(0, 1000, 12)])
    truth = similarity(0.05, 160)
    assert error_m(fit(centres, apply(truth, centres)), truth, strips()) < 1e-6


def test_the_order_of_the_rows_does_not_matter():
    centres = strips()
    metres = apply(similarity(0.06, 5), centres) + np.random.default_rng(6).normal(0, 2.0, (60, 2))
    rows = {k: tuple(metres[k]) for k in range(60)}
    forwards = fit_georeference(Positions(rows, None, ("x_m", "y_m")), dict(enumerate(centres)))
    backwards = fit_georeference(
        Positions(dict(reversed(rows.items())), None, ("x_m", "y_m")), dict(reversed(list(enumerate(centres))))
    )
    np.testing.assert_array_equal(forwards.world_from_mosaic, backwards.world_from_mosaic)


def test_only_frames_that_have_both_count():
    centres, truth = strips(), similarity(0.06, 5)
    metres = apply(truth, centres)
    positions = Positions({k: tuple(metres[k]) for k in range(40)}, None, ("x_m", "y_m"))
    found = fit_georeference(positions, {k: centres[k] for k in range(30, 60)})
    assert set(found.residuals_m) == set(range(30, 40))
    assert found.epsg is None


@pytest.mark.parametrize("shape", [2, 3])
def test_pixels_of_a_drawing_are_taken_to_the_world_through_the_mosaic(shape):
    centres, truth = strips(), similarity(0.06, 33)
    found = fit(centres, apply(truth, centres))
    mosaic_from_pixel = np.array([[2.0, 0, -310.5], [0, 2.0, 17.25]])
    given_map = mosaic_from_pixel if shape == 2 else 4 * square(mosaic_from_pixel)
    pixels = np.array([[0.0, 0], [700, 30], [12, 900]])
    expected = apply(truth, apply(mosaic_from_pixel, pixels))
    np.testing.assert_allclose(apply(found.world_from(given_map), pixels), expected, atol=1e-6, rtol=0)


def test_a_map_with_perspective_leads_to_no_grid():
    found = fit(strips(), apply(similarity(0.06, 33), strips()))
    with pytest.raises(UsageError, match="perspective"):
        found.world_from(np.array([[1.0, 0, 0], [0, 1, 0], [1e-4, 0, 1]]))


def refused(centres, metres, match: str) -> None:
    positions = Positions({k: tuple(row) for k, row in enumerate(metres)}, None, ("x_m", "y_m"), origin="gps.csv")
    with pytest.raises(TableError, match=match) as caught:
        fit_georeference(positions, dict(enumerate(centres)))
    assert str(caught.value).startswith("gps.csv: ")


def test_two_common_frames_are_too_few():
    refused(strips()[:2], apply(similarity(0.06, 0), strips()), "2 of the mosaic's 2 frames have a position")


def test_frames_taken_at_one_position_are_refused():
    refused(strips(), np.tile(PLACE, (60, 1)), "all 60 frames were taken at one position")


def test_frames_at_one_place_of_the_mosaic_are_refused():
    refused(np.full((60, 2), 77.0), apply(similarity(0.06, 0), strips()), "all 60 frames lie at one place")


@pytest.mark.parametrize("seed", range(2))
def test_the_table_of_another_survey_is_refused(seed):
    other = np.random.default_rng(seed).permutation(apply(similarity(0.06, 0), strips()))
    refused(strips(), other, "do not resemble the mosaic")


def test_positions_whose_second_column_goes_south_are_refused():
    refused(strips(), apply(similarity(0.06, 0, (0, 0)), strips()) * [1, -1], "north growing northwards")


def test_positions_closer_together_than_their_noise_are_refused():
    metres = apply(similarity(1e-4, 0), strips()) + np.random.default_rng(8).normal(0, 3.0, (60, 2))
    refused(strips(), metres, "farther apart than their noise")
