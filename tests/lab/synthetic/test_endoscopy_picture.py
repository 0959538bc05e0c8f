"""The synthetic endoscope's pictures: each fault is there, at its own place and pace, and moves nothing else."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest

from smalti_lab.endoscopy.disturbance import BURST_FRAMES, Disturbance, draw_disturbances
from smalti_lab.endoscopy.endoscope_light import Lighting
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence, blur_view
from smalti_lab.endoscopy.endoscope_settings import Camera, EndoscopeSettings, Eyepiece, Hand, Light, Tissue
from smalti_lab.endoscopy.endoscope_view import FieldsOfView
from smalti_lab.endoscopy.tissue import prepare_tissue
from smalti_lab.synthetic.terrain import fractal_noise

HAND = Hand(slowest_px=2, fastest_px=5)
EVEN = Light(vignetting=0, spot=0, wetness=0, exposure=0)
IDEAL = Camera(blur_px=0, defocus_px=0, motion_blur=0, noise=0, jpeg_quality=100)
SMALL = EndoscopeSettings(60, 120, 110, HAND)
PLAIN = dataclasses.replace(SMALL, light=EVEN, camera=IDEAL, particles=0)


def texture(seed: int) -> np.ndarray:
    noise = fractal_noise(500, 420, 32, 2, np.random.default_rng(seed))
    return np.repeat(np.clip(128 + 40 * noise, 0, 255).astype(np.uint8)[..., None], 3, axis=2)


SCENE = texture(0)


def of(settings: EndoscopeSettings, seed: int = 3, scene: np.ndarray = SCENE) -> EndoscopeSequence:
    return EndoscopeSequence(scene, settings, seed)


def changed(**fields: object) -> EndoscopeSettings:
    return dataclasses.replace(PLAIN, **fields)


def test_frame_n_is_the_same_whoever_asks_and_in_which_order():
    settings = dataclasses.replace(SMALL, disturbed=0.3)
    one, other = of(settings), of(settings)
    forward = dict(one.read_many(range(12, 40, 4)))
    backward = {n: other.read(n) for n in reversed(range(12, 40, 4))}
    for n, frame in forward.items():
        np.testing.assert_array_equal(frame, backward[n])
    assert one.fingerprint == other.fingerprint


def test_the_fingerprint_tells_sequences_apart():
    others = [of(SMALL), of(SMALL, 4), of(PLAIN), of(SMALL, scene=texture(1))]
    assert len({sequence.fingerprint for sequence in others}) == 4


def test_a_sequence_can_stand_for_a_source_of_frames():
    with of(SMALL) as sequence:
        assert (sequence.width, sequence.height, sequence.scale, len(sequence)) == (120, 110, 1.0, 60)
        assert len(set(sequence.labels)) == 60
        assert str(sequence.path) == "synthetic"
        assert sequence.warnings == ()
        assert sequence.read(2).shape == (110, 120, 3)
        assert sequence.read(2).dtype == np.uint8


def test_the_picture_is_lit_inside_its_field_of_view_and_dark_outside():
    sequence = of(changed(eyepiece=Eyepiece(drift=0.1, notch=0.2, notch_turns=True)))
    for n in (0, 30, 59):
        grey = sequence.frame(n).mean(axis=2)
        inside = sequence.field(n).astype(np.uint8)
        assert grey[cv2.erode(inside, np.ones((7, 7))) > 0].min() > 60
        assert grey[cv2.dilate(inside, np.ones((7, 7))) == 0].max() < 30


def test_the_field_is_a_circle_without_its_notch():
    field = of(changed(eyepiece=Eyepiece(0.9, 0.1, 0.0, notch=0.2, notch_degrees=90))).field(0)
    # Half the shorter side is 55: the circle's middle is (65, 54.5), its radius 49.5, and the notch 11 wide.
    assert field[54, 16:114].all()
    assert not field[54, :15].any()
    assert not field[94:, 61:70].any()
    assert field[92, 65]
    assert field[6, 65]


def test_the_notch_turns_with_the_scope_and_the_field_drifts_only_if_asked():
    fixed, loose = (of(changed(eyepiece=eyepiece)) for eyepiece in (Eyepiece(), Eyepiece(drift=0.3, notch_turns=True)))
    assert np.ptp(fixed.fields.centres, axis=0).max() == np.ptp(fixed.fields.notches, axis=0).max() == 0
    assert np.ptp(loose.fields.centres, axis=0).min() > 2
    x, y = (loose.fields.notches - loose.fields.centres).T
    turned = np.unwrap(np.arctan2(y, x)) - loose.motion.turn
    np.testing.assert_allclose(turned, turned[0], atol=1e-9)


def test_contrast_is_as_low_as_asked_and_the_picture_reddish():
    frame = of(changed(tissue=Tissue(contrast=6, deformation_px=0))).frame(10).astype(float)
    inside = cv2.erode(of(PLAIN).field(10).astype(np.uint8), np.ones((9, 9))) > 0
    red, green, blue = frame[inside].T
    assert green.std() == pytest.approx(6 * 1.15, rel=0.25)
    assert red.mean() > 1.5 * green.mean() > 1.5 * blue.mean()


def test_empty_parts_of_a_scene_get_a_grain():
    scene = SCENE.copy()
    scene[:, :250] = 0
    tissue = prepare_tissue(scene, np.random.default_rng(0)).astype(float)
    assert tissue[100:300, 40:180].std() > 0.3 * tissue[100:300, 320:460].std() > 3


def test_light_falls_off_to_the_rim_and_its_spot_wanders():
    sequence = of(changed(light=Light(vignetting=0.5, spot=0.4, wetness=0, exposure=0), tissue=Tissue(contrast=0)))
    rim = of(changed(light=Light(vignetting=0.5, spot=0, wetness=0, exposure=0), tissue=Tissue(contrast=0))).frame(0)
    assert rim[54, 14, 1] == pytest.approx(0.59 * rim[54, 61, 1], rel=0.05)
    brightest = [cv2.GaussianBlur(sequence.frame(n), (0, 0), 5)[..., 1].argmax() for n in (0, 20, 40, 59)]
    places = np.column_stack(np.unravel_index(brightest, (110, 120)))
    assert np.ptp(places, axis=0).max() > 8


def test_exposure_scales_the_picture():
    sequence = of(changed(light=dataclasses.replace(EVEN, exposure=0.4), tissue=Tissue(contrast=0)))
    gains = sequence.lighting.gains
    assert np.ptp(gains) > 0.1
    for n in (int(np.argmin(gains)), int(np.argmax(gains))):
        assert sequence.frame(n)[54, 60, 1] == pytest.approx(104 * gains[n], abs=1.5)


def test_glints_are_saturated_and_move_neither_with_the_tissue_nor_with_the_scope():
    sequence = of(changed(light=Light(wetness=2.0)))
    assert any((sequence.frame(n) > 240).all(axis=2).sum() > 10 for n in range(0, 60, 10))
    # A still spot, and tissue that moves by 12 pixels.
    fields = FieldsOfView(200, 200, 95.0, np.full((2, 2), 99.5), 0.0, np.zeros((2, 2)))
    still = dataclasses.replace(
        sequence.lighting,
        fields=fields,
        spots=fields.centres,
        pan=np.array([[0.0, 0.0], [12.0, 0.0]]),
        light=Light(wetness=1.3),
    )
    assert isinstance(still, Lighting)
    first, second = (still.glints(n)[:, 20:-20] for n in (0, 1))
    with_tissue = still.glints(0)[:, 8:-32]
    for guess in (first, with_tissue):
        assert np.minimum(guess, second).sum() < 0.75 * second.sum()
    assert 0 < (second > 0).mean() < 0.2


def test_some_five_to_thirty_particles_float_on_ways_of_their_own():
    sequence = of(dataclasses.replace(SMALL, frames=300))
    particles = sequence.particles
    counts = [len(particles.places(n)[0]) for n in range(300)]
    assert 5 <= min(counts) < max(counts) <= 30
    assert np.mean(counts) == pytest.approx(15, rel=0.25)
    cover = particles.cover(40)
    assert 0.001 < (cover > 0.1).mean() < 0.4
    moves = []
    for pan in (np.zeros((300, 2)), np.arange(600.0).reshape(300, 2)):
        drifting = dataclasses.replace(particles, pan=pan)
        alive, places = drifting.places(40)
        later = dict(zip(*drifting.places(41), strict=True))
        both = np.array([later[one] - place for one, place in zip(alive, places, strict=True) if one in later])
        moves.append(both[np.linalg.norm(both, axis=1) < 20])
    assert moves[0].std(axis=0).min() > 0.3
    assert moves[1].mean() > moves[0].mean() + 1


def test_a_particle_is_drawn_where_it_is():
    sequence = of(changed(particles=6, tissue=Tissue(contrast=0)))
    without = of(changed(tissue=Tissue(contrast=0)))
    difference = sequence.frame(30).astype(float).sum(axis=2) - without.frame(30).astype(float).sum(axis=2)
    alive, places = sequence.particles.places(30)
    for one, (x, y) in zip(alive, places, strict=True):
        if 25 < x < 95 and 25 < y < 85 and sequence.particles.opacity[one] > 0.4:
            assert difference[round(y), round(x)] > 20
    far = np.ones((110, 120), bool)
    for x, y in places:
        far &= np.hypot(np.arange(120) - x, np.arange(110)[:, None] - y) > 18
    assert np.abs(difference[far & sequence.field(30)]).mean() < 3


def test_blur_moves_nothing():
    dot = np.zeros((61, 61), np.float32)
    dot[30, 30] = 1
    blurred = blur_view(dot, np.array([9.0, 4.0]), 1.5)
    rows, columns = np.mgrid[:61, :61]
    assert (blurred * columns).sum() == pytest.approx(30, abs=1e-3)
    assert (blurred * rows).sum() == pytest.approx(30, abs=1e-3)
    assert (blurred * (columns - 30) ** 2).sum() == pytest.approx(1.5**2 + 81 / 12, rel=0.1)


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        ({"noise": 5.0}, 3.0),
        ({"jpeg_quality": 20}, 1.0),
        ({"blur_px": 2.0}, 1.0),
        ({"defocus_px": 4.0}, 1.0),
        ({"motion_blur": 1.0}, 0.5),
    ],
)
def test_each_of_the_cameras_faults_changes_the_picture(fault, least):
    ideal, faulty = (of(changed(camera=dataclasses.replace(IDEAL, **more))) for more in ({}, fault))
    difference = faulty.frame(20)[30:80, 30:90].astype(float) - ideal.frame(20)[30:80, 30:90]
    assert difference.std() > least
    assert abs(difference.mean()) < 0.6


def test_disturbances_come_in_bursts_and_make_up_their_share():
    drawn = draw_disturbances(600, 0.3, np.random.default_rng(1))
    assert (drawn != Disturbance.NONE).sum() == 180
    assert set(drawn.tolist()) == {kind.value for kind in Disturbance}
    ends = np.flatnonzero(drawn[1:] != drawn[:-1]) + 1
    runs = [run for run in np.split(drawn, ends) if run[0] != Disturbance.NONE]
    lengths = [len(run) for run in runs]
    assert BURST_FRAMES[0] <= min(lengths)
    assert max(lengths) <= BURST_FRAMES[1]
    assert len(set(lengths)) > 3
    assert (draw_disturbances(600, 0.0, np.random.default_rng(1)) == Disturbance.NONE).all()


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_bursts_fit_into_a_short_sequence(share):
    for seed in range(20):
        drawn = draw_disturbances(60, share, np.random.default_rng(seed))
        assert (drawn != Disturbance.NONE).sum() == max(round(60 * share), BURST_FRAMES[0])
        assert drawn[0] == Disturbance.NONE


def test_disturbed_frames_hardly_depend_on_the_scene_and_clear_ones_do():
    settings = changed(frames=150, disturbed=0.5, tissue=Tissue(contrast=12))
    one, other = of(settings), of(settings, scene=texture(1))
    kinds = one.disturbance
    for kind in Disturbance:
        n = int(np.flatnonzero(kinds == kind)[2])
        difference = one.frame(n).astype(np.float32) - other.frame(n)
        detail = (difference - cv2.GaussianBlur(difference, (0, 0), 3))[30:80, 30:90]
        assert (detail.std() > 3) if kind == Disturbance.NONE else (detail.std() < 1.3), kind


def test_disturbance_changes_neither_the_scopes_way_nor_other_frames():
    clear, disturbed = of(SMALL), of(dataclasses.replace(SMALL, disturbed=0.3))
    np.testing.assert_array_equal(clear.motion.plane_from_frame, disturbed.motion.plane_from_frame)
    n = int(np.flatnonzero(disturbed.disturbance == Disturbance.NONE)[5])
    np.testing.assert_array_equal(clear.frame(n), disturbed.frame(n))
    spoilt = int(np.flatnonzero(disturbed.disturbance != Disturbance.NONE)[0])
    assert np.abs(clear.frame(spoilt).astype(int) - disturbed.frame(spoilt)).mean() > 2
