"""Dense registration against OpenCV's findTransformECC; its stated precision; its detection of failures.

    python benchmarks/dense.py [--scenes IDRiD_10,…] [--pairs 40] [--seed 1] [--plain] [--json]

Frames come from the synthetic endoscope over the large pictures. There are three tables for each scene:

- starts: both methods from the same wrong starts, in bins of their error. The share within 1 px RMS of the truth, and
  the time (registration alone; and with the preparation of both frames, which a sequence does once a frame).
- precision: consecutive pairs and pairs 3 and 10 frames apart. The error, the ratio of its RMS to the predicted one,
  and the squared Mahalanobis distance of the truth per degree of freedom, which should be 1.
- refusal: pairs that show different places, without and with a wrong expected map. How many were accepted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.frames.pixels import in_gray
from smalti.geometry.homographies import apply_map
from smalti.geometry.linear_maps import AFFINE, IDENTITY, apply, square
from smalti.records import Answer, Expectation, Homographies, Landmarks, Pair, Points, Transforms
from smalti.registration.dense import Prepared, prepare, register
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import Camera, EndoscopeSettings, Light, Tissue
from smalti_lab.synthetic.scene import load_scene

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCENES = ("IDRiD_10", "nasa_Apollo_8__Lunar_Crater", "nasa_bluemarble_ng_5400x2700")
STARTS = ((0, 10, 2.5), (10, 20, 5.0), (20, 30, 7.5), (30, 40, 10.0))
"""From and to px of the centre, and degrees either way."""

PLAIN = EndoscopeSettings(
    tissue=Tissue(contrast=40.0),
    light=Light(vignetting=0.0, spot=0.0, wetness=0.0, exposure=0.0),
    camera=Camera(defocus_px=0.0, motion_blur=0.0, noise=1.0),
    particles=0,
)
START_SIGMA = 20.0
CONVERGED_PX = 1.0
GAPS = (1, 3, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenes", default=",".join(SCENES), metavar="NAME,NAME,…")
    parser.add_argument("--pairs", type=int, default=40, metavar="N", help="of every row")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--plain", action="store_true", help="even light, full contrast, nothing that floats or glints")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    for name in options.scenes.split(","):
        bench = Bench(name, options.seed, PLAIN if options.plain else EndoscopeSettings())
        rng = np.random.default_rng(options.seed)
        tables = (bench.compare_starts, bench.measure_precision, bench.count_acceptances)
        for row in (row for table in tables for row in table(options.pairs, rng)):
            print(json.dumps(row) if options.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)


class Bench:
    """A sequence over one scene, whose frames are rendered and prepared once."""

    def __init__(self, name: str, seed: int, settings: EndoscopeSettings) -> None:
        self.name = name
        scene = load_scene(DATA / "large_images" / f"{name}.jpg")
        self.sequence = EndoscopeSequence(scene, settings, seed)
        self._frames: dict[int, tuple[NDArray[np.uint8], NDArray[np.bool_], Prepared]] = {}
        self.prepare_seconds: list[float] = []
        height, width = self.sequence.field(0).shape
        x, y = np.meshgrid(np.linspace(0, width - 1, 24), np.linspace(0, height - 1, 24))
        self.grid = np.column_stack([x.ravel(), y.ravel()])

    def compare_starts(self, pairs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Yield a row for each bin of start errors, and one for all."""
        rows = []
        for least, most, degrees in STARTS:
            ours, theirs, seconds, their_seconds = 0, 0, 0.0, 0.0
            for i in rng.permutation(len(self.sequence) - GAPS[1])[: max(1, pairs // len(STARTS))]:
                pair = Pair(int(i), int(i) + GAPS[1])
                points_j, truth = self.common(pair)
                distance, direction = rng.uniform(least, most), rng.uniform(0, 2 * math.pi)
                start = self.spoil(fit(points_j, truth), distance, direction, rng.uniform(-degrees, degrees))
                in_i, in_j = self.prepared(pair.i), self.prepared(pair.j)
                began = time.perf_counter()
                answer = register(pair, in_i, in_j, [Expectation(start, START_SIGMA)])
                seconds += time.perf_counter() - began
                ours += answer.landmarks is not None and rms(map_of(answer), points_j, truth) <= CONVERGED_PX
                began = time.perf_counter()
                found = self.align_by_ecc(pair, start)
                their_seconds += time.perf_counter() - began
                theirs += rms(square(found), points_j, truth) <= CONVERGED_PX
            count = max(1, pairs // len(STARTS))
            rows.append((count, ours, theirs, seconds, their_seconds))
            yield self.row_of_starts(f"{least}-{most} px {degrees}°", *rows[-1])
        yield self.row_of_starts("all", *(sum(column) for column in zip(*rows, strict=True)))

    def row_of_starts(
        self, start: str, count: int, ours: int, theirs: int, seconds: float, their_seconds: float
    ) -> dict[str, Any]:
        with_both = seconds + 2 * count * min(self.prepare_seconds)
        return {
            "scene": self.name,
            "starts": start,
            "pairs": count,
            "converged": ours / count,
            "ecc_converged": theirs / count,
            "times_as_many": round(ours / max(theirs, 1), 2),
            "register_ms": round(1e3 * seconds / count, 1),
            "ecc_ms": round(1e3 * their_seconds / count, 1),
            "time_ratio": round(seconds / their_seconds, 2),
            "time_ratio_with_preparation": round(with_both / their_seconds, 2),
        }

    def measure_precision(self, pairs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Yield a row for each distance between the frames."""
        for gap in GAPS:
            errors, predicted, distances, refused = [], [], [], 0
            for i in rng.permutation(len(self.sequence) - gap)[:pairs]:
                pair = Pair(int(i), int(i) + gap)
                expected = Expectation(IDENTITY, 15.0 * math.sqrt(gap))
                answer = register(pair, self.prepared(pair.i), self.prepared(pair.j), [expected])
                if answer.landmarks is None:
                    refused += 1
                    continue
                errors.append(rms(map_of(answer), *self.common(pair)))
                distance, expected_px = compare_with_truth(
                    answer.landmarks, self.sequence.points_in(pair.i, pair.j, answer.landmarks.points_j)
                )
                predicted.append(expected_px)
                distances.append(distance)
            ratio = math.sqrt(float(np.mean(np.square(errors)) / np.mean(np.square(predicted))))
            yield {
                "scene": self.name,
                "gap": gap,
                "pairs": pairs,
                "refused": refused,
                "median_px": round(float(np.median(errors)), 3),
                "worst_px": round(max(errors), 2),
                "real_over_predicted": round(ratio, 2),
                "squared_distance": round(float(np.mean(distances)), 2),
            }

    def count_acceptances(self, pairs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
        """Yield a row for each kind of expected map."""
        for sigma in (math.inf, START_SIGMA):
            left, accepted = pairs, 0
            while left:
                i, j = sorted(int(n) for n in rng.choice(len(self.sequence) // 5, 2, replace=False) * 5)
                if len(self.common(Pair(i, j))[0]):
                    continue
                left -= 1
                answer = register(Pair(i, j), self.prepared(i), self.prepared(j), [Expectation(IDENTITY, sigma)])
                accepted += answer.landmarks is not None
            yield {"scene": self.name, "apart, sigma": sigma, "pairs": pairs, "accepted": accepted}

    def frame(self, n: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_], Prepared]:
        if n not in self._frames:
            gray = in_gray(self.sequence.frame(n))
            field = self.sequence.field(n)
            began = time.perf_counter()
            prepared = prepare(gray, field)
            self.prepare_seconds.append(time.perf_counter() - began)
            self._frames[n] = gray, field, prepared
        return self._frames[n]

    def prepared(self, n: int) -> Prepared:
        return self.frame(n)[2]

    def common(self, pair: Pair) -> tuple[Points, Points]:
        """Return points (n, 2) of j that both frames show, and their true positions in i."""
        truth = self.sequence.points_in(pair.i, pair.j, self.grid)
        field_i, field_j = self.sequence.field(pair.i), self.sequence.field(pair.j)
        shown = at(field_j, self.grid) & at(field_i, truth)
        return self.grid[shown], truth[shown]

    def spoil(self, i_from_j: Transforms, distance: float, direction: float, degrees: float) -> Transforms:
        """Turn a map about the frame's centre, and shift it."""
        angle = math.radians(degrees)
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        linear = turn @ i_from_j[:, :2]
        centre = self.grid.mean(axis=0)
        off = distance * np.array([math.cos(direction), math.sin(direction)])
        return np.column_stack([linear, apply(i_from_j, centre[None])[0] + off - linear @ centre])

    def align_by_ecc(self, pair: Pair, start: Transforms) -> Transforms:
        """Return OpenCV's result; the start if it fails.

        Both fields of view are used if OpenCV can take them. With the field of i alone, the rim of j holds it at its
        start.
        """
        (gray_i, field_i, _), (gray_j, field_j, _) = self.frame(pair.i), self.frame(pair.j)
        criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 50, 1e-6)
        guess, mask_i, mask_j = start.astype(np.float32), field_i.astype(np.uint8), field_j.astype(np.uint8)
        try:
            if hasattr(cv2, "findTransformECCWithMask"):
                _, found = cv2.findTransformECCWithMask(
                    gray_j, gray_i, mask_j, mask_i, guess, cv2.MOTION_AFFINE, criteria, 5
                )
            else:
                _, found = cv2.findTransformECC(gray_j, gray_i, guess, cv2.MOTION_AFFINE, criteria, mask_i, 5)
        except cv2.error:
            return start
        return np.asarray(found, np.float64)


def at(field: NDArray[np.bool_], points: Points) -> NDArray[np.bool_]:
    """Tell for each point (n, 2) whether it lies in the field (h, w)."""
    height, width = field.shape
    x, y = np.rint(points).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    return np.asarray(inside & field[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)], np.bool_)


def fit(points_j: Points, points_i: Points) -> Transforms:
    return AFFINE.fit(points_i, points_j, np.ones(len(points_j)))


def map_of(answer: Answer) -> Homographies:
    assert answer.landmarks is not None
    found, _ = cv2.findHomography(answer.landmarks.points_j, answer.landmarks.points_i, 0)
    return np.asarray(found, np.float64)


def rms(i_from_j: Homographies, points_j: Points, truth: Points) -> float:
    return float(np.sqrt(np.mean(np.sum((apply_map(i_from_j, points_j) - truth) ** 2, axis=1))))


def compare_with_truth(landmarks: Landmarks, truth: Points) -> tuple[float, float]:
    """Return the squared Mahalanobis distance of the true map per degree of freedom, and the expected error, px RMS.

    Both use the information of the landmarks as n independent points.
    """
    i_from_j, _ = cv2.findHomography(landmarks.points_j, landmarks.points_i, 0)
    basis = np.eye(8, 9).reshape(8, 3, 3) * np.array([[1, 1, 100], [1, 1, 100], [1e-2, 1e-2, 1]])
    ahead, behind = (apply_map(i_from_j + sign * 1e-5 * basis, landmarks.points_j) for sign in (1, -1))
    moves = np.moveaxis((ahead - behind) / 2e-5, 0, -1)
    weights = landmarks.weights[:, None, None]
    possible, upper = np.linalg.qr((moves * weights).reshape(-1, 8))
    missed = possible.T @ ((truth - landmarks.points_i) * weights[..., 0]).ravel()
    spread = np.linalg.solve(upper.T, moves.reshape(-1, 8).T)
    return float(missed @ missed) / 8, float(np.sqrt(np.sum(spread**2) / len(landmarks)))


if __name__ == "__main__":
    main()
