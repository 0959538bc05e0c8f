"""What is known of a camera that hardly turns, and of one that does."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.components import LINEAR_FREEDOM, Observations, estimate_components, reweigh
from smalti.adjustment.link import fit_link, stacked
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.motion import FEWEST_LINKS, Camera, calm, learned_variance
from smalti.adjustment.refinement import refine
from smalti.geometry.affine import compose, invert
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE

SHOWN = np.array([[x, y] for x in (10.0, 35.0, 60.0) for y in (5.0, 50.0, 95.0)])
NOISE = 0.5
WEIGHT = np.diag([1.0, 1.0, 0.0])


def path(frames, turns):
    """Maps (N, 2, 3) of a camera that goes to and fro over the same ground, L being so far from I at every step."""
    maps = [np.eye(2, 3)]
    for n in range(frames - 1):
        step = np.column_stack([np.eye(2) + turns[n], [25.0 if n < frames // 2 else -25.0, 8.0]])
        maps.append(compose(maps[-1], step))
    return np.array(maps)


def measured(maps, pairs, rng):
    """Links of these pairs, with noise."""
    links = []
    for i, j in pairs:
        exact = SHOWN @ compose(invert(maps[i]), maps[j])[:, :2].T + compose(invert(maps[i]), maps[j])[:, 2]
        noisy = exact + rng.normal(0.0, NOISE, size=exact.shape)
        links.append(fit_link(Landmarks(Pair(i, j), noisy, SHOWN, np.full(len(SHOWN), NOISE))))
    return links


def steps(frames):
    return [(n, n + 1) for n in range(frames - 1)]


def turning(frames, deviation, rng):
    return rng.normal(0.0, deviation, size=(frames - 1, 2, 2))


def drift_px(links, maps):
    """RMS distance, px, by which a chain misplaces frames in the first one's pixels."""
    chained = [np.eye(2, 3)]
    for link in links:
        chained.append(compose(chained[-1], link.i_from_j))
    return float(np.sqrt(np.mean((np.array(chained)[:, :, 2] - maps[:, :, 2]) ** 2)))


def of_worlds(frames, turns, seeds=range(20)):
    """The drift of chains as measured, and as calmed: RMS over worlds."""
    squares = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        maps = path(frames, turns(rng))
        links = measured(maps, steps(frames), rng)
        squares.append([drift_px(some, maps) ** 2 for some in (links, Camera.of(links).calmed().values())])
    return np.sqrt(np.mean(squares, axis=0))


def test_a_calm_link_is_the_least_squares_of_what_was_measured_and_what_is_known():
    rng = np.random.default_rng(1)
    links = measured(path(4, turning(4, 0.02, rng)), steps(4), rng)
    turn = 0.01
    maps, roots = calm(*stacked(links), turn)
    for link, found, root in zip(links, maps, roots, strict=True):
        moments = link.root @ link.root.T
        expected = moments + WEIGHT / turn**2
        np.testing.assert_allclose(root @ root.T, expected, rtol=1e-9)
        # The gradient of |(M - T) R|² + |(M - I) W|²/τ² vanishes.
        gradient = (found - link.i_from_j) @ moments + (found - np.eye(2, 3)) @ WEIGHT / turn**2
        np.testing.assert_allclose(gradient, 0.0, atol=1e-6 * np.abs(link.i_from_j @ moments).max())


def test_a_camera_that_only_moves_drifts_far_less():
    raw, calmed = of_worlds(150, lambda _: np.zeros((149, 2, 2)))
    assert calmed < 0.4 * raw


@pytest.mark.parametrize("deviation", [0.003, 0.02])
def test_how_much_a_camera_turns_is_learned(deviation):
    rng = np.random.default_rng(3)
    links = measured(path(400, turning(400, deviation, rng)), steps(400), rng)
    assert Camera.of(links).turn == pytest.approx(deviation, rel=0.25)


def test_links_of_a_camera_that_turns_stay_as_they_were_measured():
    rng = np.random.default_rng(4)
    links = measured(path(100, turning(100, 0.05, rng)), steps(100), rng)
    camera = Camera.of(links)
    assert camera.calmed_by(1.0, 1.0) < 0.02
    shown = np.column_stack([SHOWN, np.ones(len(SHOWN))]).T
    calmed = camera.calmed()
    moved = np.array([(calmed[link.pair].i_from_j - link.i_from_j) @ shown for link in links])
    assert np.sqrt(np.mean(moved**2)) < 0.1 * NOISE


@pytest.mark.parametrize("rate", [0.0003, 0.001, 0.003, 0.01])
def test_a_camera_that_turns_slowly_and_always_the_same_way_loses_nothing_by_it(rate):
    always = np.array([[0.0, -rate], [rate, 0.0]])
    raw, calmed = of_worlds(200, lambda _: np.broadcast_to(always, (199, 2, 2)))
    assert calmed < 1.1 * raw


@pytest.mark.parametrize("rate", [0.001, 0.003, 0.01])
def test_nor_does_one_that_sways(rate):
    sway = rate * np.sin(np.arange(199) / 199 * 4.0 * np.pi)[:, None, None] * np.array([[0.0, -1.0], [1.0, 0.0]])
    raw, calmed = of_worlds(200, lambda _: sway)
    assert calmed < 1.1 * raw


def test_what_is_learned_does_not_depend_on_links_that_hardly_measure_it():
    # Two tiles that share a rim: nobody can tell how the one is turned against the other.
    rng = np.random.default_rng(5)
    beyond, noise = 0.01 * rng.normal(size=(60, 2, 2)), np.full((60, 2), 1e-4)
    beyond[10], noise[10] = 3.0, 9.0
    assert learned_variance(beyond, noise) < 1e-4


def test_of_a_short_chain_nothing_is_learned():
    rng = np.random.default_rng(6)
    links = measured(path(40, np.zeros((39, 2, 2))), [*steps(FEWEST_LINKS), *((n, n + 2) for n in range(20))], rng)
    assert Camera.of(links) is None
    assert Camera.of(links + measured(path(40, np.zeros((39, 2, 2))), [(30, 31)], rng)) is not None


# As loops close


def closed(seed, deviation, frames=80, loops=12):
    """A chain that goes to and fro, its loops, and what is known of the camera."""
    rng = np.random.default_rng(seed)
    maps = path(frames, turning(frames, deviation, rng))
    chain = measured(maps, steps(frames), rng)
    there = np.linspace(1, frames // 2 - 4, loops).astype(int)
    across = measured(maps, [(int(n), frames - 1 - int(n)) for n in there], rng)
    camera = Camera.of(chain)
    return Adjustment(frames, OUTLINE, [*camera.calmed().values(), *across]), camera


def groups_of(adjustment):
    return np.where(np.diff(adjustment.ends)[:, 0] == 1, 0, 1)


def covariance_of(adjustment):
    return LocalCovariance(adjustment, refine(adjustment).mosaic_from_frame)


def follow(adjustment, camera, steps=12):
    factors, groups = np.ones(3), groups_of(adjustment)
    for _ in range(steps):
        found = estimate_components(covariance_of(adjustment), groups, factors, camera=camera).factors
        adjustment = reweigh(adjustment, groups, factors, found, camera.calmed(found[0], found[-1]))
        factors = found
    return factors


def test_taken_apart_a_calm_link_has_the_residuals_and_the_redundancy_of_both_its_parts():
    adjustment, camera = closed(1, 0.0)
    covariance, groups, assumed = covariance_of(adjustment), groups_of(adjustment), np.ones(3)
    whole = Observations.of(adjustment, groups)
    squares, redundancy = whole.check(covariance)
    apart = whole.taken_apart(adjustment, camera, assumed)
    both_squares, both_redundancy = apart.check(covariance)
    chain, count = groups == 0, len(groups)
    assert (apart.group[count:] == 2).all()
    np.testing.assert_array_equal(both_squares[:count][~chain], squares[~chain])
    # What nothing can mend, the distance between what was measured and what is known, is in the parts alone.
    total = both_squares[:count][chain] + both_squares[count:]
    assert (total >= squares[chain] - 1e-9).all()
    total = both_redundancy[:count][chain] + both_redundancy[count:]
    np.testing.assert_allclose(total, redundancy[chain] + LINEAR_FREEDOM, rtol=1e-6)


def test_of_a_camera_that_never_turns_loops_tell_so_and_the_noise_is_what_it_is():
    found = np.exp(np.mean([np.log(follow(*closed(seed, 0.0))) for seed in range(3)], axis=0))
    assert found[0] == pytest.approx(1.0, rel=0.1)
    assert found[2] < 0.3


def test_of_a_camera_that_turns_loops_leave_it_at_that():
    deviation = 0.02
    worlds = [closed(seed, deviation) for seed in range(3)]
    found = np.mean([camera.turn * follow(adjustment, camera)[2] for adjustment, camera in worlds])
    assert found == pytest.approx(deviation, rel=0.25)


def test_a_held_link_is_left_out():
    adjustment, camera = closed(2, 0.0)
    without = adjustment.remove(Pair(20, 21))
    apart = Observations.of(without, groups_of(without)).taken_apart(without, camera, np.ones(3))
    assert len(apart.ends) == len(without.links) + len(camera.links) - 1
    assert [20, 21] not in apart.ends.tolist()


# What bends without anyone noticing


def bent(seed, bend, chain_noise=1.0, frames=40):
    """A chain whose links and triangles agree that it turns, and loops that know that it does not."""
    rng = np.random.default_rng(seed)
    bending = np.broadcast_to(bend * np.array([[0.0, -1.0], [1.0, 0.0]]), (frames - 1, 2, 2))
    true, wrong = path(frames, np.zeros((frames - 1, 2, 2))), path(frames, bending)
    near = measured(wrong, [*steps(frames), *((n, n + 2) for n in range(frames - 2))], rng)
    near = [link.changed(link.i_from_j, chain_noise * link.root) for link in near]
    across = measured(true, [(n, frames - 1 - n) for n in range(14, 18)], rng)
    return Adjustment(frames, OUTLINE, [*near, *across])


def settle(adjustment, alike):
    groups = np.where(np.diff(adjustment.ends)[:, 0] <= 2, 0, 1)
    factors = np.ones(2)
    for _ in range(8):
        found = estimate_components(covariance_of(adjustment), groups, factors, alike=alike).factors
        adjustment, factors = reweigh(adjustment, groups, factors, found), found
    return factors


def test_what_loops_contradict_is_not_put_down_to_them_alone():
    chain, loops = settle(bent(1, 0.02), (0, 1))
    apart = settle(bent(1, 0.02), None)
    assert apart[1] > 2.0 * apart[0]
    assert chain == loops
    assert apart[0] < chain < apart[1]


def test_links_that_are_alike_may_still_be_better_than_others():
    chain, loops = settle(bent(1, 0.0, chain_noise=3.0), (0, 1))
    assert chain > 2.0 * loops
    chain, loops = settle(bent(1, 0.0, chain_noise=0.3), (0, 1))
    assert chain < 0.5 * loops
