"""Pictures of small synthetic sequences, as a video and as images, held against the frames themselves."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import cv2
import numpy as np
import pytest

from smalti.annotation import page_pictures as module
from smalti.annotation.page_pictures import Pictures
from smalti.errors import InputError, OutputError, UsageError
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.interchange.atomic_files import replacing
from smalti.interchange.checksums import seal
from smalti.progress import Silence
from smalti.project.facts import Binding
from smalti.project.project import Project
from tests.building.filmed import TINY, tiny_images, tiny_video

FRAMES = 12
USED = (0, 1, 2, 4, 5, 6, 7, 8, 10, 11)
BINDING = Binding(SourceSettings(), mask="none", seed=0, matcher="keypoints")


class Counting:
    """A source that counts what is read, and notices two threads at once."""

    def __init__(self, source, unreadable=(), seconds=0.0):
        self.source, self.unreadable, self.seconds = source, set(unreadable), seconds
        self.read_numbers: list[int] = []
        self._busy = threading.Lock()

    def __len__(self):
        return len(self.source)

    def __getattr__(self, name):
        return getattr(self.source, name)

    @property
    def __class__(self):
        return type(self.source)

    @contextmanager
    def _alone(self, number):
        assert self._busy.acquire(blocking=False), "two threads read the source"
        try:
            time.sleep(self.seconds)
            self.read_numbers.append(number)
            yield
        finally:
            self._busy.release()

    def read(self, number):
        with self._alone(number):
            if number in self.unreadable:
                raise InputError(f"frame {number}: cannot be decoded")
            return self.source.read(number)

    def read_many(self, numbers):
        for number in numbers:
            with self._alone(number):
                image = None if number in self.unreadable else self.source.read(number)
            if image is not None:
                yield number, image


class Counted(Silence):
    """Progress that remembers its stages."""

    def __init__(self):
        self.stages = {}

    @contextmanager
    def stage(self, name, total):
        done = 0

        def step(more=1):
            nonlocal done
            done += more

        yield step
        self.stages[name] = (done, total)


@pytest.fixture
def base(tmp_path_factory):
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def begin(tmp_path):
    """Make a project of a source; all are closed at the end."""
    projects = []

    def begun(location, **counting):
        with open_source(location) as source:
            project = Project.begin(tmp_path / f"project{len(projects)}", source, str(location), BINDING)
        project.source = Counting(project.source, **counting)
        projects.append(project)
        return project

    yield begun
    for project in projects:
        project.close()


@pytest.fixture
def video(begin, base):
    return begin(tiny_video(base))


@pytest.fixture
def images(begin, base):
    return begin(tiny_images(base))


def decoded(jpeg):
    return cv2.imdecode(np.frombuffer(jpeg, dtype=np.uint8), cv2.IMREAD_COLOR_RGB)


def files(project, pattern="*.jpg"):
    return sorted((project.cache.folder / "pictures").rglob(pattern))


def difference(first, second):
    return np.abs(first.astype(float) - second).mean()


def prepared(project, used=USED):
    pictures = Pictures(project, used)
    pictures.prepare(Silence())
    project.source.read_numbers.clear()
    return pictures


@pytest.mark.parametrize(
    ("size", "count", "cell"),
    [
        ((640, 480), 600, (192, 144)),
        ((640, 480), 601, (128, 96)),
        ((1920, 1080), 10, (192, 108)),
        ((1080, 1920), 10, (81, 144)),
        ((100, 80), 10, (100, 80)),
    ],
)
def test_cells_keep_the_aspect_and_are_larger_for_few_frames(size, count, cell, tmp_path):
    class Sized:
        cache = type("Cache", (), {"folder": tmp_path})
        width, height = size

    sheets = Pictures(Sized(), range(count)).sheets
    assert (sheets.width, sheets.height) == cell
    assert (sheets.columns, sheets.per_sheet, sheets.count) == (16, 256, -(-count // 256))


def test_a_sheet_shows_every_used_frame_in_its_cell(images, monkeypatch):
    monkeypatch.setattr(module, "LARGE_CELL", (40, 40))
    pictures = prepared(images, USED)
    sheet = decoded(pictures.sheet(0))
    width, height = pictures.sheets.width, pictures.sheets.height
    assert (width, height) == (40, 30)
    assert sheet.shape == (height, 16 * width, 3)
    shown = [cv2.resize(images.source.read(n), (width, height), interpolation=cv2.INTER_AREA) for n in USED]
    for place in range(len(USED)):
        cell = sheet[:, place * width : (place + 1) * width]
        assert np.argmin([difference(cell, frame) for frame in shown]) == place
        assert difference(cell, shown[place]) < 8


def test_many_frames_take_several_sheets(images, monkeypatch):
    monkeypatch.setattr(module, "PER_SHEET", 4)
    monkeypatch.setattr(module, "COLUMNS", 2)
    pictures = prepared(images, USED)
    assert pictures.sheets.count == 3
    cell_width, cell_height = pictures.sheets.width, pictures.sheets.height
    heights = [decoded(pictures.sheet(k)).shape[0] for k in range(3)]
    assert heights == [2 * cell_height, 2 * cell_height, cell_height]
    sixth = decoded(pictures.sheet(1))[:cell_height, cell_width:]
    frame = cv2.resize(images.source.read(USED[5]), (cell_width, cell_height), interpolation=cv2.INTER_AREA)
    assert difference(sixth, frame) < 8


def test_a_video_is_kept_frame_by_frame_in_the_one_pass_that_makes_the_sheets(video):
    progress = Counted()
    pictures = Pictures(video, USED)
    pictures.prepare(progress)
    assert video.source.read_numbers == list(range(FRAMES))
    assert progress.stages == {"pictures": (FRAMES, FRAMES)}
    assert len(files(video)) == FRAMES + 1
    for number in range(FRAMES):
        pictures.frame(number)
    assert len(video.source.read_numbers) == FRAMES


def test_images_and_large_videos_are_read_for_the_sheets_only(images, video, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_KEPT", TINY[0] * TINY[1] - 1)
    for project in (images, video):
        Pictures(project, USED).prepare(Silence())
        assert project.source.read_numbers == list(USED)
        assert len(files(project)) == 1


def test_a_frame_is_read_when_it_is_asked_for_and_kept(images):
    pictures = Pictures(images, USED)
    unused = 3
    first = pictures.frame(unused)
    assert difference(decoded(first), images.source.source.read(unused)) < 4
    assert Pictures(images, USED).frame(unused) == first
    assert images.source.read_numbers == [unused]


def test_a_picture_has_its_colours_in_the_right_order(images):
    image = decoded(Pictures(images, USED).frame(0))
    truth = images.source.read(0)
    assert difference(image, truth) < difference(image, truth[..., ::-1]) / 2


@pytest.mark.parametrize("number", [-1, FRAMES])
def test_refuses_frames_that_do_not_exist(images, number):
    pictures = Pictures(images, USED)
    for ask in (pictures.frame, pictures.gray):
        with pytest.raises(UsageError, match=f"frame {number}: the source has frames 0 to 11 only"):
            ask(number)


@pytest.mark.parametrize("number", [-1, 1])
def test_refuses_sheets_that_do_not_exist(images, number):
    with pytest.raises(UsageError, match="there are sheets 0 to 0 only"):
        Pictures(images, USED).sheet(number)


def test_nothing_is_read_again_when_everything_is_there(video):
    prepared(video)
    progress = Counted()
    Pictures(video, USED).prepare(progress)
    assert video.source.read_numbers == []
    assert progress.stages == {}


def test_an_interrupted_pass_goes_on_where_it_stopped(video):
    class Interrupted(Silence):
        @contextmanager
        def stage(self, name, total):
            steps = iter(range(5))

            def step(done=1):
                if next(steps, None) is None:
                    raise KeyboardInterrupt

            yield step

    with pytest.raises(KeyboardInterrupt):
        Pictures(video, USED).prepare(Interrupted())
    assert len(files(video)) == 6
    assert not files(video, "*.part")
    video.source.read_numbers.clear()
    pictures = Pictures(video, USED)
    pictures.prepare(Silence())
    assert video.source.read_numbers == list(range(6, FRAMES))
    frame = decoded(pictures.sheet(0))[: pictures.sheets.height, : pictures.sheets.width]
    assert difference(frame, video.source.read(0)) < 12


@pytest.mark.parametrize("content", [b"", b"\xff\xd8half of a pict"])
def test_a_damaged_file_is_made_anew(video, content):
    pictures = prepared(video)
    whole = {path: path.read_bytes() for path in files(video)}
    damaged = [files(video, "000004.jpg")[0], files(video, "0000.jpg")[0]]
    for path in damaged:
        path.write_bytes(content)
    assert seal(pictures.frame(4)) == whole[damaged[0]]
    assert pictures.sheet(0)[:2] == b"\xff\xd8"
    for path in damaged:
        path.write_bytes(content)
    Pictures(video, USED).prepare(Silence())
    assert files(video, "000004.jpg")[0].read_bytes() == whole[damaged[0]]
    assert decoded(damaged[1].read_bytes()).shape == decoded(whole[damaged[1]]).shape


def test_a_byte_that_changed_in_a_picture_is_noticed_when_it_is_served_and_one_line_says_so(video):
    pictures, told = prepared(video), []
    path = files(video, "000004.jpg")[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    pictures._say = told.append
    assert seal(pictures.frame(4)) == whole
    assert path.read_bytes() == whole
    assert told == [f"{path}: is damaged; it is made again"]


def test_sheets_of_another_choice_of_frames_are_not_taken_for_these(images):
    first = prepared(images, USED).sheet(0)
    other = prepared(images, USED[::-1][:4][::-1])
    assert difference(decoded(other.sheet(0))[:50, :50], decoded(first)[:50, :50]) > 10


@pytest.mark.parametrize("number", [4, USED[-1]])
def test_a_frame_that_cannot_be_decoded_is_dark_on_its_sheet_and_is_not_tried_again(begin, base, number):
    project = begin(tiny_video(base), unreadable=[number])
    pictures = prepared(project)
    left = USED.index(number) * pictures.sheets.width
    cell = decoded(pictures.sheet(0))[: pictures.sheets.height, left + 8 : left + 100]
    assert cell.mean() < 6
    with pytest.raises(InputError, match=f"frame {number}"):
        pictures.frame(number)
    project.source.read_numbers.clear()
    Pictures(project, USED).prepare(Silence())
    assert project.source.read_numbers == []


def test_gray_pixels_are_those_of_the_source_and_the_latest_are_remembered(video):
    pictures = Pictures(video, USED)
    gray = pictures.gray(5)
    np.testing.assert_array_equal(gray, cv2.cvtColor(video.source.source.read(5), cv2.COLOR_RGB2GRAY))
    assert not gray.flags.writeable
    assert pictures.gray(5) is gray
    assert video.source.read_numbers == [5]


def test_no_more_gray_pixels_are_remembered_than_said(images, monkeypatch):
    monkeypatch.setattr(module, "GRAYS_REMEMBERED", 2)
    pictures = Pictures(images, USED)
    for number in (0, 1, 2, 0):
        pictures.gray(number)
    assert images.source.read_numbers == [0, 1, 2, 0]


def test_prefetched_frames_are_there_when_they_are_asked_for(images):
    pictures = Pictures(images, USED)
    pictures.prefetch([6, 99, 7])
    wait_until = time.monotonic() + 10
    while not files(images, "000007.jpg") and time.monotonic() < wait_until:
        time.sleep(0.01)
    pictures.close()
    images.source.read_numbers.clear()
    for number in (6, 7):
        pictures.frame(number)
        pictures.gray(number)
    assert images.source.read_numbers == []


def test_prefetching_after_the_end_does_nothing(images):
    pictures = Pictures(images, USED)
    pictures.close()
    pictures.prefetch([1])
    assert images.source.read_numbers == []


def test_threads_take_turns_at_the_source_and_at_the_files(begin, base, monkeypatch):
    @contextmanager
    def slowly(path):
        with replacing(path) as file:
            yield file
            time.sleep(0.005)

    monkeypatch.setattr(module, "replacing", slowly)
    project = begin(tiny_images(base), seconds=0.002)
    pictures = Pictures(project, USED)
    pictures.prefetch(range(FRAMES))
    errors = []

    def look(seed):
        try:
            for number in range(seed % 2, FRAMES):
                assert decoded(pictures.frame(number)).shape == (*TINY[::-1], 3)
                pictures.gray(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    pictures.prepare(Silence())
    for thread in threads:
        thread.join()
    pictures.close()
    assert errors == []
    assert not files(project, "*.part")


def test_says_where_pictures_cannot_be_kept(images):
    images.cache.folder.mkdir(parents=True, exist_ok=True)
    (images.cache.folder / "pictures").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        Pictures(images, USED).prepare(Silence())


def test_the_mask_of_small_pictures_is_white_where_the_scene_is(images):
    x, y = np.meshgrid(np.linspace(-1, 1, images.width), np.linspace(-1, 1, images.height))
    field = np.hypot(x, y) < 0.9
    images.keep_mask(field)
    pictures = Pictures(images, USED)
    small = cv2.imdecode(np.frombuffer(pictures.mask(), dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    pictures.close()
    assert small.shape == (pictures.sheets.height, pictures.sheets.width)
    assert set(np.unique(small)) == {0, 255}
    assert np.mean(small == 255) == pytest.approx(np.mean(field), abs=0.03)
