from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from smalti.errors import LandmarkError
from smalti.geometry.linear_maps import AFFINE, FAMILIES, SIMILARITY, TRANSLATION, apply, homogeneous
from smalti.geometry.outline import Outline
from smalti.paper.linear_adjustment import fit_affine_link, pseudo_points
from smalti.records import Landmarks, Pair
from tests.worlds import random_map

PAIR = Pair(3, 7)
NAMES_THE_PAIR = r"\(3, 7\)"
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)

TRIANGLE = np.array([[0.0, 0.0], [90.0, 5.0], [20.0, 70.0]])
LINE = np.array([[0.0, 0.0], [40.0, 30.0], [80.0, 60.0]])


def noisy_landmarks(rng, count=7, far_off=(0.0, 0.0), sigma_each=True):
    points_j = rng.uniform(0.0, 100.0, size=(count, 2)) + far_off
    sigma = rng.uniform(0.3, 3.0, size=count if sigma_each else None)
    points_i = apply(random_map(rng, AFFINE), points_j) + rng.normal(0.0, 2.0, size=(count, 2))
    return Landmarks(PAIR, points_i, points_j, sigma)


def exact_moments(landmarks):
    """Return Σ x̃_j x̃_jᵀ/σ² (3, 3) and Σ x_i x̃_jᵀ/σ² (2, 3) in rational arithmetic."""
    sigma = np.broadcast_to(landmarks.sigma, (len(landmarks),))
    second = [[Fraction(0)] * 3 for _ in range(3)]
    crossed = [[Fraction(0)] * 3 for _ in range(2)]
    for point_i, point_j, s in zip(landmarks.points_i, landmarks.points_j, sigma, strict=True):
        x = [Fraction(float(point_j[0])), Fraction(float(point_j[1])), Fraction(1)]
        weight = 1 / Fraction(float(s)) ** 2
        for b in range(3):
            for a in range(3):
                second[a][b] += weight * x[a] * x[b]
            for a in range(2):
                crossed[a][b] += weight * Fraction(float(point_i[a])) * x[b]
    return second, crossed


def rational(matrix):
    return [[Fraction(float(x)) for x in row] for row in matrix]


def inverse_of_3x3(m):
    cofactor = [
        [
            m[(a + 1) % 3][(b + 1) % 3] * m[(a + 2) % 3][(b + 2) % 3]
            - m[(a + 1) % 3][(b + 2) % 3] * m[(a + 2) % 3][(b + 1) % 3]
            for b in range(3)
        ]
        for a in range(3)
    ]
    det = sum(m[0][b] * cofactor[0][b] for b in range(3))
    return [[cofactor[b][a] / det for b in range(3)] for a in range(3)]


def product(left, right):
    return [[sum(x * right[c][b] for c, x in enumerate(row)) for b in range(len(right[0]))] for row in left]


# The fit


def test_an_affine_fit_is_the_weighted_least_squares_of_each_coordinate():
    landmarks = noisy_landmarks(np.random.default_rng(0))
    weight = 1.0 / landmarks.sigma
    expected, *_ = np.linalg.lstsq(
        homogeneous(landmarks.points_j) * weight[:, None], landmarks.points_i * weight[:, None], rcond=None
    )
    np.testing.assert_allclose(fit_affine_link(landmarks).i_from_j, expected.T, rtol=1e-10)


@each_family
def test_a_map_of_the_family_is_recovered_from_exact_landmarks(family):
    rng = np.random.default_rng(0)
    truth = random_map(rng, family)
    points_j = rng.uniform(0.0, 100.0, size=(5, 2))
    link = fit_affine_link(Landmarks(PAIR, apply(truth, points_j), points_j, rng.uniform(0.5, 2.0, size=5)), family)
    np.testing.assert_allclose(link.i_from_j, truth, rtol=0, atol=1e-11)


def test_a_translation_fit_is_the_weighted_mean_of_the_shifts():
    landmarks = noisy_landmarks(np.random.default_rng(0))
    shift = np.average(landmarks.points_i - landmarks.points_j, axis=0, weights=1.0 / landmarks.sigma**2)
    expected = np.column_stack([np.eye(2), shift])
    np.testing.assert_allclose(fit_affine_link(landmarks, TRANSLATION).i_from_j, expected, rtol=1e-11, atol=1e-11)


def test_a_similarity_fit_is_the_weighted_regression_of_complex_numbers():
    landmarks = noisy_landmarks(np.random.default_rng(0))
    weight = 1.0 / landmarks.sigma
    source, target = (points @ [1.0, 1.0j] for points in (landmarks.points_j, landmarks.points_i))
    columns = np.column_stack([source, np.ones(len(source))]) * weight[:, None]
    (turn, shift), *_ = np.linalg.lstsq(columns, target * weight, rcond=None)
    expected = [[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag]]
    np.testing.assert_allclose(fit_affine_link(landmarks, SIMILARITY).i_from_j, expected, rtol=1e-9, atol=1e-12)


def test_one_sigma_for_the_pair_is_the_same_as_that_sigma_for_each_landmark():
    rng = np.random.default_rng(5)
    points_i, points_j = rng.uniform(0.0, 100.0, size=(2, 6, 2))
    one = fit_affine_link(Landmarks(PAIR, points_i, points_j, 0.7))
    each = fit_affine_link(Landmarks(PAIR, points_i, points_j, np.full(6, 0.7)))
    np.testing.assert_array_equal(one.i_from_j, each.i_from_j)
    np.testing.assert_array_equal(one.root, each.root)


def test_the_residual_is_the_rms_distance_in_frame_i():
    rng = np.random.default_rng(6)
    landmarks = noisy_landmarks(rng)
    link = fit_affine_link(landmarks)
    distances = np.linalg.norm(apply(link.i_from_j, landmarks.points_j) - landmarks.points_i, axis=1)
    assert link.residual_px == pytest.approx(np.sqrt(np.mean(distances**2)), rel=1e-12)


def test_a_link_knows_its_pair_and_how_many_landmarks_it_came_from():
    link = fit_affine_link(noisy_landmarks(np.random.default_rng(7), count=9))
    assert (link.pair, link.landmarks) == (PAIR, 9)


# The statistic


@pytest.mark.parametrize("sigma_each", [True, False], ids=["sigma_a_landmark", "sigma_a_pair"])
def test_the_root_squared_is_the_weighted_second_moment(sigma_each):
    landmarks = noisy_landmarks(np.random.default_rng(0), sigma_each=sigma_each)
    root = fit_affine_link(landmarks).root
    weighted = homogeneous(landmarks.points_j) / np.broadcast_to(landmarks.sigma, (7,))[:, None]
    np.testing.assert_allclose(root @ root.T, weighted.T @ weighted, rtol=1e-12)


@each_family
def test_the_cost_on_landmarks_is_the_links_plus_what_only_shrinking_lowers(family):
    rng = np.random.default_rng(0)
    landmarks = noisy_landmarks(rng)
    link = fit_affine_link(landmarks, family)
    theta_i, theta_j = random_map(rng, family), random_map(rng, family)
    over_sigma = 1.0 / landmarks.sigma[:, None]

    on_landmarks = apply(theta_j, landmarks.points_j) - apply(theta_i, landmarks.points_i)
    last_row = [0.0, 0.0, 1.0]
    of_link = (theta_j - theta_i @ np.vstack([link.i_from_j, last_row])) @ link.root
    beyond_fit = landmarks.points_i - apply(link.i_from_j, landmarks.points_j)
    shrinking = beyond_fit @ theta_i[:, :2].T

    expected = np.sum(of_link**2) + np.sum((over_sigma * shrinking) ** 2)
    assert np.sum((over_sigma * on_landmarks) ** 2) == pytest.approx(expected, rel=1e-10)


def test_three_landmarks_are_fitted_exactly():
    rng = np.random.default_rng(8)
    points_i = TRIANGLE + rng.normal(0.0, 5.0, size=(3, 2))
    link = fit_affine_link(Landmarks(PAIR, points_i, TRIANGLE))
    np.testing.assert_allclose(apply(link.i_from_j, TRIANGLE), points_i, atol=1e-11)


def test_the_order_of_landmarks_does_not_matter():
    landmarks = noisy_landmarks(np.random.default_rng(9))
    turned = Landmarks(PAIR, landmarks.points_i[::-1], landmarks.points_j[::-1], landmarks.sigma[::-1])
    one, other = fit_affine_link(landmarks), fit_affine_link(turned)
    np.testing.assert_allclose(one.i_from_j, other.i_from_j, rtol=1e-11)
    np.testing.assert_allclose(one.root @ one.root.T, other.root @ other.root.T, rtol=1e-12)


def test_a_map_fitted_far_from_the_origin_loses_no_digits():
    landmarks = noisy_landmarks(np.random.default_rng(0), far_off=(4000.0, 3000.0))
    second, crossed = exact_moments(landmarks)
    exact = product(crossed, inverse_of_3x3(second))
    fitted = rational(fit_affine_link(landmarks).i_from_j)
    off = [[x - y for x, y in zip(*rows, strict=True)] for rows in zip(fitted, exact, strict=True)]
    off_at_landmarks = np.array(product(off, rational(homogeneous(landmarks.points_j).T)), dtype=np.float64)
    # The doubles next to 4000 px are 5e-13 px away. Normal equations are off by 3e-10 px and more.
    assert np.abs(off_at_landmarks).max() < 2e-12


def test_a_root_far_from_the_origin_loses_no_digits():
    landmarks = noisy_landmarks(np.random.default_rng(0), far_off=(4000.0, 3000.0))
    second, _ = exact_moments(landmarks)
    inverse = inverse_of_3x3(rational(fit_affine_link(landmarks).root))
    transposed = [list(column) for column in zip(*inverse, strict=True)]
    whitened = np.array(product(product(inverse, second), transposed), dtype=np.float64)
    # A QR factor is off by 1e-13 here, a Cholesky factor of the moments by 3e-12 and more.
    assert np.abs(whitened - np.eye(3)).max() < 1e-12


@pytest.mark.parametrize("side", ["i", "j"])
def test_pseudo_points_in_units_are_those_in_pixels_moved_there(side):
    outline = Outline.of_pixels(640, 480)
    link = fit_affine_link(noisy_landmarks(np.random.default_rng(10)))
    side_i, side_j = pseudo_points(link.i_from_j, link.root, outline.unit_from_pixels)
    got = side_i if side == "i" else side_j
    third = link.root[2]
    in_pixels = link.root[:2] if side == "j" else link.i_from_j @ link.root
    np.testing.assert_allclose(got[2], third, rtol=1e-13)
    np.testing.assert_allclose(
        got[:2] * outline.unit, in_pixels - outline.centre[:, None] * third, rtol=1e-10, atol=1e-10
    )


# What is refused


@pytest.mark.parametrize("count", [0, 2])
def test_fewer_than_three_landmarks_are_refused(count):
    landmarks = Landmarks(PAIR, TRIANGLE[:count], TRIANGLE[:count])
    with pytest.raises(LandmarkError, match=NAMES_THE_PAIR) as refusal:
        fit_affine_link(landmarks)
    assert "at least 3" in str(refusal.value)


@pytest.mark.parametrize(
    ("points_i", "points_j", "frame"), [(LINE, TRIANGLE, 3), (TRIANGLE, LINE, 7)], ids=["in_i", "in_j"]
)
def test_collinear_landmarks_are_refused_with_their_frame(points_i, points_j, frame):
    with pytest.raises(LandmarkError, match=NAMES_THE_PAIR) as refusal:
        fit_affine_link(Landmarks(PAIR, points_i, points_j), AFFINE)
    assert f"frame {frame} are collinear" in str(refusal.value)


def test_landmarks_in_one_place_are_refused():
    with pytest.raises(LandmarkError, match=NAMES_THE_PAIR):
        fit_affine_link(Landmarks(PAIR, np.ones((5, 2)), np.ones((5, 2))))


def test_collinear_landmarks_far_from_the_origin_are_refused():
    with pytest.raises(LandmarkError, match=NAMES_THE_PAIR):
        fit_affine_link(Landmarks(PAIR, TRIANGLE, LINE / 3.0 + 4000.0))


def test_a_thin_triangle_is_accepted():
    thin = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 2.0]])
    assert np.isfinite(fit_affine_link(Landmarks(PAIR, thin, thin)).i_from_j).all()


def test_landmarks_that_mirror_a_frame_are_refused():
    corners = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    with pytest.raises(LandmarkError, match=r"pair \(3, 7\).*mirrored.*swapped"):
        fit_affine_link(Landmarks(Pair(3, 7), corners, corners[[1, 0, 2]]))
