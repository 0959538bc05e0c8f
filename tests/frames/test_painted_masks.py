"""Masks of the user's, one a frame: found by name or in order, and refused with one line where they do not fit."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from smalti.errors import InputError
from smalti.frames.painted_masks import read_masks
from smalti.frames.source import open_source
from smalti.frames.visibility import Part

WIDTH, HEIGHT = 40, 30
NAMES = ("a1", "a2", "a10")


def write(folder: Path, names: tuple[str, ...], suffix: str, pictures: list[np.ndarray]) -> Path:
    folder.mkdir()
    for name, picture in zip(names, pictures, strict=True):
        cv2.imwrite(str(folder / f"{name}{suffix}"), picture)
    return folder


def half(column: int) -> np.ndarray:
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[:, column:] = 255
    return mask


@pytest.fixture
def source(tmp_path):
    frames = write(tmp_path / "frames", NAMES, ".jpg", [np.full((HEIGHT, WIDTH, 3), 90, np.uint8)] * 3)
    with open_source(frames) as opened:
        yield opened


@pytest.mark.parametrize("names", [NAMES, ("m01", "m02", "m03")], ids=["by name", "in order"])
def test_every_frame_gets_its_mask(source, tmp_path, names):
    masks = read_masks(write(tmp_path / "masks", names, ".png", [half(5), half(10), half(20)]), source)
    for number, column in enumerate((5, 10, 20)):
        parts = masks.find_parts(number, source.read(number))
        np.testing.assert_array_equal(parts == Part.SCENE, half(column) > 0)
    np.testing.assert_array_equal(masks.field, half(5) > 0)


@pytest.mark.parametrize(
    ("names", "pictures", "said"),
    [
        (NAMES[:2], [half(5)] * 2, "no mask for a10.jpg"),
        (("x1", "x2"), [half(5)] * 2, "has 2 masks, but 3 frames"),
        (NAMES, [half(5), half(5)[:-1], half(5)], "a2.png: is 40x29 px, but the frames are 40x30"),
        (NAMES, [np.zeros((HEIGHT, WIDTH), np.uint8)] * 3, "all masks are completely black"),
    ],
    ids=["one is missing", "too few", "another size", "all black"],
)
def test_masks_that_do_not_fit_are_refused_with_one_line(source, tmp_path, names, pictures, said):
    with pytest.raises(InputError, match=said) as refused:
        read_masks(write(tmp_path / "masks", names, ".png", pictures), source)
    assert "\n" not in str(refused.value)


def test_one_black_mask_is_a_frame_without_scene(source, tmp_path):
    black = np.zeros((HEIGHT, WIDTH), np.uint8)
    masks = read_masks(write(tmp_path / "masks", NAMES, ".png", [half(5), black, half(5)]), source)
    assert (masks.find_parts(1, source.read(1)) == Part.PAINTED).all()


def test_a_file_that_is_no_image_is_named(source, tmp_path):
    folder = write(tmp_path / "masks", NAMES, ".png", [half(5)] * 3)
    (folder / "a2.png").write_bytes(b"\x89PNG\r\n\x1a\n then nothing")
    with pytest.raises(InputError, match=r"a2\.png"):
        read_masks(folder, source)
