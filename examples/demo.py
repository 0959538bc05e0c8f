"""The main job on an example made from noise: a camera wanders over a landscape, and Smalti makes the mosaic.

python examples/demo.py [FOLDER]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from smalti import build, make_film
from smalti_lab import Degradation, Handling, SyntheticSequence, procedural_scene, wander, write_video

SEED = 7
SCENE = (2200, 1700)
FRAME = (400, 300)
FRAMES = 150


def main(folder: Path) -> None:
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    sequence = flight()
    video = folder / "flight.mp4"
    if not video.exists():
        print(f"making {video}: {FRAMES} frames over a procedural landscape", file=sys.stderr)
        write_video(sequence, video)
    with build(video, folder / "flight", progress=True) as project:
        info = project.info()
        placed = project.placements
        by_chain = sequence.truth_error(np.array([p.chain for p in placed]), frames=[p.number for p in placed])
        final = sequence.truth_error(np.array([p.final for p in placed]), frames=[p.number for p in placed])
        film = make_film(project, folder / "drift.mp4", seconds=10, size=720)
    print(f"mosaic   {(folder / 'flight' / 'mosaic.png').resolve()}")
    print(f"report   {(folder / 'flight' / 'report.html').resolve()}")
    print(f"film     {film.resolve()}")
    print(f"frames   {info.frames.placed} of {info.frames.read} placed, {info.attempts} pairs matched")
    print(f"chain    {by_chain.rms:.2f} px from the truth, the worst pair {by_chain.max:.2f} px")
    print(f"now      {final.rms:.2f} px from the truth, the worst pair {final.max:.2f} px")
    print(f"seconds  {time.perf_counter() - began:.0f}")


def flight() -> SyntheticSequence:
    """Return a camera that wanders, turns, revisits places, and has changing exposure, blur and noise."""
    handling = Handling(heading_degrees=40, zoom=0.1, shake_px=3, shake_degrees=1)
    path = wander(SCENE, FRAMES, FRAME, step=0.2, handling=handling, seed=SEED)
    return SyntheticSequence(
        procedural_scene(*SCENE, SEED), path, Degradation(blur_px=0.6, exposure=0.3, noise=3), SEED
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
