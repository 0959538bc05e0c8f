"""Tables that the page's script can sort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from smalti.report.markup import Markup, element, join

ROWS_SHOWN = 60
"""Longer tables are folded: the page stays short, and opens fast."""


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


def fold_table(summary: str, table: Markup, rows: int) -> Markup:
    """Return a table that can be folded, and is where it is long."""
    return element("details", element("summary", summary), table, open=rows <= ROWS_SHOWN)


def draw_list(items: Iterable[str]) -> Markup:
    """Return a list."""
    return element("ul", join(*(element("li", item) for item in items)))


def _kind(column: Column) -> str | None:
    return "n" if column.is_number else None
