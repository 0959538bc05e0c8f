"""The equations of a mosaic: derivatives, exact worlds, covariance against simulation, parts."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from smalti.engine.camera_priors import Camera
from smalti.engine.covariance import Covariance
from smalti.engine.equations import LENS, TURN, System
from smalti.engine.linearisation import Weights, linearise
from smalti.engine.links import fit_link
from smalti.engine.normal_equations import WEAK_DEVIATIONS, normal_equations
from smalti.engine.solution import solve
from smalti.errors import PairError, UsageError
from smalti.geometry.homographies import FAMILIES, PROJECTIVE, SIMILARITY, TRANSLATION, exponential, normalise
from smalti.geometry.lens import Lens
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, across, flight

STEP = 1e-6
FREE = Camera((math.inf,) * 7)
"""Of which nothing is claimed."""

STILL = Camera((0.05, 0.03, 0.02, 0.1, 0.05, 0.03, 0.02))
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def weights_of(system: System, camera: Camera = FREE, shared_turn: float = 1e-6) -> Weights:
    return Weights(np.ones(len(system.links)), camera, np.ones((len(system.steps), 6)), shared_turn)


# Derivatives


@cache
def linearised(family, frames=12):
    """A system with everything in it, about maps that fit nothing exactly; with homographies, a lens among it."""
    rng = np.random.default_rng(3)
    world = flight(rng, frames, family, lane=frames // 2)
    lens = Lens(OUTLINE, 0.05, 0.01) if family is PROJECTIVE else None
    seen = [world.see(pair, rng, sigma=2.0) for pair in (*world.chain, *across(frames, frames // 2)[:3])]
    links = [fit_link(landmarks, OUTLINE, lens, family) for landmarks in seen]
    system = System.of(frames, OUTLINE, family, links, None, lens)
    weights = Weights(
        rng.uniform(0.3, 1.0, len(system.links)),
        STILL,
        rng.uniform(0.2, 1.0, (len(system.steps), 6)),
        0.02,
        np.array([[300.0, 50.0], [0.0, 200.0]]),
    )
    maps = world.truth @ exponential(0.03 * rng.normal(size=(frames, family.freedom)))
    if system.shares_error:
        common = exponential(0.05 * np.eye(family.freedom)[TURN][None])
        common[0, 2, :2] = [0.004, -0.002] if lens is not None else 0.0
        maps = np.concatenate([maps, common])
    return system, weights, np.ascontiguousarray(normalise(maps))


def everything(rows):
    """All that is to be small, as one vector."""
    return np.concatenate([some.ravel() for some in (rows.residual, rows.attitude, rows.motion, rows.shared)])


def moved(system, maps, node, direction, step):
    freedom = system.family.freedom
    increments = np.zeros((len(maps), freedom))
    increments[node, direction] = step
    if node == system.frames and direction in LENS:
        changed = maps.copy()
        changed[node, 2, LENS.index(direction)] += step
        return changed
    turned = np.ascontiguousarray(normalise(maps @ exponential(increments)))
    turned[system.frames :, 2, :2] = maps[system.frames :, 2, :2]
    return turned


def by_differences(system, weights, maps):
    """The derivatives (rows, nodes · f) of everything, and of the cost; of what is common, by what it means."""
    freedom = system.family.freedom
    columns, slopes = [], []
    for node in range(system.nodes):
        for direction in range(freedom):
            if node == system.frames and direction not in system.shared_directions:
                columns.append(np.zeros_like(columns[0]))
                slopes.append(0.0)
                continue
            ahead, back = (
                linearise(system, weights, moved(system, maps, node, direction, step)) for step in (STEP, -STEP)
            )
            columns.append((everything(ahead) - everything(back)) / (2 * STEP))
            slopes.append((ahead.cost - back.cost) / (2 * STEP))
    return np.array(columns).T, np.array(slopes)


def as_they_say(system, rows):
    """The same by what the rows say of themselves."""
    freedom = system.family.freedom
    parts = []
    for ends, by_i, by_j in (
        (system.ends, rows.by_i, rows.by_j),
        (np.column_stack(2 * [np.arange(system.frames)]), rows.by_frame, None),
        (system.ends[system.steps], rows.motion_by_i, rows.motion_by_j),
    ):
        jacobian = np.zeros((*by_i.shape[:2], system.nodes, freedom))
        for n, (i, j) in enumerate(ends):
            jacobian[n, :, i] += by_i[n]
            if by_j is not None:
                jacobian[n, :, j] += by_j[n]
                if system.shares_error and by_i is rows.by_i:
                    jacobian[n, :, -1, system.shared_directions] += rows.by_shared[n].T
        parts.append(jacobian.reshape(-1, system.nodes * freedom))
    if system.shares_error:
        shared = np.zeros((freedom, system.nodes, freedom))
        shared[:, -1, system.shared_directions] = rows.shared_root[:, system.shared_directions]
        parts.append(shared.reshape(freedom, -1))
    return np.concatenate(parts)


@each_family
def test_everything_moves_with_the_maps_as_it_says(family):
    system, weights, maps = linearised(family)
    expected, _ = by_differences(system, weights, maps)
    found = as_they_say(system, linearise(system, weights, maps))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("family", [TRANSLATION, PROJECTIVE], ids=lambda family: family.name)
def test_the_common_turn_of_the_chain_is_looked_for_where_maps_turn(family):
    system, weights, maps = linearised(family)
    assert system.shares_error is (family is not TRANSLATION)
    by_shared = linearise(system, weights, maps).by_shared
    assert (np.abs(by_shared[:, :, 0]).max(axis=1) > 0).tolist() == (system.is_step & system.shares_error).tolist()


@pytest.mark.parametrize("family", [TRANSLATION, PROJECTIVE], ids=lambda family: family.name)
def test_the_gradient_is_half_that_of_the_cost(family):
    system, weights, maps = linearised(family)
    _, expected = by_differences(system, weights, maps)
    _, _, gradient = normal_equations(system, linearise(system, weights, maps))
    np.testing.assert_allclose(2.0 * gradient.ravel(), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("family", [TRANSLATION, PROJECTIVE], ids=lambda family: family.name)
def test_the_information_is_the_square_of_the_derivatives(family):
    system, weights, maps = linearised(family)
    rows = linearise(system, weights, maps)
    diagonal, off_diagonal, _ = normal_equations(system, rows)
    freedom = family.freedom
    found = np.zeros((system.nodes, freedom, system.nodes, freedom))
    found[np.arange(system.nodes), :, np.arange(system.nodes)] = diagonal
    for (a, b), block in zip(np.concatenate([system.ends, system.shared_ends]), off_diagonal, strict=True):
        found[a, :, b], found[b, :, a] = block, block.T
    jacobian = as_they_say(system, rows)
    expected = (jacobian.T @ jacobian).reshape(found.shape)
    open_directions = np.diag(WEAK_DEVIATIONS[:freedom] ** -2.0)
    for n in range(system.frames):
        expected[n, :, n] += open_directions
    if system.shares_error:
        fixed = ~np.isin(np.arange(freedom), system.shared_directions)
        expected[-1, :, -1] += np.diag(np.diag(rows.shared_root) ** 2 * fixed)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(diagonal[:-1]).max())


# Solutions


@each_family
def test_an_exact_world_is_recovered(family):
    rng = np.random.default_rng(5)
    world = flight(rng, 18, family, lane=6)
    system = world.system(world.links([*world.chain, *across(18, 6)], rng, noise=0.0))
    solution = solve(system, weights_of(system), system.first_maps())
    assert world.off_px(solution.maps).max() < 1e-6


@pytest.mark.parametrize("family", [TRANSLATION, PROJECTIVE], ids=lambda family: family.name)
def test_an_exact_world_costs_nothing_where_it_is(family):
    rng = np.random.default_rng(5)
    world = flight(rng, 18, family, lane=6)
    system = world.system(world.links([*world.chain, *across(18, 6)], rng, noise=0.0))
    maps = np.concatenate([world.truth, np.eye(3)[None]]) if system.shares_error else world.truth
    assert linearise(system, weights_of(system), maps).cost < 1e-8


def test_an_exact_world_of_single_landmarks_across_is_recovered():
    # One landmark is an answer: it takes out the place that a chain with a wrong start would have.
    rng = np.random.default_rng(6)
    world = flight(rng, 18, SIMILARITY, lane=6)
    links = world.links(world.chain, rng, noise=0.0) + world.links(across(18, 6), rng, noise=0.0, count=1)
    system = world.system(links)
    assert world.off_px(solve(system, weights_of(system), system.first_maps()).maps).max() < 1e-6


def test_a_solution_does_not_depend_on_where_it_began():
    rng = np.random.default_rng(7)
    world = flight(rng, 18, lane=6)
    system = world.system(world.links([*world.chain, *across(18, 6)], rng))
    weights = weights_of(system, STILL)
    one = solve(system, weights, system.first_maps(), 1e-13)
    other = solve(system, weights, world.truth, 1e-13)
    i, j = np.triu_indices(18, 1)
    relative = [normalise(np.linalg.inv(some.maps[i]) @ some.maps[j]) for some in (one, other)]
    np.testing.assert_allclose(relative[0], relative[1], atol=1e-5)


def test_a_start_that_no_camera_makes_is_replaced():
    rng = np.random.default_rng(7)
    world = flight(rng, 10, lane=5)
    system = world.system(world.links([*world.chain, *across(10, 5)], rng, noise=0.0))
    for impossible in (-world.truth, world.truth * np.nan, world.truth @ np.diag([-1.0, 1.0, 1.0])):
        assert world.off_px(solve(system, weights_of(system), impossible).maps).max() < 1e-6


def test_a_common_turn_of_the_chain_is_found_where_loops_close():
    rng = np.random.default_rng(8)
    world = flight(rng, 30, SIMILARITY, lane=10, deviations=(0.0,) * 8)
    turn = 0.004
    chain = [
        fit_link(
            Landmarks(
                record.pair, record.points_i, (record.points_j - OUTLINE.centre) @ rotated(turn) + OUTLINE.centre
            ),
            OUTLINE,
            None,
            SIMILARITY,
        )
        for record in (world.see(pair, rng, noise=0.0) for pair in world.chain)
    ]
    system = world.system([*chain, *world.links(across(30, 10), rng, noise=0.0)])
    alone, together = (
        solve(system, weights_of(system, shared_turn=deviation), system.first_maps()) for deviation in (1e-6, 0.01)
    )
    assert world.error_px(together.maps) < 0.1 * world.error_px(alone.maps)
    assert abs(math.atan2(*together.node_maps[-1][[1, 0], 0])) == pytest.approx(turn, rel=0.05)


def rotated(angle):
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


# Covariance against simulation


RUNS = 160
LOOPS = [Pair(0, 9), Pair(2, 7)]


def simulated(family, camera, deviations, seed):
    """The covariances of centres that are predicted, and those of simulated mosaics, of some pairs (n, 2, 2)."""
    rng = np.random.default_rng(seed)
    pairs = np.array([[0, 4], [0, 9], [3, 8], [1, 6]])
    predicted, found = np.zeros((4, 2, 2)), np.zeros((4, 2, 2))
    fixed = flight(rng, 10, family, lane=5, deviations=deviations)
    for run in range(RUNS):
        # A camera of which something is known is another one each time; else it is always the same.
        world = fixed if camera is FREE else flight(rng, 10, family, lane=5, deviations=deviations)
        system = world.system(world.links([*world.chain, *LOOPS], rng, count=6))
        solution = solve(system, weights_of(system, camera), world.truth)
        for n, (i, j) in enumerate(pairs):
            off = centre_of(solution.maps, i, j) - centre_of(world.truth, i, j)
            found[n] += np.outer(off, off) / RUNS
        if camera is not FREE or run == 0:
            covariance = Covariance(OUTLINE, family, solution.maps, solution.factor, system.part)
            both = covariance.of_pairs(pairs).cov[:, 1]
            predicted += np.array([[[xx, xy], [xy, yy]] for xx, xy, yy in both]) / (1 if camera is FREE else RUNS)
    return predicted, found


def centre_of(maps, i, j):
    """Where the centre of j is seen in i, px."""
    relative = np.linalg.inv(maps[i]) @ maps[j]
    return relative[:2, 2] / relative[2, 2] * OUTLINE.unit


def assert_alike(predicted, found):
    # The eigenvalues of the one in terms of the other: two a pair, of pairs that have little in common.
    ratios = np.array([np.linalg.eigvals(np.linalg.solve(p, f)).real for p, f in zip(predicted, found, strict=True)])
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(1.0, abs=0.15)
    assert ratios.min() > 0.65
    assert ratios.max() < 1.5


STEADY_ENOUGH = (0.0, 0.0, 0.03, 0.02, 0.01, 0.01, 0.005, 0.005)


@pytest.mark.parametrize("family", [TRANSLATION, PROJECTIVE], ids=lambda family: family.name)
def test_the_covariance_of_places_is_that_of_simulated_mosaics(family):
    assert_alike(*simulated(family, FREE, STEADY_ENOUGH, 11))


def test_with_a_camera_that_is_known_it_is_that_of_simulated_cameras():
    # Attitude alone; motions follow from it and are not claimed besides.
    camera = Camera((0.02, 0.01, 0.005) + (math.inf,) * 4)
    assert_alike(*simulated(PROJECTIVE, camera, STEADY_ENOUGH, 12))


# Parts


def in_two(reference=None, **how):
    """Frames 0-9 and 10-15 that nothing joins."""
    rng = np.random.default_rng(9)
    world = flight(rng, 16, lane=5)
    pairs = [pair for pair in world.chain if pair.i != 9] + [pair for pair in across(16, 5) if pair.j < 10]
    links = world.links(pairs, rng, **how)
    return world, world.system(links, reference)


def test_parts_are_numbered_from_the_largest():
    world, system = in_two()
    assert system.part.tolist() == 10 * [0] + 6 * [1]
    assert world.system([]).part.tolist() == list(range(16))


def test_every_part_has_the_gauge_of_its_own_middle_frame():
    _, system = in_two()
    assert system.references.tolist() == [5, 13]


def test_a_part_is_seen_from_the_frame_that_is_asked_for():
    assert in_two(reference=11)[1].references.tolist() == [5, 11]


def test_each_of_two_parts_is_recovered_by_itself():
    world, system = in_two(noise=0.0)
    maps = solve(system, weights_of(system), system.first_maps()).maps
    inside = [pair for pair in world.overlapping() if system.part[pair.i] == system.part[pair.j]]
    assert world.off_px(maps, inside).max() < 1e-6


def test_a_part_does_not_move_when_the_other_one_is_measured_otherwise():
    world, system = in_two()
    other = world.links([Pair(10, 11)], np.random.default_rng(1), sigma=5.0)[0]
    links = [other if link.pair == other.pair else link for link in system.links]
    mosaics = []
    for some in (system, replace(system, links=tuple(links))):
        maps = solve(some, weights_of(some, STILL), some.first_maps(), 1e-14).maps
        mosaics.append(np.linalg.inv(maps[5]) @ maps[:10])
    np.testing.assert_allclose(mosaics[0], mosaics[1], atol=1e-7)


def test_frames_without_any_link_stay_level():
    world = flight(np.random.default_rng(1), 5)
    system = world.system([])
    np.testing.assert_allclose(
        solve(system, weights_of(system), system.first_maps()).maps, np.tile(np.eye(3), (5, 1, 1))
    )


# What is refused


def test_too_few_frames_are_refused():
    with pytest.raises(UsageError, match="at least 2 frames"):
        System.of(1, OUTLINE, PROJECTIVE, [])


def test_a_reference_that_is_no_frame_is_refused():
    with pytest.raises(UsageError, match="0 to 4"):
        System.of(5, OUTLINE, PROJECTIVE, [], reference=5)


def test_a_pair_that_is_given_twice_is_refused():
    world = flight(np.random.default_rng(1), 5)
    links = world.links([Pair(0, 1), Pair(0, 1)], np.random.default_rng(1))
    with pytest.raises(PairError, match=r"\(0, 1\) is given twice"):
        world.system(links)


def test_a_link_of_a_frame_that_is_not_there_is_refused():
    world = flight(np.random.default_rng(1), 6)
    with pytest.raises(PairError, match="0 to 4"):
        System.of(5, OUTLINE, PROJECTIVE, world.links([Pair(4, 5)], np.random.default_rng(1)))
