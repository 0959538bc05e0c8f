"""The sets that benchmarks build: real ones with landmarks to judge them, synthetic ones of any length with a truth.

A synthetic set is named by its kind and the number of its frames. It is written once into a folder.

- `flight:7500`: a video of 25 frames a second, 640 × 480, that crosses itself; maps are homographies.
- `survey:1500`: photographs in strips to and fro, 60 % of a frame shared along a strip and 30 % between strips.
- `raster:2000`: tiles of a microscope in a snake, 12 % shared, a third blank. `rows:2000`: each row from the left.
- `scope:600`: an endoscope that comes back, over tissue of low contrast: the matcher often fails.
- `ahead:150`: photographs straight ahead, each overlaps its neighbours alone. `onward:150`: an endoscope that moves on.
  They have no loops.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smalti.errors import UsageError
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import Camera, EndoscopeSettings, Hand, Tissue
from smalti_lab.synthetic.aerial_sequences import AerialSequence, fly_about, fly_ahead, survey
from smalti_lab.synthetic.microscope_tiles import MicroscopeRaster, Order
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_frames, write_video

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))

FLOORS: dict[str, tuple[float, float | None]] = {
    "caliterra": (11.65, 1.71),
    "obriens": (6.05, 3.11),
    "copr": (4.08, None),
    "brighton": (2.49, 1.50),
    "dendritic_cols0-2": (0.30, 0.27),
    "street_pan_test3": (2.69, 1.12),
    "airplane01": (1.31, 0.92),
    "research_only/corneal_80": (1.46, None),
}
"""Errors of adjustments that use every matching pair, as given in the data's README: affine, homography; px."""

SEVEN = tuple(name for name in FLOORS if not name.startswith("research_only"))
WITHOUT_LOOPS = ("ahead:150", "onward:150")


@dataclass(frozen=True, slots=True)
class FrameSet:
    """Frames to build, and what tells whether the mosaic is right."""

    name: str
    location: Path
    every: int = 1
    landmarks: Path | None = None
    truth: Path | None = None  # mosaic_from_frame (N, 3, 3)
    blank: Path | None = None  # (N,), which frames show nothing
    margin: float = 0.0  # of a frame's side, outside of which it shows nothing


def find_set(name: str, folder: Path) -> FrameSet:
    """Return a set by its name; a synthetic one is written to `folder` unless it is there."""
    if name in FLOORS:
        video = DATA / name / "test3.mp4"
        location, every = (video, 3) if video.exists() else (DATA / name / "frames", 1)
        return FrameSet(name, location, every, landmarks=DATA / name / "landmarks.csv")
    kind, _, frames = name.partition(":")
    if kind not in KINDS or not frames.isdigit():
        kinds = ", ".join(f"{kind}:N" for kind in KINDS)
        raise UsageError(f"unknown set '{name}': choose from {', '.join(FLOORS)}, {kinds}")
    own = folder / f"{kind}{frames}"
    if not own.exists():
        unfinished = own.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        KINDS[kind](int(frames), unfinished)
        unfinished.rename(own)
    video, blank = own / "video.mp4", own / "blank.npy"
    return FrameSet(
        name,
        video if video.exists() else own / "frames",
        truth=own / "truth.npy",
        blank=blank if blank.exists() else None,
        margin=ENDOSCOPE_MARGIN if kind in ("onward", "scope") else 0.0,
    )


ENDOSCOPE_MARGIN = 0.2


def write_flight(frames: int, folder: Path) -> None:
    flight = fly_about(frames)
    write_video(flight, folder / "video.mp4", crf=18, preset="veryfast")
    np.save(folder / "truth.npy", flight.mosaic_from_frame)


def write_photographs(sequence: AerialSequence, folder: Path) -> None:
    write_frames(sequence, folder / "frames")
    np.save(folder / "truth.npy", sequence.mosaic_from_frame)


def write_raster(frames: int, folder: Path, order: Order = "snake") -> None:
    """Write a raster whose sides are as 5 to 4."""
    columns = max(c for c in range(1, frames + 1) if frames % c == 0 and c <= math.sqrt(1.3 * frames))
    raster = MicroscopeRaster(columns, frames // columns, order=order)
    write_frames(raster, folder / "frames")
    np.save(folder / "truth.npy", raster.mosaic_from_frame)
    np.save(folder / "blank.npy", raster.is_blank)


def write_endoscope(frames: int, folder: Path) -> None:
    """Write a scope that moves on over tissue that does not deform, so that maps are exact."""
    hand = Hand(slowest_px=12, fastest_px=30, onward=True)
    settings = EndoscopeSettings(frames, hand=hand, tissue=Tissue(deformation_px=0))
    sequence = EndoscopeSequence(procedural_scene(30 * frames + 1200, 1100, seed=7), settings, seed=1)
    write_frames(sequence, folder / "frames")
    np.save(folder / "truth.npy", sequence.motion.plane_from_frame)


def write_returning_endoscope(frames: int, folder: Path) -> None:
    """Write a scope that comes back over tissue of low contrast, as in `doubtful.py`, but that does not deform."""
    settings = EndoscopeSettings(
        frames=frames,
        width=240,
        height=240,
        tissue=Tissue(contrast=5.5, deformation_px=0),
        camera=Camera(noise=4.0),
        hand=Hand(slowest_px=6.0, fastest_px=18.0),
    )
    sequence = EndoscopeSequence(procedural_scene(2400, 2400, seed=3), settings, seed=2)
    write_frames(sequence, folder / "frames", ".png")
    np.save(folder / "truth.npy", sequence.motion.plane_from_frame)


KINDS: dict[str, Callable[[int, Path], None]] = {
    "flight": write_flight,
    "survey": lambda frames, folder: write_photographs(survey(frames), folder),
    "raster": write_raster,
    "rows": lambda frames, folder: write_raster(frames, folder, "rows"),
    "ahead": lambda frames, folder: write_photographs(fly_ahead(frames), folder),
    "onward": write_endoscope,
    "scope": write_returning_endoscope,
}
