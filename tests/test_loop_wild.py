"""Whatever is answered, numbers stay finite, and nothing is raised but what names its remedy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from smalti.active_loop import ActiveLoop
from smalti.engine.links import fit_link
from smalti.errors import SmaltiError
from smalti.geometry.homographies import FAMILIES, PROJECTIVE, apply_map
from smalti.records import Answer, Author, Landmarks, Pair
from tests.worlds import OUTLINE

WILD = settings(derandomize=True, deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))

coordinate = st.one_of(
    st.floats(-200.0, 300.0),
    st.sampled_from([0.0, 1e-12, 40.0, 119.0, 1e4, -1e7, 1e12]),
)
points = st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=7)
sigma = st.sampled_from([1e-9, 1e-3, 0.5, 1.0, 30.0, 1e6])


@st.composite
def absurd(draw, pair):
    """Landmarks that anybody may give: on a point, on a line, far away, or anywhere."""
    points_j = np.array(draw(points))
    kind = draw(st.sampled_from(["anywhere", "shift", "line", "one point", "turned"]))
    if kind == "anywhere":
        points_i = np.array(
            draw(st.lists(st.tuples(coordinate, coordinate), min_size=len(points_j), max_size=len(points_j)))
        )
    elif kind == "line":
        along = np.arange(len(points_j))[:, None]
        points_j, points_i = along * [10.0, 5.0], along * [10.0, 5.0] + 3.0
    elif kind == "one point":
        points_j = np.repeat(points_j[:1], len(points_j), axis=0)
        points_i = points_j + 5.0
    elif kind == "turned":
        points_i = points_j[:, ::-1] * [1.0, -1.0]
    else:
        points_i = points_j + np.array(draw(st.tuples(coordinate, coordinate)))
    return Landmarks(pair, points_i, points_j, draw(sigma))


@st.composite
def sensible(draw, pair):
    """What a frame that lies a third of a frame further each time shows, with one landmark or more."""
    count = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    points_j = rng.uniform([0, 0], [119, 79], (count, 2))
    shift = [35.0 * (pair.j - pair.i), rng.normal(0.0, 2.0)]
    return Landmarks(pair, points_j + shift + rng.normal(0.0, 0.5, (count, 2)), points_j, 0.5)


@st.composite
def histories(draw):
    """A number of frames, a chain of which some links are missing or absurd, and answers of all kinds."""
    frames = draw(st.integers(2, 14))
    wildness = draw(st.sampled_from([0, 1, 4]))  # of five links, so many are absurd

    def told(pair):
        return draw(absurd(pair) if draw(st.integers(0, 4)) < wildness else sensible(pair))

    chain = [told(Pair(n, n + 1)) for n in range(frames - 1) if draw(st.integers(0, 5))]
    pairs = [Pair(i, j) for i in range(frames) for j in range(i + 2, frames)]
    asked = draw(st.lists(st.sampled_from(pairs), max_size=6, unique=True)) if pairs else []
    answers = []
    for pair in asked:
        kind = draw(st.sampled_from(["yes", "yes", "person", "no", "unsure"]))
        if kind in ("no", "unsure"):
            answers.append(Answer.no(pair) if kind == "no" else Answer.unsure(pair))
        else:
            author = Author.PERSON if kind == "person" else Author.MATCHER
            answers.append(Answer.yes(told(pair), author=author))
    return frames, chain, answers


def without_refused(chain, family=PROJECTIVE):
    """What of a chain is not refused by itself."""
    kept = []
    for landmarks in chain:
        try:
            fit_link(landmarks, OUTLINE, None, family)
        except SmaltiError:
            continue
        kept.append(landmarks)
    return kept


def assert_finite(state):
    frames = state.frames
    pairs = np.column_stack(np.triu_indices(frames, 1))
    both = state.covariance.of_pairs(pairs)
    suggestions = state.suggest(3)
    outlook = state.prediction
    numbers = {
        "mosaic": state.mosaic_from_frame,
        "means": both.mean,
        "covariances": both.cov,
        "suggestions": [[some.expected_reward, *some.reasons.values()] for some in suggestions],
        "probabilities": state.posterior.of_pairs(pairs),
        "error": [outlook.error_px, outlook.bound_px, *outlook.ahead_px.values()],
        "expected": [state.expect(Pair(*map(int, pair))).i_from_j for pair in pairs[::5]],
        "noise": state.estimate.noise_model.noise,
        "contradictions": list(state.estimate.chi2().values()),
    }
    for name, values in numbers.items():
        assert np.isfinite(np.asarray(values, dtype=float)).all(), name
    assert (np.linalg.det(state.mosaic_from_frame) > 0).all(), "a mirrored frame"
    corners = apply_map(state.mosaic_from_frame, OUTLINE.corners)
    assert np.isfinite(corners).all(), "corners"


@WILD
@given(histories())
def test_any_answers_leave_a_finite_state(history):
    frames, chain, answers = history
    state = ActiveLoop.start(frames, OUTLINE, without_refused(chain))
    assert_finite(state)
    for answer in answers:
        try:
            state = state.record(answer)
        except SmaltiError:
            continue
    assert_finite(state)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@settings(WILD, max_examples=4)
@given(history=histories())
def test_in_every_family_they_do(family, history):
    frames, chain, answers = history
    state = ActiveLoop.start(frames, OUTLINE, without_refused(chain, family), family=family)
    for answer in answers:
        try:
            state = state.record(answer)
        except SmaltiError:
            continue
    assert_finite(state)


def test_frames_that_nothing_joins_at_all_have_a_finite_state():
    assert_finite(ActiveLoop.start(12, OUTLINE, []))


def test_many_small_mosaics_have_a_finite_state():
    # As a sequence of 167 frames with 17 breaks ended a build.
    rng = np.random.default_rng(1)
    points = rng.uniform([0, 0], [119, 79], (6, 2))
    chain = [
        Landmarks(Pair(n, n + 1), points + np.array([30.0, 0.0]) + rng.normal(0, 0.5, (6, 2)), points, 0.5)
        for n in range(166)
        if n % 10 != 9
    ]
    state = ActiveLoop.start(167, OUTLINE, chain)
    assert_finite(state)
    for n in range(3):
        pair = state.best.pair
        shown = Landmarks(pair, points + 10.0 * n, points, 0.5)
        state = state.record(Answer.yes(shown))
    assert_finite(state)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_a_chain_that_grows_or_shrinks_without_end_has_a_finite_state(scale):
    rng = np.random.default_rng(2)
    points = rng.uniform([0, 0], [119, 79], (6, 2))
    chain = [Landmarks(Pair(n, n + 1), (points - 50.0) * scale + 50.0, points, 0.5) for n in range(9)]
    assert_finite(ActiveLoop.start(10, OUTLINE, chain, family=PROJECTIVE))
