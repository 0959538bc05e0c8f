"""Sequences cut from large pictures along known paths: the error of every frame, and the effect of wrong matches.

    python benchmarks/synthetic.py [--frames 600] [--paths raster,circle,wander] [--lies 0.1] [--json]

A frame's error is the RMS distance, in the pair's frame, between the positions of the other frame's points in the
mosaic and in truth. Reported is the worst over all pairs that share a tenth of their area. With `--lies`, a matcher
changes that share of its yes answers into plausible but wrong maps, and the error is compared with that of the honest
one.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.building.build import build
from smalti.project.entries import LinkState
from smalti.records import Pair
from smalti.registration.keypoints import Keypoints, find_keypoints, match_keypoints
from smalti_lab.synthetic.camera_path import CameraPath, Handling, circle, raster, wander
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import load_scene
from smalti_lab.synthetic.synthetic_files import write_frames
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))
FRAME = (320, 240)
HANDLING = Handling(heading_degrees=15, zoom=0.05, shake_px=2, shake_degrees=0.5)
DEGRADATION = Degradation(blur_px=0.5, exposure=0.2, noise=2)

Paths = dict[str, tuple[str, Callable[[tuple[int, int], int], CameraPath]]]
PATHS: Paths = {
    "raster": (
        "caliterra_IMG_9419_4000x3000.jpg",
        lambda size, n: raster(size, n, FRAME, step=0.25, handling=HANDLING, seed=1),
    ),
    "circle": (
        "nasa_Apollo_8__Lunar_Crater.jpg",
        lambda size, n: circle(size, n, FRAME, step=0.25, revolutions=max(1, n // 80), handling=HANDLING, seed=1),
    ),
    "wander": (
        "caliterra_IMG_9419_4000x3000.jpg",
        lambda size, n: wander(size, n, FRAME, step=0.25, handling=HANDLING, seed=1),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=600, metavar="N")
    parser.add_argument("--paths", default=",".join(PATHS), metavar="NAME,NAME,…")
    parser.add_argument("--lies", type=float, default=0.0, metavar="SHARE", help="of the yes answers")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    for name in options.paths.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, options.frames, options.lies, Path(folder))
        print(json.dumps(found) if options.json else "  ".join(f"{k} {v}" for k, v in found.items()), flush=True)


def measure(name: str, frames: int, lies: float, folder: Path) -> dict[str, Any]:
    """Build a sequence honestly and, if asked to, with lies."""
    picture, make_path = PATHS[name]
    scene = load_scene(DATA / "large_images" / picture)
    sequence = SyntheticSequence(scene, make_path((scene.shape[1], scene.shape[0]), frames), DEGRADATION, seed=1)
    write_frames(sequence, folder / "frames", ".png")
    found: dict[str, Any] = {"path": name, "frames": frames}
    began = time.perf_counter()
    if lies == 0.0:
        with build(folder / "frames", folder / "honest") as project:
            found |= errors(sequence, project.placements) | {"attempts": len(project.answers)}
    else:
        for kind, share in (("honest", 0.0), ("lying", lies)):
            liar = Liar(share)
            with build(folder / "frames", folder / kind, matcher=liar) as project:
                of_kind = errors(sequence, project.placements)
                held = {entry.pair for entry in project.links if entry.state is LinkState.REJECTED}
                told = liar.told([entry.answer.pair for entry in project.answers if entry.answer.landmarks is not None])
            found |= {f"{kind}_{key}": value for key, value in of_kind.items()}
        found |= {
            "lies": len(told),
            "lies_held": len(told & held),
            "honest_held": len(held - told),
            "ratio": round(found["lying_rms_px"] / found["honest_rms_px"], 3),
        }
    return found | {"seconds": round(time.perf_counter() - began, 1)}


def errors(sequence: SyntheticSequence, placements: Any) -> dict[str, Any]:
    numbers = [placement.number for placement in placements]
    final = sequence.truth_error(np.array([placement.final for placement in placements]), frames=numbers)
    chain = sequence.truth_error(np.array([placement.chain for placement in placements]), frames=numbers)
    return {
        "placed": len(numbers),
        "chain_rms_px": round(chain.rms, 3),
        "rms_px": round(final.rms, 3),
        "worst_frame_px": round(float(np.nanmax(final.worst_of_frame)), 3),
    }


class Liar:
    """Matches keypoints, and replaces a share of the results by another map: shifted, turned, enlarged.

    A matcher sees images, not frame numbers. Whether it lies, and how, is drawn from the content of the two images.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._keypoints: dict[bytes, Keypoints] = {}
        self._order: dict[bytes, int] = {}

    def __call__(self, image_i: NDArray[np.uint8], image_j: NDArray[np.uint8]) -> Any:
        keys = [image.tobytes()[:20000] for image in (image_i, image_j)]
        for key, image in zip(keys, (image_i, image_j), strict=True):
            if key not in self._keypoints:
                self._keypoints[key] = find_keypoints(image.mean(axis=2).round().astype(np.uint8))
                self._order[key] = len(self._order)
        points_i, points_j = match_keypoints(self._keypoints[keys[0]], self._keypoints[keys[1]])
        pair = tuple(sorted(self._order[key] for key in keys))
        rng = np.random.default_rng([11, *pair])
        if rng.random() >= self.share:
            return points_i, points_j
        height, width = image_i.shape[:2]
        angle, scale = rng.uniform(-0.2, 0.2), rng.uniform(0.9, 1.1)
        direction, distance = rng.uniform(0, 2 * np.pi), rng.uniform(0.08, 0.3) * width
        centre = np.array([width / 2, height / 2])
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shift = distance * np.array([np.cos(direction), np.sin(direction)])
        return (points_i - centre) @ turn.T + centre + shift, points_j

    def told(self, found: list[Pair]) -> set[Pair]:
        """Return the pairs, of those found, that it lied about. The chain sees frames in their order."""
        return {pair for pair in found if np.random.default_rng([11, pair.i, pair.j]).random() < self.share}


if __name__ == "__main__":
    main()
