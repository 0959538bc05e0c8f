"""The map that matches agree on: the truth where frames overlap, a reasoned no where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import apply
from smalti.geometry.outline import Outline
from smalti.paper.linear_adjustment import fit_affine_link
from smalti.records import Answer, Pair, Verdict
from smalti.registration import robust_fit as fitting
from smalti.registration.keypoints import find_keypoints, match_keypoints
from smalti.registration.robust_fit import FitSettings, find_fault, fit_matches
from tests.registration.scenes import apart, flight, gray, keypoints, largest_error, overlapping

PAIR = Pair(2, 7)
WIDTH, HEIGHT = 240, 180
OUTLINE = Outline.of_pixels(WIDTH, HEIGHT)
TURNED = np.array([[0.95, 0.2, 20.0], [-0.2, 0.95, -10.0]])
SHIFT = np.array([3.0, 4.0])
LINE = np.column_stack([np.linspace(0, 200, 40), np.linspace(10, 100, 40)])


def spread(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform([0, 0], [WIDTH - 1, HEIGHT - 1], (count, 2))


def fit(points_i: np.ndarray, points_j: np.ndarray, **settings: float) -> Answer:
    return fit_matches(PAIR, points_i, points_j, OUTLINE, FitSettings(**settings))


def refusal(points_i: np.ndarray, points_j: np.ndarray, **settings: float) -> str:
    answer = fit(points_i, points_j, **settings)
    assert answer.verdict is Verdict.UNSURE
    assert answer.pair == PAIR
    return answer.reason


def of_frames(pair: Pair) -> Answer:
    points = match_keypoints(keypoints(pair.i), keypoints(pair.j))
    return fit_matches(pair, *points, flight().outline, FitSettings())


def test_frames_that_share_three_tenths_get_a_yes_within_three_tenths_of_a_pixel():
    pairs = overlapping(0.3)
    assert len(pairs) > 50
    for pair in pairs:
        answer = of_frames(pair)
        assert answer.landmarks is not None, f"{pair}: {answer.reason}"
        assert largest_error(fit_affine_link(answer.landmarks).i_from_j, pair) < 0.3, pair


def test_of_frames_that_share_nothing_it_cannot_tell_and_says_why():
    pairs = apart()
    assert len(pairs) > 100
    for pair in pairs:
        answer = of_frames(pair)
        assert answer.verdict is Verdict.UNSURE, pair
        assert "matches" in answer.reason


def test_a_frame_upside_down_is_placed_to_a_tenth_of_a_pixel():
    upside_down = find_keypoints(np.ascontiguousarray(np.rot90(gray(0), 2)))
    answer = fit(*match_keypoints(keypoints(0), upside_down))
    assert answer.landmarks is not None
    i_from_j = fit_affine_link(answer.landmarks).i_from_j
    centre = apply(i_from_j, OUTLINE.centre[None])[0]
    np.testing.assert_allclose(centre, OUTLINE.centre, atol=0.1)


def test_exact_matches_are_all_kept_in_their_order():
    points_j = spread(40)
    answer = fit(apply(TURNED, points_j), points_j)
    assert answer.landmarks is not None
    assert answer.reason == "40 of 40 matches agree"
    np.testing.assert_array_equal(answer.landmarks.points_j, points_j)
    np.testing.assert_array_equal(answer.landmarks.points_i, apply(TURNED, points_j))


@pytest.mark.parametrize(("wrong_share", "seed"), [(0.3, 0), (0.6, 1)])
def test_wrong_matches_are_left_out_even_if_they_are_the_majority(wrong_share, seed):
    rng = np.random.default_rng(seed)
    points_j = spread(200, seed)
    points_i = apply(TURNED, points_j) + rng.normal(0, 0.3, points_j.shape)
    wrong = rng.permutation(200)[: round(200 * wrong_share)]
    points_i[wrong] = rng.uniform([0, 0], [WIDTH, HEIGHT], (len(wrong), 2))
    answer = fit(points_i, points_j)
    assert answer.landmarks is not None, answer.reason
    off = np.linalg.norm(apply(TURNED, answer.landmarks.points_j) - answer.landmarks.points_i, axis=1)
    assert off.max() < 3.5
    assert len(off) >= 200 - len(wrong)
    found = fit_affine_link(answer.landmarks).i_from_j
    assert np.abs(apply(found, OUTLINE.corners) - apply(TURNED, OUTLINE.corners)).max() < 0.5


def test_the_same_matches_get_the_same_answer():
    rng = np.random.default_rng(3)
    points_j = spread(150)
    points_i = apply(TURNED, points_j) + rng.normal(0, 1.5, points_j.shape)
    points_i[:80] = spread(80, seed=9)
    answers = [fit(points_i.copy(), points_j.copy()) for _ in range(3)]
    for answer in answers[1:]:
        assert answer.reason == answers[0].reason
        np.testing.assert_array_equal(answer.landmarks.points_i, answers[0].landmarks.points_i)


def test_perspective_does_not_cost_the_rim():
    points_j = spread(120)
    homography = np.array([[1.0, 0.02, 5.0], [0.01, 1.0, 3.0], [9e-4, -6e-4, 1.0]])
    mapped = np.column_stack([points_j, np.ones(120)]) @ homography.T
    points_i = mapped[:, :2] / mapped[:, 2:]
    answer = fit(points_i, points_j)
    assert answer.landmarks is not None
    assert len(answer.landmarks) == 120
    # No affine map fits them all.
    affine = fit_affine_link(answer.landmarks).i_from_j
    assert np.linalg.norm(apply(affine, points_j) - points_i, axis=1).max() > FitSettings().threshold_px


STEEP = np.array([[1.0, 0.1, 5.0], [-0.1, 1.0, 3.0], [2.5e-3, 1e-3, 1.0]])


def test_a_strong_tilt_keeps_its_matches_beside_as_many_wrong_ones():
    rng = np.random.default_rng(0)
    points_j = spread(80, 0)
    points_i = apply_map(STEEP, points_j) + rng.normal(0, 0.5, points_j.shape)
    points_i[40:] = spread(40, 0 + 9)
    answer = fit(points_i, points_j)
    assert answer.landmarks is not None, answer.reason
    off = np.linalg.norm(apply_map(STEEP, answer.landmarks.points_j) - answer.landmarks.points_i, axis=1)
    assert (off < 3.5).sum() >= 38
    assert off.max() < 8.0


def test_of_two_maps_the_affine_one_stays_unless_a_homography_explains_clearly_more(monkeypatch):
    points_j = spread(40)
    points_i = apply(TURNED, points_j)
    points_i[:6] = spread(6, seed=9)
    agreeing = np.arange(40) >= 6
    there = np.vstack([TURNED, [0, 0, 1]])

    def maps(source):
        return there if source is points_j else np.linalg.inv(there)

    for more, kept in ((2, 34), (3, 37)):
        found = agreeing.copy()
        found[:more] = True
        monkeypatch.setattr(fitting, "_robust_homography", lambda source, *_, found=found: (maps(source), found))
        assert len(fit(points_i, points_j).landmarks) == kept


def test_a_homography_that_no_camera_makes_gives_way_to_the_affine_map(monkeypatch):
    points_j = spread(40)
    points_i = apply(TURNED, points_j)
    points_i[:6] = spread(6, seed=9)
    mirrored = np.diag([-1.0, 1.0, 1.0])
    monkeypatch.setattr(fitting, "_robust_homography", lambda *_: (mirrored, np.ones(40, dtype=bool)))
    assert len(fit(points_i, points_j).landmarks) == 34


@pytest.mark.parametrize(
    ("homography", "reason"),
    [
        (np.array([[1.0, 0, 0], [0, 1, 0], [-1 / 120, 0, 1]]), "horizon"),
        (np.array([[1.0, 0, 0], [0, 1, 0], [1 / 120, 0, 1]]), "one side 3 times as near"),
        (np.array([[-1.0, 0, 0], [0, 1, 0], [1e-4, 0, 1]]), "mirrors"),
        (np.array([[5.0, 0, 0], [0, 5, 0], [0, 0, 1]]), "scales"),
    ],
)
def test_a_homography_that_no_camera_makes_has_its_fault(homography, reason):
    assert reason in find_fault(homography, np.array([[0.0, 0], [240, 0], [240, 180], [0, 180]]), FitSettings())
    assert reason in find_fault(-2 * homography, np.array([[0.0, 0], [240, 0], [240, 180], [0, 180]]), FitSettings())


def test_matches_in_a_corner_do_not_bring_the_horizon_into_the_frame():
    points_j = spread(60) * [0.3, 1.0]
    homography = np.array([[1.0, 0, 0], [0, 1, 0], [-1 / 200, 0, 1]])
    assert find_fault(homography, points_j, FitSettings()) == ""
    assert "horizon" in refusal(apply_map(homography, points_j), points_j, least_inliers=30)


def test_a_mirrored_frame_is_refused():
    points_j = spread(40)
    assert "mirrors the frame" in refusal([WIDTH - 1, 0] + points_j * [-1, 1], points_j)


@pytest.mark.parametrize(
    ("factors", "reason"),
    [((5, 5), "scales by 5 and 5"), ((0.2, 0.2), "scales by 0.2 and 0.2"), ((1, 2.5), "stretches one side 2.5 times")],
)
def test_a_map_that_no_camera_makes_is_refused(factors, reason):
    points_j = spread(40)
    assert reason in refusal(points_j * factors, points_j)


@pytest.mark.parametrize("factors", [(3.5, 3.5), (0.3, 0.3), (1, 1.8)])
def test_a_map_that_a_camera_may_make_is_believed(factors):
    points_j = spread(40)
    assert fit(points_j * factors, points_j).verdict is Verdict.YES


def test_matches_on_one_line_are_refused():
    assert "one line" in refusal(LINE + SHIFT, LINE)


@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_matches_that_are_nearly_on_one_line_are_refused(noise):
    rng = np.random.default_rng(6)
    refusal(LINE + SHIFT + rng.normal(0, noise, LINE.shape), LINE + rng.normal(0, noise, LINE.shape))


def test_matches_of_a_single_point_are_refused():
    point = np.tile([6.0, 7.0], (40, 1))
    assert "no map fits any of the 40 matches" in refusal(point + SHIFT, point)


@pytest.mark.parametrize("count", [0, 3, 9])
def test_too_few_matches_are_refused_by_their_number(count):
    points_j = spread(40)[:count]
    assert refusal(points_j + 3.0, points_j).startswith(f"{count} matches")


def test_eleven_that_agree_are_enough():
    points_j = spread(11)
    assert fit(points_j + 3.0, points_j).verdict is Verdict.YES


def test_random_matches_are_refused_by_how_few_agree():
    reason = refusal(spread(200, 0), spread(200, 0 + 50))
    assert reason.endswith("of 200 matches agree, 30 needed")


def test_the_more_matches_there_are_the_more_must_agree():
    points_j = spread(300)
    points_i = spread(300, seed=8)
    points_i[:25] = apply(TURNED, points_j[:25])
    assert "40 needed" in refusal(points_i, points_j)
    assert fit(points_i, points_j, least_share=0.0).verdict is Verdict.YES


def test_maps_forth_and_back_that_disagree_are_refused(monkeypatch):
    robust = fitting._robust_affine

    def biased_on_the_way_back(source, target, settings):
        found, agreeing = robust(source, target, settings)
        return (moved @ found if target is points_j else found), agreeing

    moved = np.array([[1.0, 0.0, 8.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    points_j = spread(40)
    monkeypatch.setattr(fitting, "_robust_affine", biased_on_the_way_back)
    assert "disagree by 8.0 px, 3.0 allowed" in refusal(points_j + 2.0, points_j)


@pytest.mark.parametrize(("shift_px", "is_believed"), [(0.0, False), (170.0, True)])
def test_a_share_of_the_matches_in_the_common_field_must_agree(shift_px, is_believed):
    # Twenty matches agree, and eighty others are scattered: over a whole frame they refute the map, over a strip not.
    common = spread(20) * np.array([(WIDTH - shift_px) / WIDTH, 1.0])
    wrong_i, wrong_j = spread(80, seed=2), spread(80, seed=3)
    points_i = np.concatenate([common + np.array([shift_px, 0.0]), wrong_i])
    answer = fit(points_i, np.concatenate([common, wrong_j]), least_inliers=8, least_share_in_common=0.25)
    assert (answer.verdict is Verdict.YES) == is_believed
