"""A real sequence with the real matcher: 75 drone photographs. All pairs are matched once and stored on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from smalti import __version__
from smalti.agents.agent import Agent, PrecomputedAgent
from smalti.agents.matcher import KeypointAgent
from smalti.appearance.visual_words import signatures_of, strongest_of_cells
from smalti.building.chain import register_chain
from smalti.building.frame_views import FrameViews
from smalti.errors import InputError, OutputError, UsageError
from smalti.frames.pixels import in_gray
from smalti.frames.source import open_source
from smalti.geometry.outline import Outline
from smalti.georeference.positions import read_positions
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import ExternalModel
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti.project.entries import Placement, Role
from smalti.project.evaluation import evaluate
from smalti.records import Answer, Expectation, Landmarks, Pair, PairNumbers, Points
from smalti.registration.keypoints import Keypoints, find_keypoints
from smalti_lab.experiments.methods import Finish, FrameMaps, Loop, Method, finish_all_alike
from smalti_lab.experiments.worlds import check_frames

NAME = "caliterra"
FRAMES = 75


def caliterra(frames: int, seed: int, folder: Path | None) -> Caliterra:
    """Take the first frames of the set. Matches are stored in the folder, if there is one."""
    matches = None if folder is None else load_matches(folder, NAME, frames)
    if matches is None:
        # Imported here: workers find stored matches, and need not load the matcher.

        matches = match_all(_set() / "frames", frames)
        if folder is not None:
            keep_matches(folder, NAME, matches)
    judges = read_landmarks(_set() / "landmarks.csv")
    names = {n: path.name for n, path in enumerate(sorted((_set() / "frames").iterdir())[:frames])}
    metres = read_positions(_set() / "gps.csv", names).metres
    # From the first frame. North is up, y is down.
    positions = (np.array([metres[n] for n in range(frames)]) - metres[0]) * [1.0, -1.0]
    return Caliterra(matches, judges, positions, seed)


def check_caliterra(frames: int, chain_noise: float) -> None:
    """Refuse what the set does not have."""
    if not (_set() / "landmarks.csv").exists():
        raise InputError(f"{_set()}: the frames of {NAME} are not there, set SMALTI_DATA to the folder that has them")
    check_frames(NAME, frames)
    if frames > FRAMES:
        raise UsageError(f"{NAME}: the set has {FRAMES} frames, {frames} are too many")
    if chain_noise != 1.0:
        raise UsageError(f"{NAME}: the noise of real frames cannot be changed, leave --chain-noise at 1")


@dataclass(frozen=True, eq=False)
class Caliterra:
    """Real frames. The truth are landmarks that are not used as input."""

    matches: Matches
    judges: Sequence[Landmarks]
    positions: Points  # (N, 2), metres by GPS, y to the south
    seed: int

    @property
    def frames(self) -> int:
        """N."""
        return len(self.positions)

    @property
    def outline(self) -> Outline:
        """Outline of every frame."""
        return self.matches.outline

    @cached_property
    def external(self) -> ExternalModel:
        """Visual words, learned with the seed of the run."""
        return WeightedSignatures(signatures_of(self.matches.keypoints, self.outline, self.seed))

    @cached_property
    def overlapping(self) -> PairNumbers:
        """(n, 2): the pairs that match."""
        return np.unique(self.matches.pairs, axis=0)

    def agent(self, seed: int, *, chain_noise: float) -> PrecomputedAgent:
        """Return an agent with a bootstrap sample of each pair's landmarks, drawn with replacement.

        It shows the effect of chance in the matching: seeds are repetitions, although a pair is matched once.
        """
        assert chain_noise == 1.0
        return self.matches.drawn(np.random.default_rng(seed))

    def start(self, agent: Agent, external: ExternalModel, method: Method, stop_rule: StopRule | None = None) -> Loop:
        """Begin as a build does: with the chain and the triangles that measure its noise."""

        def ask(pair: Pair, role: Role, expected: Expectation | None = None) -> Answer:
            return agent.answer(pair)

        chain = register_chain(self.frames, self.outline, ask, 2 * self.frames)
        links = [*chain.links, *self._joining(chain.links, agent)]
        return method.start(self.frames, self.outline, links, external=external, stop_rule=stop_rule)

    def _joining(self, links: Sequence[Landmarks], agent: Agent) -> Iterator[Landmarks]:
        """Yield links that join parts of a broken chain, nearest in time first. The paper's loop needs them."""
        part = np.arange(self.frames)
        for landmarks in links:
            part[part == part[landmarks.pair.j]] = part[landmarks.pair.i]
        for i, j in sorted(self.overlapping.tolist(), key=lambda pair: pair[1] - pair[0]):
            if part[i] != part[j] and (found := agent.answer(Pair(i, j)).landmarks) is not None:
                part[part == part[j]] = part[i]
                yield found

    def finish(self, start: Loop) -> Finish:
        """Return the finish of a build, the same for every method, because affine maps do not fit these frames."""
        return finish_all_alike(start)

    def relative_rmsd(self, maps: FrameMaps) -> float:
        """Return the RMS distance, in frame i, of the mapped x_j to x_i over all landmarks of the truth."""
        placements = [
            Placement(n, int(part), final, final, 0.0)
            for n, (part, final) in enumerate(zip(maps.part, maps.mosaic_from_frame, strict=True))
        ]
        return evaluate(placements, self.judges, maps.lens).relative_rmsd_px

    def shape_rmsd(self, maps: FrameMaps) -> float:
        """Return NaN: GPS is too coarse for it."""
        return float("nan")


def _set() -> Path:
    return Path(os.environ.get("SMALTI_DATA", "../shared/data")) / NAME


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The landmarks of all pairs that match, one a row, in the order of their pairs; and keypoints for visual words."""

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
        """Return an agent with a bootstrap sample of each pair's landmarks, drawn with replacement."""
        _, first, of_row, count = np.unique(
            self.pairs, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        chosen = first[of_row] + np.floor(rng.random(len(self.pairs)) * count[of_row]).astype(np.int64)
        return PrecomputedAgent(self.pairs, self.points_i[chosen], self.points_j[chosen], np.ones(len(chosen)))


def keep_matches(folder: Path, name: str, matches: Matches) -> None:
    """Write the matches into a folder, under a temporary name first."""
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
        raise OutputError(f"{path}: cannot be written ({error.strerror}), free disk space and start again") from None


def load_matches(folder: Path, name: str, frames: int) -> Matches | None:
    """Return stored matches; None if there are none."""
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


def match_all(folder: Path, frames: int) -> Matches:
    """Match all pairs of the first frames. Return the matches, and the keypoints for visual words."""
    with open_source(folder) as source:
        outline, frame_views = Outline.of_pixels(source.width, source.height), FrameViews(source, "auto")
        keypoints = [
            find_keypoints(in_gray(image), frame_views.mask(number, image))
            for number, image in source.read_many(range(frames))
        ]
    agent = KeypointAgent(keypoints.__getitem__, outline)
    answers = (agent.answer(Pair(i, j)) for i, j in combinations(range(frames), 2))
    found = [answer.landmarks for answer in answers if answer.landmarks is not None]
    return Matches.of(found, [strongest_of_cells(of_frame, outline) for of_frame in keypoints], outline)
