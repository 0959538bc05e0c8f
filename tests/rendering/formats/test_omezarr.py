from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.format_table import write_omezarr
from tests.rendering.formats.pictures import bands_of, halved, picture, tree

zarr = pytest.importorskip("zarr", reason="the package zarr reads what is written here")


def never():
    raise AssertionError("rendered in vain")
    yield


@pytest.mark.parametrize(("width", "height", "rows"), [(1, 1, 64), (1300, 1025, 64), (90, 1500, 1024)])
def test_every_level_is_the_mean_of_the_one_before_down_to_512(tmp_path, width, height, rows):
    expected = picture(width, height)
    write_omezarr(tmp_path / "m.ome.zarr", bands_of(expected, rows), Caption())
    group = zarr.open_group(tmp_path / "m.ome.zarr", mode="r")
    assert group.metadata.zarr_format == 2
    for dataset in group.attrs["multiscales"][0]["datasets"]:
        array = group[dataset["path"]]
        assert array.dtype == np.uint8
        np.testing.assert_array_equal(np.moveaxis(array[:], 0, 2), expected)
        last, expected = expected, halved(expected)
    assert max(last.shape) <= 512
    assert len(list(group.array_keys())) == len(group.attrs["multiscales"][0]["datasets"])


def test_the_attributes_are_those_of_ome_ngff(tmp_path):
    caption = Caption("reef", world_from_pixel=((0.02, 0.0, 5.0), (0.0, -0.03, 7.0)))
    write_omezarr(tmp_path / "m.zarr", bands_of(picture(1100, 70)), caption)
    attributes = zarr.open_group(tmp_path / "m.zarr", mode="r").attrs
    (scales,) = attributes["multiscales"]
    assert (scales["version"], scales["name"]) == ("0.4", "reef")
    assert scales["axes"] == [
        {"name": "c", "type": "channel"},
        {"name": "y", "type": "space", "unit": "micrometer"},
        {"name": "x", "type": "space", "unit": "micrometer"},
    ]
    assert [dataset["path"] for dataset in scales["datasets"]] == ["0", "1", "2"]
    (full,), *smaller = (dataset["coordinateTransformations"] for dataset in scales["datasets"])
    assert full["type"] == "scale"
    np.testing.assert_allclose(full["scale"], [1, 30_000, 20_000])
    # Level 2: pixels of 4, the first one's centre 1.5 pixels in.
    scale, translation = smaller[1]
    np.testing.assert_allclose(scale["scale"], [1, 120_000, 80_000])
    np.testing.assert_allclose(translation["translation"], [0, 45_000, 30_000])
    channels = attributes["omero"]["channels"]
    assert [(channel["color"], channel["active"]) for channel in channels] == [
        ("FF0000", True),
        ("00FF00", True),
        ("0000FF", True),
        ("FFFFFF", False),
    ]


def test_without_a_known_size_of_a_pixel_no_unit_is_claimed(tmp_path):
    write_omezarr(tmp_path / "m.zarr", bands_of(picture(20, 10)), Caption())
    (scales,) = zarr.open_group(tmp_path / "m.zarr", mode="r").attrs["multiscales"]
    assert all("unit" not in axis for axis in scales["axes"])
    assert scales["datasets"][0]["coordinateTransformations"] == [{"type": "scale", "scale": [1.0, 1.0, 1.0]}]


def test_what_is_transparent_takes_no_room(tmp_path):
    image = np.zeros((300, 600, 4), dtype=np.uint8)
    image[:20, :20] = 255
    write_omezarr(tmp_path / "m.zarr", bands_of(image), Caption())
    chunks = {name for name in tree(tmp_path / "m.zarr") if name.startswith("0/") and name != "0/.zarray"}
    assert chunks == {f"0/{channel}/0/0" for channel in range(4)}


@pytest.mark.parametrize("place", ["folder", "file"])
def test_what_is_no_earlier_image_is_not_replaced(tmp_path, place):
    if place == "folder":
        (tmp_path / "m.zarr").mkdir()
        (tmp_path / "m.zarr" / "thesis.tex").write_text("years of work")
    else:
        (tmp_path / "m.zarr").write_text("years of work")
    before = tree(tmp_path)
    with pytest.raises(OutputError, match=rf"m\.zarr: is a {place}.* choose another name"):
        write_omezarr(tmp_path / "m.zarr", Bands(10, 10, 64, never()), Caption())
    assert tree(tmp_path) == before


def test_an_earlier_image_is_replaced(tmp_path):
    write_omezarr(tmp_path / "m.zarr", bands_of(picture(900, 600)), Caption())
    write_omezarr(tmp_path / "m.zarr", bands_of(picture(30, 20)), Caption())
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.zarr"]
    assert zarr.open_group(tmp_path / "m.zarr", mode="r")["0"].shape == (4, 20, 30)
    assert set(tree(tmp_path / "m.zarr")) == {".zattrs", ".zgroup", "0/.zarray", *(f"0/{k}/0/0" for k in range(4))}
