"""A real sequence with the real matcher: 75 frames of a drone over a building site, all pairs matched once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from smalti.agents.agent import Agent
from smalti.agents.precomputed import PrecomputedAgent
from smalti.appearance.words import signatures_of
from smalti.building.chain import register_chain
from smalti.errors import InputError, UsageError
from smalti.experiments.matches import Matches, keep_matches, load_matches
from smalti.experiments.methods import Finish, FrameMaps, Loop, Method, finish_all_alike
from smalti.experiments.worlds import check_frames
from smalti.geometry.outline import Outline
from smalti.georeference.positions import read_positions
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.loop import StopRule
from smalti.overlap.external import ExternalModel
from smalti.overlap.signatures import WeightedSignatures
from smalti.project.entries import Placement, Role
from smalti.project.evaluation import evaluate
from smalti.records import Answer, Expectation, Landmarks, Pair, PairNumbers, Points

NAME = "caliterra"
FRAMES = 75


def caliterra(frames: int, seed: int, folder: Path | None) -> Caliterra:
    """Take the first frames of the set; what matching found is kept in the folder, if there is one."""
    matches = None if folder is None else load_matches(folder, NAME, frames)
    if matches is None:
        # Imported here: workers find the matches made, and need not load what makes them.
        from smalti.experiments.matching import match_all  # noqa: PLC0415

        matches = match_all(_set() / "frames", frames)
        if folder is not None:
            keep_matches(folder, NAME, matches)
    judges = read_landmarks(_set() / "landmarks.csv")
    names = {n: path.name for n, path in enumerate(sorted((_set() / "frames").iterdir())[:frames])}
    metres = read_positions(_set() / "gps.csv", names).metres
    # From the first frame; north is up, y is down.
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
        raise UsageError(f"{NAME}: the noise of real frames is what it is, leave the chain's at 1")


@dataclass(frozen=True, eq=False)
class Caliterra:
    """Real frames; the truth are landmarks that were no input."""

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
        """Of every frame."""
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
        """Return an agent that knows, of the landmarks of each pair, as many drawn with replacement.

        That is how much luck there is in what was found: seeds are repetitions, although a pair is matched once.
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
        """Yield what joins frames that a chain leaves apart, the nearest in time first: the paper's cannot begin so."""
        part = np.arange(self.frames)
        for landmarks in links:
            part[part == part[landmarks.pair.j]] = part[landmarks.pair.i]
        for i, j in sorted(self.overlapping.tolist(), key=lambda pair: pair[1] - pair[0]):
            if part[i] != part[j] and (found := agent.answer(Pair(i, j)).landmarks) is not None:
                part[part == part[j]] = part[i]
                yield found

    def finish(self, start: Loop) -> Finish:
        """Return the finish of a build, the same whatever the method: affine maps do not follow these frames."""
        return finish_all_alike(start)

    def relative_rmsd(self, maps: FrameMaps) -> float:
        """Return the RMS distance, in frame i, of where the maps put x_j to x_i over all landmarks that judge."""
        placements = [
            Placement(n, int(part), final, final, 0.0)
            for n, (part, final) in enumerate(zip(maps.part, maps.mosaic_from_frame, strict=True))
        ]
        return evaluate(placements, self.judges, maps.lens).relative_rmsd_px

    def shape_rmsd(self, maps: FrameMaps) -> float:
        """Return NaN: GPS is too coarse to tell."""
        return float("nan")


def _set() -> Path:
    return Path(os.environ.get("SMALTI_DATA", "../shared/data")) / NAME
