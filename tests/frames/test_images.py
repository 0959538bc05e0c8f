import shutil

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageFile

from smalti.errors import InputError, UsageError
from smalti.frames.images import ImageSource
from smalti.frames.source import SourceSettings, open_source
from tests.frames.scenes import make_scene

SCENE = make_scene(80, 120)
GRAY = SCENE[:, :, 0]
EXIF_ORIENTATION = 274


def save(path, pixels=SCENE, **options):
    Image.fromarray(pixels).save(path, **options)


def save_many(folder, names, pixels=SCENE):
    folder.mkdir(exist_ok=True)
    for name in names:
        save(folder / name, pixels)
    return folder


def test_images_come_in_natural_order_whatever_their_case(tmp_path):
    names = ["img10.png", "img2.PNG", "IMG1.Jpg", "img2b.tiff", "img002a.bmp", "img3.webp"]
    source = open_source(save_many(tmp_path, names))
    assert source.labels == ("IMG1.Jpg", "img2.PNG", "img002a.bmp", "img2b.tiff", "img3.webp", "img10.png")
    assert len(source) == 6


def test_what_is_no_image_or_hidden_is_ignored(tmp_path):
    save_many(tmp_path, ["b.png", "a.png", "._a.png", ".hidden.jpg"])
    for name in ("gps.csv", "notes.txt", "Thumbs.db", "clip.mp4"):
        (tmp_path / name).write_text("not an image")
    (tmp_path / "folder.png").mkdir()
    assert open_source(tmp_path).labels == ("a.png", "b.png")


@pytest.mark.parametrize("name", ["a b", "Größe", "图像", "it's [1]"])
def test_any_letters_in_a_path_will_do(name, tmp_path):
    folder = save_many(tmp_path / name, [f"{name} 1.png", f"{name} 2.tif"])
    np.testing.assert_array_equal(open_source(str(folder)).read(1), SCENE)


def test_a_pattern_and_a_list_choose_images(tmp_path):
    save_many(tmp_path, ["a10.png", "a9.png", "b1.png"])
    (tmp_path / "a1.txt").write_text("not an image")
    assert open_source(str(tmp_path / "a*")).labels == ("a9.png", "a10.png")
    files = [str(tmp_path / name) for name in ("b1.png", "a10.png", "a9.png")]
    assert open_source(files).labels == ("a9.png", "a10.png", "b1.png")
    assert open_source([tmp_path]).labels == ("a9.png", "a10.png", "b1.png")


def gray_with_alpha():
    return np.dstack([GRAY, np.full_like(GRAY, 9)])


def colour_with_alpha():
    return np.dstack([SCENE, np.full_like(GRAY, 9)])


@pytest.mark.parametrize(("kind", "suffix"), [
    ("rgb", "png"), ("gray", "png"), ("rgba", "png"), ("gray and alpha", "png"),
    ("rgb", "tif"), ("gray", "tif"), ("rgba", "tif"), ("gray and alpha", "tif"),
    ("rgb", "bmp"), ("gray", "bmp"), ("rgba", "bmp"),  # BMP has no gray with alpha
])  # fmt: skip
def test_8_bit_images_are_read_exactly_without_alpha(kind, suffix, tmp_path):
    pixels, expected = {
        "rgb": (SCENE, SCENE),
        "gray": (GRAY, np.dstack([GRAY] * 3)),
        "rgba": (colour_with_alpha(), SCENE),
        "gray and alpha": (gray_with_alpha(), np.dstack([GRAY] * 3)),
    }[kind]
    for name in ("1", "2"):
        save(tmp_path / f"{name}.{suffix}", pixels)
    image = open_source(tmp_path).read(0)
    assert image.dtype == np.uint8
    assert image.flags.c_contiguous
    np.testing.assert_array_equal(image, expected)


def test_a_palette_with_transparency_is_read(tmp_path):
    picture = Image.fromarray(SCENE).quantize(64)
    for name in ("1.png", "2.png"):
        picture.save(tmp_path / name, transparency=bytes(range(64)))
    np.testing.assert_array_equal(open_source(tmp_path).read(0), np.asarray(picture.convert("RGB")))


@pytest.mark.parametrize(("code", "suffix"), [*((code, "jpg") for code in range(1, 9)), (6, "png"), (6, "tif")])
def test_images_are_turned_as_their_exif_says(code, suffix, tmp_path):
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = code
    for name in ("1", "2"):
        options = {"quality": 100, "subsampling": 0} if suffix == "jpg" else {}
        save(tmp_path / f"{name}.{suffix}", exif=exif, **options)
    expected = {
        1: SCENE,
        2: SCENE[:, ::-1],
        3: np.rot90(SCENE, 2),
        4: SCENE[::-1],
        5: SCENE.swapaxes(0, 1),
        6: np.rot90(SCENE, -1),
        7: np.rot90(SCENE, 2).swapaxes(0, 1),
        8: np.rot90(SCENE, 1),
    }[code]
    source = open_source(tmp_path)
    assert (source.height, source.width) == expected.shape[:2]
    np.testing.assert_allclose(source.read(0).astype(int), expected, atol=6 if suffix == "jpg" else 0)


def test_working_size_is_the_mean_over_areas(tmp_path):
    folder = save_many(tmp_path, ["1.png", "2.png"])
    source = open_source(folder, SourceSettings(max_size=60))
    assert (source.width, source.height, source.scale) == (60, 40, 0.5)
    np.testing.assert_allclose(source.read(0), SCENE.reshape(40, 2, 60, 2, 3).mean(axis=(1, 3)), atol=1)


def test_start_end_and_every_choose_images(tmp_path):
    folder = save_many(tmp_path, [f"{k}.png" for k in range(10)])
    assert open_source(folder, SourceSettings(every=3, start="2", end="9")).labels == ("2.png", "5.png", "8.png")
    with pytest.raises(UsageError, match="images have none"):
        open_source(folder, SourceSettings(start="1s"))


def write_cmyk(suffix):
    def write(folder):
        Image.fromarray(SCENE).convert("CMYK").save(folder / f"bad.{suffix}")

    return write


def write_animation(suffix):
    def write(folder):
        pictures = [Image.fromarray(SCENE[:, ::-1]), Image.fromarray(SCENE[::-1])]
        Image.fromarray(SCENE).save(folder / f"bad.{suffix}", save_all=True, append_images=pictures)

    return write


def write_truncated(suffix, **options):
    def write(folder):
        save(folder / f"bad.{suffix}", **options)
        content = (folder / f"bad.{suffix}").read_bytes()
        (folder / f"bad.{suffix}").write_bytes(content[: len(content) * 2 // 3])

    return write


def write_content(content):
    return lambda folder: (folder / "bad.png").write_bytes(content)


BAD = {
    "CMYK JPEG": (write_cmyk("jpg"), r"bad\.jpg: .*CMYK.*convert it to RGB"),
    "CMYK TIFF": (write_cmyk("tif"), r"bad\.tif: .*CMYK.*convert it to RGB"),
    "animated GIF": (write_animation("gif"), r"bad\.gif: holds 3 pictures"),
    "animated PNG": (write_animation("png"), r"bad\.png: holds 3 pictures"),
    "TIFF of pages": (write_animation("tif"), r"bad\.tif: holds 3 pictures"),
    "truncated JPEG": (write_truncated("jpg"), r"bad\.jpg: is truncated"),
    "truncated progressive JPEG": (write_truncated("jpg", progressive=True), r"bad\.jpg: is truncated"),
    "truncated PNG": (write_truncated("png"), r"bad\.png: is truncated"),
    "truncated TIFF": (write_truncated("tif"), r"bad\.tif: (is truncated|cannot be read)"),
    "truncated BMP": (write_truncated("bmp"), r"bad\.bmp: is truncated"),
    "empty file": (write_content(b""), r"bad\.png: is empty"),
    "text": (write_content(b"no image at all"), r"bad\.png: is not an image"),
    "other size": (
        lambda folder: save(folder / "bad.png", SCENE[:70, :110]),
        r"bad\.png: is 110x70 px, but a\.png is 120x80; all images must have one size",
    ),
    "other depth": (
        lambda folder: tifffile.imwrite(folder / "bad.tif", GRAY.astype(np.uint16)),
        r"bad\.tif: has 16 bits a sample, but a\.png has 8",
    ),
    "fractional TIFF": (
        lambda folder: tifffile.imwrite(folder / "bad.tif", GRAY.astype(np.float32)),
        r"bad\.tif: has samples of 32 bits",
    ),
    "signed TIFF": (
        lambda folder: tifffile.imwrite(folder / "bad.tif", GRAY.astype(np.int16)),
        r"bad\.tif: has signed",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_an_image_that_cannot_be_a_frame_is_refused_by_name(kind, tmp_path, capfd):
    save_many(tmp_path, ["a.png", "c.png"])
    write, message = BAD[kind]
    write(tmp_path)
    with pytest.raises(InputError, match=message) as caught:  # noqa: PT012
        source = open_source(tmp_path)
        list(source.read_many(range(len(source))))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_the_first_image_of_another_size_is_named(tmp_path):
    save_many(tmp_path, ["img1.png", "img2.png"])
    save_many(tmp_path, ["img10.png", "img9.png"], SCENE[:, :-2])
    with pytest.raises(InputError, match=r"img9\.png: is 118x80 px, but img1\.png is 120x80"):
        open_source(tmp_path)


def test_the_previews_of_a_camera_do_not_count_as_pictures(tmp_path):
    preview = Image.fromarray(SCENE[::2, ::2])
    for name in ("1.jpg", "2.jpg"):
        Image.fromarray(SCENE).save(tmp_path / name, format="MPO", save_all=True, append_images=[preview])
    assert open_source(tmp_path).read(1).shape == SCENE.shape
    for name in ("1.jpg", "2.jpg"):
        (tmp_path / name).unlink()
        with tifffile.TiffWriter(tmp_path / f"{name}.tif") as tiff:
            tiff.write(SCENE, photometric="rgb")
            tiff.write(SCENE[::2, ::2], photometric="rgb", subfiletype=1)
    np.testing.assert_array_equal(open_source(tmp_path).read(1), SCENE)


@pytest.mark.parametrize(("location", "message"), [
    ("missing", "missing: does not exist"),
    ("missing/*.png", r"\*\.png: holds no images"),
    ("none", "none: holds no images"),
    ("one", r"one: holds a single image, a\.png"),
    ("one/a.png", r"a\.png: is a single image"),
])  # fmt: skip
def test_places_without_images_are_refused(location, message, tmp_path):
    save_many(tmp_path / "one", ["a.png"])
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "notes.txt").write_text("no image")
    with pytest.raises(InputError, match=message):
        open_source(str(tmp_path / location))


def test_lists_are_checked(tmp_path):
    save_many(tmp_path, ["a.png", "b.png"])
    with pytest.raises(InputError, match=r"c\.png: is not a file"):
        open_source([tmp_path / "a.png", tmp_path / "c.png"])
    with pytest.raises(InputError, match=r"a\.png: is given twice"):
        open_source([tmp_path / "a.png", tmp_path / "b.png", tmp_path / "a.png"])
    with pytest.raises(UsageError, match="no input"):
        open_source([])


def test_the_fingerprint_knows_names_and_content_but_not_the_place(tmp_path):
    here = save_many(tmp_path / "here", ["1.bmp", "2.bmp", "3.bmp"])
    there = tmp_path / "there"
    shutil.copytree(here, there)
    mark = open_source(here).fingerprint
    assert open_source(there).fingerprint == mark
    changed = SCENE.copy()
    changed[40] = 0  # the same size and header, other pixels in the middle
    save(there / "2.bmp", changed)
    assert open_source(there).fingerprint != mark
    assert open_source(here, SourceSettings(end="2")).fingerprint != mark
    (here / "3.bmp").rename(here / "4.bmp")
    assert open_source(here).fingerprint != mark


def test_opening_decodes_nothing(tmp_path, monkeypatch):
    folder = save_many(tmp_path, ["1.png", "2.jpg", "3.tif", "4.bmp", "5.webp"])
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    assert len(open_source(folder)) == 5


def test_a_source_closes_like_a_file(tmp_path):
    with open_source(save_many(tmp_path, ["1.png", "2.png"])) as source:
        assert isinstance(source, ImageSource)
        assert source.path == tmp_path
        assert source.warnings == ()
