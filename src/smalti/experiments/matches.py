"""What matching all pairs of a sequence found, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smalti import __version__
from smalti.agents.precomputed import PrecomputedAgent
from smalti.errors import OutputError
from smalti.geometry.outline import Outline
from smalti.records import Landmarks, PairNumbers, Points
from smalti.registration.keypoints import Keypoints


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The landmarks of all pairs that match, one a row, in the order of their pairs; and what words are made of."""

    pairs: PairNumbers  # (n, 2), the pair of each landmark
    points_i: Points  # (n, 2)
    points_j: Points
    keypoints: Sequence[Keypoints]  # of every frame, the strongest of each cell
    outline: Outline

    @classmethod
    def of(cls, found: Sequence[Landmarks], keypoints: Sequence[Keypoints], outline: Outline) -> Matches:
        """Take landmarks in the order of their pairs; at least one pair."""
        return cls(
            np.concatenate([np.tile((r.pair.i, r.pair.j), (len(r), 1)) for r in found]),
            np.concatenate([record.points_i for record in found]),
            np.concatenate([record.points_j for record in found]),
            keypoints,
            outline,
        )

    def drawn(self, rng: np.random.Generator) -> PrecomputedAgent:
        """Return an agent that knows, of each pair's landmarks, as many drawn with replacement."""
        _, first, of_row, count = np.unique(
            self.pairs, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        chosen = first[of_row] + np.floor(rng.random(len(self.pairs)) * count[of_row]).astype(np.int64)
        return PrecomputedAgent(self.pairs, self.points_i[chosen], self.points_j[chosen], np.ones(len(chosen)))


def keep_matches(folder: Path, name: str, matches: Matches) -> None:
    """Write them into a folder, beside their place first."""
    path = _path(folder, name, len(matches.keypoints))
    keypoints, outline = matches.keypoints, matches.outline
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(
                file,
                allow_pickle=False,
                pairs=matches.pairs,
                points_i=matches.points_i,
                points_j=matches.points_j,
                outline=np.array([outline.left, outline.top, outline.right, outline.bottom]),
                ends=np.cumsum([len(of_frame) for of_frame in keypoints]),
                points=np.concatenate([of_frame.points for of_frame in keypoints]),
                descriptors=np.concatenate([of_frame.descriptors for of_frame in keypoints]),
                strengths=np.concatenate([of_frame.strengths for of_frame in keypoints]),
            )
        partial.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}), make room and start again") from None


def load_matches(folder: Path, name: str, frames: int) -> Matches | None:
    """Return what was kept, None if nothing was."""
    path = _path(folder, name, frames)
    if not path.exists():
        return None
    with np.load(path) as arrays:
        of_frames = zip(
            *(np.split(arrays[key], arrays["ends"][:-1]) for key in ("points", "descriptors", "strengths")), strict=True
        )
        return Matches(
            arrays["pairs"],
            arrays["points_i"],
            arrays["points_j"],
            [Keypoints(*of_frame) for of_frame in of_frames],
            Outline(*map(float, arrays["outline"])),
        )


def _path(folder: Path, name: str, frames: int) -> Path:
    return folder / f"matches_{name}_{frames}_{__version__}.npz"
