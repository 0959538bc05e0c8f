"""Which way of registering a sequence gets: keypoints while they serve, all pixels where they do not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.agents.registration_methods import RegistrationMethod
from smalti.building.build_settings import BuildSettings
from smalti.building.matcher_choice import Trial, Trials, rank_by_trials
from smalti.building.preparation import prepare
from smalti.errors import UnknownNameError
from smalti.frames.source import open_source
from smalti.progress import Silence
from smalti.project.entries import Role
from smalti.project.project import Project
from smalti.records import Answer
from tests.building.filmed import strips, write_images

FRAMES = 7


class Silent:
    def answer(self, pair):
        return Answer.unsure(pair)


def dull(image, rng):
    """What a haze leaves of a frame, and noise: hardly a keypoint."""
    soft = cv2.GaussianBlur(image, (0, 0), 2.5).astype(np.float32)
    faint = 120 + 0.35 * (soft - soft.mean()) + rng.normal(0, 2.0, soft.shape)
    return np.clip(faint, 0, 255).astype(np.uint8)


def prepared(folder, images, **options):
    settings = BuildSettings(**options)
    source = folder / "images"
    if not source.exists():
        write_images(source, images)
    frames = open_source(source)
    project = Project.begin(folder / "project", frames, str(source), settings.binding())
    project.source = frames
    with project:
        preparation = prepare(project, frames, settings, None, Silence())
        answers = [entry.answer for entry in project.store.answers() if entry.role is Role.CHAIN]
        assert project.info().registered_by == answers[0].method
        return preparation, project.store.fact(Trials), answers


@pytest.fixture(scope="module")
def clear():
    return strips(), [strips().frame(n) for n in range(FRAMES)]


def test_clear_frames_are_matched_by_keypoints_and_nothing_else_is_tried(tmp_path, clear):
    _, images = clear
    _, trials, answers = prepared(tmp_path, images)
    assert set(trials.by_method) == {"keypoints"}
    assert {answer.method for answer in answers} == {"keypoints"}


def test_dull_frames_are_registered_by_all_pixels(tmp_path, clear):
    sequence, images = clear
    rng = np.random.default_rng(1)
    preparation, trials, answers = prepared(tmp_path, [dull(image, rng) for image in images])
    assert set(trials.by_method) == {"keypoints", "all pixels"}
    assert {answer.method for answer in answers} == {"all pixels"}
    assert not preparation.start.part.any()
    assert sequence.truth_error(preparation.start.mosaic_from_frame, preparation.numbers.used).rms < 0.5


@pytest.mark.parametrize(("registration", "method"), [("dense", "all pixels"), ("keypoints", "keypoints")])
def test_who_asks_for_one_way_gets_it(tmp_path, clear, registration, method):
    _, images = clear
    _, trials, answers = prepared(tmp_path, images[:4], registration=registration)
    assert trials is None
    assert {answer.method for answer in answers} == {method}


def test_a_project_goes_on_with_the_way_it_began_with(tmp_path, clear):
    _, images = clear
    prepared(tmp_path, images[:4], registration="dense")
    preparation, trials, _ = prepared(tmp_path, images[:4])
    assert trials is None
    assert all((np.asarray(landmarks.sigma) != 1.0).all() for landmarks in preparation.chain.links)


def test_an_unknown_way_is_refused_by_the_names_of_those_there_are():
    with pytest.raises(UnknownNameError, match="keypoints"):
        BuildSettings(registration="dens")


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (Trial(1.0, 81, 0.5), Trial(0.6, 40, 0.1)),  # registers clearly more
        (Trial(0.95, 81, 0.1), Trial(1.0, 40, 0.5)),  # as many, and its triangles close better
    ],
)
def test_the_better_way_registers_more_or_as_many_more_precisely(better, worse):
    assert better.is_better_than(worse)
    assert not worse.is_better_than(better)


def test_of_two_ways_about_as_good_neither_is_better():
    one, other = Trial(1.0, 81, 0.4), Trial(0.95, 40, 0.5)
    assert not one.is_better_than(other)
    assert not other.is_better_than(one)


def test_the_best_method_of_the_trial_comes_first_and_a_yes_of_the_others_is_worth_less():
    methods = [RegistrationMethod(name, Silent(), 0.1) for name in ("keypoints", "all pixels", "third")]
    trials = {"keypoints": Trial(0.3, 20, 2.0), "all pixels": Trial(0.6, 81, 0.5), "third": Trial(0.9, 81, 0.5)}
    ranked = rank_by_trials(methods, Trials(trials))
    assert [(one.name, one.share) for one in ranked] == [("third", 0.9), ("keypoints", 0.3), ("all pixels", 0.6)]
    assert ranked[0].value > ranked[1].value == ranked[2].value


def test_a_method_that_was_not_tried_comes_after_the_one_that_did_best():
    methods = [RegistrationMethod(name, Silent(), 0.1) for name in ("keypoints", "all pixels")]
    ranked = rank_by_trials(methods, Trials({"keypoints": Trial(1.0, 400, 0.5)}))
    assert [one.name for one in ranked] == ["keypoints", "all pixels"]


def test_keypoints_are_good_if_they_match_often_and_many():
    assert Trial(0.95, 400, 0.1).is_good
    assert not Trial(0.95, 40, 0.1).is_good
    assert not Trial(0.6, 400, 0.1).is_good
