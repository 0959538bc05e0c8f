"""Transforms as JSON: a stranger who reads the file and its convention maps a pixel right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.interchange.transforms_json import FrameTransform, write_transforms

TURNED = np.array([[0.0, -1.0, 30.0], [1.0, 0.0, 7.0], [0.0, 0.0, 1.0]])
TILTED = np.array([[1.0, 0.1, 5.0], [-0.1, 1.0, 1 / 3], [1e-4, 2e-4, 1.0]])
FRAMES = [
    FrameTransform(0, "0:00.00", 0, np.eye(3), 0.0),
    FrameTransform(4, "0:00.16", 0, TURNED, 0.123456),
    FrameTransform(5, "größe", 1, TILTED, 12.0),
]


@pytest.fixture
def content(tmp_path: Path) -> dict:
    path = tmp_path / "transforms.json"
    apart = {9: "too blurred", 2: "matches no other frame"}
    write_transforms(path, FRAMES, size=(240, 180), references=[0, 5], apart=apart)
    return json.loads(path.read_text(encoding="utf-8"))


def place_of(matrix: list[list[float]], x: float, y: float) -> tuple[float, float]:
    """Do what the convention says, in plain numbers."""
    a, b, c = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return a / c, b / c


def test_the_convention_states_direction_axes_and_origin(content):
    said = content["convention"]
    for word in (
        "mosaic_from_frame",
        "3x3",
        "divide by the third",
        "x points right",
        "y points down",
        "(0, 0)",
        "reference",
    ):
        assert word in said


def test_frames_come_in_order_with_label_and_part(content):
    assert [(one["frame"], one["label"], one["part"]) for one in content["frames"]] == [
        (0, "0:00.00", 0),
        (4, "0:00.16", 0),
        (5, "größe", 1),
    ]


def test_every_matrix_is_three_by_three(content):
    for one in content["frames"]:
        assert np.shape(one["final"]) == (3, 3)


def test_a_pixel_of_a_turned_frame_is_mapped_right(content):
    assert place_of(content["frames"][1]["final"], 10.0, 4.0) == (26.0, 17.0)


def test_a_pixel_of_a_tilted_frame_is_mapped_right(content):
    x, y = place_of(content["frames"][2]["final"], 100.0, 50.0)
    assert (x, y) == pytest.approx((110.0 / 1.02, (40.0 + 1 / 3) / 1.02))


def test_maps_are_written_to_the_last_bit(content):
    assert np.array(content["frames"][2]["final"]).tobytes() == TILTED.tobytes()


def test_size_and_references_are_there(content):
    assert (content["frame_width"], content["frame_height"]) == (240, 180)
    assert content["reference_frames"] == [0, 5]


def test_uncertainty_is_there_in_pixels(content):
    assert [one["sigma_px"] for one in content["frames"]] == pytest.approx([0.0, 0.123456, 12.0], abs=5e-5)


def test_frames_that_were_not_placed_are_listed_by_number_with_the_reason(content):
    assert content["not_placed"] == [
        {"frame": 2, "reason": "matches no other frame"},
        {"frame": 9, "reason": "too blurred"},
    ]


def test_without_a_lens_there_is_none(content):
    assert content["lens"] is None


def test_who_follows_the_formula_of_the_lens_gets_the_straight_pixel(tmp_path):
    lens = Lens(Outline.of_pixels(240, 180), 0.08, -0.015)
    write_transforms(tmp_path / "t.json", FRAMES, size=(240, 180), references=[0, 5], apart={}, lens=lens)
    content = json.loads((tmp_path / "t.json").read_text())
    told = content["lens"]
    assert told["model"] == "radial"
    for word in ("recorded", "undistorted", "unit_px", "centre", "1 + k1*r2 + k2*r2*r2"):
        assert word in told["formula"]
    assert "undistorted pixel" in content["convention"]
    x, y = ((at - centre) / told["unit_px"] for at, centre in zip((200.0, 30.0), told["centre"], strict=True))
    r2 = x * x + y * y
    factor = (1 + told["k1"] * r2 + told["k2"] * r2 * r2) * told["unit_px"]
    straight = (x * factor + told["centre"][0], y * factor + told["centre"][1])
    assert straight == pytest.approx(tuple(lens.undistort(np.array([200.0, 30.0]))))


def test_frames_may_come_one_by_one(tmp_path):
    write_transforms(tmp_path / "t.json", iter(FRAMES), size=(2, 1), references=[], apart={})
    assert len(json.loads((tmp_path / "t.json").read_text())["frames"]) == 3


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(OutputError, match=r"nowhere.t\.json"):
        write_transforms(tmp_path / "nowhere" / "t.json", FRAMES, size=(2, 1), references=[], apart={})
