"""The real sequence: a table of matches that seeds draw from, and the landmarks that judge."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.errors import InputError, UsageError
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import square
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import NoExternalModel
from smalti.records import Answer, Landmarks, Pair
from smalti.registration.keypoints import Keypoints
from smalti_lab.experiments.methods import FrameMaps, Method
from smalti_lab.experiments.real_sequence import (
    Caliterra,
    Matches,
    caliterra,
    check_caliterra,
    keep_matches,
    load_matches,
)
from smalti_lab.experiments.worlds import OUTLINE, raster

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[4] / "shared" / "data"))
FRAMES = 8


@pytest.fixture(scope="module")
def matches() -> Matches:
    """Of a raster, with keypoints that are as many as the frame's number."""
    agent, rng = raster(FRAMES).agent(1), np.random.default_rng(1)
    found = [landmarks for pair in agent.pairs() if (landmarks := agent.landmarks(pair)) is not None]
    keypoints = [
        Keypoints(
            rng.uniform(0, 100, (n, 2)).astype(np.float32),
            rng.integers(0, 255, (n, 128)).astype(np.uint8),
            np.linspace(1, 0, n, dtype=np.float32),
        )
        for n in range(FRAMES)
    ]
    return Matches.of(found, keypoints, OUTLINE)


def rows_of(landmarks: Landmarks | None) -> list[tuple[float, ...]]:
    assert landmarks is not None
    return [tuple(row) for row in np.hstack([landmarks.points_i, landmarks.points_j])]


def test_a_seed_draws_as_many_landmarks_of_each_pair_from_its_own(matches):
    everything = raster(FRAMES).agent(1)
    drawn = matches.drawn(np.random.default_rng(3))
    assert drawn.pairs() == everything.pairs()
    repeated = 0
    for pair in drawn.pairs():
        of_all, of_seed = rows_of(everything.landmarks(pair)), rows_of(drawn.landmarks(pair))
        assert len(of_seed) == len(of_all)
        assert set(of_seed) <= set(of_all)
        repeated += len(of_seed) - len(set(of_seed))
    assert repeated > 0


def test_the_last_landmark_of_a_pair_is_drawn_as_often_as_the_first(matches):
    pair = Pair(0, 1)
    first, *_, last = rows_of(raster(FRAMES).agent(1).landmarks(pair))
    drawn = [row for seed in range(300) for row in rows_of(matches.drawn(np.random.default_rng(seed)).landmarks(pair))]
    assert drawn.count(last) == pytest.approx(drawn.count(first), rel=0.4)
    assert min(drawn.count(first), drawn.count(last)) > 100


def test_matches_come_back_from_disk_as_they_were(matches, tmp_path):
    assert load_matches(tmp_path, "set", FRAMES) is None
    keep_matches(tmp_path, "set", matches)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]
    found = load_matches(tmp_path, "set", FRAMES)
    assert found is not None
    for name in ("pairs", "points_i", "points_j"):
        np.testing.assert_array_equal(getattr(found, name), getattr(matches, name))
    assert found.outline == matches.outline
    for before, after in zip(matches.keypoints, found.keypoints, strict=True):
        np.testing.assert_array_equal(after.descriptors, before.descriptors)
        np.testing.assert_array_equal(after.points, before.points)


def test_error_is_the_rms_distance_in_frame_i_over_the_landmarks_that_judge(matches):
    world = raster(FRAMES)
    points = np.array([[10.0, 20.0], [80.0, 30.0], [40.0, 90.0]])
    shift = world.positions[1] - world.positions[0]
    judges = [Landmarks(Pair(0, 1), points + shift, points), Landmarks(Pair(2, 3), points + shift, points)]
    real = Caliterra(matches, judges, world.positions, seed=1)
    maps = FrameMaps(square(world.mosaic_from_frame), np.zeros(FRAMES, dtype=np.int64), Lens(OUTLINE))
    assert real.relative_rmsd(maps) == pytest.approx(0.0, abs=1e-9)
    maps.mosaic_from_frame[1, :2, 2] += [3.0, 4.0]
    assert real.relative_rmsd(maps) == pytest.approx(5.0 / math.sqrt(2))
    assert math.isnan(real.shape_rmsd(maps))


def test_the_loop_begins_as_a_build_does(matches):
    real = Caliterra(matches, [], np.zeros((FRAMES, 2)), seed=1)
    agent = real.agent(1, chain_noise=1.0)
    for method in (Method("paper"), Method("smalti", "projective")):
        state = real.start(agent, NoExternalModel(FRAMES), method)
        assert {Pair(n, n + 1) for n in range(FRAMES - 1)} < set(state.chain)  # and triangles, which measure the noise


def test_whoever_asks_the_same_answers_get_the_same_finish(matches):
    real = Caliterra(matches, [], np.zeros((FRAMES, 2)), seed=1)
    agent = real.agent(1, chain_noise=1.0)
    pairs = [pair for pair in agent.pairs() if pair.j - pair.i > 2][:2]
    found = []
    for method in (Method("paper"), Method("smalti", "projective")):
        start = real.start(agent, NoExternalModel(FRAMES), method)
        finish = real.finish(start)
        found.append(finish(start.replay(agent.answer(pair) for pair in pairs)).mosaic_from_frame)
    np.testing.assert_array_equal(*found)


def test_what_a_chain_leaves_apart_is_joined_by_the_nearest_pair_that_matches(matches):
    real = Caliterra(matches, [], np.zeros((FRAMES, 2)), seed=1)
    agent = real.agent(1, chain_noise=1.0)
    around = [Pair(i, j) for i in range(4) for j in range(4, FRAMES)]

    class Gap:
        """Sees nothing over the middle but from the first frame to the last."""

        def answer(self, pair):
            return Answer.no(pair) if pair in around and pair != Pair(0, FRAMES - 1) else agent.answer(pair)

    state = real.start(Gap(), NoExternalModel(FRAMES), Method("smalti", "projective"))
    assert isinstance(state, ActiveLoop)
    assert Pair(0, FRAMES - 1) in state.chain
    assert not state.part.any()


def test_absent_frames_are_one_line_that_says_where_to_look(tmp_path, monkeypatch):
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))
    with pytest.raises(InputError, match="set SMALTI_DATA"):
        check_caliterra(75, 1.0)


@pytest.fixture
def data(monkeypatch) -> None:
    if not (DATA / "caliterra" / "landmarks.csv").exists():
        pytest.skip(f"no real data: {DATA}/caliterra/landmarks.csv is absent, set SMALTI_DATA to its root")
    monkeypatch.setenv("SMALTI_DATA", str(DATA))


@pytest.mark.parametrize(
    ("frames", "chain_noise", "word"), [(76, 1.0, "the set has 75"), (2, 1.0, "at least 3"), (75, 3.0, "leave")]
)
def test_what_the_set_does_not_have_is_refused(data, frames, chain_noise, word):
    with pytest.raises(UsageError, match=word):
        check_caliterra(frames, chain_noise)


@pytest.fixture
def three_frames(data, tmp_path, monkeypatch) -> None:
    """The beginning of the set: to look at all its frames would take seconds."""
    few = tmp_path / "data" / "caliterra"
    (few / "frames").mkdir(parents=True)
    for path in sorted((DATA / "caliterra" / "frames").iterdir())[:3]:
        (few / "frames" / path.name).symlink_to(path)
    for name in ("landmarks.csv", "gps.csv"):
        (few / name).symlink_to(DATA / "caliterra" / name)
    monkeypatch.setenv("SMALTI_DATA", str(few.parent))


def test_real_frames_are_matched_once_and_judged_by_their_landmarks(three_frames, tmp_path, monkeypatch):
    real = caliterra(3, 1, tmp_path)
    assert real.overlapping.tolist() == [[0, 1], [0, 2], [1, 2]]
    agent = real.agent(1, chain_noise=1.0)
    state = real.start(agent, real.external, Method("paper"), StopRule(budget=1))
    assert real.relative_rmsd(real.finish(state)(state)) < 5.0
    assert real.relative_rmsd(FrameMaps.of(state)) < 10.0
    monkeypatch.setattr("smalti_lab.experiments.real_sequence.match_all", lambda *_: pytest.fail("matched again"))
    again = caliterra(3, 2, tmp_path)
    np.testing.assert_array_equal(again.matches.points_i, real.matches.points_i)
