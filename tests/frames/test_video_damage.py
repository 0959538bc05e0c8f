import io
import re
import wave

import av
import pytest

from smalti.errors import InputError
from smalti.frames.source import open_source
from tests.frames.scenes import read_number, write_video


@pytest.mark.parametrize(("name", "codec", "options"), [
    ("clip.mp4", "libx264", {"bf": 2, "container": {"movflags": "faststart"}}),
    ("clip.mkv", "libx264", {"bf": 2}),
    ("clip.avi", "libx264", {"bf": 2, "g": 12}),
    ("clip.avi", "mjpeg", {"pix_fmt": "yuvj420p"}),
    ("clip.webm", "libvpx-vp9", {"cpu_used": 8}),
])  # fmt: skip
def test_a_truncated_video_gives_the_frames_there_are_and_says_so(name, codec, options, tmp_path, capfd):
    path = write_video(tmp_path / name, codec, **options)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 7 // 10])
    capfd.readouterr()  # what encoders say
    with open_source(path) as source:
        numbers = [read_number(image) for _, image in source.read_many(range(len(source)))]
        # Of the last few, some may be missing: they are stored in another order than shown.
        assert numbers[:-4] == list(range(len(source) - 4))
        assert [f"({number / 30:.2f} s)" for number in numbers] == [label.split(" ", 2)[2] for label in source.labels]
        assert 10 < len(source) < 60
        assert len(source.warnings) == 1
        assert re.fullmatch(
            rf"ends early: {len(source)} of (60|about (58|59|60|61)) frames could be read", source.warnings[0]
        )
    with open_source(path) as source:
        for index in (25, 4, 14):
            assert read_number(source.read(index)) == index
    assert capfd.readouterr().err == ""


def test_a_last_frame_that_stays_for_long_is_no_early_end(tmp_path):
    path = write_video(tmp_path / "clip.mkv", "libx264", frames=31, step=lambda k: 1 if k < 29 else 300)
    with open_source(path) as source:
        assert len(source) == 31
        assert source.warnings == ()


def test_a_damaged_frame_shifts_no_other(tmp_path, capfd):
    path = write_video(tmp_path / "clip.mp4", "libx264", g=1)
    damage(path, number=27)
    capfd.readouterr()
    with open_source(path) as source:
        assert len(source) == 60
        found = {index: read_number(image) for index, image in source.read_many(range(60))}
        assert 27 not in found
        assert found == {number: number for number in range(60) if number != 27}
        assert "frame 27 (0.90 s)" in source.warnings[0]
        assert read_number(source.read(50)) == 50
        with pytest.raises(InputError, match=r"clip\.mp4: frame 27 \(0\.90 s\) cannot be decoded"):
            source.read(27)
    assert capfd.readouterr().err == ""


def damage(path, number):
    with av.open(str(path)) as video:
        packet = [packet for packet in video.demux(video=0) if packet.size][number]
        start, size = packet.pos, packet.size
    content = bytearray(path.read_bytes())
    content[start + 4 : start + size] = bytes(size - 4)
    path.write_bytes(content)


def write_text(path):
    path.write_text("no video at all\n" * 50)


def write_sound(path):
    content = io.BytesIO()
    with wave.open(content, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16000))
    path.write_bytes(content.getvalue())


def write_half_without_index(path):
    write_video(path, "libx264")
    path.write_bytes(path.read_bytes()[:6000])


def write_single_frame(path):
    write_video(path, "libx264", frames=1)


def write_undecodable(path):
    write_video(path, "libx264", frames=8, bf=0, g=100)
    for number in range(8):
        damage(path, number)


@pytest.mark.parametrize(("name", "write", "message"), [
    ("empty.mp4", lambda path: path.write_bytes(b""), "is empty"),
    ("text.mp4", write_text, "is not a video"),
    ("text.txt", write_text, "holds no video"),
    ("sound.wav", write_sound, "holds no video"),
    ("half.mp4", write_half_without_index, "is not a video"),
    ("one.mp4", write_single_frame, "holds a single frame"),
    ("broken.mp4", write_undecodable, "none of its frames can be decoded"),
    ("missing.mp4", lambda path: None, "does not exist"),
])  # fmt: skip
def test_what_is_no_video_is_refused_in_one_line(name, write, message, tmp_path, capfd):
    path = tmp_path / name
    write(path)
    capfd.readouterr()
    with pytest.raises(InputError, match=message) as caught:
        open_source(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_frames_without_times_are_refused(tmp_path):
    path = write_video(tmp_path / "clip.h264", "libx264", bf=2)
    with pytest.raises(InputError, match=r"clip\.h264: its frames have no times; convert it"):
        open_source(path)
