"""Every frame once: is it usable, where are its keypoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.building.progress import Progress, Step
from smalti.errors import InputError
from smalti.frames.field import find_field, read_mask
from smalti.frames.quality import FrameMeasure, measure_frames, unusable
from smalti.frames.source import FrameSource
from smalti.project.cache import Cache
from smalti.project.entries import FrameEntry
from smalti.registration.keypoints import NO_KEYPOINTS, Keypoints, find_keypoints

FIELD_SAMPLES = 32
THREADS = 2
AHEAD = 4
"""Frames read ahead of the keypoints."""

FEWEST_KEYPOINTS = 10


def find_mask(choice: str, source: FrameSource) -> NDArray[np.bool_] | None:
    """Return where the frames show the scene (h, w), None for everywhere; `choice` is auto, none or a file."""
    if choice == "none":
        return None
    if choice != "auto":
        return read_mask(Path(choice), source.width, source.height, scale=source.scale)
    samples = np.unique(np.linspace(0, len(source) - 1, min(FIELD_SAMPLES, len(source))).round().astype(int))
    field = find_field(_gray(image) for _, image in source.read_many(samples.tolist()))
    return None if field.all() else field


def read_frames(
    source: FrameSource, mask: NDArray[np.bool_] | None, cache: Cache, progress: Progress
) -> list[FrameEntry]:
    """Read all frames, keep their keypoints, and say which are to be set aside and why."""
    measures: dict[int, FrameMeasure] = {}
    with progress.stage("reading", len(source)) as step, ThreadPoolExecutor(THREADS) as pool:
        numbers: list[int] = []
        images = _through_pool(source, mask, cache, pool, numbers, step)
        for place, measured in enumerate(measure_frames(images, mask)):
            measures[numbers[place]] = measured
    if len(measures) < 2:
        raise InputError(f"{source.path}: fewer than two frames can be decoded; check the file in a player")
    reasons = _reasons(len(source), measures)
    for number in set(range(len(source))) - measures.keys():
        cache.keep_keypoints(number, NO_KEYPOINTS)
    for number in measures:
        if number not in reasons and len(cache.keypoints(number)) < FEWEST_KEYPOINTS:
            reasons[number] = "no detail that could be matched"
    return [FrameEntry(n, label, reasons.get(n, "")) for n, label in enumerate(source.labels)]


def _through_pool(
    source: FrameSource,
    mask: NDArray[np.bool_] | None,
    cache: Cache,
    pool: ThreadPoolExecutor,
    numbers: list[int],
    step: Step,
) -> Iterator[NDArray[np.uint8]]:
    """Yield the gray frames in order, while threads find their keypoints; note each frame's number."""
    waiting: deque[tuple[int, Future[Keypoints] | None]] = deque()

    def finish_one() -> None:
        number, found = waiting.popleft()
        if found is not None:
            cache.keep_keypoints(number, found.result())
        step()

    for number, image in source.read_many(range(len(source))):
        gray = _gray(image)
        # What an interrupted run has found already is not searched for again.
        found = None if cache.has_keypoints(number) else pool.submit(find_keypoints, gray, mask)
        waiting.append((number, found))
        if len(waiting) > AHEAD:
            finish_one()
        numbers.append(number)
        yield gray
    while waiting:
        finish_one()


def _reasons(frames: int, measures: dict[int, FrameMeasure]) -> dict[int, str]:
    read = sorted(measures)
    reasons = {number: "cannot be decoded" for number in range(frames) if number not in measures}
    for place, reason in unusable([measures[number] for number in read]).items():
        reasons[read[place]] = reason
    return reasons


def _gray(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
