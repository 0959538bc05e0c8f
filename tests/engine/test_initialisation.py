"""Where the fit begins: maps that links agree on linearly, however far the chain has drifted."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.engine.camera_priors import Camera
from smalti.engine.initialisation import first_guess
from smalti.engine.linearisation import Weights, linearise
from smalti.engine.solution import solve
from smalti.geometry.homographies import FAMILIES, SIMILARITY, exponential, normalise
from tests.worlds import across, flight

TURNING = {name: family for name, family in FAMILIES.items() if family.freedom > 2}
"""Translations do not turn: their chains do not drift so."""

each_family = pytest.mark.parametrize("family", TURNING.values(), ids=TURNING)


def drifted(family, frames=40, turn=0.2):
    """A world with loops, and maps that a chain would have that turns by so much too much from frame to frame."""
    rng = np.random.default_rng(4)
    world = flight(rng, frames, family, lane=frames // 2)
    links = world.links([*world.chain, *across(frames, frames // 2)], rng, noise=0.0)
    system = world.system(links)
    wrong = [world.truth[0]]
    step = exponential(np.array([[0.0, 0.0, turn]]))[0]
    for pair in world.chain:
        wrong.append(normalise(wrong[-1] @ world.i_from_j(pair) @ step))
    weights = Weights(np.ones(len(system.links)), Camera(), np.ones((len(system.steps), 6)), 1e-3)
    return world, system, weights, np.array(wrong)


def cost(system, weights, maps):
    maps = np.concatenate([maps[: system.frames], np.eye(3)[None]])[: system.nodes]
    rows = linearise(system, weights, np.ascontiguousarray(maps))
    return np.inf if rows is None else rows.cost


@each_family
def test_what_links_agree_on_is_nearer_than_a_chain_that_drifted(family):
    _, system, weights, wrong = drifted(family)
    guess = first_guess(system, weights, system, wrong)
    assert np.isfinite(guess).all()
    assert cost(system, weights, guess) <= 0.1 * cost(system, weights, wrong)


def test_links_that_are_exact_similarities_are_agreed_on_exactly():
    world, system, weights, wrong = drifted(SIMILARITY)
    guess = first_guess(system, weights, system, wrong)
    assert world.error_px(guess[: system.frames]) < 1e-3


def test_from_there_the_fit_takes_few_steps():
    _, system, weights, wrong = drifted(SIMILARITY)
    guess = first_guess(system, weights, system, wrong)
    near, far = (solve(system, weights, start) for start in (guess, wrong))
    assert near.converged
    assert near.steps <= 5
    assert near.rows.cost <= 1.001 * far.rows.cost


def test_maps_that_links_agree_with_are_left_as_they_are():
    world, system, weights, _ = drifted(SIMILARITY)
    maps = solve(system, weights, world.truth).node_maps
    assert first_guess(system, weights, system, maps) is maps
