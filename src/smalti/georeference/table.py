"""A CSV file with a header, whatever its columns; errors name the file and the line."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from smalti.errors import TableError


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: its cells by the names of their columns."""

    path: Path
    line: int
    cells: dict[str, str]

    def error(self, message: str) -> TableError:
        """Return an error that names the line."""
        return TableError(f"{self.path}, line {self.line}: {message}")

    def number(self, column: str) -> float:
        """Return a cell as a finite number."""
        text = self.cells[column]
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(f"{column} is '{text}', not a number; correct it or delete the row")
        return number

    def count(self, column: str) -> int:
        """Return a cell as a whole number."""
        text = self.cells[column]
        try:
            return int(text)
        except ValueError:
            raise self.error(f"{column} is '{text}', not a whole number; count frames from 0") from None


@dataclass(frozen=True, slots=True)
class Table:
    """What a CSV file holds; the names of its columns in lower case."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(path: Path) -> Table:
    """Read a table of positions."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            columns = tuple(name.strip().lower() for name in next(lines, []))
            rows = tuple(_read_row(path, lines.line_num, columns, cells) for cells in lines if cells)
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror}), check the path") from None
    except (UnicodeDecodeError, csv.Error):
        raise TableError(f"{path}: is not a CSV text file, expected a header such as file,lat,lon") from None
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise TableError(f"{path}: has two columns '{twice}', delete one")
    if not rows:
        raise TableError(f"{path}: holds no positions, expected a header such as file,lat,lon and a row a frame")
    return Table(path, columns, rows)


def _read_row(path: Path, line: int, columns: tuple[str, ...], cells: list[str]) -> Row:
    if len(cells) != len(columns):
        raise TableError(
            f"{path}, line {line}: has {len(cells)} columns but the header has {len(columns)}; "
            "separate columns by a comma and write decimals with a point"
        )
    return Row(path, line, dict(zip(columns, map(str.strip, cells), strict=True)))
