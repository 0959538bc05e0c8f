"""A matcher of one's own: what it is given, what it may return, and what becomes of one that knows nothing."""

from __future__ import annotations

import numpy as np
import pytest

import smalti
from smalti.cli.build_command import closing_words
from smalti.errors import ProjectError, UsageError
from smalti.project.entries import Role
from tests.building.filmed import TINY, TrueMatcher, error_px, tiny, tiny_images


@pytest.fixture
def images(tmp_path_factory):
    return tiny_images(tmp_path_factory.getbasetemp())


def find_nothing(first, second):
    return None


def test_a_plain_callable_is_asked_with_two_rgb_images(images, tmp_path):
    given = []
    matcher = TrueMatcher(tiny())

    def match(first, second):
        given.append((first, second))
        return matcher(first, second)

    with smalti.build(images, tmp_path / "out", matcher=match, budget=10) as project:
        told = project.info()
        assert told.asked <= 10
        assert told.frames.placed == 12
        assert len(given) == told.attempts
        assert [entry.answer.pair for entry in project.answers] == matcher.calls
        assert error_px(project, tiny()) < 0.5
    for image in given[0]:
        assert (image.shape, image.dtype) == ((TINY[1], TINY[0], 3), np.uint8)
    # Red, green, blue, and the earlier frame first.
    np.testing.assert_array_equal(given[0][0], tiny().frame(0))
    np.testing.assert_array_equal(given[0][1], tiny().frame(1))


def test_one_that_finds_nothing_leaves_no_mosaic_and_says_so(images, tmp_path):
    with smalti.build(images, tmp_path / "out", matcher=find_nothing, budget=5) as project:
        told = project.info()
        assert (told.parts, told.yes, told.frames.placed, told.frames.not_placed) == (0, 0, 0, 12)
        assert set(project.not_placed.values()) == {"matches no other frame"}
        assert closing_words(project).startswith("no two of the 12 frames could be matched")
        assert (project.folder / "report.html").is_file()
        assert not (project.folder / "mosaic.png").exists()


def test_words_on_no_mosaic_name_no_picture_that_is_not_there(images, tmp_path):
    with smalti.build(images, tmp_path / "out", matcher=find_nothing, budget=0) as project:
        assert "mosaic.png" not in closing_words(project)


def test_one_that_finds_half_the_sequence_leaves_a_mosaic_of_that(images, tmp_path):
    matcher = TrueMatcher(tiny())

    def match(first, second):
        found = matcher(first, second)
        return found if matcher.calls[-1].j < 7 else None

    with smalti.build(images, tmp_path / "out", matcher=match, budget=10) as project:
        assert project.parts == 1
        assert sorted(project.not_placed) == [7, 8, 9, 10, 11]
        assert error_px(project, tiny()) < 0.5


@pytest.mark.parametrize(
    ("returned", "word"),
    [
        ("points", "two arrays"),
        (7, "two arrays"),
        ((np.zeros((4, 2)), np.zeros((3, 2))), "4 points for the first image and 3 for the second"),
        ((np.zeros((4, 3)), np.zeros((4, 3))), r"shape \(n, 2\)"),
        ((np.full((4, 2), np.nan), np.zeros((4, 2))), "finite"),
    ],
)
def test_one_that_returns_something_else_is_told_what_is_expected(returned, word, images, tmp_path):
    with pytest.raises(UsageError, match=word) as caught:
        smalti.build(images, tmp_path / "out", matcher=lambda first, second: returned)
    assert "\n" not in str(caught.value)


def test_points_as_lists_are_as_good_as_arrays(images, tmp_path):
    matcher = TrueMatcher(tiny())

    def match(first, second):
        found = matcher(first, second)
        return None if found is None else [side.tolist() for side in found]

    with smalti.build(images, tmp_path / "out", matcher=match, budget=0) as project:
        assert project.info().frames.placed == 12


def test_an_error_inside_it_is_its_own_and_what_was_answered_is_kept(images, tmp_path):
    matcher = TrueMatcher(tiny())

    def match(first, second):
        if len(matcher.calls) == 5:
            raise RuntimeError("out of memory")
        return matcher(first, second)

    with pytest.raises(RuntimeError, match="out of memory"):
        smalti.build(images, tmp_path / "out", matcher=match)
    with smalti.Project.open(tmp_path / "out") as project:
        assert [entry.role for entry in project.answers] == 5 * [Role.CHAIN]


def test_another_matcher_does_not_go_on_with_a_build(images, tmp_path):
    smalti.build(images, tmp_path / "out", matcher=find_nothing, budget=0).close()
    with pytest.raises(ProjectError, match="other options"):
        smalti.build(images, tmp_path / "out", budget=0)
