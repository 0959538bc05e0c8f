"""Builds by the command line, of this tree and of an earlier one in the same run: time, memory, questions and errors.

    python benchmarks/builds.py --baseline ../before [--sets caliterra,ahead:150] [--repeat 3] [--json]
    python benchmarks/builds.py --sets flight:7500 --options="--every 10" --json
    python benchmarks/builds.py --sets flight:500,flight:1500,flight:4000 --json > builds.jsonl    # for growth.py

By default the seven real sets are built, and two sequences without loops. `sets.py` lists the synthetic sets. BASELINE
is a checkout of another commit; it needs the page (`python hatch_build.py`) no more than this tree does. The builds of
both take turns. With --repeat the median of the times counts.

- *Seconds* are from the start of the process to its end; *processor seconds* are user and system time of all its
  threads and child processes; *peak* is its largest resident memory.
- Kernels are compiled beforehand, by small builds of either kind. A build during which one is compiled after all is
  done again.
- *SIFT alone*: the processor seconds of decoding every frame that is built, one after the other, turning it into grey
  levels, and finding its keypoints by the baseline's `find_keypoints`, once and without a mask. The start of Python and
  its imports are not counted. It is measured for up to 500 frames.
- *Attempts* are pairs that were matched, the chain included; *near* are pairs that surely overlap, matched near their
  expected place, and no attempts; *vain* are questions of the loop that got no yes.
- *Error* is the RMS distance of the landmarks of `landmarks.csv`, which are used for nothing else; its limit is 1.15
  times the floor of the data's README. Synthetic sets have a truth instead (`placement_errors.py`): the error is
  relative, and the shares of frames within 0.5 px and 1 px of the truth are printed below.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from placement_errors import judge
from processes import watch
from sets import FLOORS, SEVEN, WITHOUT_LOOPS, FrameSet, find_set
from smalti.errors import SmaltiError

HERE = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "smalti.cli.main")
LARGEST_OF_FLOOR = 1.15
"""The largest error of a default build, in homography floors."""

MOST_REPEATS = 3
"""Of a build during which a kernel was compiled."""

MOST_FRAMES_OF_SIFT = 500
"""Of longer sequences SIFT alone takes longer than their build, which looks at keyframes only."""

SIFT = """
import sys, time
import cv2
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.registration.keypoints import find_keypoints
began = time.process_time()
with open_source(sys.argv[1], SourceSettings(every=int(sys.argv[2]))) as source:
    for _, image in source.read_many(range(len(source))):
        find_keypoints(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))
print(time.process_time() - began)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", type=Path, metavar="DIR", help="checkout of the commit to compare with")
    parser.add_argument("--sets", default=",".join((*SEVEN, *WITHOUT_LOOPS)), metavar="NAME,NAME,…")
    parser.add_argument("--repeat", type=int, default=1, metavar="K", help="builds of each set by each tree (1)")
    parser.add_argument("--options", default="", metavar="…", help="of smalti build, for both trees")
    parser.add_argument("--today", default="", metavar="…", help="more options, for this tree alone")
    parser.add_argument("--folder", type=Path, default=Path("studies/builds"), metavar="DIR", help="of the projects")
    parser.add_argument("--json", action="store_true", help="one JSON object a set")
    options = parser.parse_args()
    trees = {"today": HERE} if options.baseline is None else {"today": HERE, "baseline": options.baseline.resolve()}
    for tree in trees.values():
        if not (tree / "src" / "smalti").is_dir():
            parser.error(f"{tree}: holds no src/smalti; give a checkout of Smalti")
    more = {name: options.options.split() + (options.today.split() if name == "today" else []) for name in trees}
    options.folder.mkdir(parents=True, exist_ok=True)
    for tree in trees.values():
        warm_up(tree, options.folder)
    if not options.json:
        print(HEADER)
    for name in options.sets.split(","):
        found = compare(find_set(name, options.folder / "sets"), trees, more, options.repeat, options.folder)
        print(json.dumps(found) if options.json else "\n".join(as_rows(found)), flush=True)


def warm_up(tree: Path, folder: Path) -> None:
    """Compile the kernels of both kinds of registration."""
    small = replace(find_set("ahead:6", folder / "sets"), truth=None)
    for registration in ("keypoints", "dense"):
        build(tree, small, ["--registration", registration, "--max-size", "240"], folder / "warm-up")


def compare(
    frame_set: FrameSet, trees: dict[str, Path], more: dict[str, list[str]], repeats: int, folder: Path
) -> dict[str, Any]:
    """Build a set by each tree in turns, and return what was found of each."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    for _ in range(repeats):
        for name, tree in trees.items():
            project = folder / name / frame_set.name.replace(":", "")
            rows[name].append(build(tree, frame_set, more[name], project))
    found: dict[str, Any] = {"set": frame_set.name}
    for name, own in rows.items():
        medians = {
            key: statistics.median(row[key] for row in own) for key in ("seconds", "processor_seconds", "peak_mb")
        }
        found[name] = own[-1] | medians
    floor = FLOORS.get(frame_set.name, (0.0, None))[1]
    found["limit_px"] = None if floor is None else LARGEST_OF_FLOOR * floor
    found["sift_processor_seconds"] = found["of_sift"] = None
    if found["today"]["frames"] <= MOST_FRAMES_OF_SIFT:
        found["sift_processor_seconds"] = sift_alone(trees.get("baseline", HERE), frame_set, more["today"])
        found["of_sift"] = found["today"]["processor_seconds"] / found["sift_processor_seconds"]
    if "baseline" in found:
        found["ratio"] = found["baseline"]["processor_seconds"] / found["today"]["processor_seconds"]
        found["ratio_of_seconds"] = found["baseline"]["seconds"] / found["today"]["seconds"]
    return found


def build(tree: Path, frame_set: FrameSet, more: list[str], project: Path) -> dict[str, Any]:
    """Build a set by the command line of a tree, and evaluate the mosaic."""
    arguments = [str(frame_set.location), "-o", str(project), "-q", "--every", str(frame_set.every), *more]
    project.parent.mkdir(parents=True, exist_ok=True)
    said = project.parent / f"{project.name}.txt"
    for _ in range(MOST_REPEATS):
        shutil.rmtree(project, ignore_errors=True)
        before = compiled_code(tree)
        run = watch([*COMMAND, "build", *arguments], said, environment=environment_of(tree))
        if run.outcome != "done":
            raise SystemExit(f"{frame_set.name} by {tree}: {run.outcome}")
        if compiled_code(tree) == before:
            break
    info = ask(tree, "info", "--json", str(project))
    row = {
        "frames": info["frames"]["read"],
        "frames_placed": info["frames"]["placed"],
        "parts": info["parts"],
        "attempts": info["attempts"],
        "near": info.get("matched_near", 0),
        "attempts_a_frame": info["attempts"] / info["frames"]["read"],
        "asked": info["asked"],
        "vain": info["no"] + info["unsure"],
        "rejected": info["rejected"],
        "predicted_px": info["predicted_error_px"],
        "stopped": info["stopped"],
        "stage_seconds": info["seconds"],
        "seconds": run.seconds,
        "processor_seconds": run.processor_seconds,
        "peak_mb": run.peak_mb,
    }
    if frame_set.landmarks is not None:
        evaluated = ask(tree, "evaluate", "--json", "--landmarks", str(frame_set.landmarks), str(project))
        names = {"error_px": "relative_rmsd_px", "median_px": "median_px", "pairs_apart": "pairs_apart"}
        row |= {name: evaluated[theirs] for name, theirs in names.items()}
    if frame_set.truth is not None:
        row["truth"] = judge(replace(frame_set, every=every_of(arguments)), project)
        row["error_px"] = row["truth"]["relative"]["rms"]
    return row


def every_of(arguments: list[str]) -> int:
    """Return K of the last --every."""
    return int([value for option, value in pairwise(arguments) if option == "--every"][-1])


def sift_alone(tree: Path, frame_set: FrameSet, more: list[str]) -> float:
    every = every_of(["--every", str(frame_set.every), *more])
    command = [sys.executable, "-c", SIFT, str(frame_set.location), str(every)]
    done = subprocess.run(command, env=environment_of(tree), capture_output=True, text=True, check=True)
    return float(done.stdout)


def ask(tree: Path, *arguments: str) -> dict[str, Any]:
    """Return what a command prints as JSON."""
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, env=environment_of(tree), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip() or f"{' '.join(command)}: exit code {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def environment_of(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree / "src")}


def compiled_code(tree: Path) -> set[Path]:
    """Return the files of a tree's compiled kernels."""
    return set((tree / "src").rglob("*.nbc"))


HEADER = (
    f"{'set':<20} {'tree':<9} {'placed':>11} parts attempts   /N  near  vain  error  limit  "
    "seconds      CPU   ratio  peak MB of SIFT"
)


def as_rows(found: dict[str, Any]) -> list[str]:
    rows = []
    for tree in ("today", "baseline"):
        if tree not in found:
            continue
        own, limit = found[tree], found["limit_px"]
        sift = found["sift_processor_seconds"]
        of_sift = "-" if sift is None else f"{own['processor_seconds'] / sift:.1f}"
        ratio = f"{found['ratio']:.2f}" if tree == "today" and "ratio" in found else "1"
        rows.append(
            f"{found['set']:<20} {tree:<9} {own['frames_placed']:>5}/{own['frames']:<5} {own['parts']:>5} "
            f"{own['attempts']:>8} {own['attempts_a_frame']:>4.1f} {own['near']:>5} {own['vain']:>5} "
            f"{own['error_px']:>6.2f} {'-' if limit is None else format(limit, '.2f'):>6} {own['seconds']:>8.1f} "
            f"{own['processor_seconds']:>8.1f} {ratio:>7} {own['peak_mb']:>8.0f} "
            f"{of_sift:>7}"
        )
        if "truth" in own:
            rows.append(f"{'':<20} {'':<9} {in_words(own['truth'])}")
    return rows


def in_words(truth: dict[str, Any]) -> str:
    by = (
        f"{name} {truth[name]['rms']:.2f} px RMS, {truth[name]['max']:.2f} max, "
        f"{truth[name]['within_half_px']:.1%} within 0.5, {truth[name]['within_1_px']:.1%} within 1"
        for name in ("relative", "similarity", "homography")
    )
    blank = f"; {truth['blank']['placed']} of {truth['blank']['frames']} blank ones placed" if "blank" in truth else ""
    return "; ".join(by) + blank


if __name__ == "__main__":
    try:
        main()
    except SmaltiError as error:
        raise SystemExit(str(error)) from None
