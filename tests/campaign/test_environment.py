"""A full disk, missing rights and read-only media: one line each, nothing lost, and reading works as ever."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.campaign.commands import workers
from tests.campaign.forgetful_disk import CANNOT_RECORD, can_record, compile_shim
from tests.campaign.full_disk import TightWorker, build_words, fill, fill_under_person, measure, output_words
from tests.campaign.no_rights import CANNOT_LOSE_RIGHTS, PlainWorker, can_lose_rights, prepare, try_without
from tests.campaign.read_only import (
    CANNOT_MOUNT,
    READING,
    WRITING,
    MountWorker,
    make_media,
    mounting_words,
    try_command,
    unwritable,
    writable,
)
from tests.campaign.samples import build_project, write_images
from tests.server.projects import prepared_tiny

needs_record = pytest.mark.skipif(not can_record(), reason=CANNOT_RECORD)
needs_mount = pytest.mark.skipif(not mounting_words(), reason=CANNOT_MOUNT)
needs_plain_rights = pytest.mark.skipif(not can_lose_rights(), reason=CANNOT_LOSE_RIGHTS)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def project(base):
    return build_project(base)


@pytest.fixture(scope="module")
def tight(base):
    with workers(1, partial(TightWorker, compile_shim(base), base.parent)) as (worker,):
        yield worker


@pytest.fixture(scope="module")
def plain():
    with workers(1, PlainWorker) as (worker,):
        yield worker


@pytest.fixture(scope="module")
def media(tmp_path_factory):
    return make_media(tmp_path_factory.mktemp("readable"))


@pytest.fixture(scope="module")
def mounted(media):
    """A worker that sees the media at a place where nothing can be written, and this place."""
    place = media.with_name("reading")
    place.mkdir()
    with workers(1, partial(MountWorker, media, place)) as (worker,):
        yield worker, place


@pytest.fixture(scope="module")
def a_build(base, tight):
    return measure(partial(build_words, write_images(base / "images")), tight, base / "undisturbed")


@needs_record
@pytest.mark.parametrize("share", [0.0, 1e-5, 0.1, 0.4, 0.7, 0.95])
def test_a_build_on_a_disk_that_gets_full_goes_on_when_there_is_space(share, a_build, tight, tmp_path):
    assert fill(a_build, int(share * a_build.needed), tight, tmp_path).faults == ()


@needs_record
@pytest.mark.parametrize("name", ["mosaic.tif", "mosaic.zarr", "film.mp4", "frames"])
def test_no_half_of_a_result_is_left_on_a_full_disk(name, project, base, tight, tmp_path):
    job = measure(partial(output_words, project, name), tight, base / "undisturbed")
    assert fill(job, job.needed // 2, tight, tmp_path).faults == ()


@needs_record
def test_a_person_on_a_disk_that_gets_full_loses_nothing(base, tmp_path):
    trial = fill_under_person(prepared_tiny(base), compile_shim(base), np.random.default_rng(3), tmp_path)
    assert (trial.outcome, trial.faults) == ("person refused", ())


@needs_plain_rights
@pytest.mark.parametrize(
    ("command", "path", "mode"),
    [
        ("info", "walk.smalti", 0o000),
        ("evaluate", "", 0o444),
        ("evaluate", "landmarks.csv", 0o000),
        ("render", "walk.smalti", 0o444),
        ("render", "walk.smalti/cache/rendering", 0o555),
        ("film", "walk.smalti/project.sqlite", 0o000),
        ("undistort", "out", 0o000),
        ("build", "walk", 0o000),
        ("build", "walk/frame_0002.png", 0o000),
        ("build again", "walk.smalti", 0o555),
        ("build again", "walk.smalti/cache/keypoints", 0o444),
        ("annotate", "walk.smalti/cache", 0o444),
        ("replay", "walk.smalti/cache", 0o000),
    ],
)
def test_missing_rights_are_one_line(command, path, mode, project, plain, tmp_path):
    prepare(project, tmp_path)
    told = plain.run("info", project).out
    assert try_without(command, path, mode, plain, tmp_path, told).faults == ()


@needs_mount
@pytest.mark.parametrize("command", [*READING, *WRITING])
def test_a_project_on_a_read_only_mount_tells_all_that_it_knows(command, media, mounted, tmp_path):
    worker, place = mounted
    trial = try_command(command, place / "killed.smalti", media / "killed.smalti", writable, worker, tmp_path)
    assert trial.faults == ()


@needs_plain_rights
@pytest.mark.parametrize("command", ["info", "render", "annotate"])
def test_a_project_without_the_right_to_write_tells_all_that_it_knows(command, media, plain, tmp_path):
    project = media / "copied.smalti"
    assert try_command(command, project, project, unwritable, plain, tmp_path).faults == ()


@needs_mount
def test_the_answer_that_is_only_in_the_wal_is_told_on_a_read_only_mount(media, mounted):
    worker, place = mounted
    closed, killed = (worker.run("info", place / name).out for name in ("walk.smalti", "killed.smalti"))
    assert "0 cannot tell" in closed
    assert "1 cannot tell" in killed
