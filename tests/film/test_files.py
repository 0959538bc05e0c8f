"""Films as files."""

from __future__ import annotations

import av
import numpy as np
import pytest
from PIL import Image

from smalti.errors import OutputError, UsageError
from smalti.film.film import format_of, write_gif, write_mp4, writing_beside
from smalti.interchange.atomic_files import check_place

COLOURS = [(200, 40, 30), (30, 160, 60), (40, 60, 220), (22, 25, 30), (255, 184, 77), (240, 242, 245)]


def pictures(count=12):
    """Coloured tiles, and a square that wanders over them."""
    made = []
    for n in range(count):
        picture = np.zeros((96, 128, 3), dtype=np.uint8)
        for tile, colour in enumerate(COLOURS):
            row, column = divmod(tile, 3)
            picture[48 * row : 48 * row + 48, 43 * column : 43 * column + 43] = colour
        picture[40:56, 6 * n : 6 * n + 16] = 128
        made.append(picture)
    return made


def decode(path):
    with av.open(path) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_an_mp4_is_what_browsers_play(tmp_path):
    made = pictures()
    write_mp4(tmp_path / "film", iter(made), made[:1])
    with av.open(tmp_path / "film") as container:
        (stream,) = container.streams
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height, stream.frames) == (128, 96, 12)
        assert stream.average_rate == 25
        assert "mp4" in container.format.name


def test_an_mp4_has_its_index_in_front(tmp_path):
    made = pictures()
    write_mp4(tmp_path / "film", iter(made), made[:1])
    content = (tmp_path / "film").read_bytes()
    assert 0 < content.index(b"moov") < content.index(b"mdat")


def test_an_mp4_shows_the_colours_it_was_given(tmp_path):
    made = pictures()
    write_mp4(tmp_path / "film", iter(made), made[:1])
    for shown, given in zip(decode(tmp_path / "film"), made, strict=True):
        for y, x in ((20, 20), (20, 64), (20, 110), (76, 20), (76, 64), (76, 110)):
            np.testing.assert_allclose(shown[y, x].astype(int), given[y, x].astype(int), atol=7)


def test_an_mp4_says_by_which_matrix_its_colours_were_made(tmp_path):
    made = pictures()
    write_mp4(tmp_path / "film", iter(made), made[:1])
    with av.open(tmp_path / "film") as container:
        context = container.streams.video[0].codec_context
        assert (context.colorspace, context.color_primaries, context.color_trc, context.color_range) == (1, 1, 1, 1)


def test_a_gif_plays_again_and_again_ten_pictures_a_second(tmp_path):
    made = pictures()
    write_gif(tmp_path / "film", iter(made), made[:3])
    with Image.open(tmp_path / "film") as film:
        assert film.format == "GIF"
        assert film.info["loop"] == 0
        assert film.size == (128, 96)
        durations = []
        for n in range(film.n_frames):
            film.seek(n)
            durations.append(film.info["duration"])
    assert durations == [100] * 12


def test_a_gif_shows_the_colours_of_its_samples(tmp_path):
    made = pictures()
    write_gif(tmp_path / "film", iter(made), made[:3])
    with Image.open(tmp_path / "film") as film:
        for n, given in enumerate(made):
            film.seek(n)
            np.testing.assert_allclose(np.asarray(film.convert("RGB")).astype(int), given.astype(int), atol=8)


@pytest.mark.parametrize("name", ["drift.mp4", "drift.GIF"])
def test_the_extension_chooses_the_kind(name, tmp_path):
    assert format_of(tmp_path / name).per_second == (25 if "mp4" in name else 10)


@pytest.mark.parametrize("name", ["drift.avi", "drift"])
def test_another_extension_is_refused(name, tmp_path):
    with pytest.raises(UsageError, match=r"a film is written as one of \.mp4, \.gif: choose such an ending"):
        format_of(tmp_path / name)


def test_a_film_takes_the_place_of_the_one_before(tmp_path):
    (tmp_path / "drift.mp4").write_bytes(b"before")
    with writing_beside(tmp_path / "drift.mp4") as path:
        path.write_bytes(b"after")
    assert (tmp_path / "drift.mp4").read_bytes() == b"after"
    assert [path.name for path in tmp_path.iterdir()] == ["drift.mp4"]


@pytest.mark.parametrize("write", [write_mp4, write_gif])
def test_an_interrupted_film_leaves_the_one_before_and_nothing_else(tmp_path, write):
    (tmp_path / "drift.mp4").write_bytes(b"before")

    def interrupted():
        yield from pictures(8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), writing_beside(tmp_path / "drift.mp4") as path:
        write(path, interrupted(), pictures(1))
    assert (tmp_path / "drift.mp4").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["drift.mp4"]


@pytest.mark.parametrize("write", [write_mp4, write_gif])
def test_a_file_that_cannot_be_written_is_named(tmp_path, write):
    target = tmp_path / "gone" / "drift.mp4"
    told = r"drift\.mp4: cannot be written \(No such file or directory\): choose"
    with pytest.raises(OutputError, match=told), writing_beside(target) as path:
        write(path, iter(pictures()), pictures(1))


def test_a_folder_is_no_place_for_a_film(tmp_path):
    with pytest.raises(OutputError, match="is a folder: give the name of a file"):
        check_place(tmp_path)


def test_a_folder_that_does_not_exist_is_told_at_once(tmp_path):
    with pytest.raises(OutputError, match="its folder does not exist: make it"):
        check_place(tmp_path / "gone" / "drift.mp4")
