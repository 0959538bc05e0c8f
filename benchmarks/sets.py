"""The real sequences: error of the default build against landmarks that are not used as input, beside the floors.

    python benchmarks/sets.py [--sets caliterra,copr] [--budget Q] [--folder studies/sets] [--json]

A floor is the error of an adjustment that uses every matching pair, as given in the data's README. With --budget the
builds ask so many questions. "predicted" is a build's prediction of its own error.
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

LARGEST_OF_FLOOR = 1.15
"""The largest error of a default build, in homography floors."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", default=",".join(FLOORS), metavar="NAME,NAME,…")
    parser.add_argument("--budget", type=int, metavar="Q", help="questions of the loop (as by default)")
    parser.add_argument("--folder", type=Path, default=Path("studies/sets"), metavar="DIR", help="of the projects")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    if not options.json:
        print(f"{'set':<25} frames  attempts    error  limit   median  predicted  rejected  parts  seconds  cpu")
    for name in options.sets.split(","):
        found = measure(name, options.folder, options.budget)
        print(json.dumps(found) if options.json else as_row(found), flush=True)


def measure(name: str, folder: Path, budget: int | None) -> dict[str, Any]:
    """Build a set, by default except for the budget."""
    video = DATA / name / "test3.mp4"
    location, every = (video, 3) if video.exists() else (DATA / name / "frames", 1)
    landmarks = DATA / name / "landmarks.csv"
    began = time.perf_counter()
    began_cpu = time.process_time()
    with build(location, folder / name, every=every, budget=budget) as project:
        seconds = time.perf_counter() - began
        default, info = project.evaluate(landmarks), project.info()
    _, floor = FLOORS[name]
    return {
        "set": name,
        "frames": info.frames.read,
        "frames_placed": info.frames.placed,
        "parts": info.parts,
        "attempts": info.attempts,
        "attempts_a_frame": info.attempts / info.frames.read,
        "error_px": default.relative_rmsd_px,
        "limit_px": None if floor is None else LARGEST_OF_FLOOR * floor,
        "median_px": default.median_px,
        "pairs_apart": default.pairs_apart,
        "rejected": info.rejected,
        "seconds": seconds,
        "processor_seconds": time.process_time() - began_cpu,
        "predicted_px": info.predicted_error_px,
    }


def as_row(found: dict[str, Any]) -> str:
    limit = found["limit_px"]
    return (
        f"{found['set']:<25} {found['frames_placed']:>3}/{found['frames']:<3} {found['attempts']:>8} "
        f"{found['error_px']:>8.2f} {'-' if limit is None else format(limit, '.2f'):>6} {found['median_px']:>8.2f} "
        f"{found['predicted_px']:>10.2f} {found['rejected']:>9} {found['parts']:>6} {found['seconds']:>8.1f} "
        f"{found['processor_seconds']:>4.0f}"
    )


if __name__ == "__main__":
    main()
