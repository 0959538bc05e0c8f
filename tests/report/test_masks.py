"""The report shows what was masked, in colours, and says what to do; nothing where nothing is masked."""

from __future__ import annotations

import base64

import cv2
import numpy as np
import pytest

from smalti.frames.painted_masks import PaintedMasks
from tests.report.projects import HEIGHT, WIDTH, make_project, report_of


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with make_project(tmp_path_factory.mktemp("masked")) as project:
        yield project


def painted(project, black: int) -> PaintedMasks:
    mask = np.full((HEIGHT, WIDTH), 255, np.uint8)
    mask[:, :black] = 0
    return PaintedMasks((cv2.imencode(".png", mask)[1].tobytes(),) * len(project.frames))


def test_a_report_without_masks_says_nothing_of_them(project):
    assert "What was masked" not in report_of(project).root.text


def test_masked_pixels_are_coloured_and_their_share_is_told(project):
    project.keep_mask(None, painted(project, WIDTH // 4))
    page = report_of(project)
    section = page.root.one("section", id="masked")
    assert "25.0 % black in the mask that was given" in section.text
    assert "--mask FOLDER" in section.text
    address = section.all("img")[0].attributes["src"]
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(address.split(",")[1]), np.uint8), cv2.IMREAD_COLOR_RGB)
    left, right = picture[:, : WIDTH // 4 - 2].mean(axis=(0, 1)), picture[:, WIDTH // 4 + 2 :].mean(axis=(0, 1))
    assert left[2] - left[1] > 50 > right[2] - right[1]
