"""The finished mosaic over HTTP: tiles by numbers, files by names, and nothing else of the disk."""

from __future__ import annotations

import io
import zipfile

import cv2
import numpy as np
import pytest

from smalti.annotation import messages as say
from smalti.interchange.checksums import unseal
from smalti.project.integrity import check_project
from tests.server.dispatchers import client_of, wait_until
from tests.server.projects import prepared_tiny, real_desk


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepared_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def world(prepared, tmp_path_factory):
    """A client and the folder of a project whose mosaic was finished."""
    with real_desk(prepared, tmp_path_factory.mktemp("finished") / "tiny.smalti") as (dispatcher, _):
        client = client_of(dispatcher)
        assert client.get("/api/finished").json() is None
        assert client.get("/api/finished/1/now/0/0_0.png").status_code == 404
        client.post("/api/finish", json={"seen_revision": 0})
        wait_until(lambda: client.get("/api/state").json()["stage"] == "asking", 60)
        yield client, dispatcher.folder


def describe(client) -> say.FinishedMosaic:
    return say.FinishedMosaic.model_validate_json(client.get("/api/finished").content, strict=True)


def picture(content: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)


def tile(client, version, level, column, row):
    return client.get(f"/api/finished/any/{version}/{level}/{column}_{row}.png")


def assemble(client, version: str, pyramid: say.TilePyramid) -> np.ndarray:
    """Put the tiles of the last level side by side."""
    whole = np.zeros((pyramid.height, pyramid.width, 4), np.uint8)
    for row in range(-(-pyramid.height // pyramid.side)):
        for column in range(-(-pyramid.width // pyramid.side)):
            pixels = picture(tile(client, version, pyramid.levels - 1, column, row).content)
            left, top = (max(0, n * pyramid.side - pyramid.overlap) for n in (column, row))
            whole[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return whole


def test_the_tiles_are_the_very_pixels_of_the_delivered_mosaic(world):
    client, folder = world
    delivered = cv2.imread(str(folder / "mosaic.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(assemble(client, "now", describe(client).now), delivered)


def test_the_mosaic_by_the_chain_alone_shows_the_reference_frame_in_the_same_place(world):
    client, _ = world
    found = describe(client)
    assert found.before is not None
    now, before = assemble(client, "now", found.now), assemble(client, "before", found.before)
    assert now.shape != before.shape or (now != before).any()
    mosaic = client.get("/api/mosaic").json()
    x, y = np.array(mosaic["maps"]).reshape(-1, 3, 3)[mosaic["numbers"].index(mosaic["reference"])][:2, 2]
    cut = []
    for image, pyramid in ((now, found.now), (before, found.before)):
        left, top = round(x - pyramid.left) + 8, round(y - pyramid.top) + 8
        cut.append(image[top : top + 20, left : left + 20, :3].astype(float))
    assert np.corrcoef(cut[0].ravel(), cut[1].ravel())[0, 1] > 0.9


@pytest.mark.parametrize(
    "place",
    [
        *("now/0/1_0", "now/40/0_0", "now/64/0_0", "now/-1/0_0", "now/x/0_0", "never/0/0_0", "now/0/0_9999999999"),
        *("now/0/..%2f..%2fproject", "..%2f..%2f/0/0_0", "now/%2e%2e/0_0"),
    ],
)
def test_numbers_without_a_tile_open_nothing(world, place, monkeypatch):
    monkeypatch.setattr("smalti.annotation.finished_mosaic.unseal", unseal_the_index)
    answer = world[0].get(f"/api/finished/1/{place}.png")
    assert answer.status_code in (404, 422)
    assert answer.json()["explanation"]


def unseal_the_index(content: bytes) -> bytes | None:
    assert not content.startswith(b"\x89PNG"), "a tile was read"
    return unseal(content)


@pytest.mark.parametrize(
    "name", ["project.sqlite", "..%2fproject.sqlite", "%2fetc%2fpasswd", "cache", ".", "lock", "answers.jsonl", "a%00"]
)
def test_only_delivered_files_are_sent(world, name):
    answer = world[0].get(f"/api/results/{name}")
    assert answer.status_code in (404, 422)
    assert b"SQLite" not in answer.content


def test_every_delivered_file_is_sent_as_it_is(world):
    client, folder = world
    files = describe(client).files
    assert {file.name for file in files} == {"mosaic.png", "report.html", "transforms.json", "landmarks.csv"}
    for file in files:
        content = client.get(f"/api/results/{file.name}").content
        assert content == (folder / file.name).read_bytes()
        assert len(content) == file.bytes


def test_the_report_may_ask_this_server_for_nothing(world):
    policy = world[0].get("/api/results/report.html").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "default-src 'self'" in world[0].get("/api/results/transforms.json").headers["content-security-policy"]


def test_a_report_that_was_changed_is_not_shown(world):
    client, folder = world
    report = folder / "report.html"
    kept = report.read_bytes()
    report.write_bytes(kept + b"<script>alert(1)</script>")
    try:
        answer = client.get("/api/results/report.html")
        assert answer.status_code == 400
        assert "is not as it was delivered" in answer.json()["explanation"]
    finally:
        report.write_bytes(kept)


def test_a_damaged_tile_is_named_and_not_shown(world):
    client, folder = world
    path = next(iter((folder / "cache" / "finished" / "now_files" / "0").glob("*.png")))
    kept = path.read_bytes()
    assert not [line for line in check_project(folder).damaged if "finished" in line]
    path.write_bytes(kept[:40] + b"x" + kept[41:])
    try:
        answer = tile(client, "now", 0, 0, 0)
        assert answer.status_code == 404
        assert "missing or damaged" in answer.json()["explanation"]
        assert [line for line in check_project(folder).damaged if path.name in line]
    finally:
        path.write_bytes(kept)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("mosaic.png", b"\x89PNG"),
        ("mosaic.jpg", b"\xff\xd8\xff"),
        ("mosaic.tif", b"II"),
        ("mosaic.dzi.zip", b"PK"),
        ("mosaic.zarr.zip", b"PK"),
    ],
)
def test_the_finished_mosaic_can_be_taken_away_in_every_format(world, name, begins):
    client, folder = world
    content = client.get(f"/api/exports/{name}").content
    assert content.startswith(begins)
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.testzip() is None
            roots = {entry.split("/")[0] for entry in archive.namelist()}
        assert roots == ({"mosaic.dzi", "mosaic_files"} if "dzi" in name else {"mosaic.zarr"})
    assert not list((folder / "cache").glob("export-*"))


def test_without_a_finished_mosaic_its_formats_are_refused_in_words(prepared, tmp_path):
    with real_desk(prepared, tmp_path / "tiny.smalti") as (dispatcher, _):
        answer = client_of(dispatcher).get("/api/exports/mosaic.tif")
    assert answer.status_code == 400
    assert "stop here" in answer.json()["explanation"]
