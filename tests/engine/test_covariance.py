"""The covariance of frames relative to each other, against dense inverses, finite differences and random mosaics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from smalti.engine import covariance as module
from smalti.engine.covariance import Covariance
from smalti.engine.elimination_paths import PRODUCT_OF, PathFinder
from smalti.engine.link_prediction import PredictedLinks
from smalti.engine.relative_position import FAR
from smalti.geometry.homographies import (
    AFFINE,
    ENTRIES,
    PROJECTIVE,
    SIMILARITY,
    TRANSLATION,
    Family,
    apply_map,
    exponential,
)
from smalti.geometry.outline import Outline
from smalti.sparse.cholesky import BlockCholesky
from smalti.sparse.pattern import Pattern

# Neither square nor centred on the origin, so that no test passes by symmetry.
OUTLINE = Outline(-0.5, -0.5, 119.5, 79.5)
POINTS = np.array([[-0.9, -0.5], [0.8, -0.6], [0.7, 0.6], [-0.8, 0.55], [0.1, 0.05]])
STEP = 1e-5

each_family = pytest.mark.parametrize("family", [TRANSLATION, SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
each_bent_family = pytest.mark.parametrize("family", [AFFINE, PROJECTIVE], ids=lambda family: family.name)


def moved_maps(family: Family, maps: NDArray, increments: NDArray) -> NDArray:
    """Maps (n, 3, 3) after increments (n, freedom)."""
    return maps @ exponential(np.asarray(increments, dtype=float))


def derivative(function, size: int) -> NDArray:
    """Central differences of a function of a vector (size,) at zero: (values, size)."""
    columns = []
    for k in range(size):
        step = np.zeros(size)
        step[k] = STEP
        columns.append((function(step) - function(-step)) / (2.0 * STEP))
    return np.array(columns).T


@dataclass(frozen=True, eq=False)
class World:
    """Frames on a mosaic, the information that links between some of them give, and its dense inverse."""

    family: Family
    maps: NDArray  # (N, 3, 3), units
    part: NDArray  # (N,)
    edges: NDArray  # (e, 2)
    diagonal: NDArray  # (N, f, f), one frame of every part held
    off_diagonal: NDArray  # (e, f, f)

    @cached_property
    def factor(self) -> BlockCholesky:
        return BlockCholesky(Pattern.of(len(self.maps), self.edges), self.diagonal, self.off_diagonal)

    @property
    def covariance(self) -> Covariance:
        return Covariance(OUTLINE, self.family, self.maps, self.factor, self.part)

    @cached_property
    def dense(self) -> NDArray:
        """(N, f, N, f)."""
        n, f = self.diagonal.shape[:2]
        information = np.zeros((n, f, n, f))
        information[np.arange(n), :, np.arange(n)] = self.diagonal
        for (a, b), block in zip(self.edges, self.off_diagonal, strict=True):
            information[a, :, b], information[b, :, a] = block, block.T
        return np.linalg.inv(information.reshape(n * f, n * f)).reshape(n, f, n, f)

    def joint(self, i: int, j: int) -> NDArray:
        """(2f, 2f): the covariance of the increments of two frames."""
        f = self.family.freedom
        return self.dense[[i, j]][:, :, [i, j]].reshape(2 * f, 2 * f)

    def relative(self, i: int, j: int, increments: NDArray) -> NDArray:
        """H_i⁻¹ H_j after increments (2f,) of the two."""
        moved = moved_maps(self.family, self.maps[[i, j]], increments.reshape(2, -1))
        return np.linalg.inv(moved[0]) @ moved[1]

    def spread(self, i: int, j: int, function) -> NDArray:
        """The covariance of a function of H_i⁻¹ H_j, first order."""
        jacobian = derivative(lambda d: function(self.relative(i, j, d)), 2 * self.family.freedom)
        return jacobian @ self.joint(i, j) @ jacobian.T


def link_information(world_family: Family, i_from_j: NDArray) -> NDArray:
    """(2f, 2f): what five points, seen to half a pixel, tell about the increments of i and j."""

    def places(increments: NDArray) -> NDArray:
        steps = exponential(increments.reshape(2, -1))
        return apply_map(np.linalg.inv(steps[0]) @ i_from_j @ steps[1], POINTS).ravel() * OUTLINE.unit / 0.5

    jacobian = derivative(places, 2 * world_family.freedom)
    return jacobian.T @ jacobian


def assemble(family: Family, maps: NDArray, part: NDArray, edges: NDArray, blocks: NDArray) -> World:
    """Take the information (e, 2f, 2f) of every edge, and hold the first frame of every part."""
    f = family.freedom
    diagonal = np.zeros((len(maps), f, f))
    np.add.at(diagonal, edges[:, 0], blocks[:, :f, :f])
    np.add.at(diagonal, edges[:, 1], blocks[:, f:, f:])
    diagonal[np.unique(part, return_index=True)[1]] *= 2.0
    return World(family, maps, part, edges, diagonal, np.ascontiguousarray(blocks[:, :f, f:]))


def random_maps(rng: np.random.Generator, frames: int, family: Family, perspective: float = 0.01) -> NDArray:
    """A camera that moves a third of a frame at a time and turns, stretches and tilts a little."""
    increments = (
        rng.normal(size=(frames, family.freedom)) * np.array([0.1, 0.1, 0.1, 0.03, 0.02, 0.02, 1, 1])[: family.freedom]
    )
    increments[:, 0] += 0.4
    increments[:, 6:] *= perspective
    maps = np.empty((frames, 3, 3))
    maps[0] = np.eye(3)
    for n, step in enumerate(exponential(increments[1:])):
        maps[n + 1] = maps[n] @ step
    return maps


@cache
def world(family: Family = PROJECTIVE, frames: int = 14, loops: int = 3, parts: int = 1, seed: int = 1) -> World:
    rng = np.random.default_rng([seed, frames, loops])
    maps = random_maps(rng, frames, family)
    part = np.arange(frames) * parts // frames
    edges = np.array([(n, n + 1) for n in range(frames - 1) if part[n] == part[n + 1]])
    while loops:
        i, j = np.sort(rng.choice(frames, 2, replace=False))
        if part[i] == part[j] and not (edges == (i, j)).all(axis=1).any():
            edges, loops = np.append(edges, [[i, j]], axis=0), loops - 1
    # Loops measure as neighbours do: what matters here is where the blocks are.
    blocks = [link_information(family, np.linalg.inv(maps[i]) @ maps[j] if j == i + 1 else np.eye(3)) for i, j in edges]
    return assemble(family, maps, part, edges, np.array(blocks))


def straight_chain(frames: int) -> World:
    """The same link between all neighbours of a straight way, without perspective."""
    maps = np.tile(np.eye(3), (frames, 1, 1))
    maps[:, 0, 2] = 0.4 * np.arange(frames)
    edges = np.column_stack([np.arange(frames - 1), np.arange(1, frames)])
    block = link_information(AFFINE, np.linalg.inv(maps[0]) @ maps[1])
    return assemble(AFFINE, maps, np.zeros(frames, dtype=np.int64), edges, np.tile(block, (frames - 1, 1, 1)))


def packed(cov: NDArray) -> NDArray:
    return np.array([cov[0, 0], cov[0, 1], cov[1, 1]])


def all_pairs(frames: int) -> NDArray:
    return np.column_stack(np.triu_indices(frames, 1)).astype(np.int64)


def way(ways, frame: int) -> NDArray:
    column = ways.place[frame]
    length = (ways.depth[column] + 1) * ways.freedom
    return ways.values[ways.start[column] : ways.start[column] + ENTRIES * length].reshape(ENTRIES, length)


def ancestors(parent: NDArray, column: int) -> list[int]:
    found = []
    while column >= 0:
        found.append(int(column))
        column = parent[column]
    return found[::-1]


@pytest.mark.parametrize(
    ("family", "loops", "parts"), [(TRANSLATION, 3, 1), (SIMILARITY, 20, 1), (PROJECTIVE, 0, 1), (PROJECTIVE, 2, 2)]
)
def test_the_product_of_two_ways_is_the_dense_inverse(family, loops, parts):
    given_world = world(family, 14, loops, parts)
    ways = PathFinder(given_world.factor, family.by_entry).find(np.arange(14))
    expected = np.einsum("ce,icjd,dg->iejg", family.by_entry, given_world.dense, family.by_entry)
    found = np.zeros_like(expected)
    for i in range(14):
        for j in range(14):
            above = zip(ancestors(ways.parent, ways.place[i]), ancestors(ways.parent, ways.place[j]), strict=False)
            shared = sum(a == b for a, b in above) * ways.freedom
            found[i, :, j] = way(ways, i)[:, :shared] @ way(ways, j)[:, :shared].T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@each_family
def test_tails_are_the_sums_of_products_from_a_level_on(family):
    ways = PathFinder(world(family).factor, family.by_entry).find(np.arange(14))
    for frame in range(14):
        own, column = way(ways, frame), ways.place[frame]
        for level in range(ways.depth[column] + 2):
            rest = own[:, level * ways.freedom :]
            gram = rest @ rest.T
            found = ways.tails[ways.tail_start[column] + level][PRODUCT_OF]
            np.testing.assert_allclose(found, gram, rtol=0, atol=1e-12 * max(np.trace(gram), 1e-300))


@pytest.mark.parametrize(("family", "loops"), [(TRANSLATION, 20), (SIMILARITY, 3), (PROJECTIVE, 0), (PROJECTIVE, 3)])
def test_pairs_have_the_covariance_of_the_dense_inverse_in_both_directions(family, loops):
    given_world = world(family, 14, loops)
    pairs = all_pairs(14)[::3]
    found = given_world.covariance.of_pairs(pairs)
    for n, (i, j) in enumerate(pairs):
        for direction, (seen, frame) in enumerate(((i, j), (j, i))):
            cov = given_world.spread(frame, seen, lambda m: m[:2, 2] / m[2, 2] * OUTLINE.unit)
            np.testing.assert_allclose(found.cov[n, direction], packed(cov), rtol=1e-6, atol=1e-7 * np.trace(cov))


@each_family
def test_means_are_where_the_maps_take_the_centres(family):
    given_world = world(family)
    pairs = all_pairs(14)
    found = given_world.covariance.of_pairs(pairs).mean
    for n, (i, j) in enumerate(pairs):
        for direction, (seen, frame) in enumerate(((i, j), (j, i))):
            m = given_world.relative(frame, seen, np.zeros(2 * family.freedom))
            expected = m[:2, 2] / m[2, 2] * OUTLINE.unit + OUTLINE.centre
            np.testing.assert_allclose(found[n, direction], expected, rtol=1e-9, atol=1e-8)


def test_random_mosaics_spread_the_centres_as_the_covariance_says():
    # A hundredth of the noise: what is not linear does not count.
    given_world, rng = world(), np.random.default_rng(5)
    f = PROJECTIVE.freedom
    root = np.linalg.cholesky(given_world.dense.reshape(14 * f, 14 * f)) * 1e-2
    seen = []
    for _ in range(2000):
        moved = moved_maps(PROJECTIVE, given_world.maps, (root @ rng.normal(size=14 * f)).reshape(14, f))
        at = np.linalg.solve(moved[11], moved[2])[:, 2]
        seen.append(at[:2] / at[2] * OUTLINE.unit)
    found = given_world.covariance.of_pairs(np.array([[2, 11]])).cov[0, 0] * 1e-4
    expected = np.cov(np.array(seen).T)
    np.testing.assert_allclose(found, packed(expected), rtol=0.15, atol=0.05 * np.trace(expected))


@each_bent_family
def test_all_pairs_at_once_are_the_pairs_bit_for_bit(family):
    covariance = world(family).covariance
    pairs = all_pairs(14)
    found, every = covariance.of_pairs(pairs), covariance.centres
    for direction, (i, j) in enumerate((pairs.T, pairs[:, ::-1].T)):
        np.testing.assert_array_equal(found.mean[:, direction], every.mean[i, j])
        np.testing.assert_array_equal(found.cov[:, direction], every.cov[i, j])


@pytest.mark.parametrize("at_once", [1, 7])
def test_pairs_and_relations_in_portions_are_the_same_bit_for_bit(at_once, monkeypatch):
    pairs, given_world = all_pairs(14), world()
    points = np.broadcast_to(POINTS[:4], (len(pairs), 4, 2))

    def compute():
        covariance = given_world.covariance
        both = covariance.of_pairs(pairs)
        return both.mean, both.cov, covariance.of_predicted_links(covariance.predicted_links(pairs, points))

    expected = compute()
    monkeypatch.setattr(module, "MOST_BYTES_OF_PATHS", 0)
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", at_once)
    for found, value in zip(compute(), expected, strict=True):
        np.testing.assert_array_equal(found, value)


def test_a_frame_lies_in_itself_for_certain():
    found = world().covariance.of_pairs(np.array([[0, 0], [9, 9]]))
    np.testing.assert_array_equal(found.cov, 0.0)
    np.testing.assert_array_equal(found.mean, np.broadcast_to(OUTLINE.centre, (2, 2, 2)))


def test_no_pairs_are_no_distributions():
    found = world().covariance.of_pairs(np.empty((0, 2), dtype=np.int64))
    assert (found.mean.shape, found.cov.shape) == ((0, 2, 2), (0, 2, 3))


def test_the_scale_of_maps_does_not_matter():
    given_world = world()
    scales = np.random.default_rng(1).uniform(0.1, 10.0, (14, 1, 1))
    scaled = replace(given_world, maps=given_world.maps * scales).covariance
    for name in ("mean", "cov"):
        found, expected = getattr(scaled.centres, name), getattr(given_world.covariance.centres, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_a_thousand_frames_leave_the_digits_of_neighbours():
    n = np.arange(999)
    found = straight_chain(1000).covariance.of_pairs(np.column_stack([n, n + 1])).cov
    np.testing.assert_allclose(found, np.broadcast_to(found[:1], found.shape), rtol=1e-6, atol=1e-7 * found.max())


@each_bent_family
def test_relations_change_as_finite_differences_say(family):
    given_world = world(family)
    weights = np.array([[1.0, 0.5, 2.0]])
    relations = given_world.covariance.predicted_links(np.array([[3, 6]]), POINTS[None, :3], weights)

    def displaced(increments):
        return (weights[0, :, None] * apply_map(given_world.relative(3, 6, increments), POINTS[:3])).ravel()

    expected = derivative(displaced, 2 * family.freedom) * OUTLINE.unit
    by_both = np.hstack([relations.by_i[0] @ family.by_entry.T, relations.by_j[0] @ family.by_entry.T])
    np.testing.assert_allclose(by_both, expected, atol=1e-6 * np.abs(expected).max())


@each_family
def test_relations_have_the_covariances_of_the_dense_inverse(family):
    covariance = world(family).covariance
    pairs = np.array([[0, 1], [0, 13], [12, 5], [3, 7]])
    relations = covariance.predicted_links(pairs, np.broadcast_to(POINTS[:4], (4, 4, 2)))
    found = covariance.of_predicted_links(relations)
    assert found.shape == (4, 2 * 4, 2 * 4)
    for n, (i, j) in enumerate(pairs):
        expected = world(family).spread(i, j, lambda m: apply_map(m, POINTS[:4]).ravel() * OUTLINE.unit)
        np.testing.assert_allclose(found[n], expected, rtol=1e-5, atol=1e-7 * np.trace(expected))


@each_family
def test_to_carry_is_to_multiply_by_the_dense_inverse(family):
    loads = np.random.default_rng(2).normal(size=(14, ENTRIES, 3))
    expected = np.einsum("ce,icjd,dg,jgm->iem", family.by_entry, world(family).dense, family.by_entry, loads)
    found = world(family).covariance.carry(loads)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_loads_are_the_transpose_of_moves():
    rng, pairs = np.random.default_rng(3), np.array([[0, 1], [4, 2], [0, 9]])
    relations = world().covariance.predicted_links(pairs, rng.normal(size=(3, 4, 2)))
    moves, factors = rng.normal(size=(14, ENTRIES, 1)), rng.normal(size=(3, 8, 1))
    forth = (relations.moved(moves) * factors).sum()
    assert (relations.loads(14, factors) * moves).sum() == pytest.approx(forth)


def test_some_relations_are_those_of_their_pairs():
    covariance, pairs = world().covariance, all_pairs(14)
    relations = covariance.predicted_links(pairs, np.broadcast_to(POINTS[:1], (len(pairs), 1, 2)))
    chosen = np.array([5, 2, 80])
    expected = covariance.of_predicted_links(relations)[chosen]
    np.testing.assert_array_equal(covariance.of_predicted_links(relations[chosen]), expected)


@each_bent_family
def test_the_expected_map_takes_pixels_of_the_source_to_pixels_of_the_target(family):
    given_world = world(family)
    in_pixels, _ = given_world.covariance.expect(2, 9)
    in_units = apply_map(given_world.relative(2, 9, np.zeros(2 * family.freedom)), POINTS)
    found = apply_map(in_pixels, POINTS * OUTLINE.unit + OUTLINE.centre)
    np.testing.assert_allclose(found, in_units * OUTLINE.unit + OUTLINE.centre, rtol=1e-9)


@each_family
def test_the_expected_increment_has_the_covariance_of_the_dense_inverse(family):
    given_world = world(family)
    _, found = given_world.covariance.expect(2, 9)
    back = np.linalg.inv(given_world.relative(2, 9, np.zeros(2 * family.freedom)))

    def increment(target_from_source):
        moved = back @ target_from_source
        return (moved / moved[2, 2]).ravel()[:ENTRIES]

    expected = given_world.spread(2, 9, increment)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.trace(expected))


def monomials(x, y):
    return np.array([1.0, x, y, x * x, x * y, y * y])


@each_family
def test_without_perspective_points_spread_as_their_relations_say(family):
    given_world = world(family)
    if family is PROJECTIVE:
        # Maps without perspective, of which it is uncertain all the same.
        given_world = replace(given_world, maps=world(AFFINE).maps)
    covariance = given_world.covariance
    found = covariance.spread_relative_to(4)
    for n in (0, 3, 11):
        for point in POINTS:
            relation = covariance.predicted_links(np.array([[4, n]]), point[None, None])
            expected = np.trace(covariance.of_predicted_links(relation)[0])
            assert monomials(*point) @ found[n] @ monomials(*point) == pytest.approx(expected, rel=1e-8)


def test_with_perspective_centres_spread_as_their_pairs_say():
    covariance = world().covariance
    expected = covariance.centres.spread_squared[:, 4]
    np.testing.assert_allclose(covariance.spread_relative_to(4)[:, 0, 0], expected, rtol=1e-8)


def test_a_frame_s_own_points_do_not_spread():
    np.testing.assert_array_equal(world().covariance.spread_relative_to(4)[4], 0.0)


def test_within_a_part_pairs_do_not_feel_the_other_part():
    given_world = world(PROJECTIVE, 14, 2, 2)
    found = given_world.covariance.of_pairs(np.array([[8, 12]])).cov[0, 1]
    cov = given_world.spread(8, 12, lambda m: m[:2, 2] / m[2, 2] * OUTLINE.unit)
    np.testing.assert_allclose(found, packed(cov), rtol=1e-6, atol=1e-7 * np.trace(cov))


def test_of_pairs_of_different_parts_nothing_is_known():
    covariance = world(PROJECTIVE, 14, 2, 2).covariance
    both = covariance.of_pairs(np.array([[2, 12]]))
    most = (FAR * OUTLINE.unit) ** 2
    np.testing.assert_array_equal(both.mean, np.broadcast_to(OUTLINE.centre, (1, 2, 2)))
    np.testing.assert_array_equal(both.cov, np.broadcast_to([most, 0.0, most], (1, 2, 3)))
    np.testing.assert_array_equal(covariance.centres.cov[2, 12], both.cov[0, 0])


def test_of_relations_of_different_parts_nothing_is_known():
    covariance = world(PROJECTIVE, 14, 2, 2).covariance
    relations = covariance.predicted_links(np.array([[2, 12]]), POINTS[None, :1])
    np.testing.assert_array_equal(covariance.of_predicted_links(relations)[0], (FAR * OUTLINE.unit) ** 2 * np.eye(2))


def test_between_parts_nothing_is_expected():
    in_pixels, cov = world(AFFINE, 14, 2, 2).covariance.expect(2, 12)
    np.testing.assert_allclose(in_pixels, np.eye(3), atol=1e-12)
    assert (np.diag(cov)[:6] >= FAR**2).all()
    np.testing.assert_array_equal(cov[6:], 0.0)


def test_points_of_another_part_spread_over_everything():
    spread = world(PROJECTIVE, 14, 2, 2).covariance.spread_relative_to(2)
    assert (spread[7:, 0, 0] == 2 * (FAR * OUTLINE.unit) ** 2).all()
    assert (spread[:7, 0, 0] < 1e6).all()


def test_a_centre_behind_the_camera_is_far_away():
    maps = world().maps.copy()
    maps[13] *= -1.0
    found = replace(world(), maps=maps).covariance.of_pairs(np.array([[13, 3]]))
    away = np.abs(found.mean[0] - OUTLINE.centre).max(axis=-1)
    np.testing.assert_allclose(away, FAR * OUTLINE.unit)
    np.testing.assert_allclose(found.cov[..., ::2], (FAR * OUTLINE.unit) ** 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 1.0, 1e3, 1e9, 1e30]), st.booleans())
def test_wild_maps_give_finite_numbers(seed, wildness, singular):
    rng = np.random.default_rng(seed)
    maps = world().maps + wildness * rng.normal(size=(14, 3, 3)) * rng.choice([0.0, 1.0], (14, 3, 3))
    if singular:
        maps[rng.integers(14), rng.integers(3)] = 0.0
    covariance = replace(world(), maps=maps).covariance
    pairs = all_pairs(14)
    relations = covariance.predicted_links(pairs, np.broadcast_to(POINTS[:4], (len(pairs), 4, 2)))
    both = covariance.of_pairs(pairs)
    of_pairs = {"mean": both.mean, "cov": both.cov, "relations": covariance.of_predicted_links(relations)}
    others = {"spread": covariance.spread_relative_to(3), "map": covariance.expect(3, 5)[0]}
    others["increment"] = covariance.expect(3, 5)[1]
    for name, values in (of_pairs | others).items():
        assert np.isfinite(values).all(), name
    assert not np.isnan(covariance.stretches.deviation).any()
    assert np.isfinite(covariance.stretches.distance).all()
    assert (np.abs(both.mean - OUTLINE.centre) <= FAR * OUTLINE.unit * (1 + 1e-12)).all()
    assert (both.cov[..., 1] ** 2 <= both.cov[..., 0] * both.cov[..., 2] * (1 + 1e-6)).all()


def test_relations_know_a_point_behind_the_camera_to_be_far():
    relations = PredictedLinks.at(np.array([[0, 1]]), -np.eye(3)[None], POINTS[None, :1], None, 1.0)
    assert np.isfinite(relations.by_i).all()
    assert np.abs(relations.by_i).max() > FAR / 10
