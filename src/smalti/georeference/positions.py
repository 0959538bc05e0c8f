"""Read the positions at which frames were taken from a CSV table, in degrees or metres."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from smalti.errors import TableError
from smalti.georeference.utm import choose_zone, utm_from_geographic
from smalti.interchange.regular_files import open_table, reading

FEWEST_FRAMES = 3
"""Two determine a similarity; the third checks it."""

# Degrees come first: they say where on Earth the mosaic lies. Metres say only how its frames lie to each other.
_GEOGRAPHIC = (("lat", "lon"), ("latitude", "longitude"))
_PLANE = (("east_m", "north_m"), ("x_m", "y_m"), ("easting", "northing"))
_SOUTHERNMOST_DEG, _NORTHERNMOST_DEG = -80.0, 84.0  # where UTM ends
# One zone beyond the edge of the chosen one: a position farther away has no fix and is not part of the survey.
_FARTHEST_DEG = 9.0


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Where frames were taken: metres east and north in a plane."""

    metres: dict[int, tuple[float, float]]  # by frame number
    epsg: int | None  # of WGS 84 / UTM zone; None for a local plane
    columns: tuple[str, str]  # the columns that were read
    ignored: int = 0  # rows of frames that the project does not have
    origin: str = "positions"  # the table, as errors name it


def read_positions(path: Path, labels: Mapping[int, str]) -> Positions:
    """Read where the frames of a project were taken; `labels` are the names of its frames by number.

    A row names its frame in a column `file`, or else by its number in the project, from 0, in a column `frame`.
    """
    table = read_table(path)
    columns = _choose_columns(table)
    rows = _find_rows(table, labels)
    metres, epsg = _project(rows, columns) if columns in _GEOGRAPHIC else (_read_plane(rows, columns), None)
    return Positions(metres, epsg, columns, len(table.rows) - len(rows), str(path))


def _choose_columns(table: Table) -> tuple[str, str]:
    for columns in (*_GEOGRAPHIC, *_PLANE):
        if set(columns) <= set(table.columns):
            return columns
    raise TableError(
        f"{table.path}: no columns say where frames were taken (there are {', '.join(table.columns)}); "
        "give lat,lon in degrees or east_m,north_m in metres"
    )


def _find_rows(table: Table, labels: Mapping[int, str]) -> dict[int, Row]:
    """Return the row of every frame that has one, in the order of the table."""
    name_of, frames = _index_frames(table, labels)
    rows: dict[int, Row] = {}
    for row in table.rows:
        named = frames.get(name_of(row), [])
        if len(named) > 1:
            raise row.error(
                f"{len(named)} frames of the project are called '{labels[named[0]]}'; "
                "name frames by a column frame instead of file"
            )
        for frame in named:
            if frame in rows:
                raise row.error(f"'{labels[frame]}' was given in line {rows[frame].line} already; keep one of the two")
            rows[frame] = row
    if not rows:
        known = sorted(labels)
        wanted = f"'{labels[known[0]]}'" if "file" in table.columns else f"{known[0]} to {known[-1]}"
        raise TableError(
            f"{table.path}: none of its {len(table.rows)} rows belongs to a frame of the project: it names "
            f"{name_of(table.rows[0])!r}, the project has {wanted}; give the table of these frames"
        )
    if len(rows) < FEWEST_FRAMES:
        raise TableError(
            f"{table.path}: only {len(rows)} of its {len(table.rows)} rows belong to frames of the project; "
            f"give positions of {FEWEST_FRAMES} or more"
        )
    return rows


def _index_frames(
    table: Table, labels: Mapping[int, str]
) -> tuple[Callable[[Row], str | int], dict[str | int, list[int]]]:
    """Return a function that reads a row's frame name, and the frames of each name."""
    frames: dict[str | int, list[int]] = {}
    if "file" in table.columns:
        for frame, label in labels.items():
            frames.setdefault(label, []).append(frame)
        return _file_name, frames
    if "frame" in table.columns:
        return lambda row: row.count("frame"), {frame: [frame] for frame in labels}
    raise TableError(f"{table.path}: no column says to which frame a row belongs; add a column file or frame")


def _file_name(row: Row) -> str:
    # Tables come from other machines, and labels are bare names: split at both kinds of slash.
    return row.cells["file"].replace("\\", "/").rpartition("/")[2]


def _read_plane(rows: Mapping[int, Row], columns: tuple[str, str]) -> dict[int, tuple[float, float]]:
    return {frame: (row.number(columns[0]), row.number(columns[1])) for frame, row in rows.items()}


def _project(rows: Mapping[int, Row], columns: tuple[str, str]) -> tuple[dict[int, tuple[float, float]], int]:
    """Return metres in the UTM zone of the middle of the survey, and its EPSG code."""
    degrees = _read_plane(rows, columns)
    for row, (latitude, longitude) in zip(rows.values(), degrees.values(), strict=True):
        if not _SOUTHERNMOST_DEG <= latitude <= _NORTHERNMOST_DEG:
            raise row.error(
                f"{columns[0]} {latitude:g} is outside UTM, which reaches from {_SOUTHERNMOST_DEG:g} to "
                f"{_NORTHERNMOST_DEG:g} degrees; correct it, or give east_m,north_m instead"
            )
        if not -180 <= longitude <= 180:
            raise row.error(f"{columns[1]} {longitude:g} is not between -180 and 180 degrees; correct it")
    latitudes, longitudes = zip(*degrees.values(), strict=True)
    zone = choose_zone(latitudes, longitudes)
    for row, offset in zip(rows.values(), zone.degrees_from_middle(longitudes), strict=True):
        if abs(offset) > _FARTHEST_DEG:
            raise row.error(
                f"{columns[1]} {row.cells[columns[1]]} is {abs(offset):.0f} degrees from UTM zone {zone.number} "
                "of the other frames; correct it or delete the row"
            )
    metres = utm_from_geographic(latitudes, longitudes, zone)
    return {frame: (float(east), float(north)) for frame, (east, north) in zip(rows, metres, strict=True)}, zone.epsg


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: its cells by column name."""

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
    """The content of a CSV file; column names in lower case."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(path: Path) -> Table:
    """Read a table of positions."""
    try:
        with open_table(path) as file, reading(path, TableError):
            lines = csv.reader(file)
            columns = tuple(name.strip().lower() for name in next(lines, []))
            rows = tuple(_read_row(path, lines.line_num, columns, cells) for cells in lines if cells)
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
