"""What is delivered, in which order, and how often frames are read for it."""

from __future__ import annotations

from collections import Counter

import pytest

import smalti
from smalti.building import delivery
from smalti.frames.video import VideoSource
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.walks import walk

FILES = ("landmarks.csv", "mosaic.png", "transforms.json")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(walk(), tmp_path_factory.mktemp("source") / "walk.mp4")


@pytest.fixture(scope="module")
def interrupted(video, tmp_path_factory):
    """Return the folder of a build that stopped before its report, and how often its rendering read each frame."""
    folder = tmp_path_factory.mktemp("delivery") / "walk.smalti"
    read = Counter()
    read_many, render = VideoSource.read_many, delivery.render_mosaics

    def counting(self, indices):
        for index, frame in read_many(self, indices):
            read[index] += 1
            yield index, frame

    def rendering(*arguments):
        read.clear()
        return render(*arguments)

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VideoSource, "read_many", counting)
        patch.setattr(delivery, "render_mosaics", rendering)
        patch.setattr(delivery, "write_report", stop)
        with pytest.raises(KeyboardInterrupt):
            smalti.build(video, folder, keyframes="all")
    return folder, read


def test_rendering_reads_each_frame_once_at_most(interrupted):
    _, read = interrupted
    assert read
    assert max(read.values()) == 1


def test_the_mosaic_is_on_disk_before_the_report_is_drawn(interrupted, video):
    folder, _ = interrupted
    delivered = {name: (folder / name).read_bytes() for name in FILES}
    assert not (folder / "report.html").exists()
    smalti.build(video, folder, keyframes="all").close()
    assert (folder / "report.html").exists()
    assert {name: (folder / name).read_bytes() for name in FILES} == delivered
