"""Smalti against OpenStitching's AffineStitcher and OpenCV's Stitcher in SCANS mode, on the same frames in one run.

    python benchmarks/peers.py --sets brighton,caliterra --json

Every tool runs with its defaults, in a process of its own. `seconds` are from its start to its end, with imports,
reading and writing the picture, and `ratio` is theirs to Smalti's. `peak_mb` is its largest resident memory. Two
controls with known motions come first. Nothing else is run unless every tool places them within a pixel, so that a
misread camera is not counted as an error of the peer. `relative_rmsd_px` is over the landmark pairs whose two frames
the tool placed, and `smalti_there_px` is Smalti's over the same ones. The peers' environment is made in .peers on the
first run.

The peers are judged by the maps that they estimate. Their panoramas are drawn with other maps, because OpenCV's affine
warper takes every map for a rotation: `drawn_rmsd_px` is the error of the visible picture.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from processes import watch
from smalti.errors import SmaltiError
from smalti.frames.source import SourceSettings, list_folder, open_source
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import apply, compose, invert
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.project.entries import Placement
from smalti.project.evaluation import evaluate
from smalti.project.project import Project
from smalti.records import Landmarks, Pair, Transforms

REPOSITORY = Path(__file__).resolve().parent.parent
ENVIRONMENT = REPOSITORY / ".peers"
REQUIREMENTS = ("stitching==0.7.0", "opencv-python==5.0.0.93")
STITCHERS = Path(__file__).resolve().parent / "peers" / "stitchers.py"
BUILD = "import sys; from smalti.building.build import build; build(*sys.argv[1:3], every=int(sys.argv[3])).close()"
TOOLS = ("smalti", "openstitching", "opencv-scans")  # Smalti first: the others are compared with it
VIDEOS = {"street_pan_test3": ("test3.mp4", 3)}
SETS = ("caliterra", "obriens", "copr", "brighton", "dendritic_cols0-2", "street_pan_test3", "airplane01")
LARGEST_CONTROL_ERROR_PX = 1.0


@dataclass(frozen=True, slots=True)
class FrameSet:
    """Frames to stitch: as Smalti reads them, and as files for the peers."""

    name: str
    location: Path
    every: int
    files: tuple[Path, ...]
    landmarks: tuple[Landmarks, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Smalti with other stitchers.")
    parser.add_argument("--sets", default=",".join(SETS), metavar="A,B", help="which sets (default: all)")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="LIMIT", help="for a tool on a set")
    parser.add_argument("--gigabytes", type=float, default=12.0, metavar="LIMIT", help="resident, for a tool")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    options = parser.parse_args()
    names = options.sets.split(",")
    if unknown := [name for name in names if name not in SETS]:
        parser.error(f"unknown set '{unknown[0]}': choose from {', '.join(SETS)}")
    prepare_environment()
    if not options.json:
        print(HEADER)
    with tempfile.TemporaryDirectory(prefix="smalti-peers-") as scratch:
        for frame_set in chain(make_controls(Path(scratch)), find_sets(names, Path(scratch))):
            for row in compare(frame_set, options.seconds, 1024 * options.gigabytes):
                print(json.dumps(row) if options.json else format_row(row), flush=True)
                if frame_set.name.startswith("control"):
                    check_control(row)


def prepare_environment() -> None:
    """Make the peers' environment, unless it exists with the same packages."""
    note = ENVIRONMENT / "installed.txt"
    if note.exists() and note.read_text().split() == list(REQUIREMENTS):
        return
    print(f"installing {', '.join(REQUIREMENTS)} into {ENVIRONMENT}", file=sys.stderr)
    install = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
    for command in ([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("WARNING")]
            raise SystemExit(f"{ENVIRONMENT}: could not be made\n" + "\n".join(said[-3:]))
    note.write_text("\n".join(REQUIREMENTS))


def find_sets(names: Sequence[str], scratch: Path) -> Iterator[FrameSet]:
    """Open the sets one after the other. A video is decoded for the peers, outside of any timing."""
    root = Path(os.environ.get("SMALTI_DATA", REPOSITORY.parent / "shared" / "data"))
    for name in names:
        landmarks = tuple(read_landmarks(root / name / "landmarks.csv"))
        if name not in VIDEOS:
            location = root / name / "frames"
            yield FrameSet(name, location, 1, tuple(list_folder(location)), landmarks)
            continue
        file_name, every = VIDEOS[name]
        location, folder = root / name / file_name, scratch / name
        folder.mkdir()
        files = []
        with open_source(location, SourceSettings(every=every)) as source:
            for number, image in source.read_many(range(len(source))):
                files.append(folder / f"{number:05}.png")
                cv2.imwrite(str(files[-1]), image[..., ::-1])
        yield FrameSet(name, location, every, tuple(files), landmarks)


def make_controls(scratch: Path) -> Iterator[FrameSet]:
    """Cut frames out of a synthetic scene: three shifted ones, and two that are turned and zoomed as well.

    The turned control has only two frames, because OpenCV composes affine maps in the wrong order. That does not affect
    shifts, nor frames that are each matched with the reference alone. Here it would look like our mistake.
    """
    shifts = [np.array([[1.0, 0.0, x], [0.0, 1.0, y]]) for x, y in ((300, 400), (702.5, 480.25), (930, 830))]
    turned = 1.03 * np.array([[np.cos(0.2), -np.sin(0.2), 850.0], [np.sin(0.2), np.cos(0.2), 350.0]])
    for name, maps in (("control-shifted", shifts), ("control-turned", [shifts[0], turned])):
        yield make_control(name, scratch / name, maps, width=1200, height=900)


def make_control(name: str, folder: Path, scene_from_frame: Sequence[Transforms], width: int, height: int) -> FrameSet:
    scene = make_scene(np.random.default_rng(1), 2600, 2200)
    folder.mkdir()
    files = [folder / f"{number}.png" for number in range(len(scene_from_frame))]
    for file, transform in zip(files, scene_from_frame, strict=True):
        flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
        cv2.imwrite(str(file), cv2.warpAffine(scene, transform, (width, height), flags=flags))
    grid = np.stack(np.meshgrid(np.arange(0, width, 50.0), np.arange(0, height, 50.0)), axis=-1).reshape(-1, 2)
    records = []
    for i, j in combinations(range(len(files)), 2):
        seen = apply(compose(invert(scene_from_frame[j]), scene_from_frame[i]), grid)
        inside = ((seen >= 0) & (seen <= [width - 1, height - 1])).all(axis=1)
        records.append(Landmarks(Pair(i, j), grid[inside], seen[inside]))
    return FrameSet(name, folder, 1, tuple(files), tuple(records))


def make_scene(rng: np.random.Generator, width: int, height: int) -> NDArray[np.uint8]:
    """Return clouds of several sizes, so that there is structure at every scale."""
    scene = np.zeros((height, width))
    for size in (3, 8, 24, 80):
        coarse = rng.standard_normal((height // size + 2, width // size + 2))
        scene += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    grey = np.clip(128 + 30 * scene, 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


def compare(frame_set: FrameSet, limit_seconds: float, limit_mb: float) -> Iterator[dict[str, Any]]:
    """Run every tool on a set and yield a row for each tool."""
    smalti = Found([], None)
    smalti_seconds = 0.0
    for tool in TOOLS:
        with tempfile.TemporaryDirectory(prefix=f"smalti-peers-{tool}-") as folder:
            command = command_of(tool, frame_set, Path(folder))
            run = watch(command, Path(folder) / "said.txt", limit_seconds=limit_seconds, limit_mb=limit_mb)
            found, drawn = (read_placements(tool, Path(folder), which) for which in ("estimated", "drawn"))
        if tool == "smalti":
            smalti, smalti_seconds = found, run.seconds if run.outcome == "done" else 0.0
        kept = {placement.number for placement in found.placements}
        there = [record for record in frame_set.landmarks if {record.pair.i, record.pair.j} <= kept]
        yield {
            "set": frame_set.name,
            "tool": tool,
            "outcome": run.outcome,
            "frames": len(frame_set.files),
            "frames_kept": len(found.placements),
            "parts": len({placement.part for placement in found.placements}),
            "pairs_of_set": len(frame_set.landmarks),
            "pairs": hold_against(found, there)[0],
            "relative_rmsd_px": hold_against(found, there)[1],
            "drawn_rmsd_px": hold_against(drawn, there)[1],
            "smalti_there_px": hold_against(smalti, there)[1],
            "seconds": round(run.seconds, 2),
            "processor_seconds": round(run.processor_seconds, 2),
            "ratio": round(run.seconds / smalti_seconds, 3) if smalti_seconds else None,
            "peak_mb": round(run.peak_mb, 1),
        }


def command_of(tool: str, frame_set: FrameSet, folder: Path) -> list[str]:
    if tool == "smalti":
        return [sys.executable, "-c", BUILD, str(frame_set.location), str(folder / "project"), str(frame_set.every)]
    listing = folder / "frames.json"
    listing.write_text(json.dumps([str(file) for file in frame_set.files]))
    return [str(ENVIRONMENT / "bin" / "python"), str(STITCHERS), tool, str(listing), str(folder)]


@dataclass(frozen=True, slots=True)
class Found:
    """Where a tool has placed the frames, and the lens that it has found; the peers have no model of one."""

    placements: list[Placement]
    lens: Lens | None


def read_placements(tool: str, folder: Path, which: str) -> Found:
    """Read the placements of a tool, also if it did not draw the picture; none if it placed no frame."""
    if tool == "smalti":
        try:
            with Project.open(folder / "project") as project:
                return Found(project.placements, project.lens)
        except SmaltiError:  # it ended before there was a project; the outcome says why
            return Found([], None)
    placed = folder / "placed.json"
    if not placed.exists():
        return Found([], None)
    content = json.loads(placed.read_text())
    maps = [np.array(rows) for rows in content[which]]
    return Found([Placement(k, 0, m, m, float("nan")) for k, m in zip(content["kept"], maps, strict=True)], None)


def hold_against(found: Found, landmarks: Sequence[Landmarks]) -> tuple[int, float | None]:
    """Return the number of pairs that can be judged, and the error over them in pixels."""
    try:
        evaluation = evaluate(found.placements, landmarks, found.lens)
    except SmaltiError:  # no pair has both its frames on one mosaic
        return 0, None
    return evaluation.pairs, round(evaluation.relative_rmsd_px, 3)


def check_control(row: dict[str, Any]) -> None:
    error = row["relative_rmsd_px"]
    if row["outcome"] != "done" or row["frames_kept"] < row["frames"] or not error < LARGEST_CONTROL_ERROR_PX:
        raise SystemExit(
            f"{row['set']}: {row['tool']} does not place it within {LARGEST_CONTROL_ERROR_PX:g} px, so nothing that "
            f"would be said of it is sure; check how its result is read ({row['outcome']}, {error} px)"
        )


HEADER = """\
| set | tool | frames kept | RMSD px (pairs) | as drawn | Smalti there | seconds | CPU s | ratio | peak MB | outcome |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def format_row(row: dict[str, Any]) -> str:
    kept = f"{row['frames_kept']}/{row['frames']}" + (f" in {row['parts']} parts" if row["parts"] > 1 else "")
    names = ("relative_rmsd_px", "drawn_rmsd_px", "smalti_there_px", "seconds", "processor_seconds", "ratio", "peak_mb")
    error, *others = ("-" if row[name] is None else f"{row[name]:g}" for name in names)
    error += f" ({row['pairs']}/{row['pairs_of_set']})"
    return f"| {' | '.join((row['set'], row['tool'], kept, error, *others, row['outcome']))} |"


if __name__ == "__main__":
    try:
        main()
    except SmaltiError as error:
        raise SystemExit(str(error)) from None
