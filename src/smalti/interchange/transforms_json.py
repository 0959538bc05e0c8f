"""Write transforms as JSON: a map per frame; the file states the maps' direction and the pixel convention."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from smalti.geometry.lens import Lens
from smalti.interchange.atomic_files import write_text
from smalti.records import Homographies

PlacedBy = Literal["matches", "keyframes", "neighbours"]
"""What places a frame: its own matches, the keyframes around it, or its neighbours in a raster."""

CONVENTION = (
    "mosaic_from_frame: multiply (x, y, 1) of a pixel by the 3x3 matrix and divide by the third number to get its "
    "position on the mosaic. x points right, y points down, (0, 0) is the centre of the top-left pixel. The mosaic is "
    "level. It has the position, rotation and scale of the part's reference frame. If there is a lens, (x, y) is the "
    "undistorted pixel: the formula of the lens computes it from the pixel of the recorded frame. "
    "The position of a frame that is not confirmed depends on a single match. A frame that is placed by its neighbours "
    "matches none: it lies where the others of its raster say. One that is placed by keyframes lies between them, by "
    "how the camera moved."
)


@dataclass(frozen=True, slots=True, eq=False)
class FrameTransform:
    """The entry of a frame."""

    number: int
    label: str
    part: int
    final: Homographies  # (3, 3)
    sigma_px: float
    confirmed: bool = True  # whether more than one match determines its position
    placed_by: PlacedBy = "matches"


def write_transforms(
    path: Path,
    frames: Iterable[FrameTransform],
    *,
    size: tuple[int, int],
    references: Sequence[int],
    apart: dict[int, str],
    lens: Lens | None = None,
) -> None:
    """Write the maps of the placed frames of `size` (width, height), and why the others were not placed.

    The maps take undistorted pixels; without a lens these are the distorted ones.
    """
    content: dict[str, object] = {
        "convention": CONVENTION,
        "frame_width": size[0],
        "frame_height": size[1],
        "lens": None if lens is None else lens.record,
        "reference_frames": list(references),
        "frames": [
            {
                "frame": frame.number,
                "label": frame.label,
                "part": frame.part,
                "final": frame.final.tolist(),
                "sigma_px": round(frame.sigma_px, 4),
                "confirmed": frame.confirmed,
                "placed_by": frame.placed_by,
            }
            for frame in frames
        ],
        "not_placed": [{"frame": number, "reason": reason} for number, reason in sorted(apart.items())],
    }
    write_text(path, json.dumps(content, indent=1) + "\n")
