import shutil

import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.frames.source import SourceSettings, open_source
from smalti.frames.video import Decoder
from smalti.frames.video_index import FrameTable, OpenedVideo
from tests.frames.scenes import HEIGHT, WIDTH, decode_plainly, draw_frame, read_number, write_video

X265 = {"x265_params": "log-level=none:keyint=20:bframes=3"}
KINDS = {
    "h264 with B-frames": ("clip.mp4", "libx264", {"bf": 3, "g": 24}),
    "h264 without B-frames": ("clip.mov", "libx264", {"bf": 0, "g": 10}),
    "h264 in one long GOP": ("clip.mkv", "libx264", {"bf": 3, "g": 600}),
    "h264 with open GOPs": (
        "clip.mp4",
        "libx264",
        {"x264_params": "open-gop=1:bframes=3:keyint=12:min-keyint=12:scenecut=0"},
    ),
    "h264 without real key frames": ("clip.mp4", "libx264", {"x264_params": "intra-refresh=1:keyint=20"}),
    "matroska without real key frames": ("clip.mkv", "libx264", {"x264_params": "intra-refresh=1:keyint=20"}),
    "h264 in AVI, which keeps no order": ("clip.avi", "libx264", {"bf": 3, "g": 24}),
    "h264 in a transport stream": ("clip.ts", "libx264", {"bf": 2, "g": 20}),
    "h264 with variable frame rate": ("clip.mp4", "libx264", {"bf": 3, "g": 24, "step": lambda k: 1 + k % 4}),
    "matroska with variable frame rate": ("clip.mkv", "libx264", {"bf": 3, "g": 24, "step": lambda k: 1 + k * k % 5}),
    "hevc": ("clip.mp4", "libx265", X265),
    "hevc with open GOPs": ("clip.mkv", "libx265", {"x265_params": X265["x265_params"] + ":open-gop=1"}),
    "hevc with 10 bits": ("clip.mp4", "libx265", {**X265, "pix_fmt": "yuv420p10le"}),
    "motion jpeg": ("clip.avi", "mjpeg", {"pix_fmt": "yuvj420p"}),
    "vp9": ("clip.webm", "libvpx-vp9", {"g": 20, "cpu_used": 8, "deadline": "realtime"}),
    "vp9 with hidden frames": ("clip.webm", "libvpx-vp9", {"cpu_used": 8, "auto_alt_ref": 1, "lag_in_frames": 16}),
    "mpeg-2 in a program stream, where seeking is vague": ("clip.mpg", "mpeg2video", {"bf": 2, "b": 3_000_000}),
    "mpeg-4 with B-frames": ("clip.avi", "mpeg4", {"bf": 2, "b": 2_000_000}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_order_of_reading_gives_the_frames_of_plain_decoding(kind, tmp_path):
    name, codec, options = KINDS[kind]
    path = write_video(tmp_path / name, codec, **options)
    plain = decode_plainly(path)
    order = np.random.default_rng(3).permutation(60)
    with open_source(path) as source:
        assert len(source) == len(plain) == 60
        assert [read_number(image) for _, image in source.read_many(range(60))] == list(range(60))
        for index, image in source.read_many(order.tolist()):
            np.testing.assert_array_equal(image, plain[index])
        assert source.warnings == ()


def test_ascending_frames_are_read_without_seeking_back(tmp_path, monkeypatch):
    path = write_video(tmp_path / "clip.mp4", "libx264", bf=3, g=12)
    with open_source(path) as source:
        monkeypatch.setattr(Decoder, "_go_to", lambda *_: pytest.fail("the decoder sought"))
        assert [index for index, _ in source.read_many(range(60))] == list(range(60))


def test_a_file_that_cannot_be_sought_in_is_read_from_its_beginning(tmp_path, monkeypatch):
    path = write_video(tmp_path / "clip.mp4", "libx264", g=10)
    with open_source(path) as source:
        lost = iter([False])  # the first packet after the first seek is not the one that the table has there
        monkeypatch.setattr(FrameTable, "knows", lambda *_: next(lost, True))
        assert [read_number(source.read(index)) for index in (50, 20, 30, 59)] == [50, 20, 30, 59]
        assert not source._decoder._can_seek


def test_after_a_seek_decoding_starts_at_a_key_frame(tmp_path, monkeypatch):
    path = write_video(tmp_path / "clip.ts", "libx264", bf=2, g=10)  # where seeks end behind key frames
    decoded = []
    begin, decode = Decoder._begin, OpenedVideo.decode
    with open_source(path) as source:
        monkeypatch.setattr(Decoder, "_begin", lambda self, **kind: (decoded.append([]), begin(self, **kind)))
        monkeypatch.setattr(OpenedVideo, "decode", lambda *its: (decoded[-1].append(its[1]), decode(*its))[1])
        assert read_number(source.read(47)) == 47
    started = [run[0] for run in decoded if run]
    assert started
    assert all(packet is None or packet.is_keyframe for packet in started)


def test_a_far_frame_is_reached_from_its_key_frame(tmp_path, monkeypatch):
    path = write_video(tmp_path / "clip.mp4", "libx264", frames=100, bf=2, g=10)
    decoded = []
    decode_on = Decoder._decode_on
    with open_source(path) as source:

        def count(self, number):
            frames = self._frames
            self._frames = (decoded.append(n) or (n, f) for n, f in frames)
            return decode_on(self, number)

        monkeypatch.setattr(Decoder, "_decode_on", count)
        assert read_number(source.read(95)) == 95
    assert min(decoded) == 90


@pytest.mark.parametrize("rotate", [(90,), (180,), (-90,), (0, True), (90, True)], ids=str)
def test_frames_are_turned_as_the_video_asks(rotate, tmp_path):
    upright = open_source(write_video(tmp_path / "upright.mp4", "libx264", frames=3)).read(1)
    source = open_source(write_video(tmp_path / "turned.mp4", "libx264", frames=3, rotate=rotate))
    expected = np.rot90(upright, rotate[0] // 90)  # counter-clockwise, as the container has it
    if len(rotate) > 1:
        expected = expected[:, ::-1]
    assert (source.height, source.width) == expected.shape[:2]
    np.testing.assert_array_equal(source.read(1), expected)


def test_labels_say_number_and_time_of_the_chosen_frames(tmp_path):
    path = write_video(tmp_path / "clip.mp4", "libx264", bf=2)
    with open_source(path, SourceSettings(every=20, start="3")) as source:
        assert source.labels == ("frame 3 (0.10 s)", "frame 23 (0.77 s)", "frame 43 (1.43 s)")
        assert [read_number(image) for _, image in source.read_many(range(3))] == [3, 23, 43]


def test_start_and_end_may_be_times(tmp_path):
    path = write_video(tmp_path / "clip.mkv", "libx264", step=lambda k: 1 + (k >= 30))
    with open_source(path, SourceSettings(start="0.5s", end="0:01.2")) as source:
        # Thirtieths of a second up to frame 30 at 1.0 s, fifteenths from there.
        assert [read_number(image) for _, image in source.read_many(range(len(source)))] == list(range(15, 33))


def test_a_time_copied_from_a_label_names_that_frame(tmp_path):
    path = write_video(tmp_path / "clip.mp4", "libx264")
    with open_source(path) as source:
        for label in source.labels[:50]:
            time = label.partition("(")[2].partition(" ")[0]
            assert open_source(path, SourceSettings(start=f"{time}s")).labels[0] == label


def test_a_choice_of_no_frames_is_refused(tmp_path):
    path = write_video(tmp_path / "clip.mp4", "libx264", frames=10)
    with pytest.raises(UsageError, match=r"clip\.mp4: .* leave 0 of 10 frames"):
        open_source(path, SourceSettings(start="10"))
    with pytest.raises(UsageError, match="leave 1 of 10"):
        open_source(path, SourceSettings(every=50))


def test_the_longer_side_is_limited_and_never_enlarged(tmp_path):
    path = write_video(tmp_path / "clip.mp4", "libx264", frames=4)
    with open_source(path, SourceSettings(max_size=64)) as source:
        assert (source.width, source.height, source.scale) == (64, 48, 0.5)
        assert source.read(2).shape == (48, 64, 3)
        means = decode_plainly(path)[2].reshape(48, 2, 64, 2, 3).mean(axis=(1, 3))
        np.testing.assert_allclose(source.read(2), means, atol=1)
    with open_source(path, SourceSettings(max_size=4000)) as source:
        assert (source.width, source.height, source.scale) == (WIDTH, HEIGHT, 1.0)


def test_a_video_under_any_name_is_known_by_its_content(tmp_path, monkeypatch):
    path = write_video(tmp_path / "clip.mp4", "libx264", frames=5)
    other = tmp_path / "Grabación: día 1 %03d"
    shutil.copy(path, other)
    assert len(open_source(str(other))) == 5
    shutil.copy(path, tmp_path / "http:clip")
    monkeypatch.chdir(tmp_path)
    assert len(open_source("http:clip")) == 5


def test_pixels_that_are_not_square_are_reported(tmp_path):
    path = tmp_path / "clip.mp4"
    write_video(path, "libx264", frames=5, x264_params="sar=16/11")
    assert open_source(path).warnings == ("its pixels are not square (16:11), the mosaic will have the same pixels",)


def test_the_fingerprint_knows_content_and_choice_but_not_the_place(tmp_path):
    path = write_video(tmp_path / "clip.mp4", "libx264", frames=10)
    moved = tmp_path / "elsewhere" / "renamed.mp4"
    moved.parent.mkdir()
    shutil.copy(path, moved)
    other = write_video(tmp_path / "other.mp4", "libx264", frames=10, draw=lambda k: draw_frame(k)[::-1])
    mark = open_source(path).fingerprint
    assert open_source(moved).fingerprint == mark
    different = [
        open_source(other).fingerprint,
        open_source(path, SourceSettings(every=2)).fingerprint,
        open_source(path, SourceSettings(start="1")).fingerprint,
        open_source(path, SourceSettings(max_size=64)).fingerprint,
    ]
    assert mark not in different
    assert len(set(different)) == 4
