"""A simulated person who draws along vessels, compared with one who clicks points, on retina-like frames.

    python benchmarks/vessels.py [--scenes IDRiD_10,…] [--pairs 30] [--seed 1] [--plain]

Frames come from the synthetic endoscope over pictures of retinas, into which vessels with known centre lines are drawn.
In each pair, frames 3 to 30 apart, the person sees vessels in frame j and the same ones in frame i, and expects the
frames 10 px from where they are. A stroke is off by 3 px every 15 px, and its ends by a tenth of its length. A clicked
point, on a vessel, is off by 1.5 px in each frame; or it is snapped in frame i (where snapping refuses, the click
stays). A similarity is fitted to each set of landmarks, held where they leave it free as the engine holds it. The table
has the RMS error of this map over what both frames show, in px of frame i: median, and 10 and 90 % of pairs. The row
"truth" is the affine map that fits best. Then the landmarks' error across their vessels, in px and in stated standard
deviations (1 is honest): of the median vessel, and RMS of all.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from smalti.engine.links import fit_link
from smalti.frames.pixels import in_gray
from smalti.geometry.homographies import SIMILARITY, apply_map
from smalti.geometry.linear_maps import AFFINE, square
from smalti.records import Homographies, Landmarks, Pair, Points
from smalti.registration.curves import CurveMatch, match_vessels
from smalti.registration.snapping import snap
from smalti.registration.vessels import resample, trace_vessel
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import Camera, EndoscopeSettings, Light, Tissue
from smalti_lab.synthetic.scene import load_scene

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCENES = ("IDRiD_10",)
PLAIN = EndoscopeSettings(
    tissue=Tissue(contrast=40.0),
    light=Light(vignetting=0.0, spot=0.0, wetness=0.0, exposure=0.0),
    camera=Camera(defocus_px=0.0, motion_blur=0.0, noise=1.0),
    particles=0,
)
GAPS = (3, 10, 30)
HAND_PX, CLICK_PX, SNAPPED_PX, EXPECTED_PX = 3.0, 1.5, 0.5, 10.0
VESSELS, POINTS = 3, 4
LEAST_PX, MOST_PX = 70.0, 160.0
WRONG = 3.0
ACROSS, DOWN, WAVES = 9, 11, 4
THICKNESS, SHADE = (5, 12), (0.15, 0.4)
"""Of the vessels: px of the scene, and the share of the light that they take."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenes", default=",".join(SCENES), metavar="NAME,NAME,…")
    parser.add_argument("--pairs", type=int, default=30, metavar="N", help="of each scene")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--plain", action="store_true", help="even light, full contrast, nothing that floats or glints")
    options = parser.parse_args()
    for name in options.scenes.split(","):
        measure(name, options)


def measure(name: str, options: argparse.Namespace) -> None:
    picture = load_scene(DATA / "large_images" / f"{name}.jpg")
    scene, tree = draw_vessels(picture, np.random.default_rng(options.seed))
    sequence = EndoscopeSequence(scene, PLAIN if options.plain else EndoscopeSettings(), options.seed)
    rng = np.random.default_rng(options.seed)
    errors: dict[str, list[float]] = defaultdict(list)
    across: list[tuple[float, float]] = []
    drawn = found = refused = clicked = done = 0
    for _ in range(20 * options.pairs):
        if done == options.pairs:
            break
        j = int(rng.integers(GAPS[-1], len(sequence)))
        i = j - int(rng.choice(GAPS))
        view = View(sequence, i, j, tree, rng)
        if len(view.lines) < VESSELS:
            continue
        done += 1
        matches = []
        for line in view.lines[:VESSELS]:
            match = view.draw(line)
            drawn, found = drawn + 1, found + match.found
            if match.found:
                matches.append(match)
                off = view.off_across(match)
                across.append((float(np.mean(off**2)), float(np.mean((off / match.sigma_px) ** 2))))
        errors["truth"].append(view.least_error())
        for count in (1, 2, VESSELS):
            if len(matches) >= count:
                errors[f"{count} vessels"].append(view.error(curves(matches[:count])))
        places = np.array([line[int(rng.uniform(0.1, 0.9) * len(line))] for line in (view.lines * POINTS)[:POINTS]])
        points_j = places + rng.normal(0, CLICK_PX, places.shape)
        points_i = view.in_i(places) + rng.normal(0, CLICK_PX, places.shape)
        snapped = [view.snap(*two) for two in zip(points_i, points_j, strict=True)]
        clicked, refused = clicked + POINTS, refused + sum(not is_found for _, is_found in snapped)
        for count in (2, POINTS):
            errors[f"{count} clicks"].append(view.error(points(points_i[:count], points_j[:count], CLICK_PX)))
            at = np.array([place for place, _ in snapped[:count]])
            sigma = np.array([SNAPPED_PX if is_found else CLICK_PX for _, is_found in snapped[:count]])
            errors[f"{count} snapped"].append(view.error(points(at, points_j[:count], sigma)))
    print(f"{name}: {done} pairs; {found} of {drawn} vessels found; snapping refused {refused} of {clicked} points")
    for what, values in errors.items():
        low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
        print(f"  {what:10s}  error {middle:5.2f} px ({low:.2f} to {high:.2f}), {len(values)} pairs")
    if across:
        squared, normalised = np.array(across).T
        middle, whole = np.sqrt([np.median(normalised), np.mean(normalised)])
        print(f"  landmarks on vessels: {np.sqrt(np.median(squared)):.2f} px across (half of the vessels), ", end="")
        print(
            f"{np.sqrt(np.mean(squared)):.2f} px (RMS of all); {middle:.2f} and {whole:.2f} stated deviations; ", end=""
        )
        print(f"{np.sum(normalised > WRONG**2)} of {len(across)} vessels off by more than {WRONG:.0f} of them")


class View:
    """A pair of frames, what is true of it, and the vessels that a person sees in both."""

    def __init__(
        self, sequence: EndoscopeSequence, i: int, j: int, tree: list[Points], rng: np.random.Generator
    ) -> None:
        self._sequence, self._i, self._j, self._rng = sequence, i, j, rng
        self._gray_i, self._gray_j = in_gray(sequence.frame(i)), in_gray(sequence.frame(j))
        self._field_i, self._field_j = sequence.field(i), sequence.field(j)
        height, width = self._field_j.shape
        x, y = np.meshgrid(np.linspace(0, width - 1, 24), np.linspace(0, height - 1, 24))
        grid = np.column_stack([x.ravel(), y.ravel()])
        self._shared = grid[self._is_shared(grid)]
        self.lines: list[Points] = []
        if len(self._shared) < 60:
            return
        true_i = self.in_i(self._shared)
        self._truth = square(AFFINE.fit(true_i, self._shared, np.ones(len(true_i))))
        self.lines = self._see_vessels(tree)

    def in_i(self, points_j: Points) -> Points:
        return self._sequence.points_in(self._i, self._j, points_j)

    def draw(self, line_j: Points) -> CurveMatch:
        """Draw along a vessel in both frames."""
        in_j = trace_vessel(self._gray_j, self._stroke(line_j), self._field_j)
        in_i = trace_vessel(self._gray_i, self._stroke(self.in_i(line_j)), self._field_i)
        if not (in_i.found and in_j.found):
            nothing = np.zeros((0, 2))
            return CurveMatch(False, nothing, nothing, nothing, np.zeros(0), 0.0, in_i.reason or in_j.reason)
        return match_vessels(in_i, in_j, self._expected(), EXPECTED_PX)

    def snap(self, point_i: Points, point_j: Points) -> tuple[Points, bool]:
        """Snap a click in frame i, as the page does."""
        i_from_j = self._truth[:2]
        found = snap(self._gray_j, self._gray_i, point_j, point_i, i_from_j, 12.0, self._field_j, self._field_i)
        return found.point, found.found

    def off_across(self, match: CurveMatch) -> NDArray[np.float64]:
        """Return how far the landmarks of a vessel truly are from each other, across it."""
        off = self.in_i(match.points_j) - match.points_i
        return np.asarray(off[:, 1] * match.along[:, 0] - off[:, 0] * match.along[:, 1])

    def error(self, landmarks: Landmarks) -> float:
        """Return the RMS error of the similarity that fits landmarks, over what both frames show."""
        to_unit = np.vstack([self._sequence.outline.unit_from_pixels, [0.0, 0.0, 1.0]])
        near = to_unit @ self._expected() @ np.linalg.inv(to_unit)
        link = fit_link(landmarks, self._sequence.outline, family=SIMILARITY, near=near)
        i_from_j = np.linalg.inv(to_unit) @ link.i_from_j @ to_unit
        off = apply_map(i_from_j, self._shared) - self.in_i(self._shared)
        return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))

    def least_error(self) -> float:
        """Return the same of the affine map that is nearest to the truth."""
        off = apply_map(self._truth, self._shared) - self.in_i(self._shared)
        return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))

    def _expected(self) -> Homographies:
        expected = self._truth.copy()
        rng = np.random.default_rng((self._i, self._j))
        expected[:2, 2] += rng.normal(0, EXPECTED_PX, 2)
        return expected

    def _stroke(self, line: Points) -> Points:
        """Draw along a line with a quick hand."""
        line = resample(line)
        first, last = self._rng.uniform(0, 0.1, 2) * len(line)
        corners = line[int(first) : len(line) - int(last) : 15]
        return corners + self._rng.normal(0, HAND_PX, corners.shape)

    def _is_shared(self, points_j: Points) -> NDArray[np.bool_]:
        def inside(field: NDArray[np.bool_], points: Points) -> NDArray[np.bool_]:
            inner = cv2.erode(field.astype(np.uint8), np.ones((41, 41), np.uint8), borderValue=0)
            at = np.rint(points).astype(int)
            within = ((at >= 0) & (at < field.shape[::-1])).all(axis=1)
            at = np.clip(at, 0, np.array(field.shape[::-1]) - 1)
            return np.asarray(within & (inner[at[:, 1], at[:, 0]] > 0))

        return inside(self._field_j, points_j) & inside(self._field_i, self.in_i(points_j))

    def _see_vessels(self, tree: list[Points]) -> list[Points]:
        """Return stretches of vessels in frame j that both frames show, in random order."""
        found = []
        for line in tree:
            points_j = self._sequence.frame_from_scene(self._j, line)
            is_shared = self._is_shared(points_j)
            runs = np.split(np.arange(len(line)), np.flatnonzero(np.diff(is_shared)) + 1)
            longest = max((run for run in runs if is_shared[run[0]]), key=len, default=None)
            if longest is None:
                continue
            seen = resample(points_j[longest])
            if len(seen) > LEAST_PX:
                first = int(self._rng.uniform(0, max(len(seen) - MOST_PX, 1)))
                found.append(seen[first : first + int(MOST_PX)])
        return [found[k] for k in self._rng.permutation(len(found))]


def draw_vessels(scene: NDArray[np.uint8], rng: np.random.Generator) -> tuple[NDArray[np.uint8], list[Points]]:
    """Return a picture with dark vessels that wind over it, and their centre lines."""
    height, width = scene.shape[:2]
    share, lines = np.linspace(0.0, 1.0, 800), []
    shade = np.zeros((height, width))
    for k in range(ACROSS + DOWN):
        waves = sum(
            rng.normal(0, 60.0 / n) * np.sin(2 * np.pi * (n * WAVES * share + rng.uniform())) for n in (1, 2, 3)
        )
        if k < ACROSS:
            line = np.column_stack([width * share, height * (k + rng.uniform()) / ACROSS + waves])
        else:
            line = np.column_stack([width * (k - ACROSS + rng.uniform()) / DOWN + waves, height * share])
        drawn = np.zeros((height, width), np.uint8)
        thickness = int(rng.integers(*THICKNESS))
        cv2.polylines(drawn, [np.rint(line * 16).astype(np.int32)[:, None]], False, 255, thickness, cv2.LINE_AA, 4)
        shade = np.maximum(shade, rng.uniform(*SHADE) * gaussian_filter(drawn / 255.0, 1.0))
        lines.append(line)
    return np.asarray(np.rint(scene * (1 - shade)[:, :, None]), np.uint8), lines


def curves(matches: list[CurveMatch]) -> Landmarks:
    return Landmarks(
        Pair(0, 1),
        np.vstack([match.points_i for match in matches]),
        np.vstack([match.points_j for match in matches]),
        np.concatenate([match.sigma_px for match in matches]),
        np.vstack([match.along for match in matches]),
    )


def points(points_i: Points, points_j: Points, sigma: float | NDArray[np.float64]) -> Landmarks:
    return Landmarks(Pair(0, 1), points_i, points_j, sigma)


if __name__ == "__main__":
    main()
