"""Camera paths stay inside, keep their pace, and come back where they promise to."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import UsageError
from smalti_lab.synthetic.camera_path import CameraPath, Handling, circle, raster, wander
from smalti_lab.synthetic.truth import find_overlaps

SIZE = (4000, 3000)
LIVELY = Handling(heading_degrees=25, zoom=0.2, shake_px=3, shake_degrees=1)
PACE = 0.28 * 320


def paths(handling: Handling, seed: int = 0) -> list[CameraPath]:
    return [
        raster(SIZE, 600, sidelap=0.4, handling=handling, seed=seed),
        raster(SIZE, 40, handling=handling, seed=seed),
        circle(SIZE, 600, revolutions=12, handling=handling, seed=seed),
        wander(SIZE, 600, handling=handling, seed=seed),
        wander(SIZE, 30, handling=handling, seed=seed),
    ]


@pytest.mark.parametrize("handling", [Handling(), LIVELY, Handling(heading_degrees=180), Handling(scale=0.7, zoom=0.5)])
def test_every_frame_lies_wholly_inside_the_scene(handling):
    for path in paths(handling, 0):
        assert path.footprints.min() >= -0.5 - 1e-9
        assert path.footprints[..., 0].max() <= SIZE[0] - 0.5 + 1e-9
        assert path.footprints[..., 1].max() <= SIZE[1] - 0.5 + 1e-9


def test_a_frame_turned_freely_stays_inside_a_scene_it_just_fits_into():
    handling = Handling(heading_degrees=90, zoom=0.1, shake_px=4)
    reach = np.ceil(np.max(handling.reach(320, 240)))
    size = (int(2 * reach) + 90, int(2 * reach) + 90)
    path = wander(size, 400, handling=handling, seed=5)
    assert path.footprints.min() >= -0.5
    assert (path.footprints.max(axis=(0, 1)) <= np.array(size) - 0.5).all()


def test_a_steady_camera_only_shifts_at_the_given_pace():
    for path in paths(Handling()):
        assert (path.mosaic_from_frame[:, :, :2] == np.eye(2)).all()
        steps = np.linalg.norm(np.diff(path.centres, axis=0), axis=1)
        assert steps.max() <= PACE * (1 + 1e-9)
        # A path that turns back on itself has a few shorter steps.
        assert np.median(steps) > 0.97 * PACE


def test_the_step_sets_how_far_frames_lie_apart():
    for step in (0.1, 0.5):
        path = wander(SIZE, 100, (400, 300), step=step)
        steps = np.linalg.norm(np.diff(path.centres, axis=0), axis=1)
        assert np.median(steps) == pytest.approx(step * 400, rel=0.03)


def test_consecutive_frames_always_overlap_well():
    for path in paths(LIVELY):
        pairs = {tuple(pair) for pair in find_overlaps(path.mosaic_from_frame, path.outline, 0.4).tolist()}
        assert all((n, n + 1) in pairs for n in range(len(path) - 1))


def test_handling_turns_and_zooms_as_far_as_told_and_slowly():
    handling = Handling(heading_degrees=20, zoom=0.25)
    linear = wander(SIZE, 600, handling=handling).mosaic_from_frame[:, :, :2]
    heading = np.degrees(np.arctan2(linear[:, 1, 0], linear[:, 0, 0]))
    scale = np.sqrt(np.linalg.det(linear))
    np.testing.assert_allclose(linear[:, 0, 0], linear[:, 1, 1], rtol=1e-12)
    assert 15 < np.abs(heading).max() <= 20
    assert 1.2 < scale.max() <= 1.25
    assert 1 / 1.25 <= scale.min() < 0.85
    assert np.abs(np.diff(heading)).max() < 4
    assert np.abs(np.diff(scale)).max() < 0.05


def test_a_heading_turns_the_frame_about_its_own_centre():
    pooled, turned = wander(SIZE, 50), wander(SIZE, 50, handling=Handling(heading_degrees=1e-9))
    np.testing.assert_allclose(turned.centres, pooled.centres, atol=1e-3)


def test_shake_has_the_given_deviation_in_frame_pixels():
    pooled = circle(SIZE, 600, revolutions=14, handling=Handling(scale=2.0))
    shaken = circle(SIZE, 600, revolutions=14, step=0.28, handling=Handling(scale=2.0, shake_px=3))
    off = (shaken.centres - pooled.centres) / 2
    assert off.std() == pytest.approx(3, rel=0.1)
    assert np.abs(off).max() <= 9
    assert abs(np.corrcoef(off[1:, 0], off[:-1, 0])[0, 1]) < 0.15


def test_a_walk_comes_back_to_places_long_after():
    for frames in (80, 600):
        for seed in range(3):
            path = wander(SIZE, frames, handling=LIVELY, seed=seed)
            pairs = find_overlaps(path.mosaic_from_frame, path.outline, 0.25)
            far = pairs[pairs[:, 1] - pairs[:, 0] > 20]
            assert len(far) > frames
            assert len(np.unique(far)) > 0.5 * frames


def test_neighbouring_strips_overlap_by_the_sidelap_and_run_against_each_other():
    path = raster(SIZE, 200, sidelap=0.3)
    x, y = path.centres.T
    rows = np.unique(np.round(y[np.r_[True, np.diff(y) == 0]], 6))
    np.testing.assert_allclose(np.diff(rows), 0.7 * 240)
    directions = [np.sign(np.diff(x[np.isclose(y, row)])[0]) for row in rows]
    np.testing.assert_array_equal(directions, [(-1) ** n for n in range(len(rows))])


def test_the_number_of_strips_can_be_chosen():
    path = raster(SIZE, 100, strips=3)
    assert np.ptp(path.centres[:, 1]) == pytest.approx(2 * 0.7 * 240)


def test_a_circle_closes():
    path = circle(SIZE, 60)
    steps = np.linalg.norm(np.roll(path.centres, -1, axis=0) - path.centres, axis=1)
    np.testing.assert_allclose(steps, steps[0])
    assert steps[0] == pytest.approx(PACE, rel=0.01)


def test_a_seed_always_makes_the_same_path_and_another_seed_another():
    for one, same, other in zip(paths(LIVELY, 1), paths(LIVELY, 1), paths(LIVELY, 2), strict=True):
        np.testing.assert_array_equal(one.mosaic_from_frame, same.mosaic_from_frame)
        assert np.abs(one.mosaic_from_frame - other.mosaic_from_frame).max() > 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: raster((1000, 800), 600), "600 frames do not fit into a scene of 1000 × 800"),
        (lambda: raster(SIZE, 600, strips=2), "in 2 strips do not fit"),
        (lambda: raster(SIZE, 9, sidelap=1.0), "sidelap"),
        (lambda: circle(SIZE, 600), "give at least 7 revolutions"),
        (lambda: circle(SIZE, 60, revolutions=0), "revolutions"),
        (lambda: wander((300, 300), 10), "needs 320 × 240 pixels, the scene has 300 × 300"),
        (lambda: wander(SIZE, 10, visits=0), "visits"),
        (lambda: wander(SIZE, 10, step=1.5), "step 1.5"),
        (lambda: wander(SIZE, 0), "0 frames"),
        (lambda: Handling(zoom=-1), "zoom is -1"),
        (lambda: Handling(scale=0), "scale is 0"),
        (lambda: CameraPath("mine", 320, 240, np.eye(3)), r"shape \(3, 3\), expected \(N, 2, 3\)"),
        (lambda: CameraPath("mine", 320, 240, np.full((1, 2, 3), np.nan)), "not finite"),
    ],
)
def test_what_cannot_be_flown_is_refused_with_a_reason(make, words):
    with pytest.raises(UsageError, match=words):
        make()


def test_the_advice_of_a_refused_circle_is_right():
    assert len(circle(SIZE, 600, revolutions=7)) == 600
