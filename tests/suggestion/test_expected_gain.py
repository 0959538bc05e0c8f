"""What answers would teach, against mosaics to which they were added, by dense inverses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.linalg import hadamard

from smalti.active_loop import ActiveLoop
from smalti.engine.estimate import Estimate
from smalti.engine.normal_equations import fix_gauge, normal_equations
from smalti.engine.relative_position import PairCentres
from smalti.geometry.homographies import FAMILIES, PROJECTIVE, SIMILARITY
from smalti.records import Answer, Landmarks, Pair
from smalti.suggestion import expected_gain as module
from smalti.suggestion.candidates import CandidatePairs
from smalti.suggestion.expected_gain import LEAST_SHARE, LOST, ExpectedGain, draw, landmarks_of_a_frame, shared_points
from smalti.suggestion.pair_survey import SurveyedPairs
from smalti_lab.experiments.worlds import OUTLINE, raster

FRAMES = 12
PAIRS = np.column_stack(np.triu_indices(FRAMES, 1))
APART = PAIRS[np.diff(PAIRS, axis=1)[:, 0] > 1][::3]
LIKELY = np.random.default_rng(1).uniform(0.2, 0.9, len(APART))
WEIGHT = np.random.default_rng(2).uniform(0.0, 1.0, len(PAIRS))
each_family = pytest.mark.parametrize("family", [FAMILIES[name] for name in ("similarity", "projective")])


@cache
def state(family=PROJECTIVE):
    world = raster(FRAMES)
    agent = world.agent(3)
    start = ActiveLoop.start(FRAMES, OUTLINE, world.chain(agent), family=family)
    return start.replay([agent.answer(Pair(2, 9))])


def lessons_of(likely=LIKELY, family=PROJECTIVE):
    view = state(family).view
    return ExpectedGain.of(
        view.estimate, view.covariance, SurveyedPairs.of(view, APART), likely, SurveyedPairs.of(view, PAIRS), WEIGHT
    )


@pytest.fixture
def exact(monkeypatch):
    """Loads of all pairs that matter, without any chance in them."""
    monkeypatch.setattr(module, "LOADS", 256)
    monkeypatch.setattr(
        module, "draw", lambda _, weight, _count: (np.arange(len(weight)), np.sqrt(weight / weight.sum()))
    )
    # Signs of which no two pairs have the same: then the mean over loads is exact.
    monkeypatch.setattr(module, "_signs", lambda: hadamard(256).reshape(-1, 2, 256) + 0.0)


class Dense:
    """The same mosaic with some links more, each as much as it counts, by dense matrices."""

    def __init__(self, family):
        estimate: Estimate = state(family).estimate
        self.by_entry, self.nodes = estimate.family.by_entry, estimate.system.nodes
        self.information = information_of(estimate)
        middles = shared_points(SurveyedPairs.of(state(family).view, PAIRS).centres, OUTLINE)[0].mean(
            axis=1, keepdims=True
        )
        errors = self.by_all(estimate.covariance.predicted_links(PAIRS, middles))
        self.error_pairs = np.einsum("n,nri,nrj->ij", WEIGHT / WEIGHT.sum(), errors, errors)

    def by_all(self, relations):
        """How rows (n, rows) of relations move with the increments of all nodes (n, rows, nodes · f)."""
        rows = np.zeros((len(relations.pairs), relations.by_i.shape[1], self.nodes, len(self.by_entry)))
        for n, (i, j) in enumerate(relations.pairs):
            rows[n, :, i] += relations.by_i[n] @ self.by_entry.T
            rows[n, :, j] += relations.by_j[n] @ self.by_entry.T
        return rows.reshape(*rows.shape[:2], -1)

    def products(self, added=()):
        """M H, with relations added, each with its part."""
        information = self.information.copy()
        for relation, part in added:
            jacobian = self.by_all(relation)[0]
            information += part * jacobian.T @ jacobian
        return self.error_pairs @ np.linalg.inv(information)

    def error(self, added=()):
        return float(np.trace(self.products(added)))

    def gains(self, links, added=()):
        return np.array(
            [self.error(added) - self.error([*added, (links[n : n + 1], 1.0)]) for n in range(len(links.pairs))]
        )


def information_of(estimate):
    """(nodes · f, nodes · f): that on the increments of all frames, and of what the chain has in common."""
    system = estimate.system
    diagonal, off_diagonal, _ = normal_equations(system, estimate.solution.rows)
    fix_gauge(system, diagonal)
    nodes, freedom = diagonal.shape[:2]
    information = np.zeros((nodes, freedom, nodes, freedom))
    information[np.arange(nodes), :, np.arange(nodes)] = diagonal
    for (a, b), block in zip(np.concatenate([system.ends, system.shared_ends]), off_diagonal, strict=True):
        information[a, :, b], information[b, :, a] = block, block.T
    return information.reshape(nodes * freedom, -1)


@cache
def dense(family=PROJECTIVE):
    return Dense(family)


@each_family
def test_the_error_is_that_of_the_pairs_that_matter(exact, family):
    assert lessons_of(family=family).squared_error == pytest.approx(dense(family).error(), rel=1e-5)


@each_family
def test_a_gain_is_the_drop_of_the_error_when_the_link_is_added(exact, family):
    expected_gain = lessons_of(family=family)
    expected = dense(family).gains(expected_gain.links)
    np.testing.assert_allclose(expected_gain.gains, expected, rtol=1e-4, atol=1e-6 * expected.max())


@each_family
def test_supposed_answers_leave_what_is_left_when_as_much_of_their_links_is_added(exact, family):
    expected_gain = start = lessons_of(family=family)
    added = []
    for n in (4, 11, 5):
        expected_gain = expected_gain.suppose(n)
        added.append((start.links[n : n + 1], LIKELY[n]))
        assert expected_gain.squared_error == pytest.approx(dense(family).error(added), rel=1e-4)
    expected = dense(family).gains(start.links, added)
    np.testing.assert_allclose(expected_gain.gains, expected, rtol=1e-3, atol=1e-5 * expected.max())


def test_the_variation_is_that_of_a_sum_of_squared_normal_variables(exact):
    products = dense().products()
    expected = 2.0 * np.trace(products @ products) / np.trace(products) ** 2
    assert lessons_of().variation == pytest.approx(expected, rel=1e-5)


def test_random_loads_tell_the_gains_to_a_tenth_or_two():
    expected_gain = lessons_of()
    expected = dense().gains(expected_gain.links)
    large = expected > 0.1 * expected.max()
    assert np.mean(np.abs(np.log(expected_gain.gains[large] / expected[large]))) < 0.25
    assert expected[np.argmax(expected_gain.gains)] > 0.8 * expected.max()
    assert expected_gain.squared_error == pytest.approx(dense().error(), rel=0.3)


def test_a_yes_teaches_about_what_was_foretold_of_it():
    expected_gain = lessons_of()
    world, before = raster(FRAMES), state()
    at = [n for n, pair in enumerate(APART.tolist()) if tuple(pair) in {tuple(p) for p in world.overlapping.tolist()}]
    best = max(at, key=lambda n: expected_gain.gains[n])
    answered = before.record(world.agent(3).answer(Pair(*map(int, APART[best]))))
    after = answered.prediction.error_px**2 / before.prediction.error_px**2
    foretold = 1.0 - expected_gain.gains[best] / expected_gain.squared_error
    # Noise and camera are learned besides.
    assert abs(np.log(after / foretold)) < np.log(2.5)


def test_an_answer_that_is_not_likely_takes_less_of_the_error():
    left = [
        lessons_of(np.where(np.arange(len(APART)) == 4, likely, LIKELY)).suppose(4).squared_error
        for likely in (0.0, 0.1, 0.5, 1.0)
    ]
    assert left[0] == lessons_of().squared_error
    assert left[0] > left[1] > left[2] > left[3] > 0.0


def test_what_was_supposed_is_not_likely_to_be_asked_again():
    expected_gain = lessons_of().suppose(7)
    assert expected_gain.yes_probability[7] == 0.0
    np.testing.assert_array_equal(np.delete(expected_gain.yes_probability, 7), np.delete(LIKELY, 7))


def test_supposing_leaves_the_lessons_before_it_as_they_were():
    expected_gain = lessons_of()
    before = expected_gain.gains
    expected_gain.suppose(3).suppose(8)
    np.testing.assert_array_equal(expected_gain.gains, before)


# Two mosaics


@cache
def parted():
    """The way out and the way back of a raster, which nothing joins."""
    world = raster(20)
    agent = world.agent(1)
    chain = [record for record in world.chain(agent) if record.pair.i != 13]
    return ActiveLoop.start(20, OUTLINE, chain, external=world.external), agent


def test_joining_two_mosaics_is_worth_the_share_of_frames_that_are_lost():
    state, _ = parted()
    candidates = CandidatePairs.of(state.view)
    expected_gain = candidates.expected_gain(state.view)
    part = state.part[candidates.surveyed.pairs]
    between = part[:, 0] != part[:, 1]
    assert between.any()
    np.testing.assert_allclose(expected_gain.joining[between], LOST**2 * OUTLINE.area * 6 / 20)
    np.testing.assert_array_equal(expected_gain.joining[~between], 0.0)
    np.testing.assert_allclose(expected_gain.gains[between], expected_gain.joining[between])


def test_supposing_that_they_are_joined_leaves_less_to_be_gained_by_joining_them():
    state, _ = parted()
    expected_gain = CandidatePairs.of(state.view).expected_gain(state.view)
    n = int(np.argmax(expected_gain.yes_probability * (expected_gain.joining > 0.0)))
    left = expected_gain.suppose(n)
    between = expected_gain.joining > 0.0
    np.testing.assert_allclose(
        left.joining[between], (1.0 - expected_gain.yes_probability[n]) * expected_gain.joining[between]
    )
    assert left.squared_error == expected_gain.squared_error


def test_what_joins_them_is_asked_and_counts_after_a_yes():
    state, agent = parted()
    asked = []
    for _ in range(8):
        asked.append(state.best.pair)
        state = state.record(agent.answer(asked[-1]))
        if not state.part.any():
            break
    assert not state.part.any()
    assert CandidatePairs.of(state.view).expected_gain(state.view).joining.max() == 0.0
    assert {(asked[-1].i, asked[-1].j)} <= {tuple(pair) for pair in state.view.linked.tolist()}


# Drawing, points, landmarks


@pytest.mark.parametrize("count", [100, 1000])
def test_pairs_drawn_in_proportion_to_what_they_add_give_its_sum(count):
    rng = np.random.default_rng(5)
    spread, weight = rng.exponential(size=300) ** 2, rng.random(300)
    chosen, factor = draw(weight * spread, weight, count)
    assert np.sum(factor**2 * spread[chosen]) == pytest.approx(np.sum(weight * spread) / np.sum(weight), rel=1e-9)


def placed(offset, deviation=0.0):
    cov = np.tile([deviation**2, 0.0, deviation**2], (1, 2, 1))
    return PairCentres(OUTLINE, OUTLINE.centre + np.array([[offset, np.negative(offset)]]), cov)


@pytest.mark.parametrize("offset", [(0.0, 0.0), (30.0, -45.0), (-80.0, 10.0)])
def test_four_points_have_the_moments_of_what_two_frames_share(offset):
    found, share = shared_points(placed(offset), OUTLINE)
    at = (np.arange(400) + 0.5) / 4.0
    points = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    both = (points[OUTLINE.contains(points - offset)] - OUTLINE.centre) / OUTLINE.unit
    np.testing.assert_allclose(found[0].mean(axis=0), both.mean(axis=0), atol=1e-2)
    np.testing.assert_allclose(found[0].T @ found[0] / 4.0, both.T @ both / len(both), atol=1e-2)
    assert share == pytest.approx([len(both) / len(points)], abs=0.01)


def test_frames_that_are_thought_to_lie_apart_share_a_rim_if_they_overlap():
    found, share = shared_points(placed((300.0, 0.0), deviation=10.0), OUTLINE)
    assert share == pytest.approx([LEAST_SHARE], rel=0.01)
    assert found[0, :, 0].mean() * OUTLINE.unit == pytest.approx((1.0 - LEAST_SHARE) * 50.0)


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_a_frame_has_as_many_landmarks_as_links_say_of_what_their_frames_share(sigma):
    world = raster(FRAMES)
    state = ActiveLoop.start(FRAMES, OUTLINE, world.chain(world.agent(1, sigma)), family=SIMILARITY)
    # Six of nine control points on two thirds of a frame, as noisy as the chain counts.
    noise = state.estimate.noise_model.noise[0]
    assert landmarks_of_a_frame(state.estimate) * noise**2 == pytest.approx(9.0 / sigma**2, rel=0.1)


def test_loops_tell_of_loops_once_there_are_five():
    world = raster(30)
    chain, loops = world.agent(1, 1.0), world.agent(1, 0.1)
    state = ActiveLoop.start(30, OUTLINE, world.chain(chain))
    precisions = []
    for n in range(6):
        precisions.append(landmarks_of_a_frame(state.estimate))
        state = state.record(loops.answer(Pair(n, 29 - n)))
    assert max(precisions[:5]) < 30.0
    assert precisions[5] > 10.0 * max(precisions[:5])


def test_without_any_link_one_landmark_is_expected():
    assert landmarks_of_a_frame(ActiveLoop.start(3, OUTLINE, []).estimate) == 1.0


def test_a_link_of_one_landmark_is_an_answer_that_can_be_supposed_after():
    one = Landmarks(Pair(0, 11), np.array([[40.0, 60.0]]), np.array([[40.0, 30.0]]))
    after = state().record(Answer.yes(one))
    assert np.isfinite([some.expected_reward for some in after.suggest(3)]).all()
