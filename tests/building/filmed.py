"""Small sequences with known truth as files, projects built of them once a session, and matchers that know the truth.

What is cached belongs to all tests of a session: a test that changes a project works on a copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.building.build import build
from smalti.geometry.linear_maps import apply, compose, invert
from smalti.project.project import Project
from smalti.records import Landmarks, Pair
from smalti_lab.synthetic.camera_path import CameraPath, Handling, raster, wander
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_frames, write_video
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

SCENE_SIZE = (700, 500)
HANDLING = Handling(heading_degrees=8, zoom=0.04, shake_px=1.0, shake_degrees=0.5)
TINY = (160, 120)
FILES = ("project.sqlite", "answers.jsonl", "mosaic.png", "report.html", "transforms.json", "landmarks.csv")
TINY_BUDGET = 6


@cache
def scene(seed: int = 1) -> NDArray[np.uint8]:
    return procedural_scene(*SCENE_SIZE, seed=seed)


@cache
def strips() -> SyntheticSequence:
    """24 frames in strips forth and back, which a chain alone does not close."""
    camera = raster(SCENE_SIZE, 24, (240, 180), handling=HANDLING, sidelap=0.6, step=0.22, seed=3)
    return SyntheticSequence(scene(), camera)


@cache
def tiny() -> SyntheticSequence:
    """12 small frames, for what does not depend on the mosaic."""
    return SyntheticSequence(scene(), wander(SCENE_SIZE, 12, TINY, handling=HANDLING, seed=2))


def along(corners: list[tuple[float, float]], step_px: float = 32.0, seed: int = 1) -> SyntheticSequence:
    """A camera that flies from corner to corner of a polyline, its centre `step_px` further a frame."""
    way = np.array(corners, dtype=np.float64)
    run = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1))])
    at = np.arange(0.0, run[-1], step_px)
    centres = np.column_stack([np.interp(at, run, way[:, c]) for c in (0, 1)])
    turn = np.radians(4.0) * np.sin(np.arange(len(at)) / 3)
    linear = np.moveaxis(np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]), 2, 0)
    middle = (np.array(TINY) - 1) / 2
    maps = np.concatenate([linear, (centres - linear @ middle)[:, :, None]], axis=2)
    return SyntheticSequence(scene(seed), CameraPath("along", *TINY, maps))


def joined(*sequences: SyntheticSequence) -> SyntheticSequence:
    """Sequences of one scene with a cut between them."""
    maps = np.concatenate([sequence.mosaic_from_frame for sequence in sequences])
    return SyntheticSequence(sequences[0].scene, CameraPath("joined", *TINY, maps))


@cache
def strips_video(base: Path) -> Path:
    return write_video(strips(), base / "strips.mp4")


@cache
def tiny_video(base: Path) -> Path:
    return write_video(tiny(), base / "tiny.mp4")


@cache
def tiny_images(base: Path) -> Path:
    write_frames(tiny(), base / "tiny", ".png")
    return base / "tiny"


@cache
def built_strips(base: Path) -> Path:
    """The folder of a whole build with nothing but defaults."""
    build(strips_video(base), base / "strips.smalti").close()
    return base / "strips.smalti"


@cache
def built_tiny(base: Path) -> Path:
    build(tiny_video(base), base / "tiny.smalti", budget=TINY_BUDGET).close()
    return base / "tiny.smalti"


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def error_px(project: Project, sequence: SyntheticSequence, part: int = 0, first: int = 0) -> float:
    """The RMS error of one part's final maps against the truth; frame `first` of the project is 0 of the sequence."""
    maps = {p.number - first: p.final for p in project.placements if p.part == part}
    maps = {number: final for number, final in maps.items() if 0 <= number < len(sequence)}
    return sequence.truth_error(np.array(list(maps.values())), maps.keys()).rms


def maps_of(folder: Path) -> dict[int, NDArray[np.float64]]:
    content = json.loads((folder / "transforms.json").read_text())
    return {frame["frame"]: np.array(frame["final"]) for frame in content["frames"]}


def true_landmarks(sequence: SyntheticSequence, pairs: NDArray[np.int64]) -> list[Landmarks]:
    """Exact landmarks, the points of j on a grid, where i sees them."""
    grid = np.stack(np.meshgrid(*(np.linspace(5, side - 6, 8) for side in TINY)), axis=-1).reshape(-1, 2)
    records = []
    for i, j in pairs.tolist():
        points_i = apply(compose(invert(sequence.mosaic_from_frame[i]), sequence.mosaic_from_frame[j]), grid)
        seen = sequence.outline.contains(points_i)
        if seen.sum() >= 3:
            records.append(Landmarks(Pair(i, j), points_i[seen], grid[seen]))
    return records


class TrueMatcher:
    """Recognises images written without loss, and matches them by the truth with some noise; counts its calls."""

    def __init__(self, sequence: SyntheticSequence, noise_px: float = 0.3) -> None:
        self.sequence = sequence
        self.noise_px = noise_px
        self.calls: list[Pair] = []
        self._numbers = {image.tobytes(): n for n, image in sequence.read_many(range(len(sequence)))}
        pairs = sequence.overlapping_pairs(0.15)
        self._overlapping = {record.pair: record for record in true_landmarks(sequence, pairs) if len(record) >= 12}

    def __call__(
        self, first: NDArray[np.uint8], second: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        pair = Pair(self._numbers[first.tobytes()], self._numbers[second.tobytes()])
        self.calls.append(pair)
        return self.match(pair)

    def match(self, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        if pair not in self._overlapping:
            return None
        record = self._overlapping[pair]
        noise = np.random.default_rng([pair.i, pair.j]).normal(0, self.noise_px, record.points_i.shape)
        return record.points_i + noise, np.array(record.points_j)


class StopAfter:
    """Progress that interrupts the user's way: by the n-th step of a stage."""

    def __init__(self, stage: str, steps: int) -> None:
        self._stage, self._left = stage, steps

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[object]:
        def step(done: int = 1) -> None:
            if name == self._stage:
                self._left -= 1
                if self._left == 0:
                    raise KeyboardInterrupt

        yield step

    def say(self, message: str) -> None:
        raise AssertionError(f"nothing is wrong with the input, but it was said: {message}")


def write_images(folder: Path, images: list[NDArray[np.uint8]]) -> Path:
    folder.mkdir()
    for n, image in enumerate(images):
        assert cv2.imwrite(str(folder / f"{n:03d}.png"), image[:, :, ::-1])
    return folder
