"""How many clicks and keys a yes takes, and how good the mosaic gets with few landmarks, in a real headless browser.

    python benchmarks/annotator_actions.py --folder studies/annotator [--seeds 5] [--ways one,two] [--json]

Ten answers of a careful person on a film of 40 frames whose chain drifts: several films, and on each one, two and four
landmarks a yes, and as many as the page asks for (`as told`: one, and a second one if the page promises that it removes
a third of the error of the pair). The page snaps landmarks by itself; `as clicked`: this is switched off. `snapped` is
the share of the landmarks that were snapped. `aligned`: no landmark, but the key that aligns the frames by
all pixels from where the page expects them; where that fails or is visibly wrong, two landmarks.

Landmarks are 1.5 px from the truth, far from each other; a single one is in the middle of what both frames show. An
action is a click or a key; `confirm` is one. `error_px` is the RMS error of the mosaic. `ratio` is that error divided
by the one with four landmarks on the same film, `ratio_as_clicked` by the one with four as clicked: the median, and the
smallest and the largest of all films.

The films and the preparation of their projects are kept in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

from annotator import FLAGS, annotating, get, open_page, place, prepare
from smalti.records import Pair
from smalti_lab.simulated_agents import OracleAgent
from smalti_lab.synthetic.camera_path import Handling, circle
from smalti_lab.synthetic.degradation import Degradation
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

CAREFUL_ANSWERS = 10
WAYS: dict[str, tuple[int | None, bool]] = {
    "four": (4, True),
    "four as clicked": (4, False),
    "one": (1, True),
    "two": (2, True),
    "as told": (None, True),
    "one as clicked": (1, False),
    "two as clicked": (2, False),
    "as told as clicked": (None, False),
    "aligned": (0, True),
}
"""How many landmarks a yes gets (None: a second one where the page says that it is worth it), and whether snapped."""

VISIBLE_PX = 5.0
"""A careful person sees that frames lie wrong by this much."""

WORTH_IT = 2 / 3
"""Of the error of the pair, what is left after a second landmark that is worth setting."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="for films and projects, kept")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="films (5)")
    parser.add_argument("--ways", default=",".join(WAYS), metavar="A,B", help="four and these (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        result = count_actions(browser, options.folder, options.seeds, options.ways.split(","))
        browser.close()
    result["load_average"] = round(os.getloadavg()[0], 1)
    print(json.dumps(result) if options.json else "\n".join(f"{key:>20}  {result[key]}" for key in result))


def count_actions(browser: Browser, folder: Path, seeds: int, chosen: list[str]) -> dict[str, Any]:
    measured: dict[str, list[tuple[float, float, float]]] = {
        way: [] for way in WAYS if way in {"four", "four as clicked", *chosen}
    }  # actions a yes, error px, share of landmarks that were snapped
    chain_px = []
    for seed in range(1, seeds + 1):
        world = make_drifting_world(seed)
        project = prepare(folder, world, f"drifting-{seed}", "--registration", "keypoints")
        for way, rows in measured.items():
            trial = folder / "trial-actions.smalti"
            shutil.rmtree(trial, ignore_errors=True)
            with annotating(shutil.copytree(project, trial)) as address:
                if way == "four":
                    chain_px.append(error_px(world, address))
                landmarks, snapped = WAYS[way]
                page = open_page(browser, address)
                # In the first minute the page leads through three steps, and promises nothing of a second landmark.
                page.get_by_role("button", name="skip").click()
                page.get_by_role("button", name="snap by itself", pressed=True).wait_for()
                if not snapped:
                    page.get_by_role("button", name="snap by itself").click()
                actions = [answer_carefully(page, world, seed, landmarks) for _ in range(CAREFUL_ANSWERS)]
                given = [count for count in actions if count > 1]
                rows.append((float(np.mean(given)), error_px(world, address), share_snapped(address)))
                page.close()
            shutil.rmtree(trial)
    result: dict[str, Any] = {"films": seeds, "chain_px": _spread(chain_px)}
    for way, rows in measured.items():
        name = way.replace(" ", "_")
        actions_a_yes, errors_px, shares = np.array(rows).T
        result[f"{name}_actions"] = round(float(np.mean(actions_a_yes)), 2)
        result[f"{name}_snapped"] = round(float(np.mean(shares)), 2)
        result[f"{name}_error_px"] = _spread(errors_px)
        result[f"{name}_ratio"] = _spread(errors_px / np.array(measured["four"])[:, 1])
        result[f"{name}_ratio_as_clicked"] = _spread(errors_px / np.array(measured["four as clicked"])[:, 1])
    return result


def answer_carefully(page: Page, world: SyntheticSequence, seed: int, landmarks: int | None) -> int:
    """Answer the question on the screen by mouse and keys. Return the number of clicks and keys."""
    page.wait_for_selector("[data-testid=question][data-seen=true]", timeout=60_000)
    question = page.get_by_test_id("question")
    pair = Pair(*(int(question.get_attribute(f"data-{side}") or -1) for side in "ij"))
    revision = question.get_attribute("data-revision")
    size = world.outline.width, world.outline.height
    x, y = (np.linspace(0.08 * side, 0.92 * side, 5) for side in size)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    known = OracleAgent(world.mosaic_from_frame, world.outline.scaled(0.95), grid, sigma=1.5, seed=seed).answer(pair)
    actions = 0
    if known.landmarks is None:
        page.keyboard.press("n")
        actions += 1
    else:
        order = far_apart(known.landmarks.points_j, landmarks or 2)
        if landmarks == 0:
            keys, is_aligned = align(page, world, pair)
            actions += keys
            order = [] if is_aligned else order
        for count, at in enumerate(order):
            if count == 1 and landmarks is None and not is_second_worth_it(page):
                break
            point_i, point_j = known.landmarks.points_i[at], known.landmarks.points_j[at]
            page.mouse.click(*place(page, "j", point_j))
            page.mouse.click(*place(page, "i", point_i))
            actions += 2
            wait_for_landmarks(page, count + 1)
        page.keyboard.press("Enter")
        actions += 1
    page.wait_for_function(
        "before => document.querySelector('[data-testid=question]').dataset.revision !== before", arg=revision
    )
    return actions


def align(page: Page, world: SyntheticSequence, pair: Pair) -> tuple[int, bool]:
    """Align the frames by all pixels. Return the number of keys, and whether they lie right now."""
    page.keyboard.press("f")
    page.wait_for_function(
        """() => document.querySelector('[data-testid=landmark]') !== null
          || document.body.innerText.includes('Not aligned')"""
    )
    if page.get_by_test_id("landmark").count() > 0:
        drawn = "([key]) => key.startsWith('smalti:draft:') && key.endsWith(end)"
        kept = page.evaluate(f"end => Object.entries(localStorage).find({drawn})[1]", f":{pair.i}:{pair.j}")
        found = json.loads(kept)["landmarks"]
        points_i, points_j = (np.array([(one[f"x_{side}"], one[f"y_{side}"]) for one in found]) for side in "ij")
        off_px = np.linalg.norm(world.points_in(pair.i, pair.j, points_j) - points_i, axis=1)
        if off_px.max() < VISIBLE_PX:
            return 1, True
        page.keyboard.press("z")
        page.keyboard.press("Escape")
        return 3, False
    page.keyboard.press("Escape")
    return 2, False


def wait_for_landmarks(page: Page, count: int) -> None:
    """Wait until so many landmarks are set, and none of them is being snapped."""
    page.wait_for_function(
        """count => document.querySelectorAll('[data-testid=landmark]').length === count
          && document.querySelector('.landmark-list').getAttribute('aria-busy') === 'false'""",
        arg=count,
    )


def share_snapped(address: str) -> float:
    """Return the share of the landmarks given by people that were snapped."""
    rows = [row for row in get(f"{address}api/answers") if row["author"] == "person" and row["verdict"] == "yes"]
    given = [get(f"{address}api/pairs/{row['i']}/{row['j']}")["answer"]["landmarks"] for row in rows]
    origins = [landmark["origin"] for landmarks in given for landmark in landmarks]
    return origins.count("snapped") / max(1, len(origins))


def is_second_worth_it(page: Page) -> bool:
    """Read on the page what it promises of one more landmark."""
    promised = re.search(r"would bring ± ([\d.]+) px", page.locator("#landmark-remark").inner_text())
    now = re.search(r"± ([\d.]+) px", page.get_by_test_id("predicted-error").inner_text())
    return promised is not None and now is not None and float(promised[1]) < WORTH_IT * float(now[1])


def far_apart(points: NDArray[np.float64], count: int) -> list[int]:
    """Return `count` of points (n, 2) that are far from each other; a single one is in their middle."""
    from_middle = np.linalg.norm(points - points.mean(axis=0), axis=1)
    if count == 1:
        return [int(from_middle.argmin())]
    chosen = [int(from_middle.argmax())]
    while len(chosen) < min(count, len(points)):
        nearest = np.linalg.norm(points[:, None] - points[chosen], axis=2).min(axis=1)
        chosen.append(int(nearest.argmax()))
    return chosen


def error_px(world: SyntheticSequence, address: str) -> float:
    mosaic = get(f"{address}api/mosaic")
    return float(world.truth_error(np.array(mosaic["maps"]).reshape(-1, 3, 3), mosaic["numbers"]).rms)


def _spread(values: Iterable[float]) -> str:
    """Return the median of values, and the smallest and the largest."""
    known = np.array(list(values))
    return f"{np.median(known):.2f} ({known.min():.2f} to {known.max():.2f})"


def make_drifting_world(seed: int) -> SyntheticSequence:
    """Make two rounds over the same ground, so blurred and noisy that a chain of the frames drifts."""
    scene, handling = (1500, 1100), Handling(heading_degrees=8, zoom=0.04, shake_px=1.0, shake_degrees=0.5)
    camera = circle(scene, 40, (320, 240), step=0.38, revolutions=2, handling=handling, seed=seed)
    return SyntheticSequence(procedural_scene(*scene, seed=seed), camera, Degradation(noise=25.0, blur_px=1.5))


if __name__ == "__main__":
    main()
