"""The claims about rendering in numbers: light and seams, moving things, peers, size.

    python benchmarks/rendering.py [--only quality,moving,peers,scale] [--json]
    python benchmarks/rendering.py --only peers --project studies/sets/caliterra
    python benchmarks/rendering.py --only scale --gigapixels 2

`quality`: synthetic sequences with exact truth, exposures of ±30 % a frame, corners that lack 40 % of the light, noise
of 2 grey levels. PSNR against the scene inside the coverage, after the best common gain. A step is the jump of the
error across a seam, in grey levels, averaged over pieces of about 16 pixels. `off the seams` is the same measure along
the same lines moved by 40 pixels: the effect of noise without a seam.

`moving`: a bright disc in five frames, a dark bar in every seventh. The error where they were, with and without them,
over the places that three frames or more show. A thing counts as visible where it changes the mosaic by more than 20.

`peers`: the same files and maps, each tool in a process of its own, from its start to the written TIFF. Smalti includes
survey, exposure and seams; its code was compiled before (`first run ever`: not). OpenCV warps, corrects the light, cuts
seams and blends in bands as its stitcher does by default (`opencv`: graph cut) or faster (`-fast`: dynamic
programming). enblend gets frames that OpenCV warped and corrected. `blending alone` is enblend itself, by default or
with its simplest seams (`-fast`). With `even light` there is nothing to correct. Synthetic sequences are compared with
the truth. Real sets have none: frames that no tool was given are predicted. Relief moves things between frames, so that
a blurred mosaic has the better PSNR. `likeness` is the median correlation of patches with the mosaic where each fits
best within 12 pixels. `detail` is the ratio of the mosaic's mean gradient to the right one.

`scale`: frames rendered on the fly, the allowed memory, and the time for each megapixel.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pictures import contest, moving, quality, scale
from smalti.errors import SmaltiError

PARTS = ("quality", "moving", "peers", "scale")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default=",".join(PARTS), metavar="A,B", help="which parts (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--project", type=Path, action="append", default=[], metavar="DIR", help="a set for peers")
    parser.add_argument("--tools", default=",".join(contest.TOOLS), metavar="A,B", help="for peers; Smalti first")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="of each tool; those beyond 30 s run once")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="LIMIT", help="for a tool on a set")
    parser.add_argument("--gigapixels", default="0.25,0.5", metavar="G,G", help="sizes for scale (0.25,0.5)")
    parser.add_argument("--memory", type=int, default=1024, metavar="MB", help="allowed for scale (1024)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="for large temporary files of scale")
    options = parser.parse_args()
    wanted, tools = options.only.split(","), options.tools.split(",")
    for name, known in ((wanted, PARTS), (tools, contest.TOOLS)):
        if unknown := [part for part in name if part not in known]:
            parser.error(f"unknown '{unknown[0]}': choose from {', '.join(known)}")
    if tools[0] != "smalti":
        parser.error("--tools begins with smalti: the others are compared with it")
    sizes = [float(size) for size in options.gigapixels.split(",")]
    parts = {
        "quality": (quality.COLUMNS, quality.measure_quality),
        "moving": (moving.COLUMNS, moving.measure_moving),
        "peers": (
            contest.COLUMNS,
            lambda: contest.compare_tools(options.project, tools, options.repeats, options.seconds),
        ),
        "scale": (scale.COLUMNS, lambda: scale.measure_scale(sizes, options.memory, options.folder)),
    }
    for name in wanted:
        columns, measure = parts[name]
        show(name, columns, measure(), options.json)


def show(part: str, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]], as_json: bool) -> None:
    """Print rows as they come."""
    if not as_json:
        print(f"\n### {part}\n\n| {' | '.join(columns.values())} |\n|{' --- |' * len(columns)}", flush=True)
    for row in rows:
        if as_json:
            print(json.dumps({"part": part, **row}), flush=True)
        else:
            print(f"| {' | '.join(_cell(row.get(name)) for name in columns)} |", flush=True)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


if __name__ == "__main__":
    try:
        main()
    except SmaltiError as error:
        raise SystemExit(str(error)) from None
