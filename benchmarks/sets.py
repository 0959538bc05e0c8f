"""The real sequences: error against landmarks that were no input, with both finishes, beside the floors.

    python benchmarks/sets.py [--sets caliterra,copr] [--folder studies/sets] [--json]

A floor is the error of an adjustment that uses every matching pair, as given in the data's README.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from smalti.building.build import build

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
"""Affine, homography; px."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", default=",".join(FLOORS), metavar="NAME,NAME,…")
    parser.add_argument("--folder", type=Path, default=Path("studies/sets"), metavar="DIR", help="of the projects")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    if not options.json:
        print(f"{'set':<25} frames  attempts   affine  limit   default  limit   median  held  parts  seconds")
    for name in options.sets.split(","):
        found = measure(name, options.folder)
        print(json.dumps(found) if options.json else as_row(found), flush=True)


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Build a set by default, then finish the same answers with affine maps."""
    video = DATA / name / "test3.mp4"
    location, every = (video, 3) if video.exists() else (DATA / name / "frames", 1)
    landmarks = DATA / name / "landmarks.csv"
    began = time.perf_counter()
    with build(location, folder / name, every=every) as project:
        seconds = time.perf_counter() - began
        default, info = project.evaluate(landmarks), project.info()
    with build(location, folder / name, every=every, finish="affine") as project:
        affine = project.evaluate(landmarks)
    affine_floor, homography_floor = FLOORS[name]
    return {
        "set": name,
        "frames": info["frames"]["read"],
        "frames_placed": info["frames"]["placed"],
        "parts": info["parts"],
        "attempts": info["attempts"],
        "attempts_a_frame": info["attempts"] / info["frames"]["read"],
        "affine_px": affine.relative_rmsd_px,
        "affine_limit_px": 1.25 * affine_floor,
        "default_px": default.relative_rmsd_px,
        "default_limit_px": None if homography_floor is None else 1.5 * homography_floor,
        "default_median_px": default.median_px,
        "finish": info["finish"],
        "pairs_apart": default.pairs_apart,
        "held": info["held"],
        "seconds": seconds,
    }


def as_row(found: dict[str, Any]) -> str:
    limit = found["default_limit_px"]
    return (
        f"{found['set']:<25} {found['frames_placed']:>3}/{found['frames']:<3} {found['attempts']:>8} "
        f"{found['affine_px']:>8.2f} {found['affine_limit_px']:>6.2f}  {found['default_px']:>8.2f} "
        f"{'-' if limit is None else format(limit, '.2f'):>6} {found['default_median_px']:>8.2f} {found['held']:>5} "
        f"{found['parts']:>6} {found['seconds']:>8.1f}"
    )


if __name__ == "__main__":
    main()
