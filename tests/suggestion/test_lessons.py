"""What answers would teach, against mosaics to which they were added, by dense inverses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.linalg import hadamard

from smalti.adjustment.centres import PairCentres
from smalti.experiments.worlds import OUTLINE, raster
from smalti.geometry.affine import homogeneous
from smalti.loop import ActiveLoop
from smalti.records import Pair
from smalti.suggestion import lessons as module
from smalti.suggestion.lessons import LEAST_SHARE, MIDDLE, Lessons, draw, landmarks_of_a_frame, shared_points
from smalti.suggestion.survey import Seen
from tests.adjustment.test_relations import by_all, information_of

FRAMES = 12
PAIRS = np.column_stack(np.triu_indices(FRAMES, 1))
APART = PAIRS[np.diff(PAIRS, axis=1)[:, 0] > 1][::3]
LIKELY = np.random.default_rng(1).uniform(0.2, 0.9, len(APART))
WEIGHT = np.random.default_rng(2).uniform(0.0, 1.0, len(PAIRS))


@cache
def state():
    world = raster(FRAMES)
    agent = world.agent(3)
    start = ActiveLoop.start(FRAMES, OUTLINE, world.chain(agent), learns=False)
    return start.replay([agent.answer(Pair(2, 9))])


def lessons_of(likely=LIKELY):
    view = state().view
    return Lessons.of(view.covariance, Seen.of(view, APART), likely, Seen.of(view, PAIRS), WEIGHT)


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
    """The same mosaic with some links more, each as much as it counts."""

    def __init__(self):
        self.covariance = state().covariance
        self.family = self.covariance.adjustment.family
        self.information = information_of(self.covariance)
        points = shared_points(Seen.of(state().view, PAIRS).centres, OUTLINE)[0]
        errors = self.covariance.relations(PAIRS, points).of_point(MIDDLE)
        by_maps = by_all(errors, self.family, FRAMES)
        self.mattering = np.einsum("n,nri,nrj->ij", WEIGHT / WEIGHT.sum(), by_maps, by_maps)

    def products(self, added=()):
        """M H, with relations added, each with its part; the first frame is held, which moves no pair."""
        information = self.information.copy()
        for relation, part in added:
            jacobian = by_all(relation, self.family, FRAMES)[0]
            information += part * jacobian.T @ jacobian
        return self.mattering[6:, 6:] @ np.linalg.inv(information[6:, 6:])

    def error(self, added=()):
        return float(np.trace(self.products(added)))

    def gains(self, links, added=()):
        return np.array(
            [self.error(added) - self.error([*added, (links[n : n + 1], 1.0)]) for n in range(len(links.pairs))]
        )


@cache
def dense():
    return Dense()


def test_the_error_is_that_of_the_pairs_that_matter(exact):
    assert lessons_of().squared_error == pytest.approx(dense().error(), rel=1e-6)


def test_a_gain_is_the_drop_of_the_error_when_the_link_is_added(exact):
    lessons = lessons_of()
    np.testing.assert_allclose(lessons.gains, dense().gains(lessons.links), rtol=1e-5)


def test_supposed_answers_leave_what_is_left_when_as_much_of_their_links_is_added(exact):
    lessons = start = lessons_of()
    added = []
    for n in (4, 11, 5):
        lessons = lessons.suppose(n)
        added.append((start.links[n : n + 1], LIKELY[n]))
        assert lessons.squared_error == pytest.approx(dense().error(added), rel=1e-5)
    np.testing.assert_allclose(lessons.gains, dense().gains(start.links, added), rtol=1e-4)


def test_the_variation_is_that_of_a_sum_of_squared_normal_variables(exact):
    products = dense().products()
    expected = 2.0 * np.trace(products @ products) / np.trace(products) ** 2
    assert lessons_of().variation == pytest.approx(expected, rel=1e-6)


def test_random_loads_tell_the_gains_to_a_tenth_or_two():
    lessons = lessons_of()
    expected = dense().gains(lessons.links)
    assert np.mean(np.abs(np.log(lessons.gains / expected))) < 0.2
    assert expected[np.argmax(lessons.gains)] > 0.85 * expected.max()
    assert lessons.squared_error == pytest.approx(dense().error(), rel=0.3)


def test_an_answer_that_is_not_likely_takes_less_of_the_error():
    left = [
        lessons_of(np.where(np.arange(len(APART)) == 4, likely, LIKELY)).suppose(4).squared_error
        for likely in (0.0, 0.1, 0.5, 1.0)
    ]
    assert left[0] == lessons_of().squared_error
    assert left[0] > left[1] > left[2] > left[3] > 0.0


def test_what_was_supposed_is_not_likely_to_be_asked_again():
    lessons = lessons_of().suppose(7)
    assert lessons.likely[7] == 0.0
    np.testing.assert_array_equal(np.delete(lessons.likely, 7), np.delete(LIKELY, 7))


def test_supposing_leaves_the_lessons_before_it_as_they_were():
    lessons = lessons_of()
    before = lessons.gains
    lessons.suppose(3).suppose(8)
    np.testing.assert_array_equal(lessons.gains, before)


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
def test_the_moments_of_what_two_frames_share_are_those_of_its_points(offset):
    roots, share = shared_points(placed(offset), OUTLINE)
    at = (np.arange(400) + 0.5) / 4.0
    points = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    both = points[OUTLINE.contains(points - offset)]
    in_units = homogeneous((both - OUTLINE.centre) / OUTLINE.unit)
    np.testing.assert_allclose(roots[0] @ roots[0].T, in_units.T @ in_units / len(both), atol=1e-3)
    assert share == pytest.approx([len(both) / len(points)], abs=0.01)


def test_frames_that_are_thought_to_lie_apart_share_a_rim_if_they_overlap():
    roots, share = shared_points(placed((300.0, 0.0), deviation=10.0), OUTLINE)
    assert share == pytest.approx([LEAST_SHARE], rel=0.01)
    assert roots[0, 0, 2] * OUTLINE.unit == pytest.approx((1.0 - LEAST_SHARE) * 50.0)


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_a_frame_has_as_many_landmarks_as_links_say_of_what_their_frames_share(sigma):
    world = raster(FRAMES)
    agent = world.agent(1, sigma)
    chain = ActiveLoop.start(FRAMES, OUTLINE, world.chain(agent)).adjustment
    # Six of nine control points on two thirds of a frame.
    assert landmarks_of_a_frame(chain) == pytest.approx(9.0 / sigma**2, rel=0.05)


def test_loops_tell_of_loops_once_there_are_five():
    world = raster(30)
    agents = world.agent(1, 1.0), world.agent(1, 0.1)
    state = ActiveLoop.start(30, OUTLINE, world.chain(agents[0]), learns=False)
    told = []
    for n in range(5):
        told.append(landmarks_of_a_frame(state.adjustment))
        state = state.record(agents[1].answer(Pair(n, 29 - n)))
    told.append(landmarks_of_a_frame(state.adjustment))
    assert max(told[:5]) < 15.0
    assert told[5] > 500.0
