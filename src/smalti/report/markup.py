"""HTML and SVG as escaped text: elements, tables, paths, and numbers in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice

import numpy as np

from smalti.geometry.lens import Lens
from smalti.project.entries import Role
from smalti.records import Points

_WITHOUT_END = frozenset({"img", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already. Formatting it into other text gives plain text, which is escaped again."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """Return an element with its children.

    Of an attribute's name a `_` at the end is dropped, others become `-`; True stands alone, False and None are left
    out.
    """
    written = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _WITHOUT_END:
        assert not children, f"<{name}> has no content"
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Return the children one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def _attribute(name: str, value: str | float | bool) -> str:
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


ROWS_SHOWN = 60
"""Longer tables are folded: the page stays short, and opens fast."""

MOST_ROWS = 2000
"""Longer tables are cut: a page of tens of thousands of rows would take seconds to open."""


@dataclass(frozen=True, slots=True)
class Column:
    """What stands above a column."""

    title: str
    is_number: bool = False
    explanation: str = ""


def draw_table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, sortable: bool) -> Markup:
    """Return a table, a cell a column in each row."""
    heads = [
        element("th", column.title, scope="col", class_=_kind(column), title=column.explanation or None)
        for column in columns
    ]
    body = [
        element("tr", *(element("td", cell, class_=_kind(column)) for column, cell in zip(columns, row, strict=True)))
        for row in rows
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", Markup("\n".join(body))),
        class_="sortable" if sortable else None,
    )
    # A table wider than a phone scrolls by itself; the keyboard can reach it.
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def fold_table(
    noun: str, caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], length: int, file: str
) -> Markup:
    """Return a sortable table of so many rows: folded where it is long, cut where it is very long.

    `file` in the project's folder has all of it.
    """
    table = draw_table(caption, columns, islice(rows, MOST_ROWS), sortable=True)
    cut = f"The first {MOST_ROWS} of {count(length, noun)}; {file} has all of them." if length > MOST_ROWS else ""
    note = element("p", cut) if cut else Markup()
    return element("details", element("summary", count(length, noun)), note, table, open=length <= ROWS_SHOWN)


def draw_list(items: Iterable[str]) -> Markup:
    """Return a list."""
    return element("ul", join(*(element("li", item) for item in items)))


def _kind(column: Column) -> str | None:
    return "n" if column.is_number else None


def draw_lines(segments: np.ndarray, kind: str) -> Markup:
    """Draw lines (n, 2, 2)."""
    return _path("".join(f"M{_at(start)}L{_at(end)}" for start, end in segments), kind)


def draw_dots(points: Points, kind: str) -> Markup:
    """Draw points as lines of hardly any length with round ends: their size does not depend on the drawing's scale."""
    return _path("".join(f"M{_at(point)}h.01" for point in points), f"{kind} dot")


def draw_outlines(corners: np.ndarray, kind: str) -> Markup:
    """Draw closed polygons (n, m, 2)."""
    return _path("".join(f"M{'L'.join(_at(corner) for corner in polygon)}Z" for polygon in corners), kind)


def draw_label(text: str, at: np.ndarray, size: float, anchor: str = "start") -> Markup:
    """Write beside a point; `size` is that of the letters."""
    shift = {"start": 0.5, "middle": 0.0, "end": -0.5}[anchor] * size
    place = {"x": _number(at[0] + shift), "y": _number(at[1] - 0.4 * size)}
    return element("text", text, **place, font_size=_number(size), text_anchor=anchor)


def view_box(left: float, top: float, width: float, height: float) -> str:
    """Return the part of the plane that a drawing shows."""
    return " ".join(map(_number, (left, top, width, height)))


def _path(course: str, kind: str) -> Markup:
    return element("path", d=course, class_=kind) if course else Markup()


def _at(point: np.ndarray) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    # A tenth of a pixel is finer than any screen shows.
    return f"{value:.1f}".removesuffix(".0")


NOTHING = "–"
"""Stands where there is no number."""

ROLES = {
    Role.CHAIN: "chain",
    Role.BRIDGE: "bridge",
    Role.CHECK: "check",
    Role.LOOP: "loop",
    Role.NEAR: "near",
    Role.RETRY: "retry",
    Role.ASIDE: "set aside",
}

ROLES_EXPLAINED = {
    Role.CHAIN: "frames that follow each other",
    Role.BRIDGE: "frames on the two sides of a break in the chain",
    Role.CHECK: "frames a few steps apart, to measure the noise and support the chain",
    Role.LOOP: "pairs that the engine suggested",
    Role.NEAR: "pairs that surely overlap, matched near their expected place",
    Role.RETRY: "pairs that were not matched before their place was known",
    Role.ASIDE: "to place a frame that was set aside",
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
    return f"Lens: radial distortion k₁ = {lens.k1:.4g}{second} ({moves}), estimated from the matches and corrected."


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
