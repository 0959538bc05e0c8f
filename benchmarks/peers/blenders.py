"""Blend frames with known maps with a peer: python blenders.py TOOL JOB.json OUT.

`opencv` and `opencv-fast` write the mosaic to OUT, a TIFF. `warp` writes the frames to the folder OUT in the form that
enblend needs. JOB.json has the frames' files, the maps from each to the canvas (3×3), and the canvas' width and height.
The steps, their order and their sizes follow OpenCV's own sample stitching_detailed. Nothing of Smalti is imported
here.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import tifffile
from numpy.typing import NDArray

SEAM_MEGAPIXELS = 0.1
"""Size to which a frame is reduced to compare light and to find seams, as in the sample."""

BLEND_STRENGTH = 5
"""Width of the bands, per cent of the mosaic's side, as in the sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Frames and their maps."""

    files: list[str]
    canvas_from_frame: list[NDArray[np.float64]]
    width: int
    height: int

    def read(self, n: int) -> Any:
        image = cv2.imread(self.files[n], cv2.IMREAD_COLOR)
        if image is None:
            raise SystemExit(f"{self.files[n]}: cannot be read")
        return image


@dataclass(frozen=True, slots=True, eq=False)
class Warped:
    """A frame on the canvas: the tight box around it."""

    corner: tuple[int, int]  # x, y
    image: Any  # (h, w, 3), BGR
    mask: Any  # (h, w), 255 where the frame is


def main() -> None:
    tool, job_file, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    content = json.loads(job_file.read_text())
    maps = [np.array(rows) for rows in content["canvas_from_frame"]]
    TOOLS[tool](Job(content["files"], maps, content["width"], content["height"]), out)


def blend_by_default(job: Job, out: Path) -> None:
    """Blend as OpenCV's stitcher does by default: gains of blocks, graph cut, bands."""
    blend(job, out, cv2.detail.BlocksGainCompensator(32, 32), cv2.detail.GraphCutSeamFinder("COST_COLOR"))


def blend_fast(job: Job, out: Path) -> None:
    """Blend with the fastest settings that still compare frames: one gain a frame, dynamic programming, bands."""
    blend(job, out, cv2.detail.GainCompensator(1), cv2.detail.DpSeamFinder("COLOR"))


def blend(job: Job, out: Path, compensator: Any, finder: Any) -> None:
    small = [warp_small(job, n) for n in range(len(job.files))]
    corners = [frame.corner for frame in small]
    compensator.feed(corners=corners, images=[frame.image for frame in small], masks=[frame.mask for frame in small])
    seams = finder.find([frame.image.astype(np.float32) for frame in small], corners, [frame.mask for frame in small])
    del small
    bands = max(1, round(math.log2(math.sqrt(job.width * job.height) * BLEND_STRENGTH / 100)) - 1)
    blender = cv2.detail.MultiBandBlender(0, bands)
    blender.prepare((0, 0, job.width, job.height))
    for n in range(len(job.files)):
        frame = warp(job.read(n), job.canvas_from_frame[n], job.width, job.height)
        compensator.apply(n, frame.corner, frame.image, frame.mask)
        seam = seams[n].get() if isinstance(seams[n], cv2.UMat) else seams[n]
        size = (frame.mask.shape[1], frame.mask.shape[0])
        shown = cv2.resize(cv2.dilate(seam, np.ones((3, 3), np.uint8)), size, interpolation=cv2.INTER_LINEAR_EXACT)
        blender.feed(frame.image.astype(np.int16), cv2.bitwise_and(shown, frame.mask), frame.corner)
    colours, mask = blender.blend(np.empty(0, np.int16), np.empty(0, np.uint8))
    mosaic = np.dstack([np.clip(colours, 0, 255).astype(np.uint8), mask])
    uncompressed = [cv2.IMWRITE_TIFF_COMPRESSION, cv2.IMWRITE_TIFF_COMPRESSION_NONE]
    if not cv2.imwrite(str(out), mosaic, uncompressed):
        raise SystemExit(f"{out}: could not be written")


def warp_for_enblend(job: Job, out: Path) -> None:
    """Write every frame, its light corrected by OpenCV, as a TIFF of its tight box with the box's position."""
    small = [warp_small(job, n) for n in range(len(job.files))]
    compensator = cv2.detail.GainCompensator(1)
    compensator.feed([frame.corner for frame in small], [frame.image for frame in small], [f.mask for f in small])
    out.mkdir(exist_ok=True)
    for n in range(len(job.files)):
        frame = warp(job.read(n), job.canvas_from_frame[n], job.width, job.height)
        compensator.apply(n, frame.corner, frame.image, frame.mask)
        position, whole = (5, 1), (4, 1)  # type and count of the tags: a fraction, a whole number
        tifffile.imwrite(
            out / f"{n:05}.tif",
            np.dstack([frame.image[..., ::-1], frame.mask]),
            photometric="rgb",
            extrasamples=["unassalpha"],
            resolution=(1, 1),
            metadata=None,
            extratags=[
                (286, *position, (frame.corner[0], 1), True),
                (287, *position, (frame.corner[1], 1), True),
                (33300, *whole, job.width, True),
                (33301, *whole, job.height, True),
            ],
        )


def warp_small(job: Job, n: int) -> Warped:
    """Warp a frame at the size for seams."""
    image = job.read(n)
    height, width = image.shape[:2]
    scale = min(1.0, math.sqrt(SEAM_MEGAPIXELS * 1e6 / (width * height)))
    image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR_EXACT)
    # Resizing keeps the frame's corners and not the centre of its first pixel, hence the shift by half a pixel.
    small_from_large = np.array([[scale, 0, 0.5 * scale - 0.5], [0, scale, 0.5 * scale - 0.5], [0, 0, 1]])
    placed = small_from_large @ job.canvas_from_frame[n] @ np.linalg.inv(small_from_large)
    return warp(image, placed, math.ceil(job.width * scale), math.ceil(job.height * scale))


def warp(image: Any, canvas_from_frame: NDArray[np.float64], canvas_width: int, canvas_height: int) -> Warped:
    """Warp a frame into the tight box around it on the canvas."""
    height, width = image.shape[:2]
    ends = np.array([[-0.5, -0.5, 1], [width - 0.5, -0.5, 1], [width - 0.5, height - 0.5, 1], [-0.5, height - 0.5, 1]])
    corners = ends @ canvas_from_frame.T
    corners = corners[:, :2] / corners[:, 2:]
    left, top = np.maximum(np.floor(corners.min(axis=0)), 0).astype(int).tolist()
    right, bottom = np.ceil(corners.max(axis=0)).astype(int).tolist()
    size = (min(right + 1, canvas_width) - left, min(bottom + 1, canvas_height) - top)
    box_from_frame = np.array([[1, 0, -left], [0, 1, -top], [0, 0, 1]]) @ canvas_from_frame
    warped = cv2.warpPerspective(image, box_from_frame, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    mask = cv2.warpPerspective(np.full((height, width), 255, np.uint8), box_from_frame, size, flags=cv2.INTER_NEAREST)
    return Warped((left, top), warped, mask)


TOOLS: dict[str, Callable[[Job, Path], None]] = {
    "opencv": blend_by_default,
    "opencv-fast": blend_fast,
    "warp": warp_for_enblend,
}


if __name__ == "__main__":
    main()
