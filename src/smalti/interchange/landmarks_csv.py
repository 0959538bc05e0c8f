"""Read and write landmarks as CSV: `frame_i,frame_j,x_i,y_i,x_j,y_j`, frames from 0, one landmark a line.

Two more columns say how exact a landmark is and who set it: `sigma_px,author`. A table may leave them out.

If people left landmarks out of their links, three more follow: `use,error_px,predicted_px`. `use` is `link` or `check`.
A landmark for checking has its distance from the finished mosaic, and the RMS distance that was predicted there. Who
reads a table as landmarks to be used gets those of links only.

Where some landmarks are on curves, a last column `along_deg` has the direction of the curve in frame i, in degrees from
x to y: such a landmark tells only where the curve is across this direction. It is empty for all other landmarks.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smalti.errors import PairError, TableError
from smalti.geometry.outline import Outline
from smalti.interchange.atomic_files import write_text
from smalti.interchange.regular_files import open_table, reading
from smalti.records import Landmarks, Pair

OUTSIDE_PX = 1.0
"""How far landmarks may lie outside a frame: other programs count pixels from their corners, or round."""

COLUMNS = ("frame_i", "frame_j", "x_i", "y_i", "x_j", "y_j")
SIGMA, AUTHOR, ALONG = "sigma_px", "author", "along_deg"
USE, ERROR, PREDICTED = "use", "error_px", "predicted_px"
LINK, CHECK = "link", "check"


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutRecord:
    """Landmarks that are for checking only, and the distance and the predicted distance of each, if they are known."""

    landmarks: Landmarks
    errors: tuple[tuple[float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class FrameSize:
    """The size of the frames that landmarks belong to, and the limit that they were reduced to, if any."""

    width: int
    height: int
    max_size: int | None = None

    def check(self, path: Path, line: int, points: Sequence[float]) -> None:
        """Refuse points x, y, x, y outside the frames: they belong to other frames, or to these at another size."""
        outline = Outline.of_pixels(self.width, self.height)
        for x, y in zip(points[::2], points[1::2], strict=True):
            if not outline.contains(np.array([x, y]), OUTSIDE_PX):
                remedy = "give landmarks of these frames"
                if self.max_size is not None:
                    remedy = f"--max-size {self.max_size} may have reduced them, give landmarks in their reduced pixels"
                raise TableError(
                    f"{path}, line {line}: ({x:g}, {y:g}) is not in a frame, frames of the project are {self.width} x "
                    f"{self.height} px; {remedy}"
                )


def read_landmarks(path: str | Path, *, sigma: float = 1.0, frames: FrameSize | None = None) -> list[Landmarks]:
    """Read all landmarks, one record a pair, sorted by pair; refuse those that lie outside the `frames`.

    `sigma` is that of landmarks of which the table does not say it.
    """
    path = Path(path)
    by_pair: dict[Pair, list[tuple[float, ...]]] = {}
    try:
        with open_table(path) as file, reading(path, TableError):
            reader = csv.DictReader(file)
            _check_header(path, reader.fieldnames)
            for row in reader:
                if row.get(USE) == CHECK:
                    continue
                pair, numbers = _parse(path, reader.line_num, row, sigma)
                if frames is not None:
                    frames.check(path, reader.line_num, numbers[:4])
                by_pair.setdefault(pair, []).append(numbers)
    except (UnicodeDecodeError, csv.Error):
        raise TableError(f"{path}: is not a CSV text file, expected the header {','.join(COLUMNS)}") from None
    records = []
    for pair, rows in sorted(by_pair.items()):
        numbers_of_pair = np.array(rows)
        sigmas = numbers_of_pair[:, 4]
        same = float(sigmas[0]) if (sigmas == sigmas[0]).all() else sigmas
        points_i, points_j, along = numbers_of_pair[:, :2], numbers_of_pair[:, 2:4], numbers_of_pair[:, 5:]
        records.append(Landmarks(pair, points_i, points_j, same, along))
    return records


def write_landmarks(
    path: Path,
    records: Iterable[Landmarks],
    authors: Mapping[Pair, str] | None = None,
    left_out: Sequence[LeftOutRecord] = (),
) -> None:
    """Write landmarks, sorted by pair, with those who set them; then those that were left out."""
    ordered = sorted(records, key=lambda record: record.pair)
    has_curves = any(record.along is not None for record in (*ordered, *(one.landmarks for one in left_out)))
    checks, curves = [USE, ERROR, PREDICTED] if left_out else [], [ALONG] if has_curves else []
    lines = [",".join([*COLUMNS, SIGMA, AUTHOR, *checks, *curves])]
    use = f",{LINK},," if left_out else ""
    for record in ordered:
        sigmas = np.broadcast_to(record.sigma, len(record))
        numbers = np.hstack([record.points_i, record.points_j, sigmas[:, None]])
        # One format for all rows of a pair: there may be a million.
        author = _quoted("" if authors is None else authors.get(record.pair, "")).replace("%", "%%")
        row = f"{record.pair.i},{record.pair.j},%.3f,%.3f,%.3f,%.3f,%.4g,{author}{use}"
        rows = "\n".join(row + end for end in _ends(record)) if has_curves else "\n".join([row] * len(numbers))
        lines.append(rows % tuple(numbers.ravel().tolist()))
    for one in sorted(left_out, key=lambda one: one.landmarks.pair):
        marks, author = one.landmarks, _quoted("" if authors is None else authors.get(one.landmarks.pair, ""))
        sigmas = np.broadcast_to(marks.sigma, (len(marks),))
        ends = _ends(marks) if has_curves else [""] * len(marks)
        for points_i, points_j, sigma, errors, end in zip(
            marks.points_i, marks.points_j, sigmas, one.errors, ends, strict=True
        ):
            said = ",".join("" if error is None else f"{error:.3f}" for error in errors)
            place = ",".join(f"{value:.3f}" for value in (*points_i, *points_j))
            lines.append(f"{marks.pair.i},{marks.pair.j},{place},{sigma:.4g},{author},{CHECK},{said}{end}")
    write_text(path, "\n".join(lines) + "\n")


def _ends(record: Landmarks) -> list[str]:
    """Return the last cells of the landmarks' lines, with the comma before: their directions."""
    return [f",{math.degrees(math.atan2(y, x)):.3f}" if x or y else "," for x, y in record.directions.tolist()]


def _quoted(text: str) -> str:
    plain = text.replace("\r", " ").replace("\n", " ")
    return '"' + plain.replace('"', '""') + '"' if any(mark in plain for mark in ',"') else plain


def _check_header(path: Path, names: object) -> None:
    found = list(names) if isinstance(names, list | tuple) else []
    missing = [name for name in COLUMNS if name not in found]
    unknown = [str(name) for name in found if name not in (*COLUMNS, SIGMA, AUTHOR, USE, ERROR, PREDICTED, ALONG)]
    if missing or unknown:
        wrong = f"unknown column '{unknown[0]}'" if unknown else f"no column '{missing[0]}'"
        raise TableError(f"{path}: {wrong}, expected the header {','.join(COLUMNS)}")


def _parse(
    path: Path, line: int, row: Mapping[str | None, str | None], usual_sigma: float
) -> tuple[Pair, tuple[float, ...]]:
    """Return the pair and x, y, x, y, sigma, and the direction of the curve that the landmark is on."""
    try:
        if None in row:  # the reader puts cells after the last column here
            raise ValueError
        frames = [int(row[name] or "") for name in COLUMNS[:2]]
        numbers = tuple(float(row[name] or "") for name in COLUMNS[2:])
        sigma = float(row.get(SIGMA) or usual_sigma)
        angle = math.radians(float(row[ALONG] or "")) if row.get(ALONG) else None
    except (TypeError, ValueError):
        raise TableError(f"{path}, line {line}: expected two whole numbers and four numbers") from None
    if not all(map(math.isfinite, numbers)):
        raise TableError(f"{path}, line {line}: a coordinate is not a finite number")
    if not 0.0 < sigma < math.inf:
        raise TableError(f"{path}, line {line}: {SIGMA} must be positive and finite")
    if angle is not None and not math.isfinite(angle):
        raise TableError(f"{path}, line {line}: {ALONG} must be an angle in degrees, or empty")
    along = (0.0, 0.0) if angle is None else (math.cos(angle), math.sin(angle))
    try:
        return Pair(*frames), (*numbers, sigma, *along)
    except PairError as error:
        raise TableError(f"{path}, line {line}: {error}") from None
