"""Real sequences. Their `landmarks.csv` are for evaluation only: nothing here answers from them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.building.build import build
from smalti.building.build_results import residual_px
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import PositionSensor
from smalti.project.evaluation import evaluate
from smalti.records import Landmarks, Pair, Suggestion
from smalti.suggestion.state_view import View
from smalti_lab.simulated_agents import OracleAgent

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[2] / "shared" / "data"))


def folder_of(name: str) -> Path:
    folder = DATA / name
    if not (folder / "landmarks.csv").is_file():
        pytest.skip(f"no real data: {folder}/landmarks.csv is absent, set SMALTI_DATA to its root")
    return folder


def columns(file: Path, *names: str) -> np.ndarray:
    with file.open(newline="", encoding="utf-8") as lines:
        return np.array([[float(row[name]) for name in names] for row in csv.DictReader(lines)])


class MostLikely:
    """Asks the pair that is most likely to overlap by what is known beforehand."""

    name = "most likely"

    def __init__(self, probabilities: np.ndarray) -> None:
        self.probabilities = probabilities

    def rank(self, view: View, top: int) -> list[Suggestion]:
        i, j = np.nonzero(view.candidates)
        best = np.argsort(-self.probabilities[i, j], kind="stable")[:top]
        return [Suggestion(Pair(int(i[n]), int(j[n])), float(self.probabilities[i[n], j[n]])) for n in best]


def relative_error(loop: ActiveLoop, records: Iterable[Landmarks]) -> float:
    """RMS distance, in frame i, of the landmarks of j mapped there to those of i; those of a pair as many as others."""
    squares = [residual_px(loop.mosaic_from_frame, record, loop.lens) ** 2 for record in records]
    return float(np.sqrt(np.mean(squares)))


def test_drift_over_a_real_raster_of_tiles_is_removed_to_twice_the_floor_of_its_landmarks() -> None:
    """44 micrographs in three columns, of which neighbours share a strip of some percent."""
    folder = folder_of("dendritic_cols0-2")
    # Tile 1-002 is missing, and with it the link of the first tile: the sequence begins behind the gap.
    positions = columns(folder / "positions.csv", "x_px", "y_px")[1:]
    evaluation = [
        Landmarks(Pair(record.pair.i - 1, record.pair.j - 1), record.points_i, record.points_j)
        for record in read_landmarks(folder / "landmarks.csv")
        if record.pair.i >= 1
    ]
    frames, width, height = len(positions), 1292, 968
    truth = np.tile(np.eye(2, 3), (frames, 1, 1))
    truth[:, :, 2] = positions - positions[0]
    grid = [[x, y] for x in np.linspace(0, width - 1, 33) for y in np.linspace(0, height - 1, 33)]
    outline = Outline.of_pixels(width, height)
    agent = OracleAgent(truth, outline, np.array(grid), sigma=1.0, seed=1)
    chain = [agent.answer(Pair(n, n + 1)).landmarks for n in range(frames - 1)]

    # A stage that is good to 20 px. Two tiles share a strip when they lie less than a tile apart.
    sensed = positions + np.random.default_rng(1).normal(0.0, 20.0, size=positions.shape)
    stage = PositionSensor(sensed, 400.0 * np.eye(2), (1.94 * width, 1.94 * height))
    start = ActiveLoop.start(
        frames,
        outline,
        [landmarks for landmarks in chain if landmarks is not None],
        external=stage,
        strategy=MostLikely(stage.probabilities()),
        lens=Lens(outline),
        stop_rule=StopRule(budget=40),
    )
    *_, last = start.run(agent)
    # It is learned from the chain that a stage does not turn: links of such strips alone would let it curl by 100 px.
    assert relative_error(start, evaluation) < 5.0
    assert relative_error(last, evaluation) < 2 * 0.30


def test_gps_of_a_drone_tells_overlapping_frames_from_others() -> None:
    folder = folder_of("caliterra")
    positions = columns(folder / "gps.csv", "east_m", "north_m")
    # Consumer GPS of some 3 m; matched frames are up to 93 m apart, so a frame covers some 100 × 75 m.
    found = PositionSensor(positions, 9.0 * np.eye(2), (100.0, 75.0)).probabilities()
    shared = np.zeros(found.shape, dtype=bool)
    for record in read_landmarks(folder / "landmarks.csv"):
        shared[record.pair.i, record.pair.j] = True
    upper = np.triu_indices(len(positions), 1)
    overlapping, others = found[upper][shared[upper]], found[upper][~shared[upper]]
    ranked_right = np.mean(overlapping[:, None] > others) + 0.5 * np.mean(overlapping[:, None] == others)
    assert ranked_right > 0.8


def test_a_real_table_of_landmarks_is_read_in_full() -> None:
    records = read_landmarks(folder_of("caliterra") / "landmarks.csv")
    assert len(records) == 1270
    assert {len(record) for record in records} == {12}
    assert max(record.pair.j for record in records) == 74


def test_scans_of_a_cornea_are_told_apart_and_every_frame_of_each_is_placed(tmp_path) -> None:
    """Frames 36 to 50 of the sequence: two scans, and a frame before them that belongs to none."""
    folder = folder_of("research_only/corneal_80")
    with build(folder / "frames", tmp_path / "cornea", start="36", end="51", budget=4, family="affine") as project:
        placements, lens = project.store.placements(), project.lens
    by_part: dict[int, list[int]] = {}
    for placement in placements:
        by_part.setdefault(placement.part, []).append(36 + placement.number)
    assert sorted(map(sorted, by_part.values())) == [[*range(37, 43)], [*range(43, 51)]]
    records = [
        record.of_pair(Pair(record.pair.i - 36, record.pair.j - 36))
        for record in read_landmarks(folder / "landmarks.csv")
        if record.pair.i >= 36 and record.pair.j <= 50
    ]
    found = evaluate(placements, records, lens)
    assert found.pairs_apart == 0
    assert found.relative_rmsd_px <= 1.25 * 1.46
