"""Write transforms as JSON: a map per frame; the file states the maps' direction and the pixel convention."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalti.geometry.lens import Lens
from smalti.interchange.atomic_files import write_text
from smalti.records import Homographies

CONVENTION = (
    "mosaic_from_frame: multiply (x, y, 1) of a pixel by the 3x3 matrix and divide by the third number to get its "
    "place on the mosaic. x to the right, y down, the centre of the top-left pixel at (0, 0). The mosaic is level; "
    "its place, turn and scale are those of the part's reference frame. Where there is a lens, (x, y) is the straight "
    "pixel, which its formula makes of the one that is seen. "
    "A frame that is not confirmed is where a single match puts it: if that is wrong, nothing contradicts it."
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


def write_transforms(
    path: Path,
    frames: Iterable[FrameTransform],
    *,
    size: tuple[int, int],
    references: list[int],
    apart: dict[int, str],
    lens: Lens | None = None,
) -> None:
    """Write the maps of the placed frames of `size` (width, height), and why the others were not placed.

    The maps take undistorted pixels; without a lens these are the distorted ones.
    """
    content: dict[str, Any] = {
        "convention": CONVENTION,
        "frame_width": size[0],
        "frame_height": size[1],
        "lens": None if lens is None else lens.record,
        "reference_frames": references,
        "frames": [
            {
                "frame": frame.number,
                "label": frame.label,
                "part": frame.part,
                "final": frame.final.tolist(),
                "sigma_px": round(frame.sigma_px, 4),
                "confirmed": frame.confirmed,
            }
            for frame in frames
        ],
        "not_placed": [{"frame": number, "reason": reason} for number, reason in sorted(apart.items())],
    }
    write_text(path, json.dumps(content, indent=1) + "\n")
