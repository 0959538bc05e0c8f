"""How entries and arrays are written into the project's file."""

from __future__ import annotations

import base64
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.geometry.affine import square
from smalti.project.entries import Act, AnswerEntry, LogEntry, Placement, Role
from smalti.records import Answer, Author, Landmarks, Pair, Verdict

LOG_COLUMNS = "place, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time"


def unpack_log_entry(row: tuple[Any, ...]) -> LogEntry:
    """Return the entry of a row of LOG_COLUMNS."""
    place, act, i, j, role, verdict, reason, landmarks, author, details, seconds, time = row
    pair = Pair(i, j)
    if Act(act) is not Act.GIVE:
        return LogEntry(place, Act(act), pair, None)
    kept = None
    if landmarks is not None:
        numbers = _unpack(landmarks, (-1, 5))
        kept = Landmarks(pair, numbers[:, :2], numbers[:, 2:4], numbers[:, 4])
    answer = Answer(pair, Verdict(verdict), kept, reason, Author(author))
    return LogEntry(place, Act.GIVE, pair, AnswerEntry(answer, Role(role), seconds, details, place, time))


def pack_answer(entry: AnswerEntry) -> dict[str, Any]:
    """Return what an answer says, by the columns of the log."""
    answer = entry.answer
    return {
        "role": entry.role,
        "verdict": answer.verdict,
        "reason": answer.reason,
        "landmarks": None if answer.landmarks is None else _pack_landmarks(answer.landmarks),
        "author": answer.author,
        "details": entry.details,
        "seconds": entry.seconds,
    }


def unpack_placement(row: tuple[Any, ...]) -> Placement:
    """Return the placement of a row of its table."""
    number, part, chain, final, sigma_px = row
    # A Smalti of before kept two rows of the chain's maps: the third was always (0, 0, 1).
    by_chain = square(_unpack(chain, (2, 3))) if len(chain) == 48 else _unpack(chain, (3, 3))
    return Placement(number, part, by_chain, _unpack(final, (3, 3)), sigma_px)


def pack_placement(placement: Placement) -> tuple[Any, ...]:
    """Return the row of a placement."""
    maps = map(_pack, (placement.chain, placement.final))
    return (placement.number, placement.part, *maps, placement.sigma_px)


def pack_mask(mask: NDArray[np.bool_]) -> str:
    """Return a mask (h, w) as text."""
    _, image = cv2.imencode(".png", mask.astype(np.uint8) * 255)
    return base64.b64encode(image.tobytes()).decode()


def unpack_mask(packed: str) -> NDArray[np.bool_]:
    """Return the mask (h, w) of a text."""
    image = cv2.imdecode(np.frombuffer(base64.b64decode(packed), dtype=np.uint8), cv2.IMREAD_GRAYSCALE)
    return np.asarray(image) > 0


def _pack_landmarks(landmarks: Landmarks) -> bytes:
    sigma = np.broadcast_to(np.asarray(landmarks.sigma), (len(landmarks),))
    return _pack(np.column_stack([landmarks.points_i, landmarks.points_j, sigma]))


def _pack(numbers: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<f8").tobytes()


def _unpack(packed: bytes, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.frombuffer(packed, dtype="<f8").reshape(shape).astype(np.float64)
