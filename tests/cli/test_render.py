"""`smalti render`: ways, regions, maps, formats and the world."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tifffile
from PIL import Image

import smalti
from smalti.cli.main import main
from smalti.cli.project_commands import BLENDS, MAPS
from smalti.geometry.linear_maps import apply
from smalti.rendering import mosaic as renderer
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.walks import walk


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    video = write_video(walk(), tmp_path_factory.mktemp("source") / "walk.mp4")
    folder = tmp_path_factory.mktemp("built") / "walk.smalti"
    smalti.build(video, folder, budget=6).close()
    return folder


@pytest.fixture(scope="module")
def positions(tmp_path_factory):
    """Return a table of where the frames were taken: a quarter of a metre a pixel, north up."""
    path = tmp_path_factory.mktemp("positions") / "metres.csv"
    centres = apply(walk().mosaic_from_frame, walk().outline.centre[None])[:, 0]
    rows = [f"{n},{500000 + 0.25 * x:.3f},{4000000 - 0.25 * y:.3f}" for n, (x, y) in enumerate(centres)]
    path.write_text("frame,east_m,north_m\n" + "\n".join(rows) + "\n")
    return path


def say(capfd, *arguments) -> str:
    code = main(["render", *map(str, arguments)])
    said = capfd.readouterr()
    assert code == 0, said.err
    return said.out


def complain(capfd, *arguments) -> tuple[int, str]:
    code = main(["render", "-q", *map(str, arguments)])
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return code, said.err


def test_help_names_the_blends_and_maps_there_are():
    assert BLENDS == renderer.BLENDS
    assert MAPS == renderer.MAP_KINDS


def test_a_region_in_any_blend_is_a_part_of_the_whole(built, tmp_path, capfd):
    say(capfd, built, "-q", "-o", tmp_path / "whole.png", "--blend", "median")
    say(capfd, built, "-q", "-o", tmp_path / "part.png", "--blend", "median", "--region", "40,30,100,80")
    whole, part = (np.array(Image.open(tmp_path / name)) for name in ("whole.png", "part.png"))
    np.testing.assert_array_equal(part, whole[30:110, 40:140])


def test_raw_light_is_another_picture(built, tmp_path, capfd):
    say(capfd, built, "-q", "-o", tmp_path / "even.png")
    say(capfd, built, "-q", "-o", tmp_path / "raw.png", "--raw-light")
    assert (tmp_path / "even.png").read_bytes() != (tmp_path / "raw.png").read_bytes()


def test_maps_lie_beside_the_picture_and_are_named(built, tmp_path, capfd):
    words = say(capfd, built, "-o", tmp_path / "m.jpg", "--maps", "source,uncertainty,coverage")
    for name in ("m.source.tif", "m.uncertainty.tif", "m.coverage.tif", "m.frames.json"):
        assert (tmp_path / name).exists()
        assert name in words
    height, width, _ = np.array(Image.open(tmp_path / "m.jpg")).shape
    source, sigma = (tifffile.imread(tmp_path / f"m.{kind}.tif") for kind in ("source", "uncertainty"))
    assert source.shape == sigma.shape == (height, width)
    frames = json.loads((tmp_path / "m.frames.json").read_text())["frames"]
    assert set(np.unique(source)) - {0} <= {frame["value"] for frame in frames}
    np.testing.assert_array_equal(np.isfinite(sigma), source > 0)


def test_the_uncertainty_is_least_in_the_frame_it_is_relative_to(built, tmp_path, capfd):
    say(capfd, built, "-q", "-o", tmp_path / "m.png", "--maps", "source,uncertainty", "--relative-to", 3)
    source, sigma = (tifffile.imread(tmp_path / f"m.{kind}.tif") for kind in ("source", "uncertainty"))
    if (source == 4).any():
        assert np.nanmax(sigma[source == 4]) == 0
    assert np.nanmax(sigma) > 0


def test_positions_place_the_picture_in_the_world(built, positions, tmp_path, capfd):
    region = ("--region", "40,30,100,80")
    words = say(capfd, built, "-o", tmp_path / "m.tif", "--positions", positions, "--epsg", 32614, *region)
    assert "EPSG 32614: 0.2" in words
    assert "m RMS" in words
    with tifffile.TiffFile(tmp_path / "m.tif") as file:
        assert file.geotiff_metadata["ProjectedCSTypeGeoKey"] == 32614
    a, d, b, e, c, f = map(float, (tmp_path / "m.tfw").read_text().split())
    # The mosaic's own coordinates are those of its reference frame, which may be turned and nearer or farther.
    assert np.hypot(a, d) == pytest.approx(0.25, rel=0.05)
    assert a * e - b * d == pytest.approx(-(0.25**2), rel=0.1)
    assert abs(c - 500000) < 500
    assert abs(f - 4000000) < 500


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--blend", "glue"], "unknown blend 'glue'"),
        (["--maps", "height"], "unknown map 'height'"),
        (["--region", "1,2,3"], "four numbers"),
        (["--region", "1,2,3,x"], "four numbers"),
        (["--region", "99999,0,10,10"], "region 99999,0,10,10"),
        (["--relative-to", "3"], "--maps uncertainty"),
        (["--epsg", "32614"], "--positions"),
        (["--memory", "100"], "memory 100 MB"),
    ],
)
def test_a_wrong_option_is_one_line_and_writes_nothing(options, said, built, tmp_path, capfd):
    code, words = complain(capfd, built, "-o", tmp_path / "m.png", *options)
    assert code == 2
    assert said in words
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_is_not_on_the_mosaic_is_refused_before_the_picture_is_made(built, tmp_path, capfd):
    code, words = complain(capfd, built, "-o", tmp_path / "m.png", "--maps", "uncertainty", "--relative-to", 999)
    assert code == 1
    assert "999" in words
    assert list(tmp_path.iterdir()) == []


def test_positions_that_cannot_be_read_are_one_line_that_names_them(built, tmp_path, capfd):
    code, words = complain(capfd, built, "-o", tmp_path / "m.png", "--positions", tmp_path / "gone.csv")
    assert code == 1
    assert "gone.csv" in words
