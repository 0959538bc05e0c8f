"""Builds with a matcher of whose yes answers a share is wrong, links of the chain included.

    python benchmarks/lies.py [--sets copr,caliterra] [--share 0.2] [--seeds 1,2,3,4,5] [--max-size 500] [--json]

A wrong answer has all points of one frame moved by 30 to 200 px in one direction. Which answers are wrong, and by how
much, depends on the seed and the two frames alone. Printed is the error against that of the same build with a matcher
that is never wrong. A wrong answer is *redundant* if its frames stay joined without it; the others cannot be detected,
and the frames behind them are named as unconfirmed. "Map error" subtracts the noise of the evaluation landmarks, like
the bound.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import smalti
from claims import print_table
from flights import noise_of_landmarks
from smalti.engine.link_confirmation import are_confirmed
from smalti.frames.pixels import in_gray
from smalti.frames.source import open_source
from smalti.interchange.landmarks_csv import read_landmarks, write_landmarks
from smalti.project.entries import LinkState
from smalti.records import Landmarks, Pair
from smalti.registration.keypoints import Keypoints, find_keypoints, match_keypoints

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))
LEAST_LIE_PX, LARGEST_LIE_PX = 30.0, 200.0


class LyingMatcher:
    """Matches keypoints, and moves the points of some pairs."""

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._seed = share, seed
        self._keypoints: dict[int, Keypoints] = {}
        self._told: set[tuple[int, int]] = set()

    def __call__(self, image_i: NDArray[np.uint8], image_j: NDArray[np.uint8]) -> Any:
        i, j = fingerprint(image_i), fingerprint(image_j)
        points_i, points_j = match_keypoints(self._find(i, image_i), self._find(j, image_j))
        rng = np.random.default_rng([self._seed, i, j])
        if rng.random() >= self._share:
            return points_i, points_j
        self._told.add((i, j))
        angle, px = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(LEAST_LIE_PX, LARGEST_LIE_PX)
        return points_i, points_j + px * np.array([np.cos(angle), np.sin(angle)])

    def told(self, project: smalti.Project) -> set[Pair]:
        """Return the pairs of a project whose yes is wrong."""
        number = {fingerprint(image): n for n, image in project.source.read_many(range(len(project.frames)))}
        pairs = {Pair(*sorted((number[i], number[j]))) for i, j in self._told}
        return {entry.answer.pair for entry in project.answers if entry.answer.landmarks is not None} & pairs

    def _find(self, key: int, image: NDArray[np.uint8]) -> Keypoints:
        if key not in self._keypoints:
            self._keypoints[key] = find_keypoints(in_gray(image), None)
        return self._keypoints[key]


def fingerprint(image: NDArray[np.uint8]) -> int:
    return zlib.crc32(np.ascontiguousarray(image).tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="copr,caliterra", metavar="NAME,…", help="folders of SMALTI_DATA")
    parser.add_argument("--share", type=float, default=0.2, help="of the yes answers that are wrong (0.2)")
    parser.add_argument("--seeds", default="1,2,3,4,5", metavar="S,S,…")
    parser.add_argument("--max-size", type=int, default=500, metavar="PX", help="longer side of the frames (500)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    rows = []
    for name in options.sets.split(","):
        honest = measure(name, 0.0, 0, options.max_size)
        if options.json:
            print(json.dumps(honest), flush=True)
        for seed in map(int, options.seeds.split(",")):
            found = measure(name, options.share, seed, options.max_size)
            found["ratio"] = found["error_px"] / honest["error_px"]
            rows.append([f"{name}, seed {seed}", f"{honest['error_px']:.2f}", f"{found['error_px']:.2f}"])
            rows[-1] += [f"{found['ratio']:.2f}", f"{found['map_error_px']:.2f}", f"{found['bound_px']:.1f}"]
            counts = ("yes", "wrong", "rejected", "redundant_accepted", "right_rejected", "unconfirmed", "parts")
            rows[-1] += [str(found[key]) for key in (*counts, "processor_seconds")]
            print(json.dumps(found) if options.json else "  ".join(rows[-1]), flush=True)
    columns = ["honest, px", "px", "ratio", "map error", "90 % bound", "yes", "wrong", "rejected"]
    columns += ["redundant, accepted", "right ones rejected", "unconfirmed frames", "parts", "processor seconds"]
    if not options.json:
        print_table([f"{options.share:.0%} wrong", *columns], rows)


def measure(name: str, share: float, seed: int, max_size: int) -> dict[str, Any]:
    """Build a set with a lying matcher."""
    matcher = LyingMatcher(share, seed)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        frames = DATA / name / "frames"
        with smalti.build(frames, Path(folder) / "project", matcher=matcher, max_size=max_size) as project:
            seconds = time.process_time() - began
            judges = scaled_landmarks(name, project)
            write_landmarks(Path(folder) / "landmarks.csv", judges)
            error_px = project.evaluate(Path(folder) / "landmarks.csv").relative_rmsd_px
            lies, info = matcher.told(project), project.info()
            rejected = {link.pair for link in project.links if link.state is LinkState.REJECTED}
            accepted = [link.pair for link in project.links if link.state is LinkState.ACCEPTED]
            ends = np.array([(pair.i, pair.j) for pair in accepted])
            checked = are_confirmed(len(project.frames), ends).tolist()
            confirmed = {pair for pair, is_checked in zip(accepted, checked, strict=True) if is_checked}
            noise_px = noise_of_landmarks(judges, project.outline, project.lens)
        return {
            "set": name,
            "share": share,
            "seed": seed,
            "error_px": error_px,
            "map_error_px": float(np.sqrt(max(error_px**2 - noise_px**2, 0.0))),
            "bound_px": info.error_bound_px,
            "yes": len(accepted) + len(rejected),
            "wrong": len(lies),
            "rejected": len(lies & rejected),
            "redundant_accepted": len(lies & confirmed),
            "right_rejected": len(rejected - lies),
            "unconfirmed": info.unconfirmed,
            "parts": info.parts,
            "processor_seconds": round(seconds),
        }


def scaled_landmarks(name: str, project: smalti.Project) -> list[Landmarks]:
    """Return the evaluation landmarks in pixels of the reduced frames."""
    with open_source(DATA / name / "frames") as source:
        scale = project.width / source.width
    records = read_landmarks(DATA / name / "landmarks.csv")
    return [
        replace(record, points_i=(record.points_i + 0.5) * scale - 0.5, points_j=(record.points_j + 0.5) * scale - 0.5)
        for record in records
    ]


if __name__ == "__main__":
    main()
