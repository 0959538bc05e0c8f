from pathlib import Path

import pytest

from smalti.errors import UsageError
from smalti.frames.source_settings import SourceSettings

TIMES = [k / 10 for k in range(1000)]


@pytest.mark.parametrize(("text", "first"), [
    ("0", 0), ("120", 120), (" 7 ", 7), ("12s", 120), ("12.5s", 125), (".5s", 5), ("0:12.5", 125), ("1:05", 650),
    ("00:01:05.2", 652),
])  # fmt: skip
def test_a_start_is_a_frame_or_a_time(text, first):
    assert SourceSettings(start=text).choose(Path("v.mp4"), 1000, TIMES) == range(first, 1000)


def test_the_end_is_left_out():
    assert SourceSettings(end="12.5s").choose(Path("v.mp4"), 1000, TIMES)[-1] == 124
    assert SourceSettings(end="12").choose(Path("v.mp4"), 1000, TIMES)[-1] == 11


def test_every_counts_from_the_start():
    chosen = SourceSettings(every=4, start="3", end="16").choose(Path("v.mp4"), 1000, TIMES)
    assert list(chosen) == [3, 7, 11, 15]


@pytest.mark.parametrize("text", ["", "-3", "3.5", "1:75", "s"])
def test_any_other_start_is_refused(text):
    with pytest.raises(UsageError, match=r"^start is '.*': give a frame number such as 120, or a time"):
        SourceSettings(start=text)


@pytest.mark.parametrize("settings", [{"every": 0}, {"max_size": 31}])
def test_numbers_out_of_range_are_refused(settings):
    with pytest.raises(UsageError, match=str(next(iter(settings.values())))):
        SourceSettings(**settings)


def test_a_time_is_refused_for_images():
    with pytest.raises(UsageError, match="shots: end is the time '3s', but images have none"):
        SourceSettings(end="3s").choose(Path("shots"), 1000, None)


def test_an_end_before_the_start_is_refused():
    with pytest.raises(UsageError, match="leave 0 of 1000 frames"):
        SourceSettings(start="20", end="10").choose(Path("v.mp4"), 1000, TIMES)
