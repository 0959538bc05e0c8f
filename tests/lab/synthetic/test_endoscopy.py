"""The synthetic endoscope's truth: its frames show the scene where it says, and errors are measured against it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from smalti.errors import UsageError
from smalti.geometry.homographies import project_points
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings, Eyepiece, Hand, Tissue
from smalti_lab.endoscopy.endoscope_view import view_tissue

HAND = Hand(slowest_px=4, fastest_px=9, focal_px=250, tilt_degrees=8, visits=0.6)
TISSUE = Tissue(deformation_px=1.5, cell_px=90, slowness_frames=20)
SMALL = EndoscopeSettings(60, 120, 110, HAND, TISSUE, Eyepiece(drift=0.05, notch_turns=True))
SCENE = np.random.default_rng(0).integers(0, 256, (420, 500, 3), np.uint8)


@pytest.fixture(scope="module")
def sequence():
    return EndoscopeSequence(SCENE, SMALL, seed=3)


def pixels(sequence: EndoscopeSequence) -> np.ndarray:
    return np.stack(np.meshgrid(np.arange(sequence.width), np.arange(sequence.height)), axis=-1).astype(float)


def fit_affine(points_i: np.ndarray, points_j: np.ndarray) -> np.ndarray:
    """Return i_from_j (2, 3) by least squares."""
    return np.linalg.lstsq(np.column_stack([points_j, np.ones(len(points_j))]), points_i, rcond=None)[0].T


def test_points_go_to_the_scene_and_back(sequence):
    points = pixels(sequence).reshape(-1, 2)
    for n in (0, 31, 59):
        back = sequence.frame_from_scene(n, sequence.scene_from_frame(n, points))
        np.testing.assert_allclose(back, points, atol=1e-9)


def test_a_frame_shows_the_tissue_at_exactly_the_true_coordinates(sequence):
    """Against another interpolation of the same tissue; both are exact for smooth pictures only."""
    x, y = np.meshgrid(np.arange(500), np.arange(420))
    tissue = np.rint(128 + 90 * np.sin(x / 6) * np.cos(y / 7)).astype(np.uint8)
    for n in (5, 40):
        view = view_tissue(tissue, sequence.motion, sequence.deformation, sequence.fields, n, 0)
        inside = sequence.field(n)
        at = sequence.scene_from_frame(n, pixels(sequence)[inside])
        expected = map_coordinates(tissue.astype(float), at.T[::-1], order=3)
        error = view[inside] - expected
        assert np.abs(error).max() < 0.15
        assert error.std() < 0.03


def test_the_middle_of_a_frame_looks_where_the_hand_points(sequence):
    middle = project_points(sequence.motion.plane_from_frame, sequence.outline.centre[None])[:, 0]
    np.testing.assert_allclose(middle, sequence.motion.centres, atol=1e-9)


def test_perspective_and_deformation_are_there(sequence):
    """Without either, an affine map would be exact."""
    grid = sequence.fields.grid(0)
    flat = dataclasses.replace(SMALL, hand=dataclasses.replace(HAND, tilt_degrees=0))
    still = dataclasses.replace(SMALL, tissue=dataclasses.replace(TISSUE, deformation_px=0))
    for settings in (flat, still):
        other = EndoscopeSequence(SCENE, settings, 3)
        left = [
            np.linalg.norm(to - np.column_stack([grid, np.ones(len(grid))]) @ fit_affine(to, grid).T, axis=1).max()
            for to in (other.scene_from_frame(n, grid) for n in range(60))
        ]
        assert max(left) > 0.2


@pytest.mark.parametrize("tilt_degrees", [0, 8])
def test_maps_that_are_exact_without_deformation_have_no_error(tilt_degrees):
    settings = dataclasses.replace(
        SMALL,
        hand=dataclasses.replace(HAND, tilt_degrees=tilt_degrees),
        tissue=dataclasses.replace(TISSUE, deformation_px=0),
    )
    sequence = EndoscopeSequence(SCENE, settings, 3)
    maps = sequence.motion.plane_from_frame
    affine = maps[:, :2] / maps[:, 2:, 2:]
    assert sequence.truth_error(maps).max < 1e-8
    assert (sequence.truth_error(affine).max < 1e-8) == (tilt_degrees == 0)


def test_errors_are_distances_in_the_pixels_of_i_at_points_that_both_fields_show(sequence):
    rng = np.random.default_rng(1)
    estimated = sequence.motion.plane_from_frame[:, :2] + rng.normal(0, [1e-3, 1e-3, 1], (60, 2, 3))
    errors = sequence.truth_error(estimated)
    for k in range(0, len(errors.pairs), 200):
        i, j = errors.pairs[k]
        points_j = sequence.fields.grid(j)
        points_i = sequence.points_in(i, j, points_j)
        seen = sequence.fields.contains(j, points_j) & sequence.fields.contains(i, points_i)
        both = [np.vstack([estimated[n], [0, 0, 1]]) for n in (i, j)]
        guess = np.column_stack([points_j, np.ones(len(points_j))]) @ (np.linalg.inv(both[0]) @ both[1]).T
        distances = np.linalg.norm(guess[:, :2] - points_i, axis=1)[seen]
        assert errors.rms_of_pair[k] == pytest.approx(np.sqrt(np.mean(distances**2)))
        assert errors.max_of_pair[k] == pytest.approx(distances.max())


def test_frames_that_were_not_placed_are_left_out_of_the_errors(sequence):
    placed = [9, 2, 4, 3, 50]
    maps = sequence.motion.plane_from_frame[placed].copy()
    maps[0, 0, 2] += 40
    errors = sequence.truth_error(maps, placed)
    overlapping = sequence.overlapping_pairs(0.1)
    np.testing.assert_array_equal(errors.pairs, overlapping[np.isin(overlapping, placed).all(axis=1)])
    assert errors.worst_of_frame[9] > 20
    assert np.isnan(errors.worst_of_frame[30])


def test_overlap_is_the_part_of_the_field_of_j_that_i_shows(sequence):
    overlapping = {least: {tuple(p) for p in sequence.overlapping_pairs(least).tolist()} for least in (0.05, 0.3, 0.7)}
    counted = 0
    for i, j in [(0, 1), (0, 8), (3, 20), (10, 16), (22, 59), (30, 37), (5, 33), (40, 52), (1, 58), (12, 26)]:
        points = sequence.points_in(i, j, pixels(sequence)[sequence.field(j)])
        x, y = np.rint(points).astype(int).T
        inside = (x >= 0) & (x < 120) & (y >= 0) & (y < 110)
        share = sequence.field(i)[y[inside], x[inside]].sum() / len(points)
        for least, pairs in overlapping.items():
            if abs(share - least) > 0.05:
                counted += 1
                assert ((i, j) in pairs) == (share > least)
    assert counted > 20


def test_no_pair_far_apart_is_taken_for_one_that_does_not_overlap(sequence):
    pairs = {tuple(p) for p in sequence.overlapping_pairs(0.02).tolist()}
    for i in range(0, 60, 7):
        for j in range(i + 1, 60):
            grid = sequence.fields.grid(j)
            seen = sequence.fields.contains(i, sequence.points_in(i, j, grid)) & sequence.fields.contains(j, grid)
            assert ((i, j) in pairs) == (seen.sum() >= 0.02 * sequence.fields.contains(j, grid).sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_default_sequence_moves_like_a_hand_and_comes_back_to_places(seed):
    sequence = EndoscopeSequence(np.zeros((2000, 2000, 3), np.uint8), seed=seed)
    motion = sequence.motion
    steps = np.array([np.linalg.norm(motion.step(n)) for n in range(599)])
    assert 4 < np.median(steps) < 9
    assert steps.max() < 16
    assert 0.02 < (steps < 1.5).mean() < 0.25
    assert 30 < np.ptp(np.degrees(motion.turn)) < 70
    assert 1.25 < motion.scale.max() / motion.scale.min() < 1.4
    # Every loop leaves the neighbourhood of a place and comes back to it much later.
    away = np.linalg.norm(motion.centres[:, None] - motion.centres[None], axis=2)
    far = np.abs(np.subtract.outer(np.arange(600), np.arange(600))) > 100
    assert ((away < 150) & far).any(axis=1).mean() > 0.6
    assert away.max() > 600


def test_a_scope_that_moves_on_never_comes_back_and_stays_inside_the_scene():
    hand = dataclasses.replace(HAND, onward=True)
    sequence = EndoscopeSequence(np.zeros((300, 800, 3), np.uint8), dataclasses.replace(SMALL, hand=hand), 3)
    assert (np.diff(sequence.motion.centres[:, 0]) > -1).all()  # but for the hand's tremor
    assert np.ptp(sequence.motion.centres[:, 0]) > 250
    x, y = np.concatenate([sequence.scene_from_frame(n, sequence.fields.grid(n)) for n in range(60)]).T
    assert 0 <= x.min() < x.max() <= 799
    assert 0 <= y.min() < y.max() <= 299
    with pytest.raises(UsageError, match="too short to move on"):
        EndoscopeSequence(SCENE, dataclasses.replace(SMALL, frames=300, hand=hand), 3)


def test_an_affine_map_fits_consecutive_frames_of_a_default_sequence():
    sequence = EndoscopeSequence(np.zeros((2000, 2000, 3), np.uint8), seed=2)
    for n in range(0, 599, 20):
        points_j = sequence.fields.grid(n + 1)
        points_i = sequence.points_in(n, n + 1, points_j)
        i_from_j = fit_affine(points_i, points_j)
        left = points_i - np.column_stack([points_j, np.ones(len(points_j))]) @ i_from_j.T
        assert np.sqrt((left**2).sum(axis=1).mean()) < 0.15


@pytest.mark.parametrize("seed", range(2))
def test_every_field_of_view_lies_inside_a_scene_that_just_holds_it(seed):
    scene = np.zeros((256, 264, 3), np.uint8)
    sequence = EndoscopeSequence(scene, SMALL, seed)
    for n in range(60):
        rim = sequence.fields.centres[n] + sequence.fields.radius_px * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
        x, y = sequence.scene_from_frame(n, rim).T
        assert -0.5 <= x.min() < x.max() <= 263.5
        assert -0.5 <= y.min() < y.max() <= 255.5


def test_a_scene_too_small_for_the_scope_is_refused():
    with pytest.raises(UsageError, match=r"a scene of 263 × 256 pixels leaves no room .* at least 264 × 256"):
        EndoscopeSequence(np.zeros((256, 263, 3), np.uint8), SMALL)


def test_a_scene_that_is_no_picture_is_refused():
    with pytest.raises(UsageError, match="a scene is"):
        EndoscopeSequence(SCENE[..., 0], SMALL)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hand(zoom=-0.1), "hand: zoom is -0.1, give a number from 0 to 1"),
        (lambda: Hand(fastest_px=2), "hand: fastest_px is 2, give a number from 3"),
        (lambda: Tissue(deformation_px=20), "tissue: deformation_px is 20, give a number from 0 to 8"),
        (lambda: EndoscopeSettings(disturbed=float("nan")), "endoscope: disturbed is nan"),
        (lambda: EndoscopeSettings(frames=1), "endoscope: frames is 1, give a number from 8"),
    ],
)
def test_senseless_settings_are_refused(make, words):
    with pytest.raises(UsageError, match=words):
        make()
