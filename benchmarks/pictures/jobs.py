"""The same frames with the same maps for every tool: as files and a table of maps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from pictures.endless import HEIGHT, WIDTH, EndlessFrames
from pictures.verdict import Shown, Verdict, compare
from pictures.worlds import FRAME, World
from smalti.project.project import Project
from smalti.rendering.canvas import Canvas

MOST_LEFT_OUT = 5
"""Frames of a real set that no tool is given, and by which all are judged; a tenth of them in a small set."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What is to be rendered, and the reference for the result: the truth, or frames that were left out."""

    name: str
    file: Path
    frames: int
    canvas: Canvas
    truth: NDArray[np.uint8] | None
    left_out: list[tuple[NDArray[np.uint8], NDArray[np.float64]]]  # frame (h, w, 3) and canvas_from_frame

    def judge(self, mosaic: NDArray[np.uint8], covered: NDArray[np.bool_]) -> Verdict:
        """Compare a mosaic (h, w, 4) with the reference, where all tools cover the canvas."""
        if self.truth is not None:
            return compare([(mosaic[..., :3], self.truth, covered)], one_gain=True)
        return compare([_predict(mosaic, covered, *left_out) for left_out in self.left_out], one_gain=False)


def job_of_world(world: World, folder: Path) -> Job:
    """Write the frames of a synthetic sequence, without loss."""
    files = []
    for number, frame in world.frames.items():
        files.append(folder / f"{number:05}.png")
        cv2.imwrite(str(files[-1]), frame[..., ::-1])
    canvas = world.mosaic().canvas()
    _write(folder / "job.json", dict(zip(files, world.maps.values(), strict=True)), canvas, FRAME)
    return Job(world.name, folder / "job.json", len(files), canvas, world.truth(canvas), [])


def job_of_endless(side: int, folder: Path) -> Job:
    """Write frames of a periodic scene."""
    frames = EndlessFrames(side)
    maps = {}
    for number, frame in frames.read_many(range(side**2)):
        maps[folder / f"{number:05}.png"] = frames.maps[number]
        cv2.imwrite(str(folder / f"{number:05}.png"), frame[..., ::-1])
    canvas = Canvas.around(np.array(list(maps.values())), WIDTH, HEIGHT)
    _write(folder / "job.json", maps, canvas, (WIDTH, HEIGHT))
    truth = frames.truth(int(canvas.left), int(canvas.top), canvas.width, canvas.height)
    return Job("strips without end", folder / "job.json", side**2, canvas, truth, [])


def job_of_project(location: Path, folder: Path) -> Job:
    """Take the frames of a finished project except for some, which the mosaic of the others is to predict."""
    with Project.open(location) as project:
        placed = [placement for placement in project.placements if placement.part == 0]
        if project.mask is not None:
            raise SystemExit(f"{location}: its frames have a mask, which the peers do not know; take another project")
        names = {entry.number: entry.label for entry in project.frames}
        location_of_frames = project.source_facts.location
        if not isinstance(location_of_frames, str):
            raise SystemExit(f"{location}: was built from several paths; build it from a folder")
        root = Path(location_of_frames)
        count = min(MOST_LEFT_OUT, max(1, len(placed) // 10))
        out = {placed[k].number for k in np.linspace(0, len(placed) - 1, count + 2).round().astype(int)[1:-1]}
        kept = {root / names[p.number]: p.final for p in placed if p.number not in out}
        size = (project.width, project.height)
        canvas = Canvas.around(np.array(list(kept.values())), *size)
        left_out = [
            (project.source.read(p.number), canvas.canvas_from_frame(p.final)) for p in placed if p.number in out
        ]
    _write(folder / "job.json", kept, canvas, size)
    return Job(location.name, folder / "job.json", len(kept), canvas, None, left_out)


def _write(file: Path, maps: Mapping[Path, NDArray[np.float64]], canvas: Canvas, size: tuple[int, int]) -> None:
    content: dict[str, Any] = {
        "files": [str(path) for path in maps],
        "mosaic_from_frame": [matrix.tolist() for matrix in maps.values()],
        "canvas_from_frame": [canvas.canvas_from_frame(matrix).tolist() for matrix in maps.values()],
        "frame_size": size,
        "width": canvas.width,
        "height": canvas.height,
    }
    file.write_text(json.dumps(content))


def _predict(
    mosaic: NDArray[np.uint8],
    covered: NDArray[np.bool_],
    frame: NDArray[np.uint8],
    canvas_from_frame: NDArray[np.float64],
) -> Shown:
    """Return the mosaic in a frame's pixels, the frame, and where the mosaic covers it."""
    size, inverse = (frame.shape[1], frame.shape[0]), cv2.WARP_INVERSE_MAP
    predicted = cv2.warpPerspective(mosaic[..., :3], canvas_from_frame, size, flags=cv2.INTER_CUBIC | inverse)
    seen = cv2.warpPerspective(covered.astype(np.uint8), canvas_from_frame, size, flags=cv2.INTER_NEAREST | inverse)
    # The bicubic kernel reaches two pixels, so pixels near the mosaic's border are not judged.
    inside = cv2.erode(seen, np.ones((5, 5), np.uint8)) > 0
    return np.asarray(predicted, np.uint8), frame, inside
