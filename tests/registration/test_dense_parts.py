"""The parts of dense registration, each against what it should give."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.geometry.homographies import AFFINE, PROJECTIVE, SIMILARITY, apply_map, exponential
from smalti.geometry.linear_maps import square
from smalti.geometry.outline import Outline
from smalti.records import Expectation
from smalti.registration.alignment import align, gather_evidence, moves_of_points, moves_of_tiles
from smalti.registration.dense import scale_map
from smalti.registration.feature_pyramid import UNIT, pixels_of, planes_of, prepare, tangent_at, warp
from smalti.registration.pose_search import find_poses
from smalti.registration.precision import compare_with_chance, estimate_sigmas, share_information
from tests.registration.scenes import FRAME_SIZE, apart, gray, overlapping, true_map
from tests.registration.views import X, Y, field, prepared

IDENTITY = np.eye(3)
WIDTH, HEIGHT = FRAME_SIZE
PAIR = overlapping(0.6)[0]
TILTED = np.array([[1.02, 0.05, 6.0], [-0.04, 0.98, 9.0], [6e-4, -4e-4, 1.0]])
SPREAD = np.array([[x, y] for x in np.linspace(20, 220, 9) for y in np.linspace(20, 160, 7)])


def halved(i_from_j, times):
    return scale_map(square(i_from_j), -times)


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
    frame_from_turned = np.array([[0.0, -1, WIDTH - 1], [1, 0, 0], [0, 0, 1]])
    seen, shown = warp(pixels_of(level), frame_from_turned, WIDTH, HEIGHT), planes_of(turned)
    np.testing.assert_allclose(seen[:3, 20:-20, 20:-20], shown[:3, 20:-20, 20:-20], atol=0.02)


def test_what_one_frame_does_not_show_is_not_in_sight():
    level = prepared(0).levels[0]
    seen = warp(pixels_of(level), np.array([[1.0, 0, 100], [0, 1, 0], [0, 0, 1]]), HEIGHT, WIDTH)
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
    outline = Outline.of_pixels(width, height)
    moves = moves_of_tiles(outline)
    step = 0.05
    changes = []
    for direction in np.eye(8):
        scores = []
        for sign in (-1, 1):
            moved = exponential(sign * step * direction[None] / outline.unit)[0]
            seen = warp(level, np.linalg.inv(unit_from_pixels) @ moved @ unit_from_pixels, height, width)
            scores.append(np.einsum("nka,na->k", moves, gather_evidence(template, seen).scores))
        changes.append((scores[1] - scores[0]) / (2 * step))
    evidence = gather_evidence(template, warp(level, IDENTITY, height, width))
    information = np.einsum("nka,nab,nlb->kl", moves, evidence.information, moves)
    assert np.abs(np.array(changes) - information).max() < 0.1 * np.abs(information).max()


def test_points_move_along_the_basis_as_its_exponential_moves_them():
    at = np.random.default_rng(2).uniform(-1, 1, (5, 2))
    moved = apply_map(exponential(1e-6 * np.eye(8)), at) - apply_map(exponential(-1e-6 * np.eye(8)), at)
    np.testing.assert_allclose(moves_of_points(at), np.swapaxes(moved, 0, 1) / 2e-6, atol=1e-8)


def test_a_tile_moves_as_its_points_do_but_for_what_bends_within_it():
    outline = Outline.of_pixels(WIDTH, HEIGHT)
    corner = np.array([[1.0, -0.8]]) * [WIDTH, HEIGHT] / 2 / outline.unit  # in the last tile of the first row
    of_tile = moves_of_tiles(outline)[7].reshape(8, 2, 3) @ [*corner[0], 1.0]
    of_point = moves_of_points(corner)[0]
    np.testing.assert_allclose(of_tile[:6], of_point[:6], atol=1e-12)
    assert 0 < np.abs(of_tile[6:] - of_point[6:]).max() < 0.05


def test_a_warp_with_perspective_takes_every_pixel_from_where_it_is_mapped():
    # Features that grow with x, then with y: bilinear interpolation is exact.
    level = np.stack([X, Y, X, np.ones_like(X)], axis=-1).astype(np.float32)
    seen = warp(level, TILTED, HEIGHT, WIDTH)
    mapped = apply_map(TILTED, np.column_stack([X.ravel(), Y.ravel()])).reshape(HEIGHT, WIDTH, 2)
    inside = ((mapped > -1e-9) & (mapped < [WIDTH - 1.01, HEIGHT - 1.01])).all(axis=-1)
    np.testing.assert_array_equal(seen[3] > 0, inside)
    assert np.abs(seen[2] - mapped[..., 0])[inside].max() < 1e-3


def test_directions_turn_with_perspective_as_its_tangent_does():
    level = np.zeros((HEIGHT, WIDTH, 4), np.float32)
    level[..., [0, 3]] = 1.0
    seen = warp(level, TILTED, HEIGHT, WIDTH)
    for x, y in ((20, 30), (120, 90), (180, 140)):
        turned = np.linalg.svd(tangent_at(TILTED, np.array([x, y]))[:2, :2])
        nearest = turned[0] @ turned[2]
        np.testing.assert_allclose(seen[:2, y, x], nearest.T @ [1.0, 0.0], atol=2e-3)


def test_what_lies_behind_the_camera_is_not_seen():
    level = pixels_of(prepared(0).levels[0])
    tilted = np.array([[0.4, 0, -20], [0, 0.4, -36], [1 / 200, 0, -0.2]])  # the horizon is at x = 40
    mirrored = apply_map(tilted, np.array([[20.0, 80.0]]))[0]
    assert field()[int(mirrored[1]), int(mirrored[0])]
    seen = warp(level, tilted, HEIGHT, WIDTH)
    assert seen[3, :, 60:].any()
    assert not seen[:, :, :41].any()


def test_a_tangent_is_the_map_next_to_its_point():
    point = np.array([70.0, 40.0])
    near = point + 1e-4 * np.array([[0, 0], [1, 0], [0, 1]])
    np.testing.assert_allclose(apply_map(tangent_at(TILTED, point), near), apply_map(TILTED, near), atol=1e-9)


@pytest.mark.parametrize("level", [0, 2])
def test_alignment_walks_two_pixels_of_its_level(level):
    truth = halved(true_map(PAIR), level)
    start = truth + np.array([[0, 0, 1.4], [0, 0, -1.4], [0, 0, 0]])
    fit = align(prepared(PAIR.i).levels[level], prepared(PAIR.j).levels[level], start, AFFINE, 10)
    height, width = fit.template.shape[1:]
    middle = np.array([[width / 2, height / 2]])
    assert np.linalg.norm(apply_map(fit.i_from_j, middle) - apply_map(truth, middle)) < 0.25


def test_a_family_is_not_left():
    fit = align(prepared(PAIR.i).levels[2], prepared(PAIR.j).levels[2], IDENTITY, SIMILARITY, 4)
    (a, b), (c, d) = fit.i_from_j[:2, :2]
    assert fit.i_from_j[2].tolist() == [0, 0, 1]
    assert (a, b) == pytest.approx((d, -c), abs=1e-9)
    assert not np.allclose(fit.i_from_j, IDENTITY)


def test_frames_with_little_texture_do_not_shear():
    stripes = prepare((120 + 60 * np.sin(X / 6)).astype(np.uint8))
    start = np.array([[1.0, 0.05, 0], [0, 1.05, 0], [0, 0, 1]])
    fit = align(stripes.levels[2], stripes.levels[2], start, AFFINE, 40)
    sides = np.linalg.svd(fit.i_from_j[:2, :2], compute_uv=False)
    assert sides[0] / sides[1] < 1.03


def test_frames_with_little_texture_do_not_tilt():
    # Stripes fix what moves them sideways; that they come nearer along themselves nothing tells.
    stripes = prepare((120 + 60 * np.sin(X / 6)).astype(np.uint8)).levels[2]
    height, width = stripes.shape[:2]
    to_unit = square(Outline.of_pixels(width, height).unit_from_pixels)
    start = np.linalg.inv(to_unit) @ exponential(np.array([[0, 0, 0, 0, 0, 0, 0, 0.06]]))[0] @ to_unit
    fit = align(stripes, stripes, start, PROJECTIVE, 40)
    tilt = (to_unit @ fit.i_from_j @ np.linalg.inv(to_unit))[2]
    assert np.abs(tilt[:2] / tilt[2]).max() < 0.02


@pytest.mark.parametrize("level", [0, 1])
def test_alignment_finds_perspective(level):
    tilted = cv2.warpPerspective(gray(3), TILTED, FRAME_SIZE, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    frames = [prepare(image).levels[level] for image in (gray(3), tilted)]
    fit = align(*frames, scale_map(tangent_at(TILTED, np.array([120.0, 90.0])), -level), PROJECTIVE, 10)
    error = np.linalg.norm(apply_map(scale_map(fit.i_from_j, level), SPREAD) - apply_map(TILTED, SPREAD), axis=1)
    assert error.max() < 0.15


def test_the_likeliest_place_is_the_right_one_when_the_turn_is_unknown():
    truth = halved(true_map(PAIR), 2)
    c, s = np.cos(2.0), np.sin(2.0)
    guess = Expectation(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.inf)
    places = find_poses(prepared(PAIR.i).levels[2], prepared(PAIR.j).levels[2], [guess], 4, 0.2)
    place = max(places, key=lambda place: place.likeness)
    middle = np.array([[WIDTH / 8, HEIGHT / 8]])
    assert np.linalg.norm(apply_map(place.i_from_j, middle) - apply_map(truth, middle)) < 2


def test_the_right_place_comes_first_where_frames_have_hardly_turned():
    truth = halved(true_map(PAIR), 2)
    anywhere = Expectation(IDENTITY, np.inf)
    place = next(find_poses(prepared(PAIR.i).levels[2], prepared(PAIR.j).levels[2], [anywhere], 4, 0.2))
    middle = np.array([[WIDTH / 8, HEIGHT / 8]])
    assert np.linalg.norm(apply_map(place.i_from_j, middle) - apply_map(truth, middle)) < 2


def test_no_place_comes_twice():
    anywhere = Expectation(IDENTITY, np.inf)
    places = list(find_poses(prepared(0).levels[2], prepared(20).levels[2], [anywhere], 8, 0.15))
    assert len({tuple(place.i_from_j.ravel()) for place in places}) == len(places)


def test_places_keep_the_expected_perspective():
    guess = Expectation(scale_map(TILTED, -2), np.inf)
    place = next(find_poses(prepared(0).levels[2], prepared(0).levels[2], [guess], 1, 0.2))
    middle = np.array([(WIDTH / 4 - 1) / 2, (HEIGHT / 4 - 1) / 2])
    depth = [found[2] / (found[2] @ [*middle, 1.0]) for found in (place.i_from_j, guess.i_from_j)]
    np.testing.assert_allclose(depth[0], depth[1], atol=1e-12)


def test_places_stay_within_three_sigma_and_come_best_first():
    guess = Expectation(np.array([[1.0, 0, 10], [0, 1, 5], [0, 0, 1]]), 2.0)
    places = list(find_poses(prepared(0).levels[2], prepared(20).levels[2], [guess], 5, 0.1))
    middle = np.array([(WIDTH / 4 - 1) / 2, (HEIGHT / 4 - 1) / 2])
    assert places
    for place in places:
        assert np.linalg.norm(apply_map(place.i_from_j, middle[None])[0] - middle - [10, 5]) <= 3 * 2.0 + 1.0 + 1e-6
    likeness = [place.likeness for place in places]
    assert likeness == sorted(likeness, reverse=True)


def test_likeness_is_over_chance_at_the_right_place_only():
    other = apart()[0]
    right = align(prepared(PAIR.i).levels[1], prepared(PAIR.j).levels[1], halved(true_map(PAIR), 1), AFFINE, 4)
    wrong = align(prepared(other.i).levels[1], prepared(other.j).levels[1], IDENTITY, AFFINE, 4)
    assert compare_with_chance(right.template, right.warped).excess > 10
    assert abs(compare_with_chance(wrong.template, wrong.warped).excess) < 6


def test_sigmas_are_the_scatter_over_draws_of_the_noise():
    places, sigmas = [], []
    points = np.array([[x, y] for x in (60.0, 120, 180) for y in (50.0, 90, 130)])
    for draw in range(8):
        frames = [prepare(noisy(draw, side), field()).levels[0] for side in (0, 1)]
        fit = align(*frames, IDENTITY, PROJECTIVE, 6)
        places.append(apply_map(fit.i_from_j, points) - points)
        sigmas.append(estimate_sigmas(fit, points))
    scatter = np.sqrt(np.mean(np.square(places)))
    assert 0.5 < scatter / np.sqrt(np.mean(np.square(sigmas))) < 1.5


def test_a_sigma_is_larger_where_the_frames_have_no_texture():
    blank = np.where(X < 100, 120, gray(3))
    frames = [prepare((blank + np.random.default_rng(n).normal(0, 3, blank.shape)).astype(np.uint8)) for n in (0, 1)]
    fit = align(*(frame.levels[0] for frame in frames), IDENTITY, PROJECTIVE, 6)
    at_blank, at_texture = estimate_sigmas(fit, np.array([[20.0, 90.0], [160.0, 90.0]]))
    assert at_blank > 2 * at_texture


def test_sigmas_know_what_no_map_of_a_plane_can_follow():
    bent_x = X + 2.5 * ((Y - HEIGHT / 2) / (HEIGHT / 2)) ** 2
    bent = cv2.remap(gray(3), bent_x.astype(np.float32), Y.astype(np.float32), cv2.INTER_LINEAR)
    fit = align(prepare(gray(3)).levels[0], prepare(bent).levels[0], IDENTITY, PROJECTIVE, 8)
    truth = SPREAD + np.column_stack([2.5 * ((SPREAD[:, 1] - HEIGHT / 2) / (HEIGHT / 2)) ** 2, np.zeros(len(SPREAD))])
    error = np.sqrt(np.mean((apply_map(fit.i_from_j, SPREAD) - truth) ** 2))
    said = np.sqrt(np.mean(estimate_sigmas(fit, SPREAD) ** 2))
    assert 0.7 < said / error < 2.0


def test_landmarks_together_fix_the_map_as_well_as_it_is_known_at_each():
    blank = np.where(X < 60, 120, gray(3))
    frames = [prepare((blank + np.random.default_rng(n).normal(0, 3, blank.shape)).astype(np.uint8)) for n in (0, 1)]
    fit = align(*(frame.levels[0] for frame in frames), IDENTITY, PROJECTIVE, 6)
    known = estimate_sigmas(fit, SPREAD)
    shares = share_information(fit, SPREAD, known)
    outline = Outline.of_pixels(WIDTH, HEIGHT)
    moves = moves_of_points((SPREAD - outline.centre) / outline.unit)
    covariance = np.linalg.inv(np.einsum("nap,n,nbp->ab", moves, shares**-2, moves))
    together = np.sqrt(np.einsum("nap,ab,nbp->n", moves, covariance, moves) / 2)
    # No landmark says more than is known, most say just that.
    assert (together < 1.1 * known).all()
    assert np.median(together / known) > 0.85


def noisy(draw, side):
    rng = np.random.default_rng([draw, side])
    return np.clip(70 + 0.3 * gray(3) + rng.normal(0, 5, gray(3).shape), 0, 255).astype(np.uint8)
