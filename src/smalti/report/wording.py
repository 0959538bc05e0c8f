"""Numbers and names in words."""

from __future__ import annotations

import math
from collections.abc import Iterable

from smalti.geometry.lens import Lens
from smalti.project.entries import Role

NOTHING = "–"
"""Stands where there is no number."""

ROLES = {
    Role.CHAIN: "chain",
    Role.BRIDGE: "bridge",
    Role.CHECK: "check",
    Role.LOOP: "loop",
    Role.ASIDE: "set aside",
}

ROLES_EXPLAINED = {
    Role.CHAIN: "frames that follow each other",
    Role.BRIDGE: "over a break in the chain",
    Role.CHECK: "over some frames at once, to measure the noise and hold the chain",
    Role.LOOP: "suggested by the engine",
    Role.ASIDE: "to place a frame that had been set aside",
}


def say_px(value: float | None) -> str:
    """Return a length in pixels with about three digits, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{decimals}f} px"


def say_number(value: float | None, decimals: int) -> str:
    """Return a number, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{round(value, decimals) + 0.0:.{decimals}f}"  # adding 0 turns -0 into 0


def say_lens(lens: Lens) -> str:
    """Return what the lens does to the frames."""
    second = f", k₂ = {lens.k2:.4g}" if lens.k2 else ""
    moves = f"{100 * abs(lens.stretch):.2g} % at the corners"
    return f"Lens: radial distortion k₁ = {lens.k1:.4g}{second} ({moves}), found from the matches and made up for."


def count(number: int, noun: str, plural: str = "") -> str:
    """Return how many there are of something: 1 frame, 2 frames."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def say_seconds(seconds: float) -> str:
    """Return a time in the unit people would use."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def say_ranges(numbers: Iterable[int]) -> str:
    """Return numbers with runs drawn together: 0, 4–9, 12."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(
        str(first) if first == last else f"{first}, {last}" if last == first + 1 else f"{first}–{last}"
        for first, last in runs
    )


def say_list(words: Iterable[str]) -> str:
    """Return words as one does in a sentence: a, b and c."""
    *most, last = list(words)
    return f"{', '.join(most)} and {last}" if most else last
