"""Every frame once: is it usable, where are its keypoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from smalti.building.progress import Progress, Step
from smalti.building.sight import Sight
from smalti.errors import InputError
from smalti.frames.gray import in_gray
from smalti.frames.quality import FrameMeasure, measure_views, unusable
from smalti.frames.source import FrameSource
from smalti.project.cache import Cache
from smalti.project.entries import FrameEntry
from smalti.registration.keypoints import NO_KEYPOINTS, Keypoints, find_keypoints

THREADS = 2
AHEAD = 4
"""Frames read ahead of the keypoints."""

FEWEST_KEYPOINTS = 10
MOST_BARE = 0.1
"""Of all frames: with more that have hardly any keypoints, it is not the frames but the contrast."""


def read_frames(source: FrameSource, sight: Sight, cache: Cache, progress: Progress) -> list[FrameEntry]:
    """Read all frames, keep their keypoints, and say which are to be set aside and why."""
    measures: dict[int, FrameMeasure] = {}
    with progress.stage("reading", len(source)) as step, ThreadPoolExecutor(THREADS) as pool:
        numbers: list[int] = []
        views = _through_pool(source, sight, cache, pool, numbers, step)
        for place, measured in enumerate(measure_views(views)):
            measures[numbers[place]] = measured
    if len(measures) < 2:
        raise InputError(f"{source.path}: fewer than two frames can be decoded; check the file in a player")
    reasons = _reasons(len(source), measures)
    for number in set(range(len(source))) - measures.keys():
        cache.keep_keypoints(number, NO_KEYPOINTS)
    bare = [number for number in measures if number not in reasons and len(cache.keypoints(number)) < FEWEST_KEYPOINTS]
    if len(bare) <= MOST_BARE * len(measures):
        reasons |= dict.fromkeys(bare, "no detail that could be matched")
    return [FrameEntry(n, label, reasons.get(n, "")) for n, label in enumerate(source.labels)]


def _through_pool(
    source: FrameSource,
    sight: Sight,
    cache: Cache,
    pool: ThreadPoolExecutor,
    numbers: list[int],
    step: Step,
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_] | None]]:
    """Yield the gray frames and their masks in order, while threads find their keypoints; note each frame's number."""
    waiting: deque[tuple[int, Future[Keypoints] | None]] = deque()

    def finish_one() -> None:
        number, found = waiting.popleft()
        if found is not None:
            cache.keep_keypoints(number, found.result())
        step()

    for number, image in source.read_many(range(len(source))):
        gray, mask = in_gray(image), sight.mask(image)
        # What an interrupted run has found already is not searched for again.
        found = None if cache.has_keypoints(number) else pool.submit(find_keypoints, gray, mask)
        waiting.append((number, found))
        if len(waiting) > AHEAD:
            finish_one()
        numbers.append(number)
        yield gray, mask
    while waiting:
        finish_one()


def _reasons(frames: int, measures: dict[int, FrameMeasure]) -> dict[int, str]:
    read = sorted(measures)
    reasons = {number: "cannot be decoded" for number in range(frames) if number not in measures}
    for place, reason in unusable([measures[number] for number in read]).items():
        reasons[read[place]] = reason
    return reasons
