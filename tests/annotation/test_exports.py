"""What is taken away from a project, opened by those who would open it."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import zipfile

import cv2
import numpy as np
import pytest

from smalti.annotation.exports import (
    Placed,
    export,
    export_landmarks,
    export_preview,
    export_project,
    export_transforms,
)
from smalti.errors import OutputError, UnknownNameError
from smalti.geometry.lens import Lens
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.interchange.transforms_json import CONVENTION
from smalti.project.entries import FrameEntry, Role
from smalti.project.project import Project
from tests.film.projects import Plan, make_project
from tests.project.entries import no, unsure, yes
from tests.project.folders import begin, write_images
from tests.rendering.scene import frame_of, shift

MAPS = {n: shift(50.0 * n - 100, 5.0 * n - 10) for n in range(4)}  # of frames 0 to 3, on the plane of 2


@pytest.fixture
def fresh(tmp_path):
    """Four frames, the last unusable, some answers, no mosaic yet."""
    with begin(tmp_path / "a fresh one", write_images(tmp_path / "shots")) as project:
        project.store.keep_frames([FrameEntry(n, f"{n}.png", "too blurred" if n == 3 else "") for n in range(4)])
        for entry in (yes(1, 2), yes(0, 1), no(0, 2), unsure(0, 3), yes(1, 3, Role.LOOP)):
            project.store.keep_answer(entry)
        yield project


@pytest.fixture
def finished(tmp_path):
    """Eight frames, all on a mosaic, with the files of a build."""
    with make_project(tmp_path) as project:
        for name, content in (("mosaic.png", b"\x89PNG" + 9000 * b"a"), ("report.html", 9000 * b"a")):
            (project.folder / name).write_bytes(content)
        for name in ("transforms.json", "landmarks.csv"):
            (project.folder / name).write_text("a table")
        (project.cache.folder / "keypoints").mkdir(parents=True)
        (project.cache.folder / "keypoints" / "000000.npz").write_bytes(b"again")
        yield project


def placed_at(project, second):
    """The first frame where it is, and the second one."""
    return Placed({0: shift(0, 0), 1: second}, {0: 0.0, 1: 0.5}, 0, Lens(project.outline))


def unpacked(project, folder):
    path = export_project(project)
    try:
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            archive.extractall(folder)
            return {info.filename: info for info in archive.infolist()}
    finally:
        path.unlink()


def test_landmarks_are_those_of_every_yes_in_the_order_of_pairs(fresh, tmp_path):
    path = tmp_path / "landmarks.csv"
    path.write_bytes(export_landmarks(fresh.answers))
    records = read_landmarks(path)
    assert [(record.pair.i, record.pair.j) for record in records] == [(0, 1), (1, 2), (1, 3)]
    np.testing.assert_allclose(records[0].points_i, yes(0, 1).answer.landmarks.points_i, atol=6e-4)
    np.testing.assert_allclose(records[2].points_j, yes(1, 3).answer.landmarks.points_j, atol=6e-4)


def test_landmarks_of_no_answer_are_a_header_alone():
    rows = list(csv.reader(io.StringIO(export_landmarks([]).decode())))
    assert rows == [["frame_i", "frame_j", "x_i", "y_i", "x_j", "y_j", "sigma_px", "author"]]


def test_transforms_are_those_given_and_say_why_the_other_frames_have_none(fresh):
    lens = Lens(fresh.outline, 0.02)
    placed = Placed({number: MAPS[number] for number in (1, 2)}, {1: 0.25, 2: 0.5}, 2, lens)
    content = json.loads(export_transforms(fresh, placed))
    assert content["convention"] == CONVENTION
    assert (content["frame_width"], content["frame_height"]) == (fresh.width, fresh.height)
    assert content["reference_frames"] == [2]
    assert content["lens"] == lens.record
    assert [(frame["frame"], frame["label"], frame["sigma_px"]) for frame in content["frames"]] == [
        (1, "1.png", 0.25),
        (2, "2.png", 0.5),
    ]
    for frame in content["frames"]:
        np.testing.assert_array_equal(frame["final"], MAPS[frame["frame"]])
    assert content["not_placed"] == [
        {"frame": 0, "reason": "is not joined to this mosaic"},
        {"frame": 3, "reason": "too blurred"},
    ]


def test_the_mosaic_shows_its_frames_where_their_maps_put_them(finished):
    placed = placed_at(finished, shift(50, 0))
    image = cv2.imdecode(np.frombuffer(export_preview(finished, placed), np.uint8), cv2.IMREAD_UNCHANGED)
    assert image.shape == (60, 130, 4)
    assert (image[..., 3] == 255).all()
    truth = frame_of(shift(0, 0), 130, 60)
    assert np.abs(image[..., 2::-1].astype(float) - truth)[4:-4, 4:-4].mean() < 6


def test_the_mosaic_is_drawn_through_its_lens(finished):
    straight, bent = (
        export_preview(finished, Placed({0: shift(0, 0)}, {0: 0.0}, 0, Lens(finished.outline, k1))) for k1 in (0.0, 0.1)
    )
    sizes = [cv2.imdecode(np.frombuffer(image, np.uint8), cv2.IMREAD_UNCHANGED).shape for image in (straight, bent)]
    assert sizes[1][0] > sizes[0][0]
    assert sizes[1][1] > sizes[0][1]


def test_the_mosaic_is_transparent_where_no_frame_is_and_reduced_to_fit_a_screen(finished):
    placed = placed_at(finished, shift(3920, 0))
    image = cv2.imdecode(np.frombuffer(export_preview(finished, placed), np.uint8), cv2.IMREAD_UNCHANGED)
    assert image.shape == (30, 2000, 4)
    assert (image[:, 100:1900, 3] == 0).all()
    assert (image[2:-2, 2:38, 3] == 255).all()


def test_an_exported_project_opens_with_all_its_answers(fresh, tmp_path):
    names = unpacked(fresh, tmp_path / "elsewhere")
    inside = ("project.sqlite", "answers.jsonl", "landmarks.csv", "README.txt")
    assert set(names) == {f"a fresh one/{name}" for name in inside}
    folder = tmp_path / "elsewhere" / "a fresh one"
    with Project.open(folder, source=tmp_path / "shots") as again:
        assert [entry.answer.pair for entry in again.answers] == [entry.answer.pair for entry in fresh.answers]
        assert len(again.source) == 4
    assert (folder / "landmarks.csv").read_bytes() == export_landmarks(fresh.answers)
    assert not list(fresh.cache.folder.iterdir())


def test_an_exported_project_carries_its_results_but_no_cache(finished, tmp_path):
    infos = unpacked(finished, tmp_path / "elsewhere")
    tables = {"transforms.json", "landmarks.csv"}
    names = {"project.sqlite", "answers.jsonl", "mosaic.png", "report.html", "README.txt", *tables}
    assert set(infos) == {f"out/{name}" for name in names}
    assert (tmp_path / "elsewhere" / "out" / "mosaic.png").read_bytes() == (finished.folder / "mosaic.png").read_bytes()
    # What is compressed is not compressed again.
    assert infos["out/mosaic.png"].compress_type == zipfile.ZIP_STORED
    assert infos["out/report.html"].compress_size < 1000


@pytest.mark.parametrize(
    ("plan", "words"),
    [(Plan(), "include all answers"), (Plan(is_finished=False), "do not include the newest answers")],
    ids=["finished", "outdated"],
)
def test_the_readme_says_how_to_open_the_project_and_whether_the_mosaic_is_of_all_answers(tmp_path, plan, words):
    with make_project(tmp_path, plan) as project:
        unpacked(project, tmp_path / "elsewhere")
    readme = (tmp_path / "elsewhere" / "out" / "README.txt").read_text()
    assert "smalti annotate out --source frames" in readme
    assert words in readme


def test_the_readme_quotes_names_with_spaces_and_says_that_there_is_no_mosaic_yet(fresh, tmp_path):
    unpacked(fresh, tmp_path / "elsewhere")
    readme = (tmp_path / "elsewhere" / "a fresh one" / "README.txt").read_text()
    assert "smalti annotate 'a fresh one' --source shots" in readme
    assert "No mosaic was computed yet." in readme


def test_the_copy_lacks_what_is_not_committed_and_stands_alone(fresh, tmp_path):
    other = sqlite3.connect(fresh.folder / "project.sqlite", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM frame")
        unpacked(fresh, tmp_path / "elsewhere")
    finally:
        other.execute("ROLLBACK")
        other.close()
    folder = tmp_path / "elsewhere" / "a fresh one"
    copy = sqlite3.connect(f"{(folder / 'project.sqlite').as_uri()}?mode=ro", uri=True)
    try:
        assert copy.execute("SELECT count(*) FROM frame").fetchone() == (4,)
    finally:
        copy.close()
    # These two bytes say whether a file of changes may lie beside it: 2 for yes.
    assert (folder / "project.sqlite").read_bytes()[18:20] == b"\x01\x01"


def test_a_failed_export_leaves_nothing_behind(finished, monkeypatch):
    monkeypatch.setattr("smalti.annotation.exports.FILE_NAME", "gone.sqlite")
    with pytest.raises(OutputError, match=r"gone\.sqlite: cannot be copied"):
        export_project(finished)
    assert [path.name for path in finished.cache.folder.iterdir()] == ["keypoints"]


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("landmarks.csv", "text/csv"),
        ("transforms.json", "application/json"),
        ("preview.png", "image/png"),
        ("project.zip", "application/zip"),
    ],
)
def test_every_export_is_known_by_its_name(finished, name, media_type):
    kind, content = export(name, finished, placed_at(finished, shift(50, 0)))
    assert kind == media_type
    if isinstance(content, bytes):
        first = {"landmarks.csv": b"frame_i,", "transforms.json": b"{", "preview.png": b"\x89PNG"}[name]
        assert content.startswith(first)
    else:
        assert zipfile.is_zipfile(content)
        content.unlink()


def test_refuses_an_export_that_does_not_exist(finished):
    with pytest.raises(UnknownNameError, match=r"unknown export 'passwords.txt': choose from landmarks\.csv"):
        export("passwords.txt", finished, placed_at(finished, shift(50, 0)))
