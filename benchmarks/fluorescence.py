"""Rasters of points on black: which tiles are placed and how well, and how many wrong places are accepted.

    python benchmarks/fluorescence.py [--tiles 120,400] [--seeds 1,2,3] [--looks fluorescence] [--apart 2000] [--json]

Tiles share a tenth, the stage errs by 3 px, and a fifth of the tiles shows hardly any points. A tile's error is the RMS
over its centre and corners, after the similarity that fits the matched tiles best. Reported is which tiles were set
aside although they share 20 points or more with another tile, and the same error of the tiles by how many points they
share with their four neighbours. Last, tiles of different rasters are compared, which show different places.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smalti.agents.spot_agent import SpotAgent
from smalti.building.build import build
from smalti.frames.spots import find_spots
from smalti.geometry.homographies import project_points
from smalti.geometry.outline import Outline
from smalti.project.project import Project
from smalti.records import Expectation, Pair
from smalti.registration.constellation import Stars
from smalti_lab.synthetic.fluorescence_tiles import FluorescenceRaster, Look
from smalti_lab.synthetic.synthetic_files import write_frames

SHAPES = {120: (12, 10), 400: (20, 20), 42: (7, 6), 30: (6, 5)}
ENOUGH = 20
"""Points that two tiles share: then neither may be set aside."""

CLOSE_PX = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tiles", default="120,400", metavar="N,N,…")
    parser.add_argument("--seeds", default="1,2,3", metavar="N,N,…")
    parser.add_argument("--looks", default="fluorescence", metavar="NAME,…", help="fluorescence, dark-field, electron")
    parser.add_argument("--apart", type=int, default=2000, metavar="N", help="pairs of different places, 0 for none")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    for look in options.looks.split(","):
        for tiles in map(int, filter(None, options.tiles.split(","))):
            for seed in map(int, options.seeds.split(",")):
                columns, rows = SHAPES[tiles]
                raster = FluorescenceRaster(columns, rows, seed=seed, look=look)
                with tempfile.TemporaryDirectory() as folder:
                    found = {"look": look, "tiles": tiles, "seed": seed} | measure(raster, Path(folder))
                show(found, options.json)
        if options.apart:
            show({"look": look} | count_false(options.apart, look), options.json)


def show(found: dict[str, Any], as_json: bool) -> None:
    print(json.dumps(found) if as_json else "  ".join(f"{k} {v}" for k, v in found.items()), flush=True)


def measure(raster: FluorescenceRaster, folder: Path) -> dict[str, Any]:
    """Build a raster, and compare it with the truth."""
    write_frames(raster, folder / "frames", ".png")
    began = time.process_time()
    with build(folder / "frames", folder / "out") as project:
        return judge(raster, project) | {"cpu_seconds": round(time.process_time() - began, 1)}


def judge(raster: FluorescenceRaster, project: Project) -> dict[str, Any]:
    shared = neighbours_share(raster)
    aside = {frame.number for frame in project.frames if frame.is_set_aside}
    by_neighbours = set(project.outcome.by_neighbours)
    off = errors_px(raster, project)
    matched = [n for n in off if n not in by_neighbours]
    near = [n for n in off if off[n] <= CLOSE_PX]
    total = {n: sum(of.values()) for n, of in shared.items()}
    rich = {n for n, of in shared.items() if max(of.values()) >= ENOUGH}
    in_reach = {n for n, points in total.items() if points >= 4}
    return {
        "placed": round(len(off) / len(raster), 4),
        "matched": round(len(matched) / len(raster), 4),
        "close": round(len(near) / len(raster), 4),
        "aside": len(aside),
        "rich_aside": len(rich & aside),
        "rich_not_close": len(rich - set(near)),
        "four_points_not_close": len(in_reach - set(near)),
        "fewer_than_four": len(raster) - len(in_reach),
        "rms_matched_px": round(float(np.sqrt(np.mean([off[n] ** 2 for n in matched]))), 3) if matched else None,
        "worst_matched_px": round(max((off[n] for n in matched), default=np.nan), 3),
        "parts": project.parts,
        "attempts": len(project.answers),
    }


def neighbours_share(raster: FluorescenceRaster) -> dict[int, dict[int, int]]:
    """Return how many points every tile shares with each of the four beside it."""
    at = {tuple(cell): n for n, cell in enumerate(raster.cells.tolist())}
    beside = {
        n: [at[there] for step in ((0, 1), (1, 0), (0, -1), (-1, 0)) if (there := (x + step[0], y + step[1])) in at]
        for (x, y), n in at.items()
    }
    return {n: {m: len(raster.shared(n, m)) for m in of} for n, of in sorted(beside.items())}


def count_false(pairs: int, look: Look) -> dict[str, Any]:
    """Compare tiles of different places, without an expectation and near a place at random."""
    rasters = [FluorescenceRaster(8, 5, seed=seed, look=look) for seed in (101, 102)]
    stars = {}
    for r, raster in enumerate(rasters):
        for n in range(len(raster)):
            spots = find_spots(raster.frame(n)[..., 0])
            stars[r * len(raster) + n] = Stars.of(spots.points, spots.strengths, spots.sigmas)
    agent = SpotAgent(stars.__getitem__, Outline.of_pixels(rasters[0].width, rasters[0].height))
    rng, count = np.random.default_rng(5), len(rasters[0])
    accepted = {"anywhere": 0, "expected": 0}
    for _ in range(pairs):
        pair = Pair(int(rng.integers(count)), count + int(rng.integers(count)))
        i_from_j = np.eye(3)
        i_from_j[:2, 2] = rng.permutation([rasters[0].step_px * rng.choice([-1, 1]), rng.normal(0, 5)])
        accepted["anywhere"] += agent.answer(pair).landmarks is not None
        accepted["expected"] += agent.answer_expecting(pair, Expectation(i_from_j, 5.0)).landmarks is not None
    return {"pairs_of_different_places": pairs} | {f"accepted_{how}": count for how, count in accepted.items()}


def errors_px(raster: FluorescenceRaster, project: Project) -> dict[int, float]:
    """Return the RMS error of the centre and the corners of every placed tile of the largest mosaic."""
    placements = {p.number: p.final for p in project.placements if p.part == 0}
    points = np.concatenate([project.outline.centre[None], project.outline.corners])
    at = {n: project_points(final, points) @ [1, 1j] for n, final in placements.items()}
    true = {n: project_points(raster.mosaic_from_frame[n], points) @ [1, 1j] for n in placements}
    matched = sorted(placements.keys() - set(project.outcome.by_neighbours))
    if not matched:
        return {}
    turn, shift = fit_similarity(np.concatenate([at[n] for n in matched]), np.concatenate([true[n] for n in matched]))
    return {n: float(np.sqrt(np.mean(np.abs(turn * at[n] + shift - true[n]) ** 2))) for n in placements}


def fit_similarity(source: NDArray[np.complex128], target: NDArray[np.complex128]) -> tuple[complex, complex]:
    """Return turn and shift, of points as complex numbers. What lies far off counts no more than what lies near."""
    weights = np.ones(len(source))
    for _ in range(20):
        centres = [np.average(of, weights=weights) for of in (source, target)]
        moved, wanted = source - centres[0], target - centres[1]
        turn = np.vdot(moved, weights * wanted) / np.vdot(moved, weights * moved)
        weights = 1.0 / np.maximum(np.abs(turn * moved - wanted), 0.1)
    return complex(turn), complex(centres[1] - turn * centres[0])


if __name__ == "__main__":
    main()
