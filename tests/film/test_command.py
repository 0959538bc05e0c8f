"""`smalti film`."""

from __future__ import annotations

import argparse

import av
import pytest

from smalti.cli.main import main
from smalti.cli.project_commands import add_film
from smalti.errors import INTERRUPTED, ProjectError
from tests.film.projects import Plan, make_project


def run(*words):
    parser = argparse.ArgumentParser()
    add_film(parser.add_subparsers())
    options = parser.parse_args(["film", *map(str, words)])
    options.run(options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("command")
    plan = Plan(parts={n: int(n > 3) for n in range(8)}, references=[3, 5])
    plan.answers = [(i, j, role) for i, j, role in plan.answers if (i > 3) == (j > 3)]
    make_project(base, plan).close()
    return base / "out"


def test_it_writes_the_film_shows_a_bar_and_names_the_file(folder, tmp_path, capfd):
    run(folder, "-o", tmp_path / "drift.mp4", "--size", "320", "--seconds", "6")
    told = capfd.readouterr()
    assert told.out == f"{tmp_path / 'drift.mp4'}\n"
    assert "100%" in told.err
    with av.open(tmp_path / "drift.mp4") as container:
        stream = container.streams.video[0]
        assert 316 <= max(stream.width, stream.height) <= 320


def test_parts_are_counted_from_one(folder, tmp_path):
    run(folder, "-o", tmp_path / "drift.mp4", "--part", "2", "--size", "160", "-q")
    with pytest.raises(ProjectError, match="no mosaic of part 2"):
        run(folder, "-o", tmp_path / "drift.mp4", "--part", "3", "-q")


def test_quiet_is_silent(folder, tmp_path, capfd):
    run(folder, "-o", tmp_path / "drift.gif", "--size", "160", "--quiet")
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")


def test_frames_that_were_moved_are_found_by_source(folder, tmp_path):
    moved = folder.parent / "elsewhere"
    (folder.parent / "frames").rename(moved)
    run(folder, "-o", tmp_path / "drift.mp4", "--source", moved, "--size", "160", "-q")
    assert (tmp_path / "drift.mp4").stat().st_size > 1000
    moved.rename(folder.parent / "frames")


def test_an_interrupted_film_promises_no_continuation(folder, tmp_path, monkeypatch, capfd):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("smalti.film.film.make_film", interrupt)
    assert main(["film", str(folder), "-q", "-o", str(tmp_path / "drift.mp4")]) == INTERRUPTED
    assert capfd.readouterr().err == "smalti: interrupted\n"
