"""What masks leave of what is not scene, on a synthetic endoscope with known truth, and what they hide on real sets.

    python benchmarks/masks.py [--seeds 1,2,3] [--frames 200] [--tool 0.15] [--pictures FOLDER]
    python benchmarks/masks.py --real           shares masked of the sets in SMALTI_DATA
    python benchmarks/masks.py --registration [--seeds 1,2,3] [--frames 200] [--tool 0.15]   error of the mosaic
    python benchmarks/masks.py --cost PROJECT   processor seconds of rendering it

A synthetic frame has highlights and particles; a tool reaches into some of the frames; there are a logo, a running
clock and dirt on the lens. The table says which share of the pixels of the mosaic shows each of them by more than a
half (dirt: a fifth), with the mask that all frames share and with the frames' own, at the true places. `any frame` is
the share of the pixels of an average frame: what a mosaic without any choice would show.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.building.build_settings import BuildSettings
from smalti.building.frame_views import FrameViews
from smalti.building.preparation import prepare
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.frames.visibility import Part, PartFinder
from smalti.geometry.homographies import invert_homographies, project_points
from smalti.progress import Silence
from smalti.project.project import Project
from smalti.rendering.mosaic import Mosaic
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings, Obstacles
from smalti_lab.synthetic.scene import load_scene

DATA = Path(os.environ.get("SMALTI_DATA", "../shared/data"))
SCENES = ("IDRiD_10.jpg", "nasa_Apollo_8__Lunar_Crater.jpg", "nasa_bluemarble_ng_5400x2700.jpg")
SHOWN_FROM = {"highlights": 0.5, "particles": 0.5, "tool": 0.5, "overlays": 0.5, "dirt": 0.2}
NOTHING_TO_MASK = (
    "caliterra", "obriens", "copr", "brighton", "dendritic_cols0-2", "street_pan_test3", "airplane01"
)  # fmt: skip
SIDE = 470
SAMPLED = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--tool", type=float, default=0.15, help="share of the frames that a tool reaches into")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--registration", action="store_true")
    parser.add_argument("--cost", type=Path)
    options = parser.parse_args()
    if options.registration:
        judge_registration(options.seeds, options.frames, options.tool)
    elif options.real:
        judge_real_sets()
    elif options.cost:
        time_rendering(options.cost)
    else:
        judge_endoscope(options.seeds, options.frames, options.tool, options.pictures)


def judge_endoscope(seeds: list[int], frames: int, tool: float, pictures: Path | None) -> None:
    """Print the shares of the mosaics that show what is not tissue."""
    names = list(SHOWN_FROM)
    print("| seed | mask | " + " | ".join(names) + " | any | not covered | processor s |")
    print("|" + " --- |" * (len(names) + 5))
    for seed in seeds:
        sequence = draw_sequence(seed, frames, tool)
        views = FrameViews(sequence, "auto")
        maps = {
            n: invert_homographies(sequence.motion.plane_from_frame[:1])[0] @ sequence.motion.plane_from_frame[n]
            for n in range(frames)
        }
        print_row(seed, "any frame", share_of_frames(sequence), 0.0, 0.0)
        area = 0
        for name, finder in (("common", None), ("own", views.finder)):
            begin = time.process_time()
            mosaic = Mosaic(sequence, maps, SIDE, SIDE, views.field, finder=finder)
            image = mosaic.image(4000)
            seconds = time.process_time() - begin
            covered = int((image[..., 3] > 0).sum())
            area = area or covered
            print_row(seed, name, share_of_mosaic(sequence, mosaic, maps), 1 - covered / area, seconds)
            if pictures is not None:
                pictures.mkdir(parents=True, exist_ok=True)
                cv2.imwrite(str(pictures / f"{seed}-{name}.png"), image[..., [2, 1, 0, 3]])


def judge_registration(seeds: list[int], frames: int, tool: float) -> None:
    """Print the error against the truth of mosaics that are built without a person, with and without masks."""
    print("| seed | mask | placed | in parts | error of the largest, px |\n|" + " --- |" * 5)
    for seed in seeds:
        sequence = draw_sequence(seed, frames, tool)
        for mask in ("none", "auto"):
            settings = BuildSettings(mask=mask)
            with (
                tempfile.TemporaryDirectory() as folder,
                Project.begin(Path(folder) / "p", sequence, "synthetic", settings.binding()) as project,
            ):
                project.source = sequence
                preparation = prepare(project, sequence, settings, None, Silence())
                loop = preparation.start
                part = np.asarray(loop.part)
                largest = np.flatnonzero(part == 0)
                used = [preparation.numbers.in_source(n) for n in largest.tolist()]
                error = sequence.truth_error(loop.mosaic_from_frame[largest], used).rms
            print(f"| {seed} | {mask} | {len(used)} of {frames} | {part.max() + 1} | {error:.2f} |", flush=True)


def draw_sequence(seed: int, frames: int, tool: float) -> EndoscopeSequence:
    """Return the sequence of a seed."""
    scene = load_scene(DATA / "large_images" / SCENES[seed % len(SCENES)])
    obstacles = Obstacles(tool=tool, dirt=8, logo=True, clock=True)
    return EndoscopeSequence(
        scene, EndoscopeSettings(frames=frames, width=SIDE, height=SIDE, obstacles=obstacles), seed
    )


def print_row(seed: int, name: str, shares: Mapping[str, float], lost: float, seconds: float) -> None:
    """Print a row of the table."""
    cells = [f"{100 * share:.3f} %" for share in shares.values()]
    print(f"| {seed} | {name} | " + " | ".join(cells) + f" | {100 * lost:.2f} % | {seconds:.1f} |", flush=True)


def share_of_frames(sequence: EndoscopeSequence) -> dict[str, float]:
    """Return the mean share of the field of view that each kind hides."""
    chosen = np.linspace(0, len(sequence) - 1, SAMPLED).astype(int)
    fields = [sequence.field(n) for n in chosen]
    hidden = [say_hidden(sequence, int(n)) for n in chosen]
    return {
        name: float(np.mean([one[name][field].mean() for one, field in zip(hidden, fields, strict=True)]))
        for name in hidden[0]
    }


def say_hidden(sequence: EndoscopeSequence, n: int) -> dict[str, NDArray[np.bool_]]:
    """Return where (h, w) each kind is seen in a frame, and any of them."""
    layers = sequence.hidden(n)
    seen = {name: layers[name] > least for name, least in SHOWN_FROM.items()}
    return {**seen, "any": np.logical_or.reduce(list(seen.values()))}


def share_of_mosaic(
    sequence: EndoscopeSequence, mosaic: Mosaic, maps: Mapping[int, NDArray[np.float64]]
) -> dict[str, float]:
    """Return the share of the pixels of the mosaic that show each kind."""
    canvas = mosaic.canvas()
    source = mosaic.maps(canvas).source
    totals = dict.fromkeys([*SHOWN_FROM, "any"], 0)
    for n in np.unique(source[source >= 0]).tolist():
        rows, columns = np.nonzero(source == n)
        frame_from_canvas = invert_homographies(canvas.canvas_from_frame(maps[n][None]))[0]
        places = np.rint(project_points(frame_from_canvas, np.stack([columns, rows], axis=1).astype(float))).astype(int)
        x, y = np.clip(places, 0, SIDE - 1).T
        for name, seen in say_hidden(sequence, n).items():
            totals[name] += int(seen[y, x].sum())
    return {name: total / int((source >= 0).sum()) for name, total in totals.items()}


def judge_real_sets() -> None:
    """Print which share of the pixels is masked in all frames, and by each kind in frames of their own."""
    print("| set | in all frames | highlights | tools | own disc |\n|" + " --- |" * 5)
    for name in NOTHING_TO_MASK:
        folder = DATA / name
        place = folder / "frames" if (folder / "frames").is_dir() else next(folder.glob("*.mp4"))
        with open_source(place, SourceSettings(max_size=1024)) as source:
            views = FrameViews(source, "auto")
            shared = np.ones((source.height, source.width), bool) if views.field is None else views.field
            finder = views.finder
            assert finder is not None
            parts = find_some_parts(finder, source)
        cells = [
            1 - shared.mean(),
            *(
                np.mean([(one == kind)[shared].mean() for one in parts])
                for kind in (Part.HIGHLIGHT, Part.TOOL, Part.SURROUND)
            ),
        ]
        print(f"| {name} | " + " | ".join(f"{100 * cell:.3f} %" for cell in cells) + " |", flush=True)


def find_some_parts(finder: PartFinder, source: object) -> list[NDArray[np.uint8]]:
    """Return the parts of frames spread over a source."""
    chosen = np.unique(np.linspace(0, len(source) - 1, SAMPLED).astype(int)).tolist()  # type: ignore[arg-type]
    return [finder.find_parts(n, image) for n, image in source.read_many(chosen)]  # type: ignore[attr-defined]


def time_rendering(folder: Path) -> None:
    """Print the processor seconds of rendering a finished project's first mosaic, the survey included."""
    with Project.open(folder) as project:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as place:
                begin = time.process_time()
                project.mosaic(folder=Path(place)).save(Path(place) / "mosaic.png")
                print(f"{time.process_time() - begin:.2f} s")


if __name__ == "__main__":
    main()
