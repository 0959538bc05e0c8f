"""How much longer the first build after an installation takes than the second: it compiles kernels.

python benchmarks/first_use.py [INPUT]            build twice with a fresh copy of the package, and print seconds
python benchmarks/first_use.py --record [INPUT…]  write the kernels that builds call to src/smalti/building/kernels.txt

Without INPUT, the frames are those of examples/demo.py.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import smalti
from smalti.building.compile_ahead import KERNELS, recording
from smalti_lab import Degradation, Handling, SyntheticSequence, procedural_scene, wander, write_video

SCENE = (2200, 1700)
FRAME = (400, 300)
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="*", type=Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.record:
            inputs = [flight(folder / "short.mp4", 30), flight(folder / "long.mp4", 150), *options.input]
            lines = record(inputs, folder)
            KERNELS.write_text("".join(f"{line}\n" for line in lines))
            print(f"{len(lines)} kernels: {KERNELS}")
        else:
            source = options.input[0] if options.input else flight(folder / "flight.mp4", 150)
            print(json.dumps(compare(source.resolve(), folder), indent=2))


def flight(video: Path, frames: int) -> Path:
    """Write a video of a camera that wanders over a landscape."""
    handling = Handling(heading_degrees=40, zoom=0.1, shake_px=3, shake_degrees=1)
    path = wander(SCENE, frames, FRAME, step=0.2, handling=handling, seed=SEED)
    world = Degradation(blur_px=0.6, exposure=0.3, noise=3)
    return write_video(SyntheticSequence(procedural_scene(*SCENE, SEED), path, world, SEED), video)


def record(inputs: list[Path], folder: Path) -> list[str]:
    """Return the kernels that builds call, in the order of the calls."""
    with recording() as lines:
        for number, source in enumerate(inputs):
            with smalti.build(source, folder / f"{number}.smalti"):
                pass
    return list(dict.fromkeys(lines))


def compare(source: Path, folder: Path) -> dict[str, float]:
    """Return the seconds of the first and second build with a fresh copy of the package."""
    package = Path(smalti.__file__).parent
    for name in ("smalti", "smalti_lab"):
        shutil.copytree(
            package.with_name(name), folder / "installed" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    compileall.compile_dir(folder / "installed", quiet=2)  # as pip does
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {**inherited, "PYTHONPATH": str(folder / "installed")}
    result = {}
    for run in ("first", "second"):
        before, began = processor_seconds(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "smalti.cli.main", "build", str(source), "-o", str(folder / run), "-q"],
            env=environment,
            check=True,
        )
        result[f"{run} build, seconds"] = time.perf_counter() - began
        result[f"{run} build, processor seconds"] = processor_seconds() - before
    result["seconds more"] = result["first build, seconds"] - result["second build, seconds"]
    result["processor seconds more"] = (
        result["first build, processor seconds"] - result["second build, processor seconds"]
    )
    return {name: float(np.round(value, 1)) for name, value in result.items()}


def processor_seconds() -> float:
    """Return those of all processes that this one started and that have ended, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
