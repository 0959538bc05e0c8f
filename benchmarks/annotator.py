"""How long a person waits for the page, and how much memory the browser takes, in a real headless browser.

    python benchmarks/annotator.py --folder studies/annotator [--only answering,opening] [--json]

`answering`: a video of 600 frames, answers by mouse. Landmarks are a pixel or two from the truth. The page shows them
for `--look` seconds (a person needs longer) before they are confirmed. `seconds` is the time from the click until both
frames of the next question are painted. The time of one dense Cholesky factorisation of size 6(N-1) on this machine is
printed for comparison.

`opening`: a project of 2,000 frames in a fresh browser, once the program asks, which is after `program_seconds`.
`usable_seconds` is the time from the navigation until the question is painted and a key has shown its effect.
`browser_mb` is the largest PSS of all processes of the browser together, at rest and while the mosaic is moved.
`without_page` is the memory with an empty page, mostly the browser's own code.

The videos and the preparation of their projects take long to make. They are kept in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

from engine import dense_cholesky_seconds
from smalti.geometry.linear_maps import apply
from smalti.records import Pair
from smalti_lab.simulated_agents import OracleAgent
from smalti_lab.synthetic.camera_path import Handling, wander
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_video
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

SIZE = (160, 120)
PARTS = ("answering", "opening")
FLAGS = """--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync
    --no-first-run"""
WATCH = """() => {
  window.waited = [];
  let began = null;
  const question = document.querySelector("[data-testid=question]");
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-testid=confirm], [data-testid=verdict-no]")) began = event.timeStamp;
  }, true);
  new MutationObserver(() => {
    if (began === null || !question.hasAttribute("data-revision")) return;
    const from = began;
    began = null;
    // What was drawn is on the screen after the next frame of the browser.
    requestAnimationFrame(() => requestAnimationFrame(() => window.waited.push(performance.now() - from)));
  }).observe(question, { attributes: true, attributeFilter: ["data-revision"] });
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="for films and projects, kept")
    parser.add_argument("--only", default=",".join(PARTS), metavar="A,B", help="which parts (default: all)")
    parser.add_argument("--frames", type=int, default=600, metavar="N", help="of answering (600)")
    parser.add_argument("--answers", type=int, default=40, metavar="N", help="of answering (40)")
    parser.add_argument("--look", type=float, default=3.0, metavar="S", help="before each confirm (3)")
    parser.add_argument("--opened", type=int, default=2000, metavar="N", help="frames of opening (2000)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        for part in options.only.split(","):
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
            if part == "answering":
                result = time_answers(browser, options.folder, options.frames, options.answers, options.look)
            elif part == "opening":
                result = time_opening(browser, options.folder, options.opened)
            else:
                parser.error(f"unknown '{part}': choose from {', '.join(PARTS)}")
            browser.close()
            # Other programs on the machine make everything slower.
            result["load_average"] = round(os.getloadavg()[0], 1)
            print(json.dumps(result) if options.json else "\n".join(f"{key:>20}  {result[key]}" for key in result))


def time_answers(browser: Browser, folder: Path, frames: int, answers: int, look_seconds: float) -> dict[str, Any]:
    world = make_world(frames)
    x, y = np.linspace(16, SIZE[0] - 17, 3), np.linspace(16, SIZE[1] - 17, 3)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    # Not at the rim, where a click beside the point may be outside the frame.
    eye = OracleAgent(world.mosaic_from_frame, world.outline.scaled(0.9), grid, sigma=1.5)
    given = []
    project = prepare(folder, world, str(frames))
    trial = folder / f"trial-{frames}.smalti"
    shutil.rmtree(trial, ignore_errors=True)
    with annotating(shutil.copytree(project, trial)) as address:
        page = open_page(browser, address)
        page.evaluate(WATCH)
        for count in range(answers):
            # An answer counts only once the pair can have been seen.
            page.wait_for_selector("[data-testid=question][data-seen=true]", timeout=60_000)
            question = page.get_by_test_id("question")
            known = eye.answer(Pair(*(int(question.get_attribute(f"data-{side}") or -1) for side in "ij"))).landmarks
            if known is None:
                time.sleep(look_seconds)
                page.get_by_test_id("verdict-no").click()
            else:
                for point_i, point_j in zip(known.points_i, known.points_j, strict=True):
                    page.mouse.click(*place(page, "j", point_j))
                    page.mouse.click(*place(page, "i", point_i))
                time.sleep(look_seconds)
                page.get_by_test_id("confirm").click()
            given.append("no" if known is None else "yes")
            page.wait_for_function("count => window.waited.length === count", arg=count + 1, timeout=60_000)
        seconds = np.array(page.evaluate("window.waited")) / 1000
        page.close()
    shutil.rmtree(trial)
    return {
        "part": "answering",
        "frames": frames,
        "answers": answers,
        "yes": given.count("yes"),
        "look_seconds": look_seconds,
        "median_seconds": round(float(np.median(seconds)), 3),
        "p95_seconds": round(float(np.percentile(seconds, 95)), 3),
        "largest_seconds": round(float(seconds.max()), 3),
        "yardstick_seconds": round(dense_cholesky_seconds(6 * (frames - 1)), 3),
    }


def time_opening(browser: Browser, folder: Path, frames: int) -> dict[str, Any]:
    project = prepare(folder, make_world(frames), str(frames))
    with browser.new_page():
        empty_mb = _mb_after(1.0)
    started = time.perf_counter()
    with annotating(project) as address:
        program_seconds = time.perf_counter() - started
        began = time.perf_counter()
        page = open_page(browser, address)
        painted = time.perf_counter() - began
        page.keyboard.press("?")
        page.get_by_test_id("help").wait_for(state="visible")
        usable = time.perf_counter() - began
        page.keyboard.press("Escape")
        memory = [_mb_after(0.5) for _ in range(10)]
        page.keyboard.press("m")
        page.mouse.move(960, 540)
        for turn in (-300, -300, -300, 300, 300, 300):
            page.mouse.wheel(0, turn)
            memory.append(_mb_after(0.5))
        page.close()
    return {
        "part": "opening",
        "frames": frames,
        "program_seconds": round(program_seconds, 1),
        "painted_seconds": round(painted, 3),
        "usable_seconds": round(usable, 3),
        "browser_mb": round(max(memory)),
        "browser_mb_at_rest": round(memory[9]),
        "browser_mb_without_page": round(empty_mb),
    }


def _mb_after(seconds: float) -> float:
    time.sleep(seconds)
    return browser_mb()


def make_world(frames: int) -> SyntheticSequence:
    """Make a camera's walk over a scene that is large enough. The walk comes back to places."""
    side = int(14 * np.sqrt(frames) * np.sqrt(SIZE[0] * SIZE[1]) / 24) + 2 * SIZE[0]
    handling = Handling(heading_degrees=8, zoom=0.04, shake_px=1.0, shake_degrees=0.5)
    camera = wander((side, side), frames, SIZE, visits=2.0, handling=handling, seed=3)
    return SyntheticSequence(procedural_scene(side, side, seed=2), camera)


def prepare(folder: Path, world: SyntheticSequence, name: str, *options: str) -> Path:
    """Return the folder of a prepared project, made once."""
    project, film = folder / f"{name}.smalti", folder / f"{name}.mp4"
    if not project.exists():
        if not film.exists():
            write_video(world, film)
        with annotating(film, "-o", project, *options):
            pass
    return project


@contextmanager
def annotating(*arguments: str | Path) -> Iterator[str]:
    """Run `smalti annotate`, from the moment when it asks."""
    command = [Path(sys.executable).with_name("smalti"), "annotate", *arguments, "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            while get(f"{address}api/state")["stage"] != "asking":
                time.sleep(0.2)
            yield address
        finally:
            process.send_signal(signal.SIGINT)


def get(address: str) -> Any:
    with urllib.request.urlopen(address) as response:
        return json.load(response)


def open_page(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    page.goto(address, wait_until="commit")
    page.wait_for_selector("[data-testid=question][data-revision]", timeout=60_000)
    return page


def place(page: Page, side: str, point: NDArray[np.float64]) -> tuple[float, float]:
    """Return the position of a point (2,) of a frame in the window."""
    host = page.get_by_test_id(f"frame-{side}")
    box = host.bounding_box()
    assert box is not None
    numbers = (host.get_attribute("data-screen-from-frame") or "").split(",")
    x, y = apply(np.array(numbers, np.float64).reshape(2, 3), point[None])[0]
    return box["x"] + float(x), box["y"] + float(y)


def browser_mb(process: int | None = None) -> float:
    """Return the proportional memory of the browsers among a process (default: this one) and its descendants."""
    home = Path(f"/proc/{os.getpid() if process is None else process}")
    try:
        children = [
            int(child) for task in (home / "task").iterdir() for child in (task / "children").read_text().split()
        ]
        is_browser = "chrom" in str((home / "exe").readlink())
        rows = (home / "smaps_rollup").read_text().splitlines() if is_browser else []
    except OSError:
        return 0.0  # it has ended
    own = sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024
    return own + sum(map(browser_mb, children))


if __name__ == "__main__":
    main()
