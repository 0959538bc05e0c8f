import cv2
import numpy as np
import pytest
import tifffile

from smalti.errors import InputError
from smalti.frames.source import open_source
from tests.frames.scenes import make_scene

DEEP = make_scene(80, 120, seed=1).astype(np.uint16) * 40 + 3000
TIFF_ORIENTATION = 274


def write_deep_png(path, pixels):
    path.write_bytes(cv2.imencode(".png", pixels[..., ::-1] if pixels.ndim == 3 else pixels)[1].tobytes())


def write_deep_lzw(path, pixels):
    stored = pixels[..., ::-1] if pixels.ndim == 3 else pixels
    path.write_bytes(cv2.imencode(".tif", stored, [cv2.IMWRITE_TIFF_COMPRESSION, 5])[1].tobytes())


def write_planes(path, pixels):
    planes = np.moveaxis(pixels, 2, 0) if pixels.ndim == 3 else pixels
    tifffile.imwrite(path, planes, photometric="rgb" if pixels.ndim == 3 else "minisblack", planarconfig="separate")


DEEP_WRITERS = {
    "tiff": tifffile.imwrite,
    "big-endian tiff": lambda path, pixels: tifffile.imwrite(path, pixels, byteorder=">"),
    "lzw tiff": write_deep_lzw,
    "tiff in planes": write_planes,
    "png": write_deep_png,
}


@pytest.mark.parametrize(
    ("writer", "pixels"),
    [
        *((writer, DEEP) for writer in DEEP_WRITERS),
        ("tiff", DEEP[:, :, 0]),
        ("lzw tiff", DEEP[:, :, 0]),
        ("png", DEEP[:, :, 0]),
    ],
)
def test_16_bit_images_are_scaled_to_their_range(writer, pixels, tmp_path, capfd):
    suffix = "png" if writer == "png" else "tif"
    for name in ("1", "2"):
        DEEP_WRITERS[writer](tmp_path / f"{name}.{suffix}", pixels)
    image = open_source(tmp_path).read(1)
    low, high = np.percentile(pixels, (0.05, 99.95))
    expected = np.clip((pixels - low) / (high - low), 0, 1) * 255
    np.testing.assert_allclose(image, expected if pixels.ndim == 3 else np.dstack([expected] * 3), atol=1.6)
    assert capfd.readouterr().err == ""


def test_16_bits_with_alpha_and_turned_and_inverted_are_understood(tmp_path):
    pixels = np.dstack([DEEP, np.full_like(DEEP[:, :, 0], 65535)])
    tag = [(TIFF_ORIENTATION, "H", 1, 6, True)]
    for name in ("1.tif", "2.tif"):
        tifffile.imwrite(tmp_path / name, pixels, photometric="rgb", extrasamples=["unassalpha"], extratags=tag)
    image = open_source(tmp_path).read(0)
    assert image.shape == (120, 80, 3)
    assert np.corrcoef(image.ravel(), np.rot90(DEEP, -1).ravel())[0, 1] > 0.999
    for name in ("1.tif", "2.tif"):
        tifffile.imwrite(tmp_path / name, DEEP[:, :, 0], photometric="miniswhite")
    assert np.corrcoef(open_source(tmp_path).read(0)[:, :, 0].ravel(), DEEP[:, :, 0].ravel())[0, 1] < -0.999


def test_16_bit_frames_share_one_range_that_a_hot_pixel_does_not_set(tmp_path):
    for k in range(5):
        pixels = DEEP[:, :, 0] + np.uint16(4000 * k)
        pixels[k, k] = 65535
        tifffile.imwrite(tmp_path / f"{k}.tif", pixels)
    means = [image.mean() for _, image in open_source(tmp_path).read_many(range(5))]
    steps = np.diff(means)
    assert (steps > 5).all()
    np.testing.assert_allclose(steps, steps.mean(), rtol=0.2)


@pytest.mark.parametrize("writer", ["tiff", "lzw tiff", "png"])
def test_truncated_16_bit_images_are_refused(writer, tmp_path, capfd):
    path = tmp_path / ("2.png" if writer == "png" else "2.tif")
    DEEP_WRITERS[writer](tmp_path / f"1{path.suffix}", DEEP)
    DEEP_WRITERS[writer](path, DEEP)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(InputError, match=rf"2{path.suffix}: (is truncated|cannot be read|is not an image)"):
        open_source(tmp_path).read(1)
    assert capfd.readouterr().err == ""
