"""The same frames and maps rendered by Smalti, OpenCV's blender and enblend: time, memory, quality."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
import tifffile
from numpy.typing import NDArray

from pictures.jobs import Job, job_of_endless, job_of_project, job_of_world
from pictures.worlds import EVEN_LIGHT, make_farmland
from processes import Run, watch

FILES = Path(__file__).resolve().parent / "files.py"
BLENDERS = FILES.parents[1] / "peers" / "blenders.py"
TOOLS = ("smalti", "opencv", "opencv-fast", "enblend", "enblend-fast")
FAST_ENBLEND = ("--primary-seam-generator=nearest-feature-transform", "--no-optimize")
LIMIT_MB = 14_000.0
LARGE_SIDE = 16
"""Frames a side of the large synthetic set, of 52 megapixels, where memory begins to matter."""

LONG_SECONDS = 30.0
"""A run that takes longer is not repeated."""

COLUMNS = {
    "set": "frames of",
    "tool": "tool",
    "seconds": "seconds",
    "ratio": "ratio",
    "blending_seconds": "blending alone",
    "peak_mb": "peak MB",
    "memory_ratio": "ratio",
    "psnr_db": "PSNR dB",
    "likeness": "likeness",
    "detail": "detail",
    "cold_seconds": "first run ever",
    "outcome": "outcome",
}


def compare_tools(
    projects: Sequence[Path], tools: Sequence[str], repeats: int, limit_seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield a row for each set and tool: the synthetic sets, or the named finished projects."""
    if shutil.which("enblend") is None:
        print("(no enblend on this machine: it is left out)", file=sys.stderr)
        tools = [tool for tool in tools if not tool.startswith("enblend")]
    with tempfile.TemporaryDirectory(prefix="smalti-contest-") as scratch:
        for number, job in enumerate(_jobs(projects, Path(scratch))):
            folder = Path(scratch) / f"runs-{number}"
            folder.mkdir()
            yield from _compare(job, _Course(job, folder, limit_seconds), tools, repeats)
            shutil.rmtree(folder)


def _jobs(projects: Sequence[Path], scratch: Path) -> Iterator[Job]:
    if projects:
        yield from (job_of_project(location, scratch) for location in projects)
        return
    for world in (make_farmland(), make_farmland(EVEN_LIGHT)):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            yield job_of_world(world, Path(folder))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        yield job_of_endless(LARGE_SIDE, Path(folder))


def _compare(job: Job, course: _Course, tools: Sequence[str], repeats: int) -> Iterator[dict[str, Any]]:
    cold = course.run("smalti", cold=True)[0].seconds
    course.warm_up()
    runs: dict[str, list[tuple[Run, Run | None]]] = {tool: [course.run(tool)] for tool in tools}
    for _ in range(repeats - 1):
        # The tools take turns, so that other load on the machine slows all of them.
        for tool in tools:
            if runs[tool][0][0].outcome == "done" and runs[tool][0][0].seconds < LONG_SECONDS:
                runs[tool].append(course.run(tool))
    mosaics = {tool: course.read(tool) for tool in tools if runs[tool][-1][0].outcome == "done"}
    covered = np.logical_and.reduce([mosaic[..., 3] > 0 for mosaic in mosaics.values()])
    ours = median(run.seconds for run, _ in runs["smalti"])
    our_mb = max(run.peak_mb for run, _ in runs["smalti"])
    for tool, measured in runs.items():
        seconds = median(run.seconds for run, _ in measured)
        blending = [part.seconds for _, part in measured if part is not None]
        peak = max(run.peak_mb for run, _ in measured)
        verdict = job.judge(mosaics[tool], covered) if tool in mosaics else None
        yield {
            "set": f"{job.name}: {job.frames} of {job.canvas.width * job.canvas.height / 1e6:.1f} Mpx",
            "tool": tool,
            "seconds": round(seconds, 2),
            "ratio": round(seconds / ours, 2),
            "blending_seconds": round(median(blending), 2) if blending else None,
            "peak_mb": round(peak),
            "memory_ratio": round(peak / our_mb, 2),
            "psnr_db": verdict and round(verdict.psnr_db, 2),
            "likeness": verdict and round(verdict.likeness, 3),
            "detail": verdict and round(verdict.detail, 2),
            "cold_seconds": round(cold, 1) if tool == "smalti" else None,
            "outcome": measured[-1][0].outcome,
            "held_against": "truth" if job.truth is not None else f"{len(job.left_out)} frames left out",
        }


class _Course:
    """The folder in which the tools run a job."""

    def __init__(self, job: Job, folder: Path, limit_seconds: float) -> None:
        self._job, self._folder, self._limit_seconds = job, folder, limit_seconds

    def warm_up(self) -> None:
        """Let Smalti render three frames, so that Numba compiles and stores everything."""
        self._watch([sys.executable, str(FILES), str(self._job.file), str(self._folder / "warm.tif"), "3"])

    def run(self, tool: str, *, cold: bool = False) -> tuple[Run, Run | None]:
        """Run a tool from its start to the written file. Return also the run of its blending, if that is a part."""
        job, out, warped = str(self._job.file), str(self._out(tool)), self._folder / "warped"
        if tool == "smalti":
            command = [sys.executable, str(FILES), job, out]
            elsewhere = ["env", f"NUMBA_CACHE_DIR={self._folder / 'compiled'}"]
            return self._watch([*elsewhere, *command] if cold else command), None
        if not tool.startswith("enblend"):
            return self._watch([sys.executable, str(BLENDERS), tool, job, out]), None
        warping = self._watch([sys.executable, str(BLENDERS), "warp", job, str(warped)])
        hurry = FAST_ENBLEND if tool == "enblend-fast" else ()
        blending = self._watch(["enblend", *hurry, "-o", out, *map(str, sorted(warped.glob("*.tif")))])
        shutil.rmtree(warped, ignore_errors=True)
        peak_mb = max(warping.peak_mb, blending.peak_mb)
        seconds = warping.seconds + blending.seconds
        processor_seconds = warping.processor_seconds + blending.processor_seconds
        return Run(seconds, processor_seconds, peak_mb, blending.outcome), blending

    def read(self, tool: str) -> NDArray[np.uint8]:
        """Return a tool's mosaic (h, w, 4), RGBA, on the whole canvas. enblend leaves out margins without frames."""
        with tifffile.TiffFile(self._out(tool)) as tiff:
            left, top = (_position(tiff.pages.first.tags, axis) for axis in ("X", "Y"))
        # With OpenCV, because enblend compresses with LZW, which tifffile alone cannot read.
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)  # it warns of its own files' alpha
        pixels = cv2.imread(str(self._out(tool)), cv2.IMREAD_UNCHANGED)
        assert pixels is not None, "a tool that was done has written its mosaic"
        image = cv2.cvtColor(pixels, cv2.COLOR_BGRA2RGBA)
        canvas = self._job.canvas
        whole = np.zeros((canvas.height, canvas.width, 4), np.uint8)
        height, width = min(image.shape[0], canvas.height - top), min(image.shape[1], canvas.width - left)
        whole[top : top + height, left : left + width] = image[:height, :width]
        return whole

    def _out(self, tool: str) -> Path:
        return self._folder / f"{tool}.tif"

    def _watch(self, command: Sequence[str]) -> Run:
        said = self._folder / "said.txt"
        return watch(command, said, limit_seconds=self._limit_seconds, limit_mb=LIMIT_MB)


def _position(tags: Any, axis: str) -> int:
    """Return the position of a TIFF's first pixel, from its tags."""
    if f"{axis}Position" not in tags:
        return 0
    (shift, of), (resolution, per) = tags[f"{axis}Position"].value, tags[f"{axis}Resolution"].value
    return int(np.rint(shift / of * resolution / per))
