"""Wrong links are found, honest ones are not accused, with and without perspective."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.consensus import CONTRADICTING, Consensus, find_consensus
from smalti.adjustment.link import fit_link
from smalti.records import Landmarks, Pair
from tests.adjustment.test_perspective import OUTLINE, measure, neighbours, tilted_frames

TILTS = {"affine": 0.0, "perspective": 0.04}
each_seed = pytest.mark.parametrize("seed", range(3))
each_tilt = pytest.mark.parametrize("tilt", TILTS.values(), ids=TILTS)
TURN = np.array([[0.8, 0.6], [-0.6, 0.8]])


def shifted(points):
    return points + np.array([60.0, -40.0])


def turned(points):
    return (points - OUTLINE.centre) @ TURN + OUTLINE.centre


def grown(points):
    return 1.3 * (points - OUTLINE.centre) + OUTLINE.centre


@cache
def honest_landmarks(seed, tilt, sigma=1.0):
    rng = np.random.default_rng(seed)
    truth = tilted_frames(rng, strength=tilt)
    return {pair: measure(rng, truth, pair, sigma) for pair in neighbours(truth)}


def spoil(landmarks, pairs, lie):
    return {
        pair: Landmarks(pair, lie(record.points_i), record.points_j, record.sigma) if pair in pairs else record
        for pair, record in landmarks.items()
    }


def loops(landmarks):
    return [pair for pair in landmarks if pair.j - pair.i > 1]


def adjust(landmarks, guesses=(), reference=0):
    links = [fit_link(record) for record in (*landmarks.values(), *guesses)]
    return Adjustment(1 + max(link.pair.j for link in links), OUTLINE, links, reference=reference)


def accused(landmarks):
    return find_consensus(adjust(landmarks), landmarks).contradicting


@each_tilt
@pytest.mark.parametrize("seed", range(6))
def test_no_honest_link_is_accused(seed, tilt):
    assert accused(honest_landmarks(seed, tilt)) == []


@each_tilt
@each_seed
@pytest.mark.parametrize("lie", [shifted, turned, grown])
def test_wrong_loops_are_found_and_nothing_else(seed, tilt, lie):
    landmarks = honest_landmarks(seed, tilt)
    chosen = np.random.default_rng(seed).choice(len(loops(landmarks)), 5, replace=False)
    wrong = {loops(landmarks)[n] for n in chosen}
    assert set(accused(spoil(landmarks, wrong, lie))) == wrong


@each_tilt
@each_seed
def test_a_wrong_link_of_the_chain_is_found_by_the_loops(seed, tilt):
    wrong = Pair(4, 5)
    assert accused(spoil(honest_landmarks(seed, tilt), {wrong}, shifted)) == [wrong]


@each_tilt
@each_seed
def test_lies_that_agree_with_each_other_lose_against_more_that_are_honest(seed, tilt):
    # Nearly half of frame 11's loops tell the same lie about it; the others still know where it is.
    landmarks = honest_landmarks(seed, tilt)
    of_last = [pair for pair in loops(landmarks) if pair.j == 11]
    wrong = set(of_last[: (len(of_last) - 1) // 2])
    assert wrong
    assert set(accused(spoil(landmarks, wrong, shifted))) == wrong


def test_the_worst_comes_first():
    landmarks = honest_landmarks(0, 0.0)
    near, far = loops(landmarks)[3], loops(landmarks)[9]
    spoilt = spoil(spoil(landmarks, {near}, shifted), {far}, lambda points: points + np.array([200.0, 0.0]))
    assert accused(spoilt) == [far, near]


@each_tilt
def test_a_frame_on_a_wrong_bridge_stays_in_the_mosaic_and_out_of_the_judgement(tilt):
    landmarks = dict(honest_landmarks(0, tilt))
    last = 12
    bridge = Landmarks(Pair(3, last), shifted(OUTLINE.corners), OUTLINE.corners, 1.0)
    # Nothing contradicts a bridge, however wrong it is.
    assert accused({**landmarks, bridge.pair: bridge}) == []


@each_tilt
@each_seed
def test_guesses_are_not_judged_and_do_not_disturb_the_judgement(seed, tilt):
    landmarks = honest_landmarks(seed, tilt)
    inside = {pair: record for pair, record in landmarks.items() if (pair.i < 6) == (pair.j < 6)}
    wrong = {loops(inside)[2]}
    guess = Landmarks(Pair(5, 6), OUTLINE.corners, OUTLINE.corners, 800.0)
    judged = spoil(inside, wrong, shifted)
    consensus = find_consensus(adjust(judged, [guess]), judged)
    assert guess.pair not in consensus.residuals_px
    assert set(consensus.contradicting) == wrong


def test_weights_fall_from_one_with_the_residual():
    consensus = Consensus({Pair(0, 1): 0.0, Pair(1, 2): 10.0, Pair(2, 3): 1000.0}, tolerance_px=10.0)
    weights = list(consensus.weights.values())
    assert weights[0] == 1.0
    assert weights[1] == pytest.approx(0.25)
    assert weights[2] < 1e-6
    assert consensus.agreeing == pytest.approx(sum(weights))


def test_a_link_contradicts_beyond_the_tolerance_and_not_at_it():
    edge = CONTRADICTING * 10.0
    consensus = Consensus({Pair(0, 1): edge, Pair(1, 2): edge + 1e-6}, tolerance_px=10.0)
    assert consensus.contradicting == [Pair(1, 2)]


@each_tilt
def test_an_honest_link_keeps_nearly_all_its_weight_beside_lies(tilt):
    landmarks = honest_landmarks(1, tilt)
    wrong = set(loops(landmarks)[:12:3])
    judged = spoil(landmarks, wrong, shifted)
    weights = find_consensus(adjust(judged), judged).weights
    assert min(weight for pair, weight in weights.items() if pair not in wrong) > 0.8
    assert max(weights[pair] for pair in wrong) < 0.05


@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_the_tolerance_grows_with_the_noise_of_the_links(sigma):
    landmarks = honest_landmarks(0, 0.0, sigma)
    consensus = find_consensus(adjust(landmarks), landmarks)
    if sigma < 1:
        # Less than 0.8 % of the diagonal bends nothing that anybody would see.
        assert consensus.tolerance_px == pytest.approx(0.008 * np.hypot(640, 480))
    else:
        # The median residual is that of two coordinates.
        assert consensus.tolerance_px == pytest.approx(6 * np.sqrt(2) * sigma, rel=0.15)
    assert consensus.contradicting == []


def test_the_choice_of_the_reference_frame_does_not_matter():
    landmarks = spoil(honest_landmarks(2, 0.04), {Pair(4, 5)}, shifted)
    assert find_consensus(adjust(landmarks, reference=7), landmarks).contradicting == [Pair(4, 5)]


def test_the_same_links_are_judged_alike_to_the_last_bit():
    landmarks = spoil(honest_landmarks(3, 0.04), {Pair(4, 5)}, shifted)
    backwards = dict(reversed(landmarks.items()))
    first, again = (find_consensus(adjust(given), given) for given in (landmarks, backwards))
    assert first.residuals_px == again.residuals_px
    assert first.tolerance_px == again.tolerance_px
