"""A project: opened, begun, gone on with, and refused where it is another one."""

from __future__ import annotations

import base64
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smalti.errors import InputError, OutputError, ProjectError
from smalti.frames.occlusions import COLOUR_STEPS, Highlights, Palette
from smalti.frames.source_settings import SourceSettings
from smalti.frames.visibility import FrameMasks
from smalti.project.answer_store import FILE_NAME
from smalti.project.facts import FieldOfView
from smalti.project.packing import pack_mask, unpack_mask
from smalti.project.project import Project
from smalti.records import Pair
from tests.project.entries import no, shifted, yes
from tests.project.folders import BINDING, HEIGHT, WIDTH, begin, finish, write_images


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return write_images(tmp_path / "images")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def refusal(error: type[Exception], *arguments: object) -> str:
    with pytest.raises(error) as caught:
        begin(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_folder_is_refused_with_what_to_do(folder):
    with pytest.raises(ProjectError, match=f"{folder}: no such project; build one with: smalti build"):
        Project.open(folder)
    assert not folder.exists()


def test_a_foreign_folder_is_refused_and_left_alone(images):
    with pytest.raises(ProjectError, match="is not a Smalti project"):
        Project.open(images)
    assert not (images / FILE_NAME).exists()


def test_a_begun_project_opens_again_and_knows_its_frames(folder, images):
    begin(folder, images).close()
    with Project.open(str(folder)) as project:
        assert (project.width, project.height) == (WIDTH, HEIGHT)
        assert project.outline.width == WIDTH
        assert len(project.source) == 4
        assert project.source.read(2).shape == (HEIGHT, WIDTH, 3)


def test_the_same_source_and_options_go_on_where_it_was(folder, images):
    with begin(folder, images) as project:
        project.store.keep_answer(yes(0, 1))
    with begin(folder, images) as again:
        assert [entry.answer.pair for entry in again.answers] == [yes(0, 1).answer.pair]


def test_another_source_is_refused_and_the_project_left_as_it_was(folder, images, tmp_path):
    begin(folder, images).close()
    other = write_images(tmp_path / "other", seed=1)
    message = refusal(ProjectError, folder, other)
    assert message.startswith(f"{folder}: holds a build of other frames")
    with Project.open(folder) as project:
        assert project.source_facts.location == str(images)


@pytest.mark.parametrize("changed", [{"mask": "none"}, {"seed": 1}, {"matcher": "mine"}])
def test_other_options_are_refused(folder, images, changed):
    begin(folder, images).close()
    assert "holds a build of other options" in refusal(ProjectError, folder, images, replace(BINDING, **changed))


def test_a_folder_of_other_things_is_refused_and_left_alone(folder, images):
    folder.mkdir()
    (folder / "thesis.txt").write_text("important")
    assert "is not empty and not a project" in refusal(OutputError, folder, images)
    assert [file.name for file in folder.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(folder, images):
    folder.write_text("a file")
    assert "is a file, name a folder" in refusal(OutputError, folder, images)


def test_a_folder_that_cannot_be_made_is_refused(folder, images):
    folder.write_text("a file")
    assert "cannot be made" in refusal(OutputError, folder / "below", images)


def test_an_empty_folder_and_its_missing_parents_are_fine(tmp_path, images):
    (tmp_path / "empty").mkdir()
    begin(tmp_path / "empty", images).close()
    begin(tmp_path / "a" / "b", images).close()
    assert (tmp_path / "a" / "b" / FILE_NAME).is_file()


def test_a_source_that_was_moved_is_found_where_it_is_now(folder, images, tmp_path):
    begin(folder, images).close()
    moved = images.rename(tmp_path / "elsewhere")
    with Project.open(folder, source=moved) as project:
        assert project.source.path == moved
        assert len(project.source) == 4


def test_a_moved_source_without_a_word_is_an_error_of_input_and_only_when_needed(folder, images, tmp_path):
    begin(folder, images).close()
    images.rename(tmp_path / "elsewhere")
    with Project.open(folder) as project:
        assert project.info().frames.read == 0
        with pytest.raises(InputError, match="images: does not exist"):
            _ = project.source


def test_going_on_from_another_place_remembers_it(folder, images, tmp_path):
    begin(folder, images).close()
    moved = Path(shutil.move(images, tmp_path / "elsewhere"))
    begin(folder, moved).close()
    with Project.open(folder) as project:
        assert project.source.path == moved


def test_a_different_source_in_its_place_is_refused_by_its_content(folder, images, tmp_path):
    begin(folder, images).close()
    other = write_images(tmp_path / "other", seed=1)
    with Project.open(folder, source=other) as project:
        with pytest.raises(ProjectError, match=f"{other}: is not the source that {folder} was built from"):
            _ = project.source
        assert project.source_facts.location == str(images)  # still usable


def test_the_choice_of_frames_goes_with_the_project(folder, images):
    every_other = replace(BINDING, source=SourceSettings(every=2))
    begin(folder, images, every_other).close()
    with Project.open(folder) as project:
        assert project.source.labels == ("0.png", "2.png")


def test_a_mask_comes_back_and_so_does_none(folder, images):
    mask = np.random.default_rng(1).random((HEIGHT, WIDTH)) > 0.5
    with begin(folder, images) as project:
        assert project.mask is None
        project.keep_mask(mask)
    with Project.open(folder, to_write=True) as project:
        np.testing.assert_array_equal(project.mask, mask)
        assert project.store.fact(FieldOfView) is not None
        project.keep_mask(None)
        assert project.mask is None


def test_what_finds_the_masks_of_frames_comes_back(folder, images):
    rng = np.random.default_rng(2)
    field, overlays = rng.random((2, HEIGHT, WIDTH)) > 0.3
    common = rng.random((COLOUR_STEPS, COLOUR_STEPS)) > 0.2
    kept = FrameMasks(field & ~overlays, False, Highlights(230), Palette(common), overlays)
    with begin(folder, images) as project:
        project.keep_mask(None, kept)
    image = rng.integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    with Project.open(folder) as project:
        assert project.own_masks is not None
        np.testing.assert_array_equal(project.own_masks.find_parts(0, image), kept.find_parts(0, image))
        assert project.survey().channels == 5


@pytest.mark.parametrize("mask", [pack_mask(np.ones((5, 5), dtype=np.bool_)), "AAAA", "no base64"])
def test_a_mask_that_is_none_is_refused_in_one_line(folder, images, mask):
    with begin(folder, images) as project:
        project.store.keep_fact(FieldOfView(mask))
        with pytest.raises(ProjectError, match="run the same smalti build command again to find the field of view"):
            _ = project.mask


def test_an_image_that_claims_to_be_huge_is_not_unpacked(folder, images):
    packed = bytearray(base64.b64decode(pack_mask(np.ones((HEIGHT, WIDTH), dtype=np.bool_))))
    packed[16:24] = (100_000).to_bytes(4, "big") * 2
    with pytest.raises(ValueError, match="another size"):
        unpack_mask(base64.b64encode(packed).decode(), WIDTH, HEIGHT)


def test_it_is_finished_until_another_answer_comes(folder, images):
    with begin(folder, images) as project:
        assert not project.is_finished
        finish(project)
        assert project.is_finished
        project.store.keep_answer(no(0, 1))
        assert not project.is_finished


def test_it_is_finished_again_when_the_answers_are_those_again(folder, images):
    with begin(folder, images) as project:
        finish(project)
        project.store.remove_answer(Pair(0, 1))
        assert not project.is_finished
        project.store.undo()
        assert project.is_finished
        project.store.redo()
        assert not project.is_finished
        project.store.keep_answer(yes(0, 1))  # the same, but asked at another time
        assert not project.is_finished


def test_a_removed_answer_is_none_of_the_projects(folder, images):
    with begin(folder, images) as project:
        finish(project)
        attempts = project.info().attempts
        project.store.remove_answer(Pair(0, 3))
        assert Pair(0, 3) not in [entry.answer.pair for entry in project.answers]
        assert project.info().attempts == attempts - 1


def test_frames_that_lie_nowhere_are_listed_with_their_reason(folder, images):
    with begin(folder, images) as project:
        finish(project)
        project.store.keep_result([shifted(0, 0)], [], project.outcome)
        nowhere = "matches no other frame"
        assert project.not_placed == {1: nowhere, 2: nowhere, 3: "too blurred"}


def test_a_mosaic_holds_the_frames_of_its_part(folder, images):
    with begin(folder, images) as project:
        finish(project)
        assert project.parts == 2
        assert (project.mosaic().canvas().width, project.mosaic().canvas().height) == (WIDTH + 20, HEIGHT)
        assert project.mosaic(1).canvas().width == WIDTH


@pytest.mark.parametrize("part", [2, -1])
def test_a_mosaic_of_an_unknown_part_is_refused_with_the_known_ones(folder, images, part):
    with begin(folder, images) as project:
        finish(project)
        with pytest.raises(ProjectError, match=f"has no mosaic of part {part}; it has parts 0 to 1"):
            project.mosaic(part)


def test_a_mosaic_of_a_project_without_any_is_refused(folder, images):
    with begin(folder, images) as project, pytest.raises(ProjectError, match="nothing was placed, build it first"):
        project.mosaic()
