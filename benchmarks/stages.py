"""Where the time of one answer goes, by stage, seen from outside: the engine does not know that it is timed."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType, TracebackType

import smalti

ROOT = f"{Path(smalti.__file__).parent}/"

STAGE_OF = {
    "engine/links.py": "link",
    "engine/equations.py": "maps: solve",
    "engine/rows.py": "maps: solve",
    "engine/solution.py": "maps: solve",
    "engine/variance_components.py": "noise and camera",
    "engine/estimate.py": "which links to reject",
    "engine/covariance.py": "covariance: factor and ways",
    "engine/covariance.py:stretches": "bounds of stretches",
    "engine/covariance.py:of_pairs": "covariance of pairs",
    "engine/covariance.py:of_predicted_links": "covariance of predicted links",
    "overlap/weighted_signatures.py": "P^ext",
    "overlap/weighted_signatures.py:learn": "training of words",
    "overlap/weight_training.py": "training of words",
    "suggestion/posterior.py": "probability of a yes",
    "suggestion/appearance_evidence.py": "probability of a yes",
    "suggestion/answer_model.py": "probability of a yes",
    "suggestion/pair_search.py": "search of candidates",
    "suggestion/expected_gain.py": "expected gain of candidates",
}
"""Stages by file, or by function of a file; what is private or not here belongs to the stage that called it."""

REST = "the rest"


class Stopwatch:
    """Credits every moment to the innermost stage that runs, libraries and kernels included."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running = [REST]
        self._stages: dict[CodeType, str | None] = {}
        self._since = 0.0

    def __enter__(self) -> Stopwatch:
        self._since = time.perf_counter()
        sys.setprofile(self._notice)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        sys.setprofile(None)
        self._credit()

    def _notice(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(ROOT):
            return
        self._credit()
        if event == "call":
            self._running.append(self._stage(frame.f_code) or self._running[-1])
        else:
            self._running.pop()

    def _credit(self) -> None:
        now = time.perf_counter()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def _stage(self, code: CodeType) -> str | None:
        if code not in self._stages:
            file, name = code.co_filename.removeprefix(ROOT), code.co_name
            private = name.startswith("_") and not name.startswith("__")
            self._stages[code] = STAGE_OF.get(f"{file}:{name}", None if private else STAGE_OF.get(file))
        return self._stages[code]


def print_stages(frames: int, seconds: Mapping[str, Mapping[str, float]]) -> None:
    """Print a table of Markdown, a column for each kind of answer, longest stage first."""
    totals = {answer: sum(by_stage.values()) for answer, by_stage in seconds.items()}
    names = {name for by_stage in seconds.values() for name in by_stage}
    print(f"\n| N = {frames:,}, seconds after a | " + " | ".join(seconds) + " |")
    print("| --- |" + " --- |" * len(seconds))
    for name in sorted(names, key=lambda name: -sum(by_stage.get(name, 0.0) for by_stage in seconds.values())):
        print(f"| {name} | " + " | ".join(_share(of.get(name, 0.0), totals[a]) for a, of in seconds.items()) + " |")
    print("| together | " + " | ".join(f"{total:.4f}" for total in totals.values()) + " |", flush=True)


def _share(seconds: float, total: float) -> str:
    return f"{seconds:.4f} ({seconds / total:.0%})"
