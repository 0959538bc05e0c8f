"""The parts of dense registration, each against what it should give."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.affine import apply, compose, square
from smalti.geometry.family import AFFINE, SIMILARITY
from smalti.geometry.outline import Outline
from smalti.records import Expectation
from smalti.registration.alignment import align
from smalti.registration.chance import compare_with_chance
from smalti.registration.evidence import gather_evidence
from smalti.registration.precision import estimate_sigma
from smalti.registration.pyramid import UNIT, prepare
from smalti.registration.search import find_places
from smalti.registration.warp import pixels_of, planes_of, warp
from tests.registration.scenes import FRAME_SIZE, apart, gray, overlapping, true_map
from tests.registration.views import X, Y, field, prepared

IDENTITY = np.eye(2, 3)
WIDTH, HEIGHT = FRAME_SIZE
PAIR = overlapping(0.6)[0]


def halved(i_from_j, times):
    return np.column_stack([i_from_j[:, :2], i_from_j[:, 2] / 2**times])


def test_features_do_not_follow_the_light():
    lit = (gray(0) * (0.5 + 0.4 * X / WIDTH) + 20).astype(np.uint8)
    even, uneven = (prepare(image).levels[0][20:-20, 20:-20, :3] / UNIT for image in (gray(0), lit))
    assert np.abs(even - uneven).mean() < 0.05 < np.abs(even).mean()


def test_levels_are_inside_the_field_and_compact():
    frame = prepared(0)
    for k, level in enumerate(frame.levels):
        inside = field()[:: 2**k, :: 2**k]
        assert level.shape == (*inside.shape, 4)
        assert not level[..., 3][~inside].any()
        assert level[..., 3].any()
    assert sum(level.nbytes for level in frame.levels) < 6 * gray(0).size


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        (np.zeros((10, 200), np.uint8), None),
        (np.zeros((60, 60, 3), np.uint8), None),
        (np.zeros((60, 60), np.uint8), np.ones((60, 61), bool)),
    ],
)
def test_what_is_no_frame_is_refused(image, mask):
    with pytest.raises(UsageError, match="shape"):
        prepare(image, mask)


def test_a_warp_by_nothing_changes_nothing():
    level = prepared(0).levels[1]
    seen, shown = warp(pixels_of(level), IDENTITY, *level.shape[:2]), planes_of(level)
    np.testing.assert_allclose(seen[:, :-1, :-1], shown[:, :-1, :-1], atol=1e-5)


def test_directions_turn_with_the_frame():
    level, turned = (prepare(np.ascontiguousarray(image)).levels[0] for image in (gray(0), np.rot90(gray(0))))
    # Row y of the turned frame is column w-1-y.
    frame_from_turned = np.array([[0.0, -1, WIDTH - 1], [1, 0, 0]])
    seen, shown = warp(pixels_of(level), frame_from_turned, WIDTH, HEIGHT), planes_of(turned)
    np.testing.assert_allclose(seen[:3, 20:-20, 20:-20], shown[:3, 20:-20, 20:-20], atol=0.02)


def test_what_one_frame_does_not_show_is_not_in_sight():
    level = prepared(0).levels[0]
    seen = warp(pixels_of(level), np.array([[1.0, 0, 100], [0, 1, 0]]), HEIGHT, WIDTH)
    inside = level[..., 3] > 0
    np.testing.assert_array_equal(seen[3, :, : WIDTH - 101] > 0, inside[:, 100:-1])
    assert not seen[:, :, WIDTH - 100 :].any()


def test_scores_vanish_where_frames_coincide_and_count_shared_pixels():
    shown = planes_of(prepared(0).levels[1])
    evidence = gather_evidence(shown, shown)
    assert np.abs(evidence.scores).max() == 0
    assert evidence.shared.sum() == shown[3].sum()


def test_information_is_the_change_of_the_scores():
    level = pixels_of(prepare(gray(0)).levels[1])
    # Residuals as of another frame: then the weights take part.
    template = planes_of(prepare(gray(0)).levels[1])
    template[:3] += np.random.default_rng(0).normal(0, 0.3, template[:3].shape).astype(np.float32)
    height, width = template.shape[1:]
    unit_from_pixels = square(Outline.of_pixels(width, height).unit_from_pixels)
    step = 0.05
    changes = []
    for k in range(6):
        scores = []
        for sign in (-1, 1):
            increment = (sign * step * np.eye(6)[k]).reshape(2, 3)
            seen = warp(level, compose(IDENTITY, IDENTITY + increment @ unit_from_pixels), height, width)
            scores.append(gather_evidence(template, seen).scores.sum(axis=0))
        changes.append((scores[1] - scores[0]) / (2 * step))
    seen = warp(level, IDENTITY, height, width)
    information = gather_evidence(template, seen).information.sum(axis=0)
    assert np.abs(np.array(changes) - information).max() < 0.1 * np.abs(information).max()


@pytest.mark.parametrize("level", [0, 1, 2])
def test_alignment_walks_two_pixels_of_its_level(level):
    truth = halved(true_map(PAIR), level)
    start = truth + np.array([[0, 0, 1.4], [0, 0, -1.4]])
    fit = align(prepared(PAIR.i).levels[level], prepared(PAIR.j).levels[level], start, AFFINE, 10)
    height, width = fit.template.shape[1:]
    middle = np.array([[width / 2, height / 2]])
    assert np.linalg.norm(apply(fit.i_from_j, middle) - apply(truth, middle)) < 0.25


def test_a_family_is_not_left():
    fit = align(prepared(PAIR.i).levels[2], prepared(PAIR.j).levels[2], IDENTITY, SIMILARITY, 4)
    (a, b), (c, d) = fit.i_from_j[:, :2]
    assert (a, b) == pytest.approx((d, -c), abs=1e-9)
    assert not np.allclose(fit.i_from_j, IDENTITY)


def test_frames_with_little_texture_do_not_shear():
    stripes = prepare((120 + 60 * np.sin(X / 6)).astype(np.uint8))
    start = np.array([[1.0, 0.05, 0], [0, 1.05, 0]])
    fit = align(stripes.levels[2], stripes.levels[2], start, AFFINE, 40)
    sides = np.linalg.svd(fit.i_from_j[:, :2], compute_uv=False)
    assert sides[0] / sides[1] < 1.03


def test_the_likeliest_place_is_the_right_one_when_the_turn_is_unknown():
    truth = halved(true_map(PAIR), 2)
    c, s = np.cos(2.0), np.sin(2.0)
    guess = Expectation(np.array([[c, -s, 0], [s, c, 0]]), np.inf)
    places = find_places(prepared(PAIR.i).levels[2], prepared(PAIR.j).levels[2], [guess], 4, 0.2)
    place = max(places, key=lambda place: place.likeness)
    middle = np.array([[WIDTH / 8, HEIGHT / 8]])
    assert np.linalg.norm(apply(place.i_from_j, middle) - apply(truth, middle)) < 2


def test_the_right_place_comes_first_where_frames_have_hardly_turned():
    truth = halved(true_map(PAIR), 2)
    anywhere = Expectation(IDENTITY, np.inf)
    place = next(find_places(prepared(PAIR.i).levels[2], prepared(PAIR.j).levels[2], [anywhere], 4, 0.2))
    middle = np.array([[WIDTH / 8, HEIGHT / 8]])
    assert np.linalg.norm(apply(place.i_from_j, middle) - apply(truth, middle)) < 2


def test_no_place_comes_twice():
    anywhere = Expectation(IDENTITY, np.inf)
    places = list(find_places(prepared(0).levels[2], prepared(20).levels[2], [anywhere], 8, 0.15))
    assert len({tuple(place.i_from_j.ravel()) for place in places}) == len(places)


def test_places_stay_within_three_sigma_and_come_best_first():
    guess = Expectation(np.array([[1.0, 0, 10], [0, 1, 5]]), 2.0)
    places = list(find_places(prepared(0).levels[2], prepared(20).levels[2], [guess], 5, 0.1))
    middle = np.array([(WIDTH / 4 - 1) / 2, (HEIGHT / 4 - 1) / 2])
    assert places
    for place in places:
        assert np.linalg.norm(apply(place.i_from_j, middle[None])[0] - middle - [10, 5]) <= 3 * 2.0 + 1.0 + 1e-6
    likeness = [place.likeness for place in places]
    assert likeness == sorted(likeness, reverse=True)


def test_likeness_is_over_chance_at_the_right_place_only():
    other = apart()[0]
    right = align(prepared(PAIR.i).levels[1], prepared(PAIR.j).levels[1], halved(true_map(PAIR), 1), AFFINE, 4)
    wrong = align(prepared(other.i).levels[1], prepared(other.j).levels[1], IDENTITY, AFFINE, 4)
    assert compare_with_chance(right.template, right.warped).excess > 10
    assert abs(compare_with_chance(wrong.template, wrong.warped).excess) < 6


def test_a_sigma_is_the_scatter_over_draws_of_the_noise():
    places, sigmas = [], []
    points = np.array([[x, y] for x in (60.0, 120, 180) for y in (50.0, 90, 130)])
    for draw in range(8):
        frames = [prepare(noisy(draw, side), field()).levels[0] for side in (0, 1)]
        fit = align(*frames, IDENTITY, AFFINE, 6)
        places.append(apply(fit.i_from_j, points) - points)
        sigmas.append(estimate_sigma(fit, points))
    scatter = np.sqrt(np.mean(np.square(places)))
    assert 0.5 < scatter / np.sqrt(np.mean(np.square(sigmas))) < 1.5


def test_a_sigma_knows_what_an_affine_map_cannot_follow():
    bent_x = X + 2.5 * ((X - WIDTH / 2) / (WIDTH / 2)) ** 2
    bent = cv2.remap(gray(3), bent_x.astype(np.float32), Y.astype(np.float32), cv2.INTER_LINEAR)
    straight = prepare(gray(3)).levels[0]
    points = np.array([[x, y] for x in np.linspace(20, 220, 9) for y in np.linspace(20, 160, 7)])
    fit = align(straight, prepare(bent).levels[0], IDENTITY, AFFINE, 8)
    truth = points + np.column_stack([2.5 * ((points[:, 0] - WIDTH / 2) / (WIDTH / 2)) ** 2, np.zeros(len(points))])
    error = np.sqrt(np.mean((apply(fit.i_from_j, points) - truth) ** 2))
    assert 0.7 < estimate_sigma(fit, points) / error < 2.0


def noisy(draw, side):
    rng = np.random.default_rng([draw, side])
    return np.clip(70 + 0.3 * gray(3) + rng.normal(0, 5, gray(3).shape), 0, 255).astype(np.uint8)
