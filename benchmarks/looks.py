"""How well appearance alone ranks pairs of frames by overlap, by looks and set.

    python benchmarks/looks.py [--sets caliterra,flight,retina] [--seed 0] [--json]
    python benchmarks/looks.py --features my_module:detect     # gray, mask → points (n, 2), descriptors (n, d)

Looks are what a frame is described by: keypoints or patches on a grid, compared one by one, or counted as visual words,
or summed (VLAD: differences to the nearest of 32 centres; Fisher vector: of 16, by mean, after a PCA to 32 dimensions).
Of the last two, the square root of every entry is taken, with its sign, and each vector has length 1. Learned keypoints
are compared too if their weights are installed. *Around* are the looks of the product, pooled over neighbours as a
build does where the camera is slow.

The pairs are at least 10 frames apart. A pair overlaps if a tenth of a frame is shared, and is apart if less than a
fiftieth is; others do not count. Printed is the probability that a pair that overlaps looks more alike than a pair
apart (AUC), the average precision, and the share of overlapping pairs among the most similar 100 (fewer if fewer
overlap); then processor seconds, those of SIFT left out, and megabytes. Synthetic sets have an exact truth. That of
real ones is composed of affine maps that fit landmarks.csv, over as few pairs as possible; frames that no such pairs
join count as apart.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.stats import rankdata

from sets import DATA
from smalti.appearance.keypoint_likeness import FALL, likeness_of
from smalti.appearance.patch_words import SAMPLED_FRAMES, View, describe_patches, grid_signatures
from smalti.appearance.visual_words import learn_words, signatures_of
from smalti.building.frame_views import FrameViews
from smalti.frames.pixels import in_gray
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.frames.visibility import FrameMasks
from smalti.geometry.homographies import apply_map
from smalti.geometry.outline import Outline
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.overlap.external_model import ExternalModel, PoolableModel
from smalti.overlap.pair_likeness import PairLikeness
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.registration.keypoints import SIFT_MATCHES, Keypoints, find_keypoints
from smalti.registration.learned_keypoints import LEARNED_MATCHES, find_learned_keypoints
from smalti.registration.learned_weights import find_weights, require_weights
from smalti.suggestion.appearance_evidence import REACH, neighbours
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings
from smalti_lab.synthetic.aerial_sequences import fly_about
from smalti_lab.synthetic.scene import load_scene

LARGEST = SIFT_MATCHES.largest_ratio**2 * SIFT_MATCHES.usual_next

OVERLAPPING, APART = 0.1, 0.02
FAR_FRAMES = 10
SAMPLES = 12
"""Points along each side of a frame that tell which share of it another one shows."""

REAL = {
    "caliterra": (1, 1),
    "obriens": (1, 1),
    "copr": (1, 1),
    "brighton": (1, 1),
    "dendritic_cols0-2": (1, 1),
    "street_pan_test3": (3, 3),
    "airplane01": (1, 3),
    "research_only/corneal_80": (1, 1),
}
"""The numbering of landmarks.csv, each such frame of the video, and which of these are looked at."""

SCENES = {"retina": "IDRiD_10", "crater": "nasa_Apollo_8__Lunar_Crater", "terrain": "nasa_bluemarble_ng_5400x2700"}
SCOPE_FRAMES, SCOPE_EVERY = 600, 4
FLIGHT_FRAMES, FLIGHT_EVERY = 1500, 10

Features = list[NDArray[np.float32]]
"""Descriptors (n, d) of each frame, of length 1."""


@dataclass(frozen=True, eq=False)
class LookedAt:
    """Frames, and which share of each other they show."""

    views: Sequence[View]
    shared: NDArray[np.float64]  # (N, N)

    @cached_property
    def keypoints(self) -> list[Keypoints]:
        """The keypoints of every frame, found once for all looks."""
        return [find_keypoints(*view) for view in self.views]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join((*REAL, "flight", *SCENES)), metavar="NAME,NAME,…")
    parser.add_argument("--features", metavar="MODULE:FUNCTION", help="your own features, beside the others")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    ways = WAYS | (LEARNED_WAYS if find_weights() else {})
    if options.features:
        module, _, function = options.features.partition(":")
        ways |= ways_of(getattr(importlib.import_module(module), function))
    if not options.json:
        print(f"{'set':24} {'looks':34}   AUC     AP  of best    CPU s     MB")
    for name in options.sets.split(","):
        looked_at = find_set(name)
        for way, make in ways.items():
            row = {"set": name, "looks": way, **measure(looked_at, make, options.seed)}
            print(json.dumps(row) if options.json else as_row(row), flush=True)


def find_set(name: str) -> LookedAt:
    if name in SCENES:
        return scope_over(name)
    return flight() if name == "flight" else real_set(name, *REAL[name])


def measure(looked_at: LookedAt, make: Callable[[LookedAt, int], ExternalModel], seed: int) -> dict[str, float]:
    """Compare the similarity of far pairs with their overlap."""
    assert looked_at.keypoints is not None  # found before the clock starts
    began = time.process_time()
    model = make(looked_at, seed)
    seconds = time.process_time() - began
    i, j = np.triu_indices(len(looked_at.views), FAR_FRAMES)
    alike, shared = model.probabilities()[i, j], looked_at.shared[i, j]
    same, counts = shared >= OVERLAPPING, (shared >= OVERLAPPING) | (shared < APART)
    ranks, other = rankdata(np.concatenate([alike[same], alike[shared < APART]])), int((shared < APART).sum())
    order = np.argsort(-alike[counts], kind="stable")
    found = same[counts][order]
    precision = np.cumsum(found) / np.arange(1, len(found) + 1)
    return {
        "auc": float((ranks[: same.sum()].mean() - (same.sum() + 1) / 2) / other),
        "average_precision": float(precision[found].mean()),
        "of_best": float(found[: min(100, same.sum())].mean()),
        "overlapping": int(same.sum()),
        "apart": other,
        "processor_seconds": seconds,
        "megabytes": size_of(model) / 1e6,
    }


def size_of(model: ExternalModel) -> int:
    if isinstance(model, PairLikeness):
        return model.likeness.data.nbytes + model.likeness.indices.nbytes
    assert isinstance(model, WeightedSignatures)
    signatures = model.signatures
    return signatures.data.nbytes if isinstance(signatures, csr_array) else signatures.nbytes


def real_set(name: str, numbered: int, every: int) -> LookedAt:
    location = next(path for path in (DATA / name / "frames", DATA / name / "test3.mp4") if path.exists())
    with open_source(location, SourceSettings(every=numbered)) as source:
        numbers = np.arange(0, len(source), every)
        frame_views = FrameViews(source, "auto")
        views = [
            (in_gray(image), frame_views.mask(number, image)) for number, image in source.read_many(numbers.tolist())
        ]
        maps = maps_by_landmarks(name, len(source))
        shared = shares(lambda i, j: maps[i].get(j), len(source), source.width, source.height)
    return LookedAt(views, shared[np.ix_(numbers, numbers)])


def maps_by_landmarks(name: str, frames: int) -> list[dict[int, NDArray[np.float64]]]:
    """Return, for each frame i, the affine i_from_j of all frames j that are joined to it, over the fewest pairs."""
    pairs: dict[tuple[int, int], NDArray[np.float64]] = {}
    for landmarks in read_landmarks(DATA / name / "landmarks.csv"):
        i, j = landmarks.pair.i, landmarks.pair.j
        points = np.column_stack([landmarks.points_j, np.ones(len(landmarks))])
        affine = np.vstack([np.linalg.lstsq(points, landmarks.points_i, rcond=None)[0].T, [0.0, 0.0, 1.0]])
        pairs[i, j], pairs[j, i] = affine, np.linalg.inv(affine)
    rows, columns = np.array(list(pairs)).T
    graph = csr_array((np.ones(len(pairs)), (rows, columns)), shape=(frames, frames))
    steps, before = shortest_path(graph, unweighted=True, return_predecessors=True)
    maps: list[dict[int, NDArray[np.float64]]] = [{i: np.eye(3)} for i in range(frames)]
    for i in range(frames):
        for j in np.argsort(steps[i], kind="stable")[1 : np.isfinite(steps[i]).sum()].tolist():
            maps[i][j] = maps[i][int(before[i, j])] @ pairs[int(before[i, j]), j]
    return maps


def scope_over(name: str) -> LookedAt:
    picture = load_scene(next((DATA / "large_images").glob(f"{SCENES[name]}*.jpg")))
    sequence = EndoscopeSequence(picture, EndoscopeSettings(frames=SCOPE_FRAMES), seed=1)
    numbers = np.arange(0, SCOPE_FRAMES, SCOPE_EVERY)
    images = [sequence.read(int(n)) for n in numbers]
    masks = FrameMasks.of_sample(images[k] for k in np.linspace(0, len(images) - 1, 32).round().astype(int))
    shared = np.zeros((SCOPE_FRAMES, SCOPE_FRAMES))
    for least in (APART, OVERLAPPING):
        i, j = sequence.overlapping_pairs(least).T
        shared[i, j] = shared[j, i] = least
    return LookedAt([(in_gray(image), masks.of(image)) for image in images], shared[np.ix_(numbers, numbers)])


def flight() -> LookedAt:
    sequence = fly_about(FLIGHT_FRAMES)
    numbers = np.arange(0, FLIGHT_FRAMES, FLIGHT_EVERY)
    views: list[View] = [(in_gray(sequence.read(int(n))), None) for n in numbers]
    height, width = views[0][0].shape
    maps = sequence.mosaic_from_frame[numbers]
    back = np.linalg.inv(maps)
    return LookedAt(views, shares(lambda i, j: back[i] @ maps[j], len(numbers), width, height))


def shares(
    i_from_j: Callable[[int, int], NDArray[np.float64] | None], frames: int, width: int, height: int
) -> NDArray[np.float64]:
    """Return which share of a frame another one shows (N, N), the mean of both directions."""
    across, down = ((np.arange(SAMPLES) + 0.5) / SAMPLES * side for side in (width, height))
    points = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2)
    shared = np.zeros((frames, frames))
    for i in range(frames):
        for j in range(frames):
            found = i_from_j(i, j)
            if found is not None:
                at = apply_map(found, points)
                shared[i, j] = np.mean(((at >= 0) & (at < [width, height])).all(axis=1))
    return (shared + shared.T) / 2


def by_words(looked_at: LookedAt, seed: int) -> WeightedSignatures:
    height, width = looked_at.views[0][0].shape
    return WeightedSignatures(signatures_of(looked_at.keypoints, Outline.of_pixels(width, height), seed))


def by_keypoints(looked_at: LookedAt, seed: int) -> PairLikeness:
    return PairLikeness(likeness_of(looked_at.keypoints, len(looked_at.views), seed))


def by_patch_words(looked_at: LookedAt, seed: int) -> WeightedSignatures:
    views = looked_at.views
    return WeightedSignatures(grid_signatures(lambda numbers: (views[n] for n in numbers), len(views), seed))


def around(make: Callable[[LookedAt, int], PoolableModel], looked_at: LookedAt, seed: int) -> ExternalModel:
    """Pool over neighbours, as far as half of what they show is new."""
    frames = len(looked_at.views)
    stays = [reach for reach in range(1, frames) if np.diagonal(looked_at.shared, reach).mean() >= 1.0 - REACH]
    chain = np.stack([np.arange(frames - 1), np.arange(1, frames)], axis=1)
    model = make(looked_at, seed)
    # Truths of the endoscope are levels, not shares: its frames are pooled as far as they surely overlap.
    reach = max(stays, default=0) if looked_at.shared.max() > OVERLAPPING else 1
    return model.pooled(neighbours(frames, chain, min(reach, 4))) if reach else model


def keypoint_descriptors(looked_at: LookedAt) -> Features:
    return [found.unit_descriptors for found in looked_at.keypoints]


def patch_descriptors(looked_at: LookedAt) -> Features:
    return [describe_patches(*view) for view in looked_at.views]


def by_vlad(find: Callable[[LookedAt], Features], looked_at: LookedAt, seed: int) -> WeightedSignatures:
    features = find(looked_at)
    rng = np.random.default_rng(seed)
    centres = learn_words(sample(features, rng), 32, rng)
    vectors = np.zeros((len(features), *centres.shape))
    for n, of_frame in enumerate(features):
        nearest = np.argmax(of_frame @ centres.T - 0.5 * np.sum(centres**2, axis=1), axis=1)
        vectors[n] = np.eye(len(centres), dtype=np.float32)[nearest].T @ (of_frame - centres[nearest])
    return WeightedSignatures(scaled(vectors.reshape(len(features), -1)))


def by_fisher(find: Callable[[LookedAt], Features], looked_at: LookedAt, seed: int) -> WeightedSignatures:
    features = find(looked_at)
    rng = np.random.default_rng(seed)
    chosen = sample(features, rng)
    mean = chosen.mean(axis=0)
    variance, axes = np.linalg.eigh(np.cov((chosen - mean).T))
    whiten = (axes[:, -32:] / np.sqrt(variance[-32:] + 1e-9)).astype(np.float32)
    centres = learn_words((chosen - mean) @ whiten, 16, rng)
    vectors = np.zeros((len(features), *centres.shape))
    for n, of_frame in enumerate(features):
        white = (of_frame - mean) @ whiten
        nearness = white @ centres.T - 0.5 * np.sum(centres**2, axis=1)
        weight = np.exp(nearness - nearness.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        vectors[n] = weight.T @ white - weight.sum(axis=0)[:, None] * centres
    return WeightedSignatures(scaled(vectors.reshape(len(features), -1)))


def by_comparison(find: Callable[[LookedAt], Features], looked_at: LookedAt, seed: int) -> PairLikeness:
    """Compare descriptors of any kind as `likeness_of` does, all with all."""
    features = find(looked_at)
    likeness = np.eye(len(features), dtype=np.float32)
    for i, one in enumerate(features):
        for j, other in enumerate(features[:i]):
            if min(len(one), len(other)):
                distance = 2.0 - 2.0 * one @ other.T
                nearest, at = distance.argmin(axis=1), np.arange(len(one))
                best = distance[at, nearest]
                mutual = (distance.argmin(axis=0)[nearest] == at) & (best <= LARGEST)
                alike = np.exp(-np.maximum(best[mutual], 0.0) / (FALL * LARGEST)).sum() / np.sqrt(len(one) * len(other))
                likeness[i, j] = likeness[j, i] = alike
    return PairLikeness(csr_array(likeness))


def sample(features: Features, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return 20,000 descriptors of frames spread over the sequence."""
    chosen = np.unique(np.linspace(0, len(features) - 1, SAMPLED_FRAMES).round().astype(int))
    together = np.concatenate([features[n] for n in chosen])
    return together[np.sort(rng.permutation(len(together))[:20_000])]


def scaled(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    rooted = np.sign(vectors) * np.sqrt(np.abs(vectors))
    rooted[~rooted.any(axis=1)] = 1.0
    unit: NDArray[np.float64] = rooted / np.linalg.norm(rooted, axis=1, keepdims=True)
    return unit


WAYS: dict[str, Callable[[LookedAt, int], ExternalModel]] = {
    "keypoints: the paper's words": by_words,
    "keypoints: VLAD": partial(by_vlad, keypoint_descriptors),
    "keypoints: Fisher vector": partial(by_fisher, keypoint_descriptors),
    "keypoints compared": by_keypoints,
    "keypoints compared, around": partial(around, by_keypoints),
    "patches: words": by_patch_words,
    "patches: words, around": partial(around, by_patch_words),
    "patches: VLAD": partial(by_vlad, patch_descriptors),
}


def by_learned(looked_at: LookedAt, seed: int) -> PairLikeness:
    weights = require_weights()
    found = (find_learned_keypoints(*view, weights) for view in looked_at.views)
    return PairLikeness(likeness_of(found, len(looked_at.views), seed, LEARNED_MATCHES))


LEARNED_WAYS: dict[str, Callable[[LookedAt, int], ExternalModel]] = {
    "learned keypoints compared": by_learned,
    "learned keypoints compared, around": partial(around, by_learned),
}
"""Where their weights are installed."""


def ways_of(detect: Callable[..., tuple[Any, Any]]) -> dict[str, Callable[[LookedAt, int], ExternalModel]]:
    """Return the looks of features of one's own."""

    def find(looked_at: LookedAt) -> Features:
        return [np.asarray(detect(*view)[1], dtype=np.float32) for view in looked_at.views]

    return {
        "own features: VLAD": partial(by_vlad, find),
        "own features compared": partial(by_comparison, find),
    }


def as_row(row: dict[str, Any]) -> str:
    """Return one line of the table."""
    return (
        f"{row['set']:24} {row['looks']:34} {row['auc']:.3f}  {row['average_precision']:.3f}     "
        f"{row['of_best']:.2f} {row['processor_seconds']:8.1f} {row['megabytes']:6.2f}"
    )


if __name__ == "__main__":
    main()
