"""The state of a mosaic: which links are accepted, what answers change, and what people get."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from smalti.engine.estimate import begin, refine_on_landmarks
from smalti.engine.links import fit_link
from smalti.engine.robust_estimate import estimate, without_contested
from smalti.engine.variance_components import MATCHER, PERSON
from smalti.geometry.homographies import FAMILIES, PROJECTIVE, SIMILARITY, TRANSLATION, apply_map
from smalti.records import Landmarks, Pair
from tests.worlds import OUTLINE, across, flight

FRAMES, LANE = 36, 12
BESIDE = across(FRAMES, LANE)
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_seed = pytest.mark.parametrize("seed", range(2))


@cache
def world_of(seed):
    return flight(np.random.default_rng(seed), FRAMES, lane=LANE)


@cache
def chain_of(seed, wrong=None, by=(0.0, 0.0)):
    """The state of a chain, of which one link may be wrong."""
    world, rng = world_of(seed), np.random.default_rng([seed, 1])
    links = [world.links([pair], rng, by=by if pair == wrong else (0.0, 0.0))[0] for pair in world.chain]
    return begin(world.system(links))


def told(seed, pairs, lies=None):
    """Links of pairs, those of lies off by so many px."""
    world = world_of(seed)
    return [
        world.links([pair], np.random.default_rng([seed, pair.i, pair.j]), by=(lies or {}).get(pair, (0.0, 0.0)))[0]
        for pair in pairs
    ]


# Which links are accepted


def random_lies(seed, count):
    """Some wrong answers, by 30 to 200 px; the first and the last frame have two links, of which neither is checked."""
    rng = np.random.default_rng([seed, 2])
    redundant = [pair for pair in BESIDE if pair.i > 0 and pair.j < FRAMES - 1]
    wrong = [redundant[n] for n in rng.choice(len(redundant), count, replace=False)]
    angle, size = rng.uniform(0.0, 2.0 * np.pi, count), np.exp(rng.uniform(np.log(30.0), np.log(200.0), count))
    return {pair: (s * np.cos(a), s * np.sin(a)) for pair, a, s in zip(wrong, angle, size, strict=True)}


@pytest.mark.parametrize("count", [1, 5])
@each_seed
def test_wrong_links_are_rejected_and_honest_ones_are_not(seed, count):
    lies = random_lies(seed, count)
    state = estimate(chain_of(seed), told(seed, BESIDE, lies))
    assert set(state.rejected) == set(lies)


@each_seed
def test_honest_links_are_all_believed(seed):
    state = estimate(chain_of(seed), told(seed, BESIDE))
    assert not state.rejected
    assert len(state.system.links) == FRAMES - 1 + len(BESIDE)


@each_seed
def test_lies_cost_the_mosaic_next_to_nothing(seed):
    lies = random_lies(seed, 5)
    deceived = estimate(chain_of(seed), told(seed, BESIDE, lies))
    honest = estimate(chain_of(seed), told(seed, [pair for pair in BESIDE if pair not in lies]))
    world = world_of(seed)
    assert world.error_px(deceived.solution.maps) < 1.1 * world.error_px(honest.solution.maps)


def test_a_rejected_link_contradicts_the_others_by_far():
    lies = random_lies(1, 5)
    chi2 = estimate(chain_of(1), told(1, BESIDE, lies)).chi2()
    assert min(chi2[pair] for pair in lies) > 10 * max(value for pair, value in chi2.items() if pair not in lies)


@each_seed
def test_a_person_is_never_rejected(seed):
    lies = random_lies(seed, 2)
    state = estimate(chain_of(seed), told(seed, BESIDE, lies), set(lies))
    assert not set(state.rejected) & set(lies)


@each_seed
def test_loops_that_agree_against_a_wrong_link_of_the_chain_have_it_rejected(seed):
    wrong = Pair(9, 10)
    # Three around it contradict it; those that do not go over it say that no other link is wrong.
    against = [Pair(8, 14), Pair(9, 14), Pair(9, 13)]
    state = estimate(
        chain_of(seed, wrong, (0.0, 60.0)), told(seed, [*against, Pair(10, 13), Pair(10, 14), Pair(11, 13)])
    )
    assert list(state.rejected) == [wrong]


@each_seed
def test_loops_that_agree_against_a_wrong_chain_are_believed(seed):
    # Where it is wrong they do not tell.
    loops = [Pair(5, 18), Pair(7, 16)]
    state = estimate(chain_of(seed, Pair(9, 10), (0.0, 60.0)), told(seed, loops))
    assert not set(state.rejected) & set(loops)


@each_seed
def test_frames_that_one_link_alone_joins_stay_joined(seed):
    wrong = Pair(0, 1)
    state = estimate(chain_of(seed, wrong, (0.0, 100.0)), told(seed, [pair for pair in BESIDE if pair.i > 0]))
    assert wrong not in state.rejected
    assert not state.part.any()


TRIANGLES = [Pair(n, n + 2) for n in range(0, FRAMES - 2, 3)]


@cache
def lying_chain_of(seed, share):
    """The state of a chain with triangles, of whose links a share is wrong by 30 to 60 px, and these."""
    world, rng = world_of(seed), np.random.default_rng([seed, 3])
    pairs = [*world.chain, *TRIANGLES]
    angle = rng.uniform(0.0, 2.0 * np.pi, len(pairs))
    size = np.where(rng.random(len(pairs)) < share, rng.uniform(30.0, 60.0, len(pairs)), 0.0)
    shifts = np.column_stack([size * np.cos(angle), size * np.sin(angle)])
    links = [world.links([pair], rng, by=tuple(by))[0] for pair, by in zip(pairs, shifts, strict=True)]
    return begin(world.system(links)), {pair for pair, by in zip(pairs, size, strict=True) if by}


@each_seed
def test_wrong_links_in_triangles_do_not_teach_a_noise_that_hides_them(seed):
    honest, _ = lying_chain_of(seed, 0.0)
    deceived, lies = lying_chain_of(seed, 0.2)
    assert lies
    assert 0.5 < deceived.local_noise / honest.local_noise < 2.0


@each_seed
def test_wrong_links_of_chain_and_loops_are_rejected(seed):
    wrong, lies = Pair(seed + 3, seed + 4), random_lies(seed, 1)
    state = estimate(chain_of(seed, wrong, (25.0, -20.0)), told(seed, BESIDE, lies))
    assert set(state.rejected) == {wrong, *lies}


# What nobody confirms


def hanging_by_a_lie():
    """Answers of which some turn out to be wrong; the last frames hang on links from one to the next."""
    lies = random_lies(0, 5)
    return estimate(chain_of(0), told(0, [pair for pair in BESIDE if pair.j < FRAMES - 4], lies))


def test_links_that_nobody_confirms_are_doubted_where_others_were_wrong():
    state = hanging_by_a_lie()
    assert state.rejected
    unconfirmed = ~state.system.confirmed
    assert unconfirmed.any()
    assert (state.variance_inflation[unconfirmed] > 1.0).all()
    assert (state.variance_inflation[~unconfirmed] == 1.0).all()


def test_doubt_moves_no_frame_but_tells_that_it_may_lie_elsewhere():
    state = hanging_by_a_lie()
    ends = np.array([[0, FRAMES - 1]])
    doubted, known = (
        covariance.of_pairs(ends).spread[0] for covariance in (state.conservative_covariance, state.covariance)
    )
    assert doubted > 4.0 * known
    np.testing.assert_array_equal(
        state.conservative_covariance.of_pairs(ends).mean, state.covariance.of_pairs(ends).mean
    )


def test_where_nothing_was_wrong_nothing_is_doubted():
    assert estimate(chain_of(0), told(0, BESIDE[:3])).variance_inflation is None


def test_without_answers_the_chain_s_state_stays():
    chain = chain_of(1)
    assert estimate(chain, []) is chain


def test_the_order_of_links_changes_no_bit():
    links = told(1, BESIDE, random_lies(1, 3))
    forth, back = estimate(chain_of(1), links), estimate(chain_of(1), links[::-1])
    np.testing.assert_array_equal(forth.mosaic_from_frame, back.mosaic_from_frame)
    assert list(forth.rejected) == list(back.rejected)
    assert forth.noise_model.noise == back.noise_model.noise


# Surprise


def test_honest_links_surprise_as_chi2_of_eight_degrees():
    # Of maps that are foretold with their uncertainty: the chain's noise is taken larger than it is, so rather less.
    found = [
        estimate(chain_of(seed), told(seed, BESIDE[::2])).surprise(told(seed, [pair])[0], MATCHER)
        for seed in range(3)
        for pair in BESIDE[1::4]
    ]
    assert 3.0 < np.mean(found) < 13.0


def test_a_wrong_link_surprises_by_far():
    state = estimate(chain_of(1), told(1, BESIDE[::2]))
    pair = BESIDE[5]
    assert state.surprise(told(1, [pair], {pair: (30.0, 0.0)})[0], PERSON) > 1000.0


def test_between_mosaics_nothing_surprises():
    world, rng = world_of(1), np.random.default_rng(1)
    state = begin(world.system(world.links([pair for pair in world.chain if pair.i != 17], rng)))
    assert state.surprise(told(1, [BESIDE[0]])[0], MATCHER) == 0.0


# Better by answers


@pytest.mark.parametrize("family", [TRANSLATION, SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
def test_answers_make_a_mosaic_better(family):
    rng = np.random.default_rng(3)
    world = flight(rng, FRAMES, family, lane=LANE)
    chain = begin(world.system(world.links(world.chain, rng)))
    after = estimate(chain, world.links(BESIDE[::3], rng))
    assert not after.rejected
    assert world.error_px(after.solution.maps) < 0.6 * world.error_px(chain.solution.maps)


@each_family
def test_an_exact_world_is_recovered_with_all_that_is_learned(family):
    rng = np.random.default_rng(4)
    world = flight(rng, FRAMES, family, lane=LANE)
    chain = begin(world.system(world.links(world.chain, rng, noise=0.0)))
    after = estimate(chain, world.links(BESIDE[::2], rng, noise=0.0))
    assert world.off_px(after.solution.maps).max() < 0.02


@each_seed
def test_the_predicted_error_is_that_of_the_mosaic(seed):
    world = world_of(seed)
    state = estimate(chain_of(seed), told(seed, BESIDE[::3]))
    pairs = world.overlapping()
    numbers = np.array([(pair.i, pair.j) for pair in pairs])
    predicted = np.sqrt(np.mean(state.covariance.of_pairs(numbers).spread))
    centres = np.zeros((1, 2))
    off = [
        apply_map(np.linalg.inv(maps[pair.i]) @ maps[pair.j], centres) * OUTLINE.unit
        for maps in (state.solution.maps, world.truth)
        for pair in pairs
    ]
    real = np.sqrt(np.mean(np.sum((np.array(off[: len(pairs)]) - off[len(pairs) :]) ** 2, axis=-1)))
    assert 0.5 < predicted / real < 2.0


def test_one_landmark_across_lanes_is_an_answer():
    world, rng = world_of(1), np.random.default_rng(5)
    chain = chain_of(1)
    after = estimate(chain, world.links(BESIDE[::3], rng, count=1))
    assert world.error_px(after.solution.maps) < 0.6 * world.error_px(chain.solution.maps)


def test_the_more_loops_the_better_the_noise_is_known():
    variances = [estimate(chain_of(1), told(1, BESIDE[:count])).noise_variance for count in (0, 1, 6)]
    assert variances[0] > variances[1] > variances[2] > 0.0


# Parts


@cache
def parted():
    """The first lane, and the other two, which nothing joins."""
    world, rng = world_of(1), np.random.default_rng(6)
    return begin(world.system(world.links([pair for pair in world.chain if pair.i != LANE - 1], rng)))


def test_an_answer_joins_two_mosaics():
    assert parted().part.max() == 1
    after = estimate(parted(), told(1, BESIDE[2:5]))
    assert not after.part.any()
    assert world_of(1).error_px(after.solution.maps) < 5.0


def test_a_mosaic_of_two_lanes_is_where_one_of_one_would_be_wrong_about_the_other():
    after = estimate(parted(), told(1, [BESIDE[2]]))
    assert world_of(1).off_px(after.solution.maps, [BESIDE[2]]).max() < 2.0


# What people get


@pytest.mark.parametrize("family", [SIMILARITY, PROJECTIVE], ids=lambda family: family.name)
def test_the_mosaic_is_seen_from_the_middle_frame(family):
    rng = np.random.default_rng(7)
    world = flight(rng, 16, family, lane=8)
    mosaic = begin(world.system(world.links(world.chain, rng))).mosaic_from_frame
    near = OUTLINE.centre + np.array([[0.0, 0.0], [1e-3, 0.0], [0.0, 1e-3]])
    seen = apply_map(mosaic[8], near)
    np.testing.assert_allclose(seen[0], OUTLINE.centre, atol=1e-9)
    slopes = np.array([seen[1] - seen[0], seen[2] - seen[0]]).T / 1e-3
    assert slopes[1, 0] - slopes[0, 1] == pytest.approx(0.0, abs=1e-5)
    assert np.linalg.det(slopes) == pytest.approx(1.0, abs=1e-5)


def test_the_mosaic_is_seen_from_the_frame_that_is_asked_for():
    rng = np.random.default_rng(7)
    world = flight(rng, 16, lane=8)
    mosaic = begin(world.system(world.links(world.chain, rng), reference=3)).mosaic_from_frame
    np.testing.assert_allclose(apply_map(mosaic[3], OUTLINE.centre[None]), OUTLINE.centre[None], atol=1e-9)


def test_frames_lie_to_each_other_in_pixels_as_they_do_in_units():
    state, world = estimate(chain_of(1), told(1, BESIDE[::3])), world_of(1)
    pair = BESIDE[3]
    in_pixels = np.linalg.inv(state.mosaic_from_frame[pair.i]) @ state.mosaic_from_frame[pair.j]
    points = world.see(pair, np.random.default_rng(0), noise=0.0)
    in_units = np.linalg.inv(state.solution.maps[pair.i]) @ state.solution.maps[pair.j]
    expected = apply_map(in_units, (points.points_j - OUTLINE.centre) / OUTLINE.unit) * OUTLINE.unit + OUTLINE.centre
    np.testing.assert_allclose(apply_map(in_pixels, points.points_j), expected, atol=1e-8)


# Landmark by landmark


def test_landmarks_that_no_map_follows_do_not_bend_the_mosaic_at_the_end():
    world, rng = world_of(2), np.random.default_rng(8)
    records = [world.see(pair, rng, count=12) for pair in (*world.chain, *BESIDE[::2])]
    spoiled = []
    for record in records:
        points_i = record.points_i.copy()
        points_i[rng.integers(12)] += rng.normal(0.0, 12.0, 2)
        spoiled.append(fit_link(Landmarks(record.pair, points_i, record.points_j, record.sigma), OUTLINE))
    chain = begin(world.system(spoiled[: FRAMES - 1]))
    state = estimate(chain, spoiled[FRAMES - 1 :])
    refined = refine_on_landmarks(state)
    assert world.error_px(refined.solution.maps) < 0.7 * world.error_px(state.solution.maps)


def test_honest_landmarks_are_not_made_worse_at_the_end():
    ratios = []
    for seed in range(3):
        state = estimate(chain_of(seed), told(seed, BESIDE[::3]))
        errors = (world_of(seed).error_px(some.solution.maps) for some in (refine_on_landmarks(state), state))
        ratios.append(next(errors) / next(errors))
    assert np.mean(ratios) < 1.1


def test_a_persons_clicks_count_at_the_end_though_pixels_are_more_exact():
    world, rng = world_of(1), np.random.default_rng(3)
    clicked = world.links(BESIDE[::6], rng, sigma=4.0)
    state = estimate(begin(world.system(world.links(world.chain, rng, sigma=0.05))), clicked, set(BESIDE[::6]))
    refined = refine_on_landmarks(state)
    for link in clicked:
        left = np.sum(refined.system.links[refined.system.place_of[link.pair]].root ** 2) / np.sum(link.root**2)
        assert left > 0.75


def test_the_same_links_are_believed_and_rejected_at_the_end():
    state = estimate(chain_of(1), told(1, BESIDE, random_lies(1, 3)))
    refined = refine_on_landmarks(state)
    assert refined.rejected == state.rejected
    assert list(refined.system.place_of) == list(state.system.place_of)


def test_a_state_without_links_is_certain_as_it_is():
    state = begin(world_of(0).system([]))
    assert without_contested(state) is state
