import numpy as np
import pytest
from PIL import Image

from smalti.errors import InputError
from smalti.frames.field_of_view import read_mask

MASK = np.zeros((60, 80), dtype=bool)
MASK[10:50, 20:70] = True


def save(path, pixels):
    Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize("pixels", [
    MASK,
    MASK.astype(np.uint8),
    MASK.astype(np.uint16) * 300,
    np.dstack([MASK * np.uint8(0), MASK * np.uint8(0), MASK * np.uint8(7)]),
    np.dstack([*[MASK * np.uint8(255)] * 3, np.full_like(MASK, 255, dtype=np.uint8)]),
], ids=["1 bit", "8 bits", "16 bits", "blue", "alpha"])  # fmt: skip
def test_nonzero_pixels_are_scene(pixels, tmp_path):
    np.testing.assert_array_equal(read_mask(save(tmp_path / "mask.png", pixels), 80, 60), MASK)


def test_a_mask_of_the_sources_size_is_reduced(tmp_path):
    path = save(tmp_path / "mask.png", MASK.astype(np.uint8) * 255)
    reduced = read_mask(path, 40, 30, scale=0.5)
    np.testing.assert_array_equal(reduced, MASK[::2, ::2])
    uneven = np.ones((60, 80), dtype=np.uint8)
    uneven[11, 21] = 0
    reduced = read_mask(save(tmp_path / "mask.png", uneven), 40, 30, scale=0.5)
    assert np.argwhere(~reduced).tolist() == [[5, 10]]


def test_a_mask_of_the_working_size_is_taken_as_it_is(tmp_path):
    path = save(tmp_path / "mask.png", MASK.astype(np.uint8) * 255)
    np.testing.assert_array_equal(read_mask(path, 80, 60, scale=0.5), MASK)


def test_another_size_is_refused_with_both(tmp_path):
    path = save(tmp_path / "mask.png", MASK.astype(np.uint8))
    with pytest.raises(InputError, match=r"mask\.png: is 80x60 px, but the frames are 60x80; give"):
        read_mask(path, 60, 80)
    with pytest.raises(InputError, match=r"80x60 px, but the frames are 50x40 \(or 100x80 as in the source\)"):
        read_mask(path, 50, 40, scale=0.5)


def test_a_black_mask_is_refused(tmp_path):
    path = save(tmp_path / "mask.png", np.zeros((60, 80), dtype=np.uint8))
    with pytest.raises(InputError, match=r"mask\.png: is completely black"):
        read_mask(path, 80, 60)


@pytest.mark.parametrize("content", [b"", b"no image"])
def test_an_unreadable_mask_is_refused(content, tmp_path):
    path = tmp_path / "mask.png"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"mask\.png: "):
        read_mask(path, 80, 60)
    with pytest.raises(InputError, match=r"none\.png: "):
        read_mask(tmp_path / "none.png", 80, 60)
