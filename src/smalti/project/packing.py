"""Rows of a project's file from its records, and back.

The file may be damaged or made by somebody else. So whatever is read is checked here, once: its types, its limits, its
checksum. What is wrong is a ValueError; the store knows what it belongs to.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import SmaltiError
from smalti.geometry.linear_maps import square
from smalti.interchange.checksums import row_checksum
from smalti.project.entries import Act, AnswerEntry, FrameEntry, LinkEntry, LinkState, LogEntry, Placement, Role
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from smalti.registration.camera_tracking import Track

Cell: TypeAlias = str | int | float | bytes | None
"""A value in a table."""

Row: TypeAlias = tuple[Cell, ...]

CHECKED_TABLES = {"frame": "number", "link": "i, j", "placement": "number"}
"""The tables that are written all at once and have one digest each, and their order."""

LOG_COLUMNS = (
    *("place", "act", "i", "j", "role", "verdict", "reason", "landmarks", "author", "details", "seconds", "time"),
)

MOST_FRAMES = 10_000_000
MOST_LANDMARKS = 1_000_000
LONGEST_NAME = 100
"""Of a registration method."""

LEAST_DETERMINANT = 1e-12
"""Of a frame's map: that of a frame drawn at a millionth of its size."""

_POINTS, _ON_CURVES = 5, 7
"""Numbers of a landmark in a log: without curves, and with the direction of the curve that it is on."""

_CURVE_BYTES = _ON_CURVES * 8
_CURVE_MARK = b"~"
"""The first byte of landmarks with directions. Packed numbers alone are a multiple of eight bytes."""


def table_digest(table: str, rows: Iterable[Row]) -> bytes:
    """Return the digest of a table that is written all at once."""
    digest = row_checksum((table,))
    for row in rows:
        digest = row_checksum(row, digest)
    return digest


def pack_log_row(place: int, act: Act, pair: Pair, time: float, entry: AnswerEntry | None = None) -> Row:
    """Return the row of LOG_COLUMNS of something that was done; a give has the answer's entry."""
    head = (place, str(act), pair.i, pair.j)
    if entry is None:  # only answers are given by the matcher too; all else is a person's
        return (*head, None, None, None, None, str(Author.PERSON), None, None, float(time))
    answer = entry.answer
    landmarks = None if answer.landmarks is None else _pack_landmarks(answer.landmarks)
    details = entry.details or _pack_methods(answer)
    said = (str(entry.role), str(answer.verdict), answer.reason, landmarks, str(answer.author), details)
    return (*head, *said, float(entry.seconds), float(time))


def unpack_log_row(row: Sequence[Any]) -> LogEntry:
    """Return the entry of a row of LOG_COLUMNS."""
    place, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time = row
    pair = unpack_pair(i, j)
    _whole(place, 1, 2**62)
    when = _finite(time)
    if Act(act) is not Act.GIVE:
        if Author(author) is not Author.PERSON or any(cell is not None for cell in row[4:8]):
            raise ValueError("only a give has an answer")
        return LogEntry(place, Act(act), pair, None)
    kept, details = None, _text(details)
    method, failed = ("", ()) if Author(author) is Author.PERSON else _unpack_methods(details)
    if landmarks is not None:
        if not isinstance(landmarks, bytes) or len(landmarks) > 1 + _CURVE_BYTES * MOST_LANDMARKS:
            raise ValueError("landmarks are bytes")
        numbers = landmark_numbers(landmarks)
        along = numbers[:, 5:] if numbers.shape[1] == _ON_CURVES else None
        kept = _allowed(Landmarks, pair, numbers[:, :2], numbers[:, 2:4], numbers[:, 4], along, method)
    answer = _allowed(Answer, pair, Verdict(verdict), kept, _text(reason), Author(author), failed)
    # What the answer itself says of its methods is not repeated.
    details = "" if details == _pack_methods(answer) else details
    entry = AnswerEntry(answer, Role(role), _finite(seconds), details, place, when)
    return LogEntry(place, Act.GIVE, pair, entry)


def unpack_pair(i: object, j: object) -> Pair:
    """Return a pair of frames."""
    pair: Pair = _allowed(Pair, _whole(i, 0, MOST_FRAMES), _whole(j, 0, MOST_FRAMES))
    return pair


def pack_frame(frame: FrameEntry) -> Row:
    """Return the row of a frame."""
    return (frame.number, frame.label, frame.reason)


def unpack_frames(rows: Sequence[Sequence[Any]]) -> list[FrameEntry]:
    """Return the frames, which are numbered from 0 without a gap."""
    frames = [FrameEntry(_whole(number, 0, MOST_FRAMES), _text(label), _text(why)) for number, label, why in rows]
    if [frame.number for frame in frames] != list(range(len(frames))):
        raise ValueError("a frame is missing")
    return frames


def pack_link(entry: LinkEntry) -> Row:
    """Return the row of a link."""
    numbers = (float(entry.chi2), float(entry.weight), float(entry.residual_px))
    return (entry.pair.i, entry.pair.j, str(entry.state), *numbers)


def unpack_link(row: Sequence[Any]) -> LinkEntry:
    """Return the link of a row; links between mosaics have no finite residual."""
    i, j, state, chi2, weight, residual_px = row
    return LinkEntry(unpack_pair(i, j), LinkState(state), _real(chi2), _finite(weight), _real(residual_px))


def pack_placement(placement: Placement) -> Row:
    """Return the row of a placement."""
    maps = map(_pack, (placement.chain, placement.final))
    return (placement.number, placement.part, *maps, float(placement.sigma_px))


def unpack_placement(row: Sequence[Any]) -> Placement:
    """Return the placement of a row."""
    number, part, chain, final, sigma_px = row
    # A Smalti of before kept two rows of the chain's maps: the third was always (0, 0, 1).
    two_rows = isinstance(chain, bytes) and len(chain) == 48
    by_chain = square(_unpack(chain, (2, 3))) if two_rows else _unpack(chain, (3, 3))
    by_all = _unpack(final, (3, 3))
    if not abs(np.linalg.det(by_all)) > LEAST_DETERMINANT:
        raise ValueError("a map that cannot be inverted")
    return Placement(_whole(number, 0, MOST_FRAMES), _whole(part, 0, MOST_FRAMES), by_chain, by_all, _real(sigma_px))


def unpack_seconds(name: object, seconds: object) -> tuple[str, float]:
    """Return a stage and the time spent in it."""
    return _text(name), _finite(seconds)


def pack_mask(mask: NDArray[np.bool_]) -> str:
    """Return a mask (h, w) as text."""
    _, image = cv2.imencode(".png", mask.astype(np.uint8) * 255)
    return pack_picture(image.tobytes())


def unpack_mask(packed: str, width: int, height: int) -> NDArray[np.bool_]:
    """Return the mask (h, w) of a text."""
    content = unpack_picture(packed, width, height)
    try:
        image = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    except cv2.error:
        image = None
    if image is None or image.shape != (height, width):
        raise ValueError("a mask that cannot be read")
    return np.asarray(image) > 0


def pack_picture(picture: bytes) -> str:
    """Return the PNG of a mask as text."""
    return base64.b64encode(picture).decode()


def unpack_picture(packed: str, width: int, height: int) -> bytes:
    """Return the PNG of a mask (h, w) of a text."""
    content = base64.b64decode(packed, validate=True)
    # A small file may claim to be a huge image: its size is read before its pixels.
    if len(content) < 24 or struct.unpack(">2I", content[16:24]) != (width, height):
        raise ValueError("a mask of another size")
    return content


def pack_tracks(tracks: Mapping[int, tuple[int, Track]]) -> str:
    """Return the tracks of frames, by number, each with the keyframe that it is of, as text."""
    rows = [
        [number, of, track.sigma_px, track.gain, *track.anchor_from_frame.ravel()]
        for number, (of, track) in sorted(tracks.items())
    ]
    return base64.b64encode(_pack(np.array(rows, dtype=np.float64))).decode()


def unpack_tracks(packed: str, frames: int) -> dict[int, tuple[int, Track]]:
    """Return the tracks of a text; raise ValueError if they are not those of so many frames."""
    rows = np.frombuffer(base64.b64decode(packed, validate=True), dtype="<f8").reshape(-1, 13)
    numbers = rows[:, :2]
    ascending = len(rows) < 2 or bool(np.all(np.diff(numbers[:, 0]) > 0))
    if not np.isfinite(rows).all() or not ascending or not np.array_equal(numbers, numbers.round()):
        raise ValueError("tracks that are none")
    if not np.all((numbers[:, 1] >= 0) & (numbers[:, 1] < numbers[:, 0]) & (numbers[:, 0] < frames)):
        raise ValueError("tracks of other frames")
    return {int(row[0]): (int(row[1]), Track(row[4:].reshape(3, 3), float(row[2]), float(row[3]))) for row in rows}


def landmark_numbers(packed: object) -> NDArray[np.float64]:
    """Unpack landmarks (n, 5): x_i, y_i, x_j, y_j, σ; or (n, 7), with their directions, where some are on curves."""
    if isinstance(packed, bytes) and packed.startswith(_CURVE_MARK) and len(packed) % 8 == 1:
        return _unpack(packed[1:], (-1, _ON_CURVES))
    return _unpack(packed, (-1, _POINTS))


def pack_landmark_numbers(numbers: NDArray[np.float64]) -> bytes:
    """Pack landmarks (n, 5) or (n, 7)."""
    if numbers.size and (numbers.ndim != 2 or numbers.shape[1] not in (_POINTS, _ON_CURVES)):
        raise ValueError("a landmark has five or seven numbers")
    return (_CURVE_MARK if numbers.size and numbers.shape[1] == _ON_CURVES else b"") + _pack(numbers)


def _pack_methods(answer: Answer) -> str:
    """Return the registration methods of a matcher's answer as JSON; empty if none is known."""
    known = answer.author is Author.MATCHER and (answer.method or answer.failed)
    return json.dumps({"method": answer.method, "failed": answer.failed}) if known else ""


def _unpack_methods(details: str) -> tuple[str, tuple[str, ...]]:
    """Return the registration method that said yes and those that failed; none if nothing is known of them."""
    try:
        said = json.loads(details or "{}")
    except (ValueError, RecursionError):  # of another program
        return "", ()
    method, failed = (said.get("method"), said.get("failed")) if isinstance(said, dict) else (None, None)
    if not isinstance(failed, list) or not all(_is_name(one) for one in (method, *failed)):
        return "", ()
    return str(method), tuple(failed)


def _is_name(text: object) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_NAME and text.isprintable()


def _pack_landmarks(landmarks: Landmarks) -> bytes:
    sigma = np.broadcast_to(np.asarray(landmarks.sigma), (len(landmarks),))
    columns = [landmarks.points_i, landmarks.points_j, sigma]
    return pack_landmark_numbers(np.column_stack(columns if landmarks.along is None else [*columns, landmarks.along]))


def _pack(numbers: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<f8").tobytes()


def _unpack(packed: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if not isinstance(packed, bytes):
        raise ValueError(f"numbers are kept as bytes, not as {type(packed).__name__}")
    numbers = np.frombuffer(packed, dtype="<f8").reshape(shape).astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a number is not finite")
    return numbers


def _whole(value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"expected a number from {least} to {most}")
    return value


def _real(value: object) -> float:
    if not isinstance(value, float) or math.isnan(value):
        raise ValueError("expected a number")
    return value


def _finite(value: object) -> float:
    if not math.isfinite(_real(value)):
        raise ValueError("expected a finite number")
    return _real(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value


def _allowed(kind: Any, *values: object) -> Any:
    try:
        return kind(*values)
    except SmaltiError as error:
        raise ValueError(str(error)) from None
