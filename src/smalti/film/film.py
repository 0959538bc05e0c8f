"""The drift film: story, time, view, frames, pictures, file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from smalti.errors import UsageError
from smalti.film.drawing import Drawing
from smalti.film.files import Picture, beside, format_of
from smalti.film.stock import choose_frames, read_stock
from smalti.film.story import tell_story
from smalti.film.timeline import FEWEST_SECONDS, Moment, most_steps, plan_timeline
from smalti.film.view import View
from smalti.project.project import Project
from smalti.rendering.formats.files import check_place

OnProgress = Callable[[int, int], None]
"""Called with the frames read and the pictures drawn so far, and with all there are."""

SMALLEST_SIZE, LARGEST_SIZE = 160, 3840
SAMPLES = 8
"""Pictures drawn in advance, spread over the film: a palette has to suit them all."""


def make_film(
    project: Project,
    path: str | Path,
    *,
    part: int = 0,
    seconds: float = 20.0,
    size: int = 960,
    on_progress: OnProgress | None = None,
) -> Path:
    """Show how the mosaic of a finished project straightens, from the chain alone answer by answer to the end.

    The extension chooses the kind of file: .mp4, or .gif, which is at most 640 pixels large. `size` is the longer side
    in pixels. The film takes at most `seconds`; many answers share their steps, few make it shorter.
    """
    path = Path(path)
    kind = format_of(path)
    if not FEWEST_SECONDS <= seconds < np.inf:
        raise UsageError(f"a film of {seconds} seconds: give {FEWEST_SECONDS:.0f} or more")
    if not SMALLEST_SIZE <= size <= LARGEST_SIZE:
        raise UsageError(f"a film of {size} pixels: give {SMALLEST_SIZE} to {LARGEST_SIZE}")
    check_place(path)
    story = tell_story(project, part, most_steps(seconds))
    timeline = plan_timeline(story, seconds)
    view = View.of(story, min(size, kind.largest_size))
    finished = view.canvas_from_mosaic(1.0) @ story.states[-1].maps
    places = choose_frames(finished, story.lens.outline)
    moments = timeline.moments(kind.per_second)
    progress = _Counter(on_progress, len(places) + len(moments))
    scale = float(np.sqrt(np.median(np.abs(np.linalg.det(finished[:, :2, :2])))))
    stock = read_stock(project.source, story.frames, places, project.mask, story.lens, scale, progress.step)
    drawing = Drawing(story, timeline, view, stock)
    samples = [drawing.draw(moments[n]) for n in np.linspace(0, len(moments) - 1, SAMPLES).astype(int)]
    with beside(path) as unfinished:
        kind.write(unfinished, _draw_all(drawing, moments, progress.step), samples)
    return path


def _draw_all(drawing: Drawing, moments: Sequence[Moment], on_drawn: Callable[[], None]) -> Iterator[Picture]:
    """Yield the pictures in their order; as many as there are cores are drawn at a time."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        drawn: deque[Future[Picture]] = deque()
        for previous, moment in zip([None, *moments], moments, strict=False):
            # Before the first step and after the last, nothing moves.
            stands = previous is not None and (moment.before, moment.share) == (previous.before, previous.share)
            drawn.append(drawn[-1] if stands else pool.submit(drawing.draw, moment))
            if len(drawn) > 2 * (os.cpu_count() or 1):
                yield drawn.popleft().result()
                on_drawn()
        for future in drawn:
            yield future.result()
            on_drawn()


class _Counter:
    def __init__(self, on_progress: OnProgress | None, total: int) -> None:
        self._on_progress, self._done, self._total = on_progress, 0, total

    def step(self) -> None:
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)
