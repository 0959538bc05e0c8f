"""What is written can be read again."""

from __future__ import annotations

import json

import av
import cv2
import numpy as np
import pytest

from smalti.errors import InputError, OutputError, UsageError
from smalti_lab.synthetic.camera_path import Handling, wander
from smalti_lab.synthetic.scene import load_scene, procedural_scene
from smalti_lab.synthetic.synthetic_files import read_truth, write_frames, write_truth, write_video
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence


@pytest.fixture(scope="module")
def sequence():
    camera = wander((500, 400), 12, (128, 96), handling=Handling(heading_degrees=5, zoom=0.05), seed=1)
    return SyntheticSequence(procedural_scene(500, 400, 1), camera)


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("video.mp4", "libx264"),
        ("video.mkv", "libx265"),
        ("video.avi", "mjpeg"),
        ("video.webm", "libvpx-vp9"),
        ("video.mov", "libx264"),
    ],
)
def test_a_video_holds_every_frame_in_order_and_in_high_quality(sequence, tmp_path, name, codec):
    path = write_video(sequence, tmp_path / name, codec)
    with av.open(path) as container:
        decoded = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(decoded) == len(sequence)
    frames = [image.astype(float) for _, image in sequence.read_many(range(len(sequence)))]
    for n, (image, exact) in enumerate(zip(decoded, frames, strict=True)):
        assert np.abs(image - exact).mean() < 5
        # Grey is kept far better than colour, which video stores at half the resolution.
        assert np.abs(image.mean(axis=2) - exact.mean(axis=2)).mean() < 4
        assert np.argmin([np.abs(image - other).mean() for other in frames]) == n


def test_a_lower_crf_means_a_better_video(sequence, tmp_path):
    sizes = [write_video(sequence, tmp_path / f"{crf}.mp4", crf=crf).stat().st_size for crf in (5, 15, 35)]
    assert sizes[0] > 1.5 * sizes[1] > 2 * sizes[2]


def test_lossless_images_are_the_frames_to_the_bit(sequence, tmp_path):
    paths = write_frames(sequence, tmp_path / "new" / "folder", ".png")
    assert [path.name for path in paths[:2]] == ["frame_0000.png", "frame_0001.png"]
    assert len(paths) == len(sequence)
    for n, path in enumerate(paths):
        np.testing.assert_array_equal(load_scene(path), sequence.frame(n))


def test_jpeg_images_come_close(sequence, tmp_path):
    path = write_frames(sequence, tmp_path)[3]
    assert path.suffix == ".jpg"
    assert np.abs(load_scene(path).astype(float) - sequence.frame(3)).mean() < 3


def test_the_truth_is_read_as_it_was_written_to_the_bit(sequence, tmp_path):
    path = write_truth(sequence, tmp_path / "truth.json")
    np.testing.assert_array_equal(read_truth(path), sequence.mosaic_from_frame)
    content = json.loads(path.read_text())
    assert "maps points (x, y, 1) of a frame to the mosaic" in content["convention"]
    assert "centre of the top-left pixel is (0, 0)" in content["convention"]
    assert content["frame_size"] == [128, 96]
    assert content["scene_size"] == [500, 400]
    assert content["mosaic_from_frame"][0][2] == [0, 0, 1]


def test_a_written_map_leads_to_the_place_in_the_scene(sequence, tmp_path):
    """The picture of frame 5, found again in the scene by correlation, lies where the file says."""
    pooled = SyntheticSequence(sequence.scene, wander((500, 400), 12, (128, 96), seed=1))
    maps = read_truth(write_truth(pooled, tmp_path / "truth.json"))
    likeness = cv2.matchTemplate(pooled.scene, pooled.frame(5), cv2.TM_CCOEFF_NORMED)
    x, y = cv2.minMaxLoc(likeness)[3]
    np.testing.assert_allclose(maps[5, :, 2], [x, y], atol=0.51)


@pytest.mark.parametrize(
    "content", ["", "[1]", "{}", '{"mosaic_from_frame": [[1, 2], [3]]}', '{"mosaic_from_frame": [1]}']
)
def test_a_file_without_truth_is_refused_by_name(tmp_path, content):
    path = tmp_path / "truth.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"truth\.json: "):
        read_truth(path)


def test_a_truth_that_does_not_exist_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: cannot be read"):
        read_truth(tmp_path / "none.json")


def test_places_that_cannot_be_written_are_named(sequence, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        write_frames(sequence, tmp_path / "file" / "frames")
    with pytest.raises(OutputError, match=r"truth\.json"):
        write_truth(sequence, tmp_path / "none" / "truth.json")
    with pytest.raises(OutputError, match=r"video\.mp4"):
        write_video(sequence, tmp_path / "none" / "video.mp4")


def test_unknown_codecs_containers_and_images_are_refused(sequence, tmp_path):
    with pytest.raises(OutputError, match=r"video\.mp4: .*codec 'nonsense'"):
        write_video(sequence, tmp_path / "video.mp4", "nonsense")
    with pytest.raises(OutputError, match=r"video\.xyz"):
        write_video(sequence, tmp_path / "video.xyz")
    with pytest.raises(UsageError, match=r"'\.xyz' is no kind of image"):
        write_frames(sequence, tmp_path, ".xyz")


def test_an_odd_size_is_refused_where_the_video_cannot_hold_it(sequence, tmp_path):
    camera = wander((500, 400), 3, (127, 95))
    odd = SyntheticSequence(sequence.scene, camera)
    with pytest.raises(UsageError, match="127 × 95; choose an even size or pixel_format='yuv444p'"):
        write_video(odd, tmp_path / "video.mp4")
    with av.open(write_video(odd, tmp_path / "video.mp4", pixel_format="yuv444p")) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (127, 95)
