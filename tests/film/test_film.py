"""The whole film, from a project to a file."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from smalti.errors import OutputError, ProjectError, UsageError
from smalti.film.film import make_film
from smalti.film.film_story import tell_story
from smalti.film.film_timeline import View
from smalti.project.entries import Role
from tests.film.projects import REFERENCE, TRUTH, Plan, make_project
from tests.film.test_files import decode
from tests.rendering.scene import colour_at, mapped, psnr

SIZE = 240


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with make_project(tmp_path_factory.mktemp("film")) as made:
        yield made


@pytest.fixture(scope="module")
def film(project):
    return decode(make_film(project, project.folder / "drift.mp4", size=SIZE, seconds=8))


def test_the_film_ends_with_the_finished_mosaic(project, film):
    view = View.of(tell_story(project, 0, 50), SIZE)
    scene_from_canvas = TRUTH[REFERENCE] @ np.linalg.inv(view.canvas_from_mosaic(1.0))
    y, x = np.mgrid[: view.height, : view.width].astype(float)
    u, v = mapped(scene_from_canvas, x, y)
    inside = (u > 4) & (u < 224) & (v > 4) & (v < 99)
    # Grey: colours have half the resolution in a film.
    shown, truth = film[-1][: view.height].mean(axis=2), colour_at(u, v).mean(axis=2)
    # The picture has the shape of the bent mosaics that it began with.
    assert inside.mean() > 0.55
    assert psnr(shown[inside], truth[inside]) > 28
    assert (film[-1][: view.height][(u < -4) | (u > 234) | (v < -4) | (v > 109)] < 40).all()


def test_the_film_begins_with_a_mosaic_that_is_bent(film):
    assert psnr(film[0], film[-1].astype(float)) < 16


def test_the_film_stands_still_before_and_after_and_moves_between(film):
    changes = np.array([np.abs(b.astype(int) - a).mean() for a, b in pairwise(film)])
    assert changes[:35].max() < 0.5
    assert changes[-48:].max() < 0.5
    assert (changes[40:-55] > 0.5).mean() > 0.5


def test_the_film_moves_without_jumps(film):
    changes = np.array([np.abs(b.astype(int) - a).mean() for a, b in pairwise(film)])
    # Outlines appear at once; the mosaic itself never changes much from one picture to the next.
    assert changes.max() < np.abs(film[0].astype(int) - film[-1]).mean() / 2


def test_a_gif_is_smaller_and_as_long(project, film):
    path = make_film(project, project.folder / "drift.gif", size=960, seconds=8)
    with Image.open(path) as gif:
        assert max(gif.size) in (638, 640)
        total = 0
        for n in range(gif.n_frames):
            gif.seek(n)
            total += gif.info["duration"]
    assert total / 1000 == pytest.approx(len(film) / 25, abs=0.11)


def test_progress_counts_every_frame_and_picture_once(project, tmp_path):
    told = []
    made = make_film(project, tmp_path / "drift.mp4", size=160, seconds=6, on_progress=lambda *both: told.append(both))
    total = len(decode(made)) + 8
    assert told == [(n, total) for n in range(1, total + 1)]


def test_a_project_without_loops_has_a_film_too(tmp_path):
    plan = Plan()
    plan.answers = [(i, j, role) for i, j, role in plan.answers if role is Role.CHAIN]
    with make_project(tmp_path, plan) as project:
        pictures = decode(make_film(project, tmp_path / "drift.mp4", size=160))
    assert len(pictures) == pytest.approx(25 * 4.7, abs=2)


def test_a_film_that_is_interrupted_leaves_nothing(project, tmp_path):
    def stop(done, total):
        if done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_film(project, tmp_path / "drift.mp4", size=160, on_progress=stop)
    assert not list(tmp_path.iterdir())


def test_the_project_is_not_changed(project, tmp_path):
    def content():
        return Counter((path.name, path.stat().st_mtime_ns) for path in project.folder.glob("project.sqlite"))

    before = content()
    make_film(project, tmp_path / "drift.gif", size=160, seconds=6)
    assert content() == before


@pytest.mark.parametrize("seconds", [5.9, float("nan")])
def test_a_length_that_makes_no_film_is_refused(project, tmp_path, seconds):
    with pytest.raises(UsageError, match="seconds: give 6 or more"):
        make_film(project, tmp_path / "drift.mp4", seconds=seconds)


@pytest.mark.parametrize("size", [159, 3841])
def test_a_size_that_makes_no_film_is_refused(project, tmp_path, size):
    with pytest.raises(UsageError, match=f"a film of {size} pixels: give 160 to 3840"):
        make_film(project, tmp_path / "drift.mp4", size=size)


def test_mistakes_are_told_before_any_work(project, tmp_path):
    with pytest.raises(UsageError, match="one of"):
        make_film(project, tmp_path / "drift.mov", part=7)
    with pytest.raises(OutputError, match="does not exist"):
        make_film(project, tmp_path / "gone" / "drift.mp4", part=7)
    with pytest.raises(ProjectError, match="no mosaic of part 7"):
        make_film(project, tmp_path / "drift.mp4", part=7)
