"""Appearance on a synthetic endoscope: do frames that look alike show the same place?

    python benchmarks/appearance.py [--scenes retina,crater,terrain] [--frames 600] [--every 3] [--seed 1] [--json]

The pairs are all that are more than 30 frames apart. Printed is the probability that a pair which shares a quarter of
the field looks more alike than a pair which shares nothing (AUC). Then how many of the 100 and of the 1000 most similar
pairs share a quarter, and how many of all do. Beside the words of keypoints and of the grid are variants that are not
used: roots of counts, patches as small as the paper's, light not removed, patches turned to their strongest
orientation.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from smalti.appearance.patch_words import Describe, View, describe_patches, grid_signatures
from smalti.appearance.visual_words import signatures_of
from smalti.frames.pixels import in_gray
from smalti.frames.visibility import FrameMasks
from smalti.geometry.outline import Outline
from smalti.registration.keypoints import find_keypoints
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings
from smalti_lab.synthetic.scene import load_scene

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCENES = {
    "retina": "IDRiD_10",
    "crater": "nasa_Apollo_8__Lunar_Crater",
    "terrain": "nasa_bluemarble_ng_5400x2700",
}
FAR_FRAMES = 30
SHARED, APART = 0.25, 0.02
FIELD_SAMPLES = 32
NO_SHADE = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenes", default=",".join(SCENES), metavar="NAME,NAME,…")
    parser.add_argument("--frames", type=int, default=600, metavar="N")
    parser.add_argument("--every", type=int, default=3, metavar="K", help="look at each K-th frame only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    if not options.json:
        print("scene    looks                  AUC   of 100  of 1000  shared   alike  apart   ms a frame")
    for scene in options.scenes.split(","):
        for found in measure(scene, options.frames, options.every, options.seed):
            print(json.dumps(found) if options.json else as_row(found), flush=True)


def measure(scene: str, frames: int, every: int, seed: int) -> list[dict[str, Any]]:
    """Compute the signatures of one sequence in every way, and evaluate them."""
    picture = load_scene(next((DATA / "large_images").glob(f"{SCENES[scene]}*.jpg")))
    sequence = EndoscopeSequence(picture, EndoscopeSettings(frames=frames), seed=seed)
    numbers = np.arange(0, frames, every)
    images = [sequence.read(int(n)) for n in numbers]
    chosen = np.linspace(0, len(images) - 1, FIELD_SAMPLES).round().astype(int)
    masks = FrameMasks.of_sample(images[k] for k in chosen)
    views = [(in_gray(image), masks.of(image)) for image in images]
    found = []
    for name, make in WAYS.items():
        began = time.perf_counter()
        signatures = make(views)
        milliseconds = 1e3 * (time.perf_counter() - began) / len(views)
        found.append({"scene": scene, "looks": name, **judge(signatures, sequence, numbers), "ms": milliseconds})
    return found


def judge(signatures: NDArray[np.float64], sequence: EndoscopeSequence, numbers: NDArray[np.int64]) -> dict[str, float]:
    """Compare the similarity of far pairs with their overlap."""
    shared, touching = (_as_matrix(sequence, least)[np.ix_(numbers, numbers)] for least in (SHARED, APART))
    i, j = np.nonzero(numbers[None, :] - numbers[:, None] > FAR_FRAMES)
    alike, same, other = (signatures @ signatures.T)[i, j], shared[i, j], ~touching[i, j]
    ranks = rankdata(np.concatenate([alike[same], alike[other]]))[: same.sum()]
    best = np.argsort(-alike, kind="stable")
    return {
        "auc": float((ranks.mean() - (same.sum() + 1) / 2) / other.sum()),
        "precision_100": float(same[best[:100]].mean()),
        "precision_1000": float(same[best[:1000]].mean()),
        "share_of_pairs": float(same.mean()),
        "likeness_shared": float(np.median(alike[same])),
        "likeness_apart": float(np.median(alike[other])),
    }


def _as_matrix(sequence: EndoscopeSequence, least: float) -> NDArray[np.bool_]:
    matrix = np.zeros((len(sequence), len(sequence)), dtype=bool)
    matrix[tuple(sequence.overlapping_pairs(least).T)] = True
    return matrix


def by_keypoints(views: Sequence[View]) -> NDArray[np.float64]:
    height, width = views[0][0].shape
    return signatures_of((find_keypoints(*view) for view in views), Outline.of_pixels(width, height))


def by_grid(views: Sequence[View], describe: Describe = describe_patches) -> NDArray[np.float64]:
    return grid_signatures(lambda numbers: (views[n] for n in numbers), len(views), describe=describe)


def by_roots(views: Sequence[View]) -> NDArray[np.float64]:
    roots = np.sqrt(by_grid(views))
    return np.asarray(roots / np.linalg.norm(roots, axis=1, keepdims=True))


def describe_turned(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None) -> NDArray[np.float32]:
    """Turn every patch by eighths until its strongest orientation comes first."""
    patches = describe_patches(gray, mask).reshape(-1, 9, 8)
    ring = [5, 8, 7, 6, 3, 0, 1, 2]  # the cells around the middle one, by increasing angle
    strongest = patches.sum(axis=1).argmax(axis=1)
    turned = np.empty_like(patches)
    for eighths in range(8):
        some = np.roll(patches[strongest == eighths], -eighths, axis=2)
        turned[strongest == eighths, 0] = some[:, 4]
        turned[strongest == eighths, 1:] = np.roll(some[:, ring], -eighths, axis=1)
    return turned.reshape(len(turned), -1)


WAYS: dict[str, Callable[[Sequence[View]], NDArray[np.float64]]] = {
    "keypoints": by_keypoints,
    "grid": by_grid,
    "grid, roots of counts": by_roots,
    "grid, paper's patches": partial(by_grid, describe=partial(describe_patches, cell=1)),
    "grid, light left in": partial(by_grid, describe=partial(describe_patches, shade=NO_SHADE)),
    "grid, turned patches": partial(by_grid, describe=describe_turned),
}


def as_row(found: dict[str, Any]) -> str:
    """Return one line of the table."""
    return (
        f"{found['scene']:8} {found['looks']:22} {found['auc']:.3f}   {found['precision_100']:.2f}    "
        f"{found['precision_1000']:.2f}     {found['share_of_pairs']:.2f}    {found['likeness_shared']:.2f}   "
        f"{found['likeness_apart']:.2f}   {found['ms']:8.1f}"
    )


if __name__ == "__main__":
    main()
