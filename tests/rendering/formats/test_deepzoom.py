from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from smalti.errors import OutputError
from smalti.rendering.formats.bands import Bands, Caption
from smalti.rendering.formats.format_table import write_deepzoom
from tests.rendering.formats.pictures import bands_of, halved, on_white, opened, photograph, picture, tree

NAMESPACE = "{http://schemas.microsoft.com/deepzoom/2008}"


def assembled(path: Path, level: int, width: int, height: int) -> np.ndarray:
    """The level as a viewer shows it: tiles where the manifest says, whatever they share must be the same."""
    manifest = ElementTree.parse(path).getroot()
    side, overlap = int(manifest.get("TileSize")), int(manifest.get("Overlap"))
    folder = path.with_name(f"{path.stem}_files") / str(level)
    shown, count = None, 0
    for row, top in enumerate(range(0, height, side)):
        for column, left in enumerate(range(0, width, side)):
            tile = opened(folder / f"{column}_{row}.{manifest.get('Format')}")
            count += 1
            shown = np.zeros((height, width, tile.shape[2]), dtype=np.uint8) if shown is None else shown
            here = np.s_[max(0, top - overlap) : top + side + overlap, max(0, left - overlap) : left + side + overlap]
            assert shown[here].shape == tile.shape
            shown[here] = tile
    assert len(list(folder.iterdir())) == count
    return shown


@pytest.mark.parametrize(("width", "height", "rows"), [(1, 1, 64), (700, 509, 128), (90, 1500, 1024)])
def test_every_level_holds_the_image_at_half_the_size_of_the_next(tmp_path, width, height, rows):
    expected = picture(width, height)
    write_deepzoom(tmp_path / "m.dzi", bands_of(expected, rows), Caption(), tiles="png")
    last = (max(width, height) - 1).bit_length()
    assert {entry.name for entry in (tmp_path / "m_files").iterdir()} == {str(level) for level in range(last + 1)}
    for level in range(last, -1, -1):
        shown = assembled(tmp_path / "m.dzi", level, expected.shape[1], expected.shape[0])
        np.testing.assert_array_equal(shown, expected)
        expected = halved(expected)
    assert shown.shape == (1, 1, 4)


def test_tiles_are_jpegs_on_white(tmp_path):
    image = photograph(600, 400)
    write_deepzoom(tmp_path / "m.dzi", bands_of(image), Caption())
    shown = assembled(tmp_path / "m.dzi", 10, 600, 400)
    difference = np.abs(shown.astype(int) - on_white(image))
    assert difference.mean() < 2
    assert np.abs(shown[150:190, 160:190].astype(int) - 255).max() < 4


def test_the_manifest_names_size_format_and_tiles(tmp_path):
    write_deepzoom(tmp_path / "m.dzi", bands_of(picture(300, 20)), Caption())
    manifest = ElementTree.parse(tmp_path / "m.dzi").getroot()
    assert manifest.tag == f"{NAMESPACE}Image"
    assert manifest.attrib == {"TileSize": "254", "Overlap": "1", "Format": "jpg"}
    assert manifest.find(f"{NAMESPACE}Size").attrib == {"Width": "300", "Height": "20"}


def test_tiles_of_an_earlier_image_are_gone(tmp_path):
    write_deepzoom(tmp_path / "m.dzi", bands_of(picture(900, 600)), Caption())
    write_deepzoom(tmp_path / "m.dzi", bands_of(picture(30, 20)), Caption())
    write_deepzoom(tmp_path / "n.dzi", bands_of(picture(30, 20)), Caption())
    assert tree(tmp_path / "m_files") == tree(tmp_path / "n_files")
    assert len(list(tmp_path.iterdir())) == 4


def test_a_folder_that_holds_something_else_is_not_replaced(tmp_path):
    (tmp_path / "page_files").mkdir()
    (tmp_path / "page_files" / "logo.png").write_text("of a page that a browser saved")

    def never():
        raise AssertionError("rendered in vain")
        yield

    with pytest.raises(OutputError, match="page_files: exists and does not hold DeepZoom tiles"):
        write_deepzoom(tmp_path / "page.dzi", Bands(10, 10, 64, never()), Caption())
    assert list(tree(tmp_path)) == ["page_files/logo.png"]
