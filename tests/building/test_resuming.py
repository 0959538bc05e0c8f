"""Going on with a build: whatever was asked before is not asked again, and the end is the same."""

from __future__ import annotations

import shutil
from functools import cache

import numpy as np
import pytest

import smalti
from smalti.project.entries import Role
from smalti.records import Pair
from smalti_lab.synthetic.camera_path import wander
from smalti_lab.synthetic.synthetic_files import write_frames
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.building.filmed import (
    HANDLING,
    SCENE_SIZE,
    TINY_BUDGET,
    StopAfter,
    TrueMatcher,
    along,
    built_tiny,
    copied,
    joined,
    maps_of,
    scene,
    strips,
    strips_video,
    tiny,
    tiny_images,
    tiny_video,
)


@pytest.fixture
def base(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


def same_transforms(folder, other):
    return (folder / "transforms.json").read_bytes() == (other / "transforms.json").read_bytes()


@pytest.mark.parametrize(("stage", "steps"), [("reading", 5), ("chain", 4), ("asking", 1), ("asking", 5)])
def test_an_interrupted_build_ends_as_one_that_was_not(stage, steps, base, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        smalti.build(tiny_video(base), tmp_path / "out", budget=TINY_BUDGET, progress=StopAfter(stage, steps))
    assert not (tmp_path / "out" / "transforms.json").exists()
    smalti.build(tiny_video(base), tmp_path / "out", budget=TINY_BUDGET).close()
    assert same_transforms(tmp_path / "out", built_tiny(base))


@cache
def built_until_enough(base):
    return smalti.build(strips_video(base), base / "strips until enough").folder


def test_pairs_that_surely_overlap_are_matched_near_their_expected_place(base):
    with smalti.Project.open(built_until_enough(base)) as project:
        near = [entry.answer.pair for entry in project.store.answers() if entry.role is Role.NEAR]
        assert project.info().matched_near == len(near) > 0
        again = [entry.answer.pair for entry in project.store.answers() if entry.role is Role.RETRY]
        asked = {entry.pair for entry in project.store.log() if entry.answer.role not in (Role.NEAR, Role.RETRY)}
        assert project.info().attempts == len(asked)
        assert project.info().tried_again == len(again)
        true = {Pair(int(i), int(j)) for i, j in strips().overlapping_pairs(1e-9)}
        assert set(near) <= true


@pytest.mark.parametrize(("role", "steps_after"), [(Role.NEAR, 1), (Role.RETRY, 5)])
def test_a_build_interrupted_while_it_matches_near_the_expected_place_ends_as_one_that_was_not(
    role, steps_after, base, tmp_path
):
    with smalti.Project.open(built_until_enough(base)) as project:
        roles = [entry.role for entry in project.store.answers() if entry.role.is_after_chain]
        before = roles.index(role)
    with pytest.raises(KeyboardInterrupt):
        smalti.build(strips_video(base), tmp_path / "out", progress=StopAfter("asking", before + steps_after))
    smalti.build(strips_video(base), tmp_path / "out").close()
    assert same_transforms(tmp_path / "out", built_until_enough(base))


def test_a_build_with_a_budget_matches_no_other_pairs(base):
    with smalti.Project.open(built_tiny(base)) as project:
        assert project.info().matched_near == 0


def test_a_build_interrupted_again_and_again_asks_every_pair_once(base, tmp_path):
    matcher = TrueMatcher(tiny())
    # A replayed answer is a step too.
    for stage, steps in (("chain", 3), ("chain", 8), ("asking", 2), ("asking", 4)):
        with pytest.raises(KeyboardInterrupt):
            smalti.build(
                tiny_images(base), tmp_path / "out", matcher=matcher, budget=8, progress=StopAfter(stage, steps)
            )
    with smalti.build(tiny_images(base), tmp_path / "out", matcher=matcher, budget=8) as project:
        assert matcher.calls == [entry.answer.pair for entry in project.answers]
    assert len(set(matcher.calls)) == len(matcher.calls)
    undisturbed = TrueMatcher(tiny())
    smalti.build(tiny_images(base), tmp_path / "at once", matcher=undisturbed, budget=8).close()
    assert undisturbed.calls == matcher.calls
    assert same_transforms(tmp_path / "out", tmp_path / "at once")


def test_a_deleted_cache_is_made_again_and_nothing_is_asked_again(base, tmp_path):
    folder = copied(built_tiny(base), tmp_path / "copy")
    shutil.rmtree(folder / "cache")
    with (
        smalti.build(tiny_video(base), folder, budget=TINY_BUDGET) as project,
        smalti.Project.open(built_tiny(base)) as before,
    ):
        assert [entry.seconds for entry in project.answers] == [entry.seconds for entry in before.answers]
    assert same_transforms(folder, built_tiny(base))


def test_a_moved_video_goes_on_where_it_was(base, tmp_path):
    folder = copied(built_tiny(base), tmp_path / "copy")
    moved = shutil.copy(tiny_video(base), tmp_path / "moved.mp4")
    with smalti.build(moved, folder, budget=TINY_BUDGET) as project:
        assert project.info().source == str(moved)
    assert same_transforms(folder, built_tiny(base))


def test_a_finished_build_with_a_broken_chain_asks_nothing_more(tmp_path):
    """The loop may suggest pairs that failed on the chain; their answers are known and must count the same again."""
    forth, back = along([(90, 80), (330, 80)]), along([(330, 95), (90, 95)])
    cut = len(forth)
    write_frames(joined(forth, back), tmp_path / "images", ".png")
    for width in (5, 6):
        matcher = TrueMatcher(joined(forth, back))

        def match(first, second, matcher=matcher, width=width):
            found = matcher(first, second)
            pair = matcher.calls[-1]
            return None if pair.i < cut <= pair.j and pair.j - pair.i < width else found

        folder = tmp_path / f"out {width}"
        smalti.build(tmp_path / "images", folder, matcher=match, budget=12).close()
        maps, asked = maps_of(folder), len(matcher.calls)
        smalti.build(tmp_path / "images", folder, matcher=match, budget=12).close()
        assert len(matcher.calls) == asked
        for number, final in maps_of(folder).items():
            np.testing.assert_array_equal(final, maps[number])


def test_a_long_sequence_interrupted_within_a_batch_ends_as_one_that_was_not(tmp_path):
    """From 80 frames on, several questions are chosen at once; those that were not asked yet are asked first."""
    camera = wander(SCENE_SIZE, 82, (96, 72), step=0.2, handling=HANDLING, seed=3)
    sequence = SyntheticSequence(scene(), camera)
    write_frames(sequence, tmp_path / "images", ".png")

    def pairs_of(folder, progress=False):
        with smalti.build(
            tmp_path / "images", folder, budget=7, registration="keypoints", progress=progress
        ) as project:
            return [entry.answer.pair for entry in project.answers]

    at_once = pairs_of(tmp_path / "at once")
    with pytest.raises(KeyboardInterrupt):
        pairs_of(tmp_path / "out", StopAfter("asking", 3))
    assert pairs_of(tmp_path / "out") == at_once
    assert Pair(0, 1) in at_once
    assert same_transforms(tmp_path / "out", tmp_path / "at once")


def test_a_project_that_was_built_can_be_built_again_while_it_is_looked_at(base, tmp_path):
    with (
        smalti.build(tiny_video(base), tmp_path / "tiny.smalti", budget=2) as first,
        smalti.build(tiny_video(base), tmp_path / "tiny.smalti", budget=4) as second,
    ):
        assert len(first.answers) == len(second.answers)


def test_maps_of_another_family_go_on_with_what_was_answered(base, tmp_path):
    folder = tmp_path / "tiny.smalti"
    with smalti.build(tiny_video(base), folder, budget=3) as project:
        before = [entry.answer.pair for entry in project.answers if entry.role is Role.LOOP]
    with smalti.build(tiny_video(base), folder, budget=5, family="similarity") as project:
        after = [entry.answer.pair for entry in project.answers if entry.role is Role.LOOP]
        accepted = {link.pair for link in project.links}
        found = {entry.answer.pair for entry in project.answers if entry.answer.landmarks is not None}
    assert after[:3] == before
    assert len(after) == 5
    assert found <= accepted
