from __future__ import annotations

import numpy as np
import pytest
import tifffile

from smalti.errors import UsageError
from smalti.rendering.formats.bands import Caption
from smalti.rendering.formats.format_table import writer_for
from smalti.rendering.formats.tiff import write_map, write_tiff
from tests.rendering.formats.pictures import bands_of, picture

WORLD = ((0.02, 0.003, 512_345.125), (0.004, -0.025, 4_100_000.5))
UTM = Caption(world_from_pixel=WORLD, epsg=32610)


def geotiff(path) -> dict:
    with tifffile.TiffFile(path) as tiff:
        assert tiff.geotiff_metadata is not None
        return tiff.geotiff_metadata


@pytest.mark.parametrize(
    ("name", "world"), [("m.png", "m.pgw"), ("m.jpg", "m.jgw"), ("m.JPEG", "m.jgw"), ("m.ome.tif", "m.ome.tfw")]
)
def test_a_world_file_beside_an_image_places_the_centre_of_its_first_pixel(tmp_path, name, world):
    path = tmp_path / name
    writer_for(path)(path, bands_of(picture(30, 20)), UTM)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([name, world])
    a, d, b, e, c, f = (float(line) for line in (tmp_path / world).read_text().splitlines())
    assert ((a, b, c), (d, e, f)) == WORLD


def test_the_world_file_of_an_earlier_image_goes_with_it(tmp_path):
    path = tmp_path / "m.png"
    writer_for(path)(path, bands_of(picture(30, 20)), UTM)
    writer_for(path)(path, bands_of(picture(30, 20)), Caption())
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.png"]


@pytest.mark.parametrize("epsg", [32610, None])
def test_a_geotiff_counts_from_the_corner_of_its_first_pixel(tmp_path, epsg):
    write_tiff(tmp_path / "m.tif", bands_of(picture(30, 20)), Caption(world_from_pixel=WORLD, epsg=epsg))
    metadata = geotiff(tmp_path / "m.tif")
    assert metadata["GTRasterTypeGeoKey"] == 1  # a pixel is an area
    matrix = np.array(metadata["ModelTransformation"])
    for x, y in [(0, 0), (29, 0), (7, 19)]:
        expected = np.array(WORLD) @ (x, y, 1)
        np.testing.assert_allclose((matrix @ (x + 0.5, y + 0.5, 0, 1))[:2], expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(matrix[2:], [[0, 0, 0, 0], [0, 0, 0, 1]])


def test_a_geotiff_names_its_projected_system(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(30, 20)), UTM)
    metadata = geotiff(tmp_path / "m.tif")
    assert (metadata["GTModelTypeGeoKey"], metadata["ProjectedCSTypeGeoKey"]) == (1, 32610)


def test_a_geotiff_on_a_local_plane_has_metres_and_no_projection(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(30, 20)), Caption(world_from_pixel=WORLD))
    metadata = geotiff(tmp_path / "m.tif")
    assert (metadata["GTModelTypeGeoKey"], metadata["ProjLinearUnitsGeoKey"]) == (32767, 9001)
    assert metadata["GTCitationGeoKey"] == "local plane: metres east and north"
    assert "ProjectedCSTypeGeoKey" not in metadata


def test_a_map_lies_where_the_mosaic_lies(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(30, 20)), UTM)
    write_map(tmp_path / "source.tif", bands_of(np.zeros((20, 30), dtype=np.uint16)), UTM)
    assert geotiff(tmp_path / "source.tif") == geotiff(tmp_path / "m.tif")
    assert (tmp_path / "source.tfw").read_text() == (tmp_path / "m.tfw").read_text()


def test_a_tiff_without_a_place_has_no_tags_of_one(tmp_path):
    write_tiff(tmp_path / "m.tif", bands_of(picture(30, 20)), Caption())
    with tifffile.TiffFile(tmp_path / "m.tif") as tiff:
        assert not tiff.is_geotiff


@pytest.mark.parametrize("epsg", [-1, 32767])
def test_a_code_that_geotiff_cannot_hold_is_refused(epsg):
    with pytest.raises(UsageError, match=f"EPSG {epsg}: "):
        Caption(epsg=epsg)
