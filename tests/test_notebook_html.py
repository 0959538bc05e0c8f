"""How objects show themselves in a notebook: with the numbers that matter, escaped, and without the network."""

from __future__ import annotations

import base64
import re
import time

import cv2
import numpy as np
import pytest

import smalti
from smalti.active_loop import ActiveLoop
from smalti.loop_setup import StopRule
from smalti.notebook_html import PICTURE_SIDE, draw_card, say_error
from smalti.rendering import mosaic as mosaic_module
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.filmed import tiny
from tests.test_readme import small_world


def rows_of(shown: str) -> dict[str, str]:
    return dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", shown))


def picture_of(shown: str) -> np.ndarray:
    (packed,) = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', shown)
    return cv2.imdecode(np.frombuffer(base64.b64decode(packed), np.uint8), cv2.IMREAD_COLOR)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    with smalti.build(write_video(tiny(), folder / "a.mp4"), folder / "a<b>&c.smalti", budget=4) as project:
        yield project


def test_words_are_escaped_and_a_picture_is_inside():
    picture = np.zeros((40, 1000, 4), np.uint8)
    shown = draw_card("<script>", [("a&b", '"<b>"')], picture)
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert rows_of(shown) == {"a&amp;b": "&quot;&lt;b&gt;&quot;"}
    assert picture_of(shown).shape == (19, PICTURE_SIDE, 3)
    assert (picture_of(shown) > 250).all()  # nothing is there: white


def test_an_error_that_is_not_known_is_said():
    assert say_error(None, None) == say_error(np.inf, np.inf) == "not known"
    assert say_error(1.0, np.inf) == "1.00 px"


def test_a_project_shows_its_numbers_and_its_mosaic(project):
    shown, info = project._repr_html_(), project.info()
    rows = rows_of(shown)
    assert rows["frames placed"] == f"{info.frames.placed} of {info.frames.read}"
    assert rows["parts"] == "1"
    assert rows["questions asked"].startswith("4: ")
    assert rows["predicted error"].startswith(f"{info.predicted_error_px:.2f} px, below ")
    assert "a<b>" not in shown
    assert "http" not in shown
    assert picture_of(shown).std() > 10


def test_a_project_shows_itself_within_a_second(project):
    project._repr_html_()
    began = time.perf_counter()
    project._repr_html_()
    assert time.perf_counter() - began < 1


def test_a_project_without_a_picture_shows_its_numbers(project, monkeypatch):
    monkeypatch.setattr("smalti.project.project.LARGEST_SHOWN_BYTES", 10)
    shown = project._repr_html_()
    assert "<img" not in shown
    assert rows_of(shown)["parts"] == "1"


def test_a_mosaic_shows_its_size_and_its_picture(project, monkeypatch):
    mosaic = project.mosaic()
    canvas, shown = mosaic.canvas(), mosaic._repr_html_()
    assert rows_of(shown)["size"] == f"{canvas.width} × {canvas.height} px"
    assert picture_of(shown).std() > 10
    monkeypatch.setattr(mosaic_module, "LARGEST_SHOWN", 10)
    assert "<img" not in mosaic._repr_html_()


def test_a_loop_shows_its_error_and_the_best_next_pair():
    agent, _ = small_world()
    chain = [agent.answer(smalti.Pair(n, n + 1)).landmarks for n in range(39)]
    loop = ActiveLoop.start(40, agent.outline, chain, family="affine", stop_rule=StopRule(budget=1))
    rows = rows_of(loop._repr_html_())
    assert rows["best next pair"] == f"{loop.best.pair.i} and {loop.best.pair.j}"
    assert rows["predicted error"].startswith(f"{loop.predicted_error_px:.2f} px")
    assert rows["reason to stop"] == "none"
    after = loop.record(smalti.Answer.no(loop.best.pair))
    assert rows_of(after._repr_html_())["questions asked"] == "1: 0 yes, 1 no, 0 cannot tell"
    assert rows_of(after._repr_html_())["reason to stop"] == "budget"


def test_a_family_that_does_not_exist_is_refused():
    agent, _ = small_world()
    with pytest.raises(smalti.SmaltiError, match="unknown family 'afine'"):
        ActiveLoop.start(40, agent.outline, [], family="afine")
