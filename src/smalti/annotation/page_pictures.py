"""Pictures of frames for the page: whole, and small on sheets. They are made on request and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.annotation.messages import Sheets
from smalti.errors import OutputError, SmaltiError, UsageError
from smalti.frames.pixels import in_gray
from smalti.frames.video import VideoSource
from smalti.interchange.atomic_files import naming, replacing
from smalti.interchange.checksums import SEAL_BYTES, is_seal, seal, unseal
from smalti.progress import Progress, Silence
from smalti.project.project import Project

FEW_FRAMES = 600
LARGE_CELL, SMALL_CELL = (192, 144), (128, 96)
COLUMNS, PER_SHEET = 16, 256
FRAME_QUALITY, SHEET_QUALITY = 92, 85
LARGEST_KEPT = 2_000_000
"""Pixels. Frames of a video up to this size are all stored as images in advance, because seeking in a video is slow."""

GRAYS_REMEMBERED = 16
THREADS, AHEAD = 2, 4
"""Encoding threads, and frames that wait for them."""


class Pictures:
    """Pictures of a project's frames, by source number. Its methods may be called from any thread."""

    def __init__(self, project: Project, used: Sequence[int]) -> None:
        """`used` are the frames that have a small picture, in ascending order."""
        self._project, self._used = project, tuple(used)
        self._folder = project.cache.folder / "pictures"
        self._reading = threading.Lock()  # one thread at a time may read the source
        self._writing = threading.Lock()
        self._remembered = lru_cache(GRAYS_REMEMBERED)(self._read_gray)
        self._say: Callable[[str], None] = lambda message: None
        self._background = ThreadPoolExecutor(1, thread_name_prefix="pictures")
        largest = LARGE_CELL if len(self._used) <= FEW_FRAMES else SMALL_CELL
        scale = min(1.0, largest[0] / project.width, largest[1] / project.height)
        self.sheets = Sheets(
            count=-(-len(self._used) // PER_SHEET),
            columns=COLUMNS,
            per_sheet=PER_SHEET,
            width=max(1, round(scale * project.width)),
            height=max(1, round(scale * project.height)),
        )
        # Sheets of another selection of frames have other names.
        choice = hashlib.sha256(repr((self._used, self.sheets)).encode()).hexdigest()[:12]
        self._sheet_folder = self._folder / f"sheets-{choice}"

    def prepare(self, progress: Progress) -> None:
        """Make all missing sheets, and all missing pictures of a video's frames if these are not too large."""
        self._say = progress.say
        source = self._project.source
        keeps = isinstance(source, VideoSource) and source.width * source.height <= LARGEST_KEPT
        numbers = range(len(source)) if keeps else range(0)
        missing = [number for number in numbers if not self._is_settled(number)]
        self._make(missing, [k for k in range(self.sheets.count) if not _is_whole(self._sheet_file(k))], progress)

    def sheet(self, number: int) -> bytes:
        """Return a sheet as JPEG."""
        if not 0 <= number < self.sheets.count:
            raise UsageError(f"sheet {number}: there are sheets 0 to {self.sheets.count - 1} only")
        path = self._sheet_file(number)
        sheet = self._load(path)
        if sheet is None:
            self._make([], [number], Silence())
            sheet = self._load(path)
        if sheet is None:
            raise OutputError(f"{path}: cannot be read; check the disk, close the program and open it again")
        return sheet

    def mask(self) -> bytes:
        """Return the valid pixels of small pictures, white, as PNG. Without a mask all are white."""
        mask, size = self._project.mask, (self.sheets.width, self.sheets.height)
        if mask is None:
            mask = np.ones((1, 1), dtype=np.bool_)
        small = cv2.resize(mask.astype(np.uint8) * 255, size, interpolation=cv2.INTER_AREA)
        done, encoded = cv2.imencode(".png", np.where(small == 255, np.uint8(255), np.uint8(0)))
        assert done, "an image of 8 bits can be encoded"
        return encoded.tobytes()

    def frame(self, number: int) -> bytes:
        """Return a frame as JPEG, used or not."""
        path = self._frame_file(number)
        kept = self._load(path)
        if kept is not None:
            return kept
        encoded = _encode(self._read(number), FRAME_QUALITY)
        self._keep(path, encoded)
        return encoded

    def gray(self, number: int) -> NDArray[np.uint8]:
        """Return the pixels (h, w) of a frame, gray and read-only. The latest ones are remembered."""
        return self._remembered(number)

    def prefetch(self, numbers: Iterable[int]) -> None:
        """Make pictures that may be asked for next, in the background."""
        for number in numbers:
            with suppress(RuntimeError):  # it is closed already
                self._background.submit(self._fetch, number)

    def close(self) -> None:
        """End the background work, before the source is closed."""
        self._background.shutdown(wait=True, cancel_futures=True)

    def _fetch(self, number: int) -> None:
        # A request for the frame itself reports the error.
        with suppress(SmaltiError, OSError):
            self.gray(number)
            self.frame(number)

    def _make(self, frames: Iterable[int], sheets: Sequence[int], progress: Progress) -> None:
        """Make pictures of frames, and sheets, in one pass over the source."""
        frames = set(frames)
        cells = {number: (k, at) for k in sheets for at, number in enumerate(self._members(k))}
        wanted = sorted(frames | cells.keys())
        if not wanted:
            return
        drafts: dict[int, NDArray[np.uint8]] = {}
        encoding: deque[Future[None]] = deque()
        with progress.stage("pictures", len(wanted)) as step, ThreadPoolExecutor(THREADS) as pool:
            for number, image in self._images(wanted):
                if image is not None and number in frames:
                    encoding.append(pool.submit(self._keep_image, self._frame_file(number), image, FRAME_QUALITY))
                if number in cells:
                    k, at = cells[number]
                    draft = drafts.setdefault(k, self._blank(k))
                    if image is not None:
                        self._place(draft, at, image)
                    if number == self._members(k)[-1]:
                        del drafts[k]
                        encoding.append(pool.submit(self._keep_image, self._sheet_file(k), draft, SHEET_QUALITY))
                while len(encoding) > AHEAD:
                    encoding.popleft().result()
                step()
            for future in encoding:
                future.result()

    def _images(self, numbers: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8] | None]]:
        """Yield frames, stored ones from the cache; None for a frame that cannot be decoded."""
        for number in numbers:
            kept = self._load(self._frame_file(number))
            if kept is not None:
                pixels = np.frombuffer(kept, dtype=np.uint8)
                if (decoded := cv2.imdecode(pixels, cv2.IMREAD_COLOR_RGB)) is not None:
                    yield number, np.asarray(decoded, dtype=np.uint8)
                    continue
            with self._reading:
                image = next((image for _, image in self._project.source.read_many([number])), None)
            if image is None:
                # Recorded once, so that no later pass tries again.
                self._keep(self._unreadable_file(number), b"")
            yield number, image

    def _blank(self, sheet: int) -> NDArray[np.uint8]:
        rows = -(-len(self._members(sheet)) // COLUMNS)
        return np.zeros((rows * self.sheets.height, COLUMNS * self.sheets.width, 3), dtype=np.uint8)

    def _place(self, draft: NDArray[np.uint8], at: int, image: NDArray[np.uint8]) -> None:
        width, height = self.sheets.width, self.sheets.height
        top, left = at // COLUMNS * height, at % COLUMNS * width
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        draft[top : top + height, left : left + width] = small

    def _read(self, number: int) -> NDArray[np.uint8]:
        frames = len(self._project.source)
        if not 0 <= number < frames:
            raise UsageError(f"frame {number}: the source has frames 0 to {frames - 1} only")
        with self._reading:
            return self._project.source.read(number)

    def _read_gray(self, number: int) -> NDArray[np.uint8]:
        gray = in_gray(self._read(number))
        gray.setflags(write=False)
        return gray

    def _is_settled(self, number: int) -> bool:
        return _is_whole(self._frame_file(number)) or self._unreadable_file(number).exists()

    def _members(self, sheet: int) -> tuple[int, ...]:
        return self._used[sheet * PER_SHEET : (sheet + 1) * PER_SHEET]

    def _sheet_file(self, number: int) -> Path:
        return self._sheet_folder / f"{number:04d}.jpg"

    def _frame_file(self, number: int) -> Path:
        return self._folder / "frames" / f"{number:06d}.jpg"

    def _unreadable_file(self, number: int) -> Path:
        return self._frame_file(number).with_suffix(".unreadable")

    def _keep_image(self, path: Path, image: NDArray[np.uint8], quality: int) -> None:
        self._keep(path, _encode(image, quality))

    def _keep(self, path: Path, content: bytes) -> None:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        # Two threads that make the same file would share the temporary one.
        with self._writing, replacing(path) as file:
            file.write(seal(content))

    def _load(self, path: Path) -> bytes | None:
        """Return a picture that was kept; None if there is none or it is damaged, which is told."""
        try:
            kept = unseal(path.read_bytes())
        except OSError:
            return None
        if kept is None:
            self._say(f"{path}: is damaged; it is made again")
        return kept


def _encode(image: NDArray[np.uint8], quality: int) -> bytes:
    blue_first = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    done, encoded = cv2.imencode(".jpg", blue_first, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done, "an image of 8 bits can be encoded"
    return encoded.tobytes()


def _is_whole(path: Path) -> bool:
    """Tell whether a picture was written to its end. Whether it was changed since is found when it is read."""
    try:
        with path.open("rb") as file:
            file.seek(-SEAL_BYTES, os.SEEK_END)
            return is_seal(file.read())
    except OSError:
        return False
