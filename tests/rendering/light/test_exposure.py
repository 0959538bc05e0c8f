from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.exposure import AverageView, Exposure, estimate_exposure, plain_exposure
from smalti.rendering.layout import rate_frames
from smalti.rendering.light_comparison import STEPS, Comparison
from smalti.rendering.tone_curve import KNEE

FRAMES, WIDTH, HEIGHT = 30, 200, 150
MASK = np.ones((HEIGHT, WIDTH), dtype=bool)
NOTHING_ON_AVERAGE = AverageView(np.zeros((1, 2)), np.zeros((1, 3)), np.inf)


def log_shading(points: np.ndarray) -> np.ndarray:
    """A lens that is dark in the corners and a lamp that is off the middle."""
    x, y = (points[..., 0] - 99.5) / 125, (points[..., 1] - 74.5) / 125
    return -0.4 * (x * x + y * y) + 0.1 * x - 0.05 * x * y


def compare(log_gains: np.ndarray, outliers: float = 0.0, sharpness: np.ndarray | None = None, count: int = 20_000):
    """Points seen twice, at places of the frame that have nothing to do with each other: nothing is ambiguous."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, FRAMES - 1, count)
    pair = np.stack([first, np.minimum(first + rng.integers(1, 4, count), FRAMES - 1)], axis=1)
    points = rng.uniform((0, 0), (WIDTH - 1, HEIGHT - 1), (count, 2, 2))
    scene = np.log(rng.uniform(40, 160, (count, 1, 4)))
    logs = scene.repeat(2, axis=1) + rng.normal(0, 0.01, (count, 2, 4))
    logs[..., :3] += log_gains[pair] + log_shading(points)[..., None]
    logs[..., 3] += log_gains[pair].mean(axis=2)
    if sharpness is not None:
        logs[..., 3] += sharpness[pair]
    wrong = rng.uniform(size=count) < outliers
    logs[wrong, 0] += 0.7
    return Comparison(pair, points, logs)


def estimate(comparison: Comparison) -> Exposure:
    return estimate_exposure(FRAMES, comparison, NOTHING_ON_AVERAGE, MASK)


@pytest.fixture
def log_gains() -> np.ndarray:
    rng = np.random.default_rng(0)
    common = np.log(rng.uniform(0.7, 1.3, (FRAMES, 1)))
    # The channels differ a little, as white balance does.
    return common + rng.normal(0, 0.01, (FRAMES, 3))


@pytest.mark.parametrize("outliers", [0.0, 0.2])
def test_gains_and_shading_are_recovered(log_gains, outliers):
    exposure = estimate(compare(log_gains, outliers))
    off = exposure.log_gains - log_gains
    assert abs(off - off.mean(axis=0)).max() < 0.015
    light = exposure.light(0)
    axis = np.linspace(-light.radius, light.radius, STEPS)
    points = np.stack(np.meshgrid(light.centre[0] + axis, light.centre[1] + axis), axis=-1)
    inside = (abs(points[..., 0] - 99.5) < 100) & (abs(points[..., 1] - 74.5) < 75)
    left = (np.log(light.flatness) + log_shading(points))[inside]
    assert abs(left - left.mean()).max() < 0.01
    assert exposure.residual < 0.02


def test_the_light_makes_up_for_gain(log_gains):
    exposure = estimate(compare(log_gains))
    for place in (0, 7, 29):
        np.testing.assert_allclose(exposure.light(place).gains, np.exp(-exposure.log_gains[place]), rtol=1e-6)


def test_sharpness_is_recovered_and_not_mistaken_for_brightness(log_gains):
    sharpness = np.where(np.arange(FRAMES) % 3 == 0, -0.8, 0.0)
    found = estimate(compare(log_gains, sharpness=sharpness)).sharpness
    np.testing.assert_allclose(found, sharpness - sharpness.mean(), atol=0.03)


def test_frames_that_see_nothing_in_common_are_left_as_they_are():
    nothing = Comparison(np.empty((0, 2), np.int64), np.empty((0, 2, 2)), np.empty((0, 2, 4)))
    exposure = estimate(nothing)
    assert not exposure.log_gains.any()
    np.testing.assert_array_equal(exposure.light(3).flatness, 1.0)


def test_a_frame_that_hangs_on_nothing_keeps_its_light(log_gains):
    comparison = compare(log_gains)
    apart = (comparison.pair != 12).all(axis=1)
    exposure = estimate(Comparison(comparison.pair[apart], comparison.points[apart], comparison.logs[apart]))
    assert np.isfinite(exposure.log_gains).all()
    # As the others in the mean.
    assert abs(exposure.log_gains[12] - exposure.log_gains.mean(axis=0)).max() < 0.1


def test_frames_made_brighter_are_dimmed_before_they_burn_out(log_gains):
    comparison = compare(log_gains)
    assert np.exp(-estimate(comparison).log_gains.mean()) == pytest.approx(1.0, abs=0.02)
    # Twice as much light; where a frame would be clipped, nothing is compared.
    logs = comparison.logs + 0.7
    kept = (logs[..., :3] < np.log(245)).all(axis=(1, 2))
    bright = Comparison(comparison.pair[kept], comparison.points[kept], logs[kept])
    exposure = estimate(bright)
    corrected = bright.logs[:, 0, :3] - exposure.log_gains[bright.pair[:, 0]]
    corrected -= log_shading(bright.points[:, 0])[:, None]
    in_mosaic, in_frames = (np.quantile(np.exp(one.max(axis=1)), 0.98) for one in (corrected, bright.logs[:, 0, :3]))
    assert in_frames > KNEE
    assert in_mosaic == pytest.approx(in_frames, rel=0.02)
    assert np.exp(-exposure.log_gains.mean()) < 0.9


def test_white_is_the_brightest_unclipped_pixel_of_any_frame(log_gains):
    exposure = estimate(compare(log_gains))
    field = np.stack(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT)), axis=-1).astype(float)
    brightest = 254 * np.exp(-exposure.log_gains.min()) * np.exp(-log_shading(field)).max()
    assert exposure.white == pytest.approx(brightest, rel=0.05)
    assert plain_exposure(3, MASK).white == 254


def test_a_plain_exposure_changes_nothing():
    light = plain_exposure(4, MASK).light(2)
    np.testing.assert_array_equal(light.gains, 1.0)
    np.testing.assert_array_equal(light.flatness, 1.0)


def test_the_table_of_the_field_is_read_where_the_pixel_is():
    light = plain_exposure(1, MASK).light(0)
    table = light.table_from_pixels(np.diag([2.0, 2.0, 1.0]))
    # Pixel (20, 30) of a half is (40, 60) of the frame.
    for axis, (at, of_frame) in enumerate([(20, 40), (30, 60)]):
        expected = ((of_frame - light.centre[axis]) / light.radius + 1) * (STEPS - 1) / 2
        assert table[axis, 0] * at + table[axis, 1] == pytest.approx(expected)


def test_the_sharper_and_the_more_certain_a_frame_the_better_it_is_rated():
    even = np.zeros(5)
    by_sharpness = rate_frames(np.array([-1.0, -0.5, 0.0, 0.1, 0.2]), even)
    by_certainty = rate_frames(even, np.array([9.0, 4.0, 2.0, 1.0, 0.0]))
    for rated in (by_sharpness, by_certainty):
        assert (np.diff(rated) >= 0).all()
        assert rated[0] < 0.6
        assert rated.max() == 1.0


@pytest.mark.parametrize("side", [6, 24])
def test_a_slight_tilt_of_the_shading_does_not_become_a_ramp_over_a_large_mosaic(side):
    rng = np.random.default_rng(4)
    width, height, step = 160, 120, 110.0
    tilt = 0.05  # of the logarithm, from the middle to the rim
    places = step * np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2)
    log_gains = rng.normal(0, 0.1, len(places))
    numbers = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()], 1),
            np.stack([numbers[:-1].ravel(), numbers[1:].ravel()], 1),
        ]
    )
    pair = np.repeat(pairs, 30, axis=0)
    shift = places[pair[:, 1]] - places[pair[:, 0]]
    first = rng.uniform(0, 1, (len(pair), 2)) * (np.array([width, height]) - shift - 1) + shift
    points = np.stack([first, first - shift], axis=1)
    radius = np.hypot(width, height) / 2
    shade = tilt * (points[..., 0] - (width - 1) / 2) / radius
    logs = np.zeros((len(pair), 2, 4))
    logs[..., :3] = (4.0 + shade + log_gains[pair] + rng.normal(0, 0.01, shade.shape))[..., None]
    nothing = AverageView(np.zeros((9, 2)), np.zeros((9, 3)), np.inf)
    exposure = estimate_exposure(len(places), Comparison(pair, points, logs), nothing, np.ones((height, width), bool))
    off = exposure.log_gains.mean(axis=1) - log_gains
    # With the tilt taken for gains it would be `tilt` for every radius of the way: 0.3 and 1.3.
    assert np.ptp(off) < 0.2


def test_a_lamp_that_wanders_over_the_field_of_a_scope_does_not_become_a_ramp():
    """All frames are as bright; each has a tilt of its own, which goes with its place."""
    rng, n = np.random.default_rng(3), np.arange(FRAMES)
    middle, radius = HEIGHT / 2, 0.45 * HEIGHT
    field = np.hypot(*(np.indices((HEIGHT, HEIGHT)) - middle)) < radius
    places = np.column_stack([np.linspace(0, 40, FRAMES), 40 * np.sin(n / 4)])
    tilts = 0.3 * np.column_stack([np.sin(n / 7), np.cos(n / 4)])
    first = rng.integers(0, FRAMES - 1, 40_000)
    pair = np.stack([first, np.minimum(first + rng.integers(1, 12, len(first)), FRAMES - 1)], axis=1)
    at = rng.uniform(0, HEIGHT, (len(pair), 2))
    points = np.stack([at, at + places[pair[:, 0]] - places[pair[:, 1]]], axis=1)
    inside = (np.hypot(*np.moveaxis(points - middle, 2, 0)) < radius).all(axis=1)
    pair, points = pair[inside], points[inside]
    logs = np.log(rng.uniform(60, 120, (len(pair), 1, 4))).repeat(2, axis=1) + rng.normal(0, 0.02, (len(pair), 2, 4))
    logs[..., :3] += np.einsum("nkd,nkd->nk", tilts[pair], (points - middle) / radius)[..., None]
    found = estimate_exposure(FRAMES, Comparison(pair, points, logs), NOTHING_ON_AVERAGE, field)
    assert np.ptp(found.log_gains[:, 0]) < 0.2
