from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from smalti.errors import UnknownNameError
from smalti.geometry.linear_maps import (
    AFFINE,
    FAMILIES,
    SIMILARITY,
    TRANSLATION,
    Family,
    apply,
    compose,
    invert,
    linear_family_named,
)

LAWS = settings(derandomize=True, deadline=None, max_examples=90)
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)

families = st.sampled_from(list(FAMILIES.values()))
parameters = st.lists(st.floats(-3.0, 3.0), min_size=12, max_size=12).map(np.array)


def map_of(family: Family, numbers: np.ndarray) -> np.ndarray:
    return family.maps(numbers[: family.freedom].reshape(1, family.planes, family.size))[0]


def distance_to(family: Family, some_map: np.ndarray) -> float:
    columns = family.tangent.reshape(family.freedom, 6).T
    beyond = (some_map - family.offset).reshape(6)
    nearest = columns @ np.linalg.lstsq(columns, beyond, rcond=None)[0]
    return float(np.abs(beyond - nearest).max())


@pytest.mark.parametrize(("family", "freedom"), [(TRANSLATION, 2), (SIMILARITY, 4), (AFFINE, 6)])
def test_a_family_has_as_many_independent_directions_as_it_should(family, freedom):
    assert family.freedom == freedom
    assert np.linalg.matrix_rank(family.tangent.reshape(-1, 6)) == freedom


@LAWS
@given(family=families, numbers=parameters)
def test_a_row_of_a_map_is_its_basis_times_its_planes_parameters(family, numbers):
    by_plane = numbers[: family.freedom].reshape(family.planes, family.size)
    fitted = map_of(family, numbers)
    for plane, rows in enumerate(family.rows_of_plane):
        for row in rows:
            expected = family.basis[row] @ by_plane[plane] + family.offset[row]
            np.testing.assert_allclose(fitted[row], expected, rtol=0, atol=1e-14)


@each_family
def test_the_planes_determine_each_row_once(family):
    assert sorted(row for rows in family.rows_of_plane for row in rows) == [0, 1]
    assert len(family.rows_of_plane) == family.planes


@LAWS
@given(family=families, numbers=parameters)
def test_maps_move_along_the_tangent(family, numbers):
    expected = family.offset + np.einsum("c,cpa->pa", numbers[: family.freedom], family.tangent)
    np.testing.assert_allclose(map_of(family, numbers), expected, rtol=0, atol=1e-14)


def test_maps_of_many_frames_are_those_of_each():
    many = np.random.default_rng(3).normal(size=(5, AFFINE.planes, AFFINE.size))
    for n in range(5):
        np.testing.assert_allclose(AFFINE.maps(many)[n], AFFINE.maps(many[n : n + 1])[0], rtol=1e-13)


@LAWS
@given(family=families, first=parameters, second=parameters)
def test_a_family_is_closed_under_composition(family, first, second):
    product = compose(map_of(family, first), map_of(family, second))
    assert distance_to(family, product) < 1e-13 * max(1.0, np.abs(product).max())


def test_the_identity_is_in_every_family():
    assert max(distance_to(family, np.eye(2, 3)) for family in FAMILIES.values()) < 1e-15


def test_a_similarity_keeps_the_ratio_of_distances():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(3, 2))
    mapped = apply(map_of(SIMILARITY, rng.normal(size=12)), points)
    ratios = np.linalg.norm(np.diff(mapped, axis=0), axis=1) / np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-12)


def test_a_similarity_does_not_mirror():
    linear = map_of(SIMILARITY, np.random.default_rng(5).normal(size=12))[:, :2]
    assert np.linalg.det(linear) > 0


def test_a_translation_leaves_the_linear_part_alone():
    np.testing.assert_array_equal(map_of(TRANSLATION, np.full(12, 7.0))[:, :2], np.eye(2))


@each_family
def test_fit_recovers_a_map_of_the_family(family):
    rng = np.random.default_rng(0)
    truth = map_of(family, rng.normal(size=12))
    points_j = rng.normal(size=(5, 2))
    fitted = family.fit(apply(truth, points_j), points_j, rng.uniform(0.5, 2.0, size=5))
    np.testing.assert_allclose(fitted, truth, rtol=0, atol=1e-13)


@each_family
def test_no_neighbour_in_the_family_fits_better(family):
    rng = np.random.default_rng(0)
    points_i, points_j, weights = (
        rng.normal(size=(6, 2)),
        rng.normal(size=(6, 2)),
        rng.uniform(0.5, 2.0, size=6),
    )

    def cost(some_map):
        return np.sum((weights[:, None] * (apply(some_map, points_j) - points_i)) ** 2)

    fitted = family.fit(points_i, points_j, weights)
    for direction in family.tangent:
        for step in (1e-4, -1e-4):
            assert cost(fitted + step * direction) > cost(fitted)


@each_family
def test_fit_stays_in_the_family(family):
    rng = np.random.default_rng(6)
    fitted = family.fit(rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), np.ones(6))
    assert distance_to(family, fitted) < 1e-14


@pytest.mark.parametrize("family", [SIMILARITY, TRANSLATION], ids=lambda family: family.name)
def test_inverses_stay_in_the_family(family):
    truth = map_of(family, np.random.default_rng(7).normal(size=12))
    assert distance_to(family, invert(truth)) < 1e-13


def test_a_family_is_found_by_its_name():
    assert [linear_family_named(name) for name in FAMILIES] == list(FAMILIES.values())
    assert all(family.name == name for name, family in FAMILIES.items())


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownNameError) as refusal:
        linear_family_named("homography")
    assert "homography" in str(refusal.value)
    for name in ("translation", "similarity", "affine"):
        assert name in str(refusal.value)
