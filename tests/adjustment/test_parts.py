"""Which parts links leave connected, which links cannot be spared, and links that count with a weight."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import fit_link
from smalti.geometry.family import FAMILIES
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, random_problem

POINTS = OUTLINE.corners


def linked(frames, pairs):
    """Frames a tenth of a frame apart, linked exactly."""
    links = [fit_link(Landmarks(Pair(i, j), POINTS + np.array([12.0 * (j - i), 0.0]), POINTS)) for i, j in pairs]
    return Adjustment(frames, OUTLINE, links)


def pairs_of(*pairs):
    return [Pair(i, j) for i, j in pairs]


def as_sets(part):
    return {frozenset(np.flatnonzero(part == number).tolist()) for number in set(part.tolist())}


def reachable(frames, edges, start):
    seen, waiting = {start}, [start]
    while waiting:
        at = waiting.pop()
        for i, j in edges:
            for here, there in ((i, j), (j, i)):
                if here == at and there not in seen:
                    seen.add(there)
                    waiting.append(there)
    return seen


def test_without_no_pair_all_frames_are_one_part():
    assert as_sets(linked(4, [(0, 1), (1, 2), (2, 3)]).parts_without([])) == {frozenset(range(4))}


def test_a_chain_without_one_of_its_links_is_two_parts():
    part = linked(5, [(0, 1), (1, 2), (2, 3), (3, 4)]).parts_without(pairs_of((1, 2)))
    assert as_sets(part) == {frozenset({0, 1}), frozenset({2, 3, 4})}


def test_a_ring_without_one_of_its_links_is_one_part():
    part = linked(4, [(0, 1), (1, 2), (2, 3), (0, 3)]).parts_without(pairs_of((0, 3)))
    assert as_sets(part) == {frozenset(range(4))}


def test_without_all_pairs_every_frame_is_its_own_part():
    adjustment = linked(3, [(0, 1), (1, 2)])
    part = adjustment.parts_without(adjustment.links)
    assert len(set(part.tolist())) == 3


def test_a_pair_that_is_not_linked_changes_no_part():
    assert as_sets(linked(3, [(0, 1), (1, 2)]).parts_without(pairs_of((0, 2)))) == {frozenset(range(3))}


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_what_can_be_reached(seed):
    rng = np.random.default_rng(seed)
    frames = 8
    edges = [(n, n + 1) for n in range(frames - 1)] + [(0, 4), (2, 7)]
    left_out = [edges[n] for n in rng.choice(len(edges), 4, replace=False)]
    part = linked(frames, edges).parts_without(pairs_of(*left_out))
    kept = [edge for edge in edges if edge not in left_out]
    for frame in range(frames):
        assert set(np.flatnonzero(part == part[frame]).tolist()) == reachable(frames, kept, frame)


def test_every_link_of_a_chain_is_needed():
    adjustment = linked(4, [(0, 1), (1, 2), (2, 3)])
    for pair in adjustment.links:
        assert adjustment.needed_of([pair]) == [pair]


def test_no_single_link_of_a_ring_is_needed_but_two_together_are():
    adjustment = linked(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    for one, other in itertools.combinations(adjustment.links, 2):
        assert adjustment.needed_of([one]) == []
        assert adjustment.needed_of([one, other]) == [one, other]


def test_what_others_connect_is_not_needed_though_its_neighbour_is():
    adjustment = linked(5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    assert adjustment.needed_of(pairs_of((2, 3), (0, 1))) == pairs_of((2, 3))


def test_needed_pairs_come_in_their_order():
    adjustment = linked(4, [(0, 1), (1, 2), (2, 3)])
    assert adjustment.needed_of(pairs_of((2, 3), (0, 1), (1, 2))) == pairs_of((0, 1), (1, 2), (2, 3))


def test_nothing_is_needed_of_nothing():
    assert linked(3, [(0, 1), (1, 2)]).needed_of([]) == []


def test_a_link_that_is_not_needed_may_be_removed():
    adjustment = linked(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    for pair in adjustment.links:
        assert not adjustment.needed_of([pair])
        adjustment.remove(pair)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_weights_of_one_change_nothing(family):
    adjustment = random_problem(np.random.default_rng(1), family=family).adjustment(2)
    same = adjustment.weighted(dict.fromkeys(adjustment.links, 1.0))
    np.testing.assert_array_equal(same.mosaic_from_frame, adjustment.mosaic_from_frame)
    assert same.family is adjustment.family
    assert same.reference == adjustment.reference


def test_a_weight_of_a_quarter_is_landmarks_of_twice_the_noise():
    problem = random_problem(np.random.default_rng(2), frames=5, loops=3)
    chosen = problem.landmarks[2]
    wider = Landmarks(chosen.pair, chosen.points_i, chosen.points_j, 2.0 * chosen.sigma)
    adjustment = problem.adjustment()
    weights = {pair: 0.25 if pair == chosen.pair else 1.0 for pair in adjustment.links}
    expected = adjustment.change(fit_link(wider)).mosaic_from_frame
    np.testing.assert_allclose(adjustment.weighted(weights).mosaic_from_frame, expected, rtol=0, atol=1e-9)


def test_a_weight_of_next_to_nothing_is_no_link():
    adjustment = random_problem(np.random.default_rng(3), frames=5, loops=3, noise=3.0).adjustment()
    spare = next(pair for pair in adjustment.links if pair.j - pair.i > 1)
    weights = {pair: 1e-10 if pair == spare else 1.0 for pair in adjustment.links}
    found = adjustment.weighted(weights).mosaic_from_frame
    np.testing.assert_allclose(found, adjustment.remove(spare).mosaic_from_frame, rtol=0, atol=1e-5)
    assert np.abs(found - adjustment.mosaic_from_frame).max() > 1e-2


def test_weighting_leaves_the_maps_of_the_links_and_the_old_adjustment():
    adjustment = random_problem(np.random.default_rng(4)).adjustment()
    before = {pair: replace(link, root=link.root.copy()) for pair, link in adjustment.links.items()}
    lighter = adjustment.weighted(dict.fromkeys(adjustment.links, 0.5))
    for pair, link in before.items():
        np.testing.assert_array_equal(lighter.links[pair].i_from_j, link.i_from_j)
        np.testing.assert_array_equal(adjustment.links[pair].root, link.root)
