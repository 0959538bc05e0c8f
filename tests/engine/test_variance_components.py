"""What is learned: how noisy links really are, and how still the camera is held."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from smalti.engine.camera_priors import KINDS, Camera
from smalti.engine.estimate import begin
from smalti.engine.linearisation import Weights, linearise
from smalti.engine.links import fit_link
from smalti.engine.normal_equations import fix_gauge, normal_equations
from smalti.engine.robust_estimate import estimate
from smalti.engine.solution import solve
from smalti.engine.variance_components import (
    CHAIN,
    CHAIN_INFLATION,
    MATCHER,
    PERSON,
    Check,
    NoiseModel,
    landmark_noise,
    learn_robust_weights,
)
from smalti.geometry.homographies import FAMILIES, PROJECTIVE, SIMILARITY, TRANSLATION, apply_map, exponential
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, STEADY, Flight, across, at_places, flight

FRAMES, LANE = 36, 12
SIGMA = 0.5
FREE = Camera((math.inf,) * 7)
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def mean_of(seeds, number):
    """The geometric mean over seeds."""
    return float(np.exp(np.mean([np.log(number(np.random.default_rng(seed))) for seed in seeds])))


# The noise of links


@pytest.mark.parametrize(
    ("family", "factor"), list(zip(FAMILIES.values(), [0.3, 1.0, 3.0, 0.3, 3.0], strict=True)), ids=FAMILIES
)
def test_the_scatter_of_landmarks_tells_how_much_they_err(family, factor):
    rng = np.random.default_rng(1)
    world = flight(rng, FRAMES, family, lane=LANE)
    system = world.system(world.links(world.chain, rng, sigma=SIGMA, noise=factor * SIGMA))
    assert landmark_noise(system) == pytest.approx(factor, rel=0.1)


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_a_chain_that_states_its_noise_wrongly_is_found_out(factor):
    def learned(rng):
        world = flight(rng, FRAMES, lane=LANE)
        triangles = [Pair(n, n + 2) for n in range(FRAMES - 2)]
        links = world.links([*world.chain, *triangles], rng, sigma=SIGMA, noise=factor * SIGMA)
        return begin(world.system(links)).local_noise

    assert mean_of(range(3), learned) == pytest.approx(factor, rel=0.25)


def test_landmarks_that_were_read_off_a_map_do_not_tell_its_noise_but_triangles_do():
    def learned(rng):
        world = flight(rng, FRAMES, lane=LANE)
        links = world.links([*world.chain, *(Pair(n, n + 2) for n in range(FRAMES - 2))], rng, sigma=SIGMA)
        # As a dense registration gives them: all on the map of their link but for rounding; it errs as much as ever.
        on_map = [
            apply_map(link.i_from_j, link.points_j) + rng.normal(0.0, 1e-13, link.points_j.shape) for link in links
        ]
        read_off = [replace(link, points_i=points) for link, points in zip(links, on_map, strict=True)]
        assert landmark_noise(world.system(read_off)) == 1.0
        # A few that do scatter are not outvoted by those that cannot.
        assert landmark_noise(world.system([*links[:10], *read_off[10:]])) == pytest.approx(1.0, rel=0.3)
        return begin(world.system(read_off)).local_noise

    assert mean_of(range(3), learned) == pytest.approx(1.0, rel=0.25)


def test_before_any_loop_a_chain_counts_as_noisier_than_neighbours_say():
    chain = begun(1)[1]
    assert chain.noise_model.noise[CHAIN] >= CHAIN_INFLATION * chain.local_noise


@cache
def begun(seed):
    rng = np.random.default_rng(seed)
    world = flight(rng, FRAMES, lane=LANE)
    return world, begin(world.system(world.links(world.chain, rng)))


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_the_noise_of_a_matcher_is_found_from_its_links(factor):
    def learned(rng):
        seed = int(rng.integers(3))
        world, chain = begun(seed)
        beside = [pair for pair in across(FRAMES, LANE) if pair.i % 2]
        near = [Pair(n, n + 2) for n in range(0, FRAMES - 2, 2)]
        return estimate(chain, world.links([*beside, *near], rng, noise=factor * SIGMA)).noise_model.noise[MATCHER]

    assert mean_of(range(3), learned) == pytest.approx(factor, rel=0.35)


def test_a_person_has_a_noise_of_their_own():
    world, chain = begun(1)
    rng = np.random.default_rng(2)
    pairs = across(FRAMES, LANE)
    careful, careless = pairs[::2], pairs[1::2]
    loops = [*world.links(careful, rng), *world.links(careless, rng, noise=8 * SIGMA)]
    noise = estimate(chain, loops, set(careless)).noise_model.noise
    assert noise[PERSON] > 3.0
    assert noise[MATCHER] < 2.0


def test_a_chain_whose_pairs_err_as_a_whole_is_found_noisier_as_loops_close():
    # Landmarks scatter little about the map of their pair, and the map is wrong: relief, or the rest of a lens.
    rng = np.random.default_rng(3)
    world = flight(rng, FRAMES, lane=LANE)
    links = []
    for pair in world.chain:
        record = world.see(pair, rng, noise=0.1)
        wrong = exponential(rng.normal(size=(1, 4)) * [0.02, 0.02, 0.01, 0.01])[0]
        moved = apply_map(wrong, (record.points_i - OUTLINE.centre) / OUTLINE.unit) * OUTLINE.unit + OUTLINE.centre
        links.append(fit_link(Landmarks(pair, moved, record.points_j, SIGMA), OUTLINE))
    chain = begin(world.system(links))
    after = estimate(chain, world.links(across(FRAMES, LANE)[::3], rng, noise=0.1))
    assert chain.local_noise < 0.5
    assert after.noise_model.noise[CHAIN] > 2.0 * chain.noise_model.noise[CHAIN]


def by_method(links, names):
    return [replace(link, method=name) for link, name in zip(links, names, strict=True)]


def methods_of_triangles(rng, factor, names):
    """A chain with triangles whose links are of these methods in turns; those of the last one err by a factor."""
    world = flight(rng, FRAMES, lane=LANE)
    pairs = sorted([*world.chain, *(Pair(n, n + 2) for n in range(FRAMES - 2))])
    used = [names[n % len(names)] for n in range(len(pairs))]
    wrong = [name == names[-1] for name in used]
    links = [
        world.links([pair], rng, sigma=SIGMA, noise=(factor if is_wrong else 1.0) * SIGMA)[0]
        for pair, is_wrong in zip(pairs, wrong, strict=True)
    ]
    # All are on the map of their own link, so that only triangles tell.
    links = [replace(link, points_i=apply_map(link.i_from_j, link.points_j)) for link in links]
    return world, by_method(links, used)


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
def test_a_registration_method_that_states_its_noise_otherwise_than_the_first_is_found_out(factor):
    def learned(rng):
        world, links = methods_of_triangles(rng, factor, ["a", "a", "b"])
        return begin(world.system(links)).noise_model.factor_of("b")

    assert mean_of(range(3), learned) == pytest.approx(factor, rel=0.3)


def test_a_method_without_evidence_counts_as_noisy_as_its_landmarks_scatter():
    rng = np.random.default_rng(1)
    world = flight(rng, FRAMES, lane=LANE)
    links = [*world.links(world.chain[:-1], rng, sigma=SIGMA), *world.links(world.chain[-1:], rng, sigma=SIGMA)]
    found = begin(world.system(by_method(links, ["a"] * (len(links) - 1) + ["b"]))).noise_model
    assert found.reference_method == "a"
    scatter = [landmark_noise(world.system(by_method(links[-2:], ["a", "b"])), name) for name in "ab"]
    assert found.factor_of("b") == pytest.approx(scatter[1] / landmark_noise(world.system(links[:-1])), rel=0.05)


def test_loops_tell_the_noise_of_a_method_that_the_chain_did_not_use():
    def learned(rng):
        world = flight(rng, FRAMES, lane=LANE)
        triangles = [Pair(n, n + 2) for n in range(FRAMES - 2)]
        chain = world.links([*world.chain, *triangles], rng, sigma=SIGMA, noise=SIGMA)
        loops = across(FRAMES, LANE)
        noisy = [
            world.links([pair], rng, sigma=SIGMA, noise=(1.0 + 3.0 * (n % 2)) * SIGMA)[0]
            for n, pair in enumerate(loops)
        ]
        noisy = [replace(link, points_i=apply_map(link.i_from_j, link.points_j)) for link in noisy]
        after = estimate(
            begin(world.system(by_method(chain, ["a"] * len(chain)))),
            by_method(noisy, ["ab"[n % 2] for n in range(len(loops))]),
        )
        return after.noise_model.factor_of("b")

    assert 2.0 < mean_of(range(3), learned) < 6.0


@pytest.mark.parametrize("name", ["a", ""])
def test_with_one_method_nothing_changes_to_the_last_bit(name):
    rng = np.random.default_rng(2)
    world = flight(rng, FRAMES, lane=LANE)
    chain, loops = world.links(world.chain, rng, sigma=SIGMA), world.links(across(FRAMES, LANE)[::3], rng, sigma=SIGMA)
    known, named = (
        estimate(begin(world.system(by_method(chain, [one] * len(chain)))), by_method(loops, [one] * len(loops)))
        for one in ("", name)
    )
    assert known.solution.maps.tobytes() == named.solution.maps.tobytes()
    assert known.noise_model.noise == named.noise_model.noise


def test_a_link_that_errs_by_far_keeps_little_of_its_weight():
    world, _ = begun(1)
    rng = np.random.default_rng(4)
    pairs = [*world.chain, *across(FRAMES, LANE)]
    wrong = pairs[-5]
    links = [world.links([pair], rng, by=(5.0, 0.0) if pair == wrong else (0.0, 0.0))[0] for pair in pairs]
    system = world.system(links)
    nothing = NoiseModel.initial(system)
    check = Check(solve(system, nothing.weights(np.zeros(len(links), dtype=int), system.links), system.first_maps()))
    robust_weights = learn_robust_weights(check, nothing).robust_weights
    at = system.place_of[wrong]
    assert robust_weights[at] < 0.5
    assert np.median(robust_weights) > 0.9


# What links say of each other


@cache
def checked(family=SIMILARITY, frames=16):
    rng = np.random.default_rng(5)
    world = flight(rng, frames, family, lane=frames // 2)
    links = world.links([*world.chain, *across(frames, frames // 2)[::2]], rng, sigma=0.1)
    system = world.system(links)
    weights = Weights(np.ones(len(links)), FREE, np.ones((frames - 1, 6)), 1e-6)
    return world, Check(solve(system, weights, world.truth))


@pytest.mark.parametrize("family", [TRANSLATION, SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
def test_what_is_checked_is_what_is_measured_beyond_what_is_needed(family):
    _, check = checked(family)
    measured = check.solution.system.ranks.sum()
    needed = family.freedom * (check.solution.system.frames - 1)
    assert check.redundancy.sum() == pytest.approx(measured - needed, rel=1e-3)


def test_a_link_that_nothing_checks_contradicts_nothing():
    world, _ = checked()
    system = world.system(world.links(world.chain, np.random.default_rng(1)))
    weights = Weights(np.ones(len(system.links)), FREE, np.ones((len(system.steps), 6)), 1e-6)
    check = Check(solve(system, weights, world.truth))
    np.testing.assert_allclose(check.chi2, 0.0, atol=1e-6)
    np.testing.assert_allclose(check.redundancy, 0.0, atol=1e-3)


@pytest.mark.parametrize("family", [TRANSLATION, SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
def test_how_a_link_contradicts_the_others_is_its_residual_where_it_is_left_out(family):
    world, check = checked(family)
    system, weights = check.solution.system, check.solution.weights
    for n in (3, len(system.links) - 2):
        left = world.system([link for link in system.links if link is not system.links[n]])
        rest = Weights(np.ones(len(left.links)), FREE, np.ones((len(left.steps), 6)), 1e-6)
        without = solve(left, rest, check.solution.maps)
        assert check.chi2[n] == pytest.approx(surprise_of(system, weights, n, without), rel=0.03)


def surprise_of(system, weights, n, without):
    """χ² of a link's residual by the covariance of a solution that does not know it, densely."""
    rows = linearise(system, weights, np.concatenate([without.maps, np.eye(3)[None]])[: system.nodes])
    diagonal, off_diagonal, _ = normal_equations(without.system, without.rows)
    fix_gauge(without.system, diagonal)
    nodes, freedom = diagonal.shape[:2]
    information = np.zeros((nodes, freedom, nodes, freedom))
    information[np.arange(nodes), :, np.arange(nodes)] = diagonal
    for (a, b), block in zip(
        np.concatenate([without.system.ends, without.system.shared_ends]), off_diagonal, strict=True
    ):
        information[a, :, b], information[b, :, a] = block, block.T
    covariance = np.linalg.inv(information.reshape(nodes * freedom, -1))
    i, j = system.ends[n]
    jacobian = np.zeros((8, nodes, freedom))
    jacobian[:, i], jacobian[:, j] = rows.by_i[n], rows.by_j[n]
    jacobian = jacobian.reshape(8, -1)
    foretold = np.eye(8) + jacobian @ covariance @ jacobian.T
    # Directions in which the family cannot move are no part of what is checked; what is left of them is no surprise.
    return float(rows.residual[n] @ np.linalg.solve(foretold, rows.residual[n]))


# The camera


def stage(rng):
    """A microscope's: moved, never turned."""
    return flight(rng, FRAMES, lane=LANE, deviations=(0.0,) * 8)


def turning(rng):
    """One that turns by ten degrees from frame to frame."""
    world = flight(rng, FRAMES, lane=LANE, step=0.25)
    turns = np.zeros((FRAMES, 3))
    turns[:, 2] = np.cumsum(rng.normal(0.17, 0.05, FRAMES))
    return Flight(PROJECTIVE, world.truth @ exponential(turns))


def diving(rng):
    """One that comes down to a third of its height."""
    scale = np.linspace(0.5, -0.5, FRAMES)
    places = np.column_stack([0.4 * np.cumsum(np.exp(scale)), np.zeros(FRAMES)])
    scales = np.zeros((FRAMES, 4))
    scales[:, 3] = scale
    return Flight(PROJECTIVE, at_places(rng, places, PROJECTIVE, STEADY) @ exponential(scales))


def panning(rng):
    """One that looks around from one place, by two degrees from frame to frame, with a view of sixty degrees."""
    angles = np.radians(2.0) * (np.arange(FRAMES // 2) - FRAMES / 4)
    focal = np.diag([1.7, 1.7, 1.0])
    turned = np.array([[[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]] for a in angles])
    maps = focal @ turned @ np.linalg.inv(focal)
    return Flight(PROJECTIVE, maps / maps[:, 2:, 2:])


def chain_of(world, rng, sigma=SIGMA, **more):
    return begin(world.system(world.links(world.chain, rng, sigma=sigma)), **more)


def test_of_a_stage_it_is_learned_that_it_neither_turns_nor_tilts():
    rng = np.random.default_rng(6)
    deviations = np.array(chain_of(stage(rng), rng, 0.1).noise_model.camera.deviations)
    assert (deviations < 0.002).all()


def swaying(rng, frames=240):
    """A hand that tilts slowly, at video rate: hardly anything changes from a frame to the next."""
    places = np.column_stack([np.arange(frames) * 0.02, np.zeros(frames)])
    sway = np.zeros((frames, 8))
    sway[:, 6:] = 0.02 * np.sin(np.arange(frames)[:, None] / [15.0, 19.0] + rng.uniform(0.0, 6.0, 2))
    truth = at_places(rng, places, PROJECTIVE, (0.0,) * 8) @ exponential(sway)
    return Flight(PROJECTIVE, truth / truth[:, 2:, 2:])


def test_of_a_video_it_is_not_taken_that_it_is_level_because_it_hardly_moves_from_frame_to_frame():
    def learned(rng):
        world = swaying(rng)
        ties = [Pair(n, n + span) for span in (8, 16, 32) for n in range(0, world.frames - span, span // 2)]
        chain = begin(world.system(world.links([*world.chain, *ties], rng, sigma=SIGMA)))
        return dict(zip(KINDS, chain.noise_model.camera.deviations, strict=True))["level perspective"]

    assert mean_of(range(3), learned) == pytest.approx(0.02 / math.sqrt(2.0), rel=0.3)


def test_of_a_drone_it_is_learned_how_level_it_is_held():
    def perspective(rng):
        return chain_of(flight(rng, 48, lane=LANE), rng).noise_model.camera.deviations[2]

    assert mean_of(range(3), perspective) == pytest.approx(0.01, rel=0.4)


@pytest.mark.parametrize(
    ("kind", "camera", "weak"),
    [("turn", turning, 0.04), ("level scale", diving, 0.2), ("level perspective", panning, 0.02)],
)
def test_of_a_camera_that_moves_so_nothing_much_is_claimed(kind, camera, weak):
    rng = np.random.default_rng(7)
    assert chain_of(camera(rng), rng).noise_model.camera.deviations[KINDS.index(kind)] > weak


@pytest.mark.parametrize(("camera", "sigma"), [(turning, 0.15), (diving, 0.05), (panning, 0.05)])
def test_a_camera_that_is_not_still_is_not_distorted_by_what_is_learned_of_it(camera, sigma):
    errors = np.zeros(2)
    for seed in range(2):
        for n, learns in enumerate((True, False)):
            rng = np.random.default_rng(seed)
            world = camera(rng)
            errors[n] += world.error_px(chain_of(world, rng, sigma, learns_camera=learns).solution.maps) ** 2
    assert errors[0] < 1.1**2 * errors[1]


@pytest.mark.parametrize(("camera", "number", "kept_up"), [(turning, 0, 0.17), (panning, 4, 0.0205)])
def test_a_motion_that_is_kept_up_is_the_usual_one(camera, number, kept_up):
    rng = np.random.default_rng(1)
    usual = chain_of(camera(rng), rng, 0.1).noise_model.camera.mean_motion
    assert abs(usual[number]) == pytest.approx(kept_up, rel=0.15)


@pytest.mark.parametrize("seed", range(2))
def test_a_camera_that_turns_to_and_fro_has_no_usual_motion(seed):
    rng = np.random.default_rng(seed)
    assert chain_of(flight(rng, FRAMES, lane=LANE), rng).noise_model.camera.mean_motion == (0.0,) * 6


def test_a_still_camera_makes_a_chain_better():
    errors = np.zeros(2)
    for seed in range(3):
        for n, learns in enumerate((True, False)):
            rng = np.random.default_rng(seed)
            world = stage(rng)
            errors[n] += world.error_px(chain_of(world, rng, learns_camera=learns).solution.maps) ** 2
    assert errors[0] < 0.5**2 * errors[1]


def test_of_few_frames_nothing_is_learned_of_the_camera():
    rng = np.random.default_rng(1)
    world = flight(rng, 6)
    assert begin(world.system(world.links(world.chain, rng))).noise_model.camera.deviations == Camera().deviations
