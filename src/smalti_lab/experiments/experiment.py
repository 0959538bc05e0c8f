"""The interface of an experiment, and the table of experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from smalti.agents.agent import PrecomputedAgent
from smalti.errors import UnknownNameError
from smalti.geometry.outline import Outline
from smalti.loop_setup import StopRule
from smalti.overlap.external_model import ExternalModel
from smalti.records import PairNumbers, Points
from smalti_lab.experiments.methods import SMALTI, Finish, FrameMaps, Loop, Method
from smalti_lab.experiments.real_sequence import caliterra, check_caliterra
from smalti_lab.experiments.wander import wander
from smalti_lab.experiments.worlds import check_circle, check_frames, circle, raster


class Experiment(Protocol):
    """Frames, an agent, an external model, and the error of a mosaic against the truth."""

    @property
    def frames(self) -> int:
        """N."""
        ...

    @property
    def outline(self) -> Outline:
        """Outline of every frame."""
        ...

    @property
    def positions(self) -> Points:
        """(N, 2): the centres of the frames, in any unit, for figures."""
        ...

    @property
    def external(self) -> ExternalModel:
        """The appearance of the frames."""
        ...

    @property
    def overlapping(self) -> PairNumbers:
        """(n, 2): the pairs to which the agent says yes, in order."""
        ...

    def agent(self, seed: int, *, chain_noise: float) -> PrecomputedAgent:
        """Return the agent of the run of a seed. Consecutive frames err `chain_noise` times as much as they state."""
        ...

    def start(
        self, agent: PrecomputedAgent, external: ExternalModel, method: Method, stop_rule: StopRule | None = None
    ) -> Loop:
        """Return the state before the first question."""
        ...

    def finish(self, start: Loop) -> Finish:
        """Return a function from a state to the mosaic whose error counts."""
        ...

    def relative_rmsd(self, maps: FrameMaps) -> float:
        """Return the RMS distance, in frame i, of T_ij x_j to the true x_i."""
        ...

    def shape_rmsd(self, maps: FrameMaps) -> float:
        """Return the RMS distance of the frame centres to the truth after the best similarity; NaN if it is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of experiment."""

    usual_frames: int
    check: Callable[[int, float], None]
    """Refuses a number of frames, or a noise of the chain, that it cannot have."""
    make: Callable[[int, int, Path | None], Experiment]
    """Takes the number of frames, the seed of the run, and the folder, if any, that keeps slow results."""
    family: str = "affine"
    """The default family of Smalti's maps. The paper's are affine."""

    def usual_family(self, strategy: str) -> str:
        """Return the default family of maps of a method."""
        return self.family if strategy == SMALTI else "affine"


def _check_raster(frames: int, _chain_noise: float) -> None:
    check_frames("raster", frames)


def _check_circle(frames: int, _chain_noise: float) -> None:
    check_circle(frames)


def _check_wander(frames: int, _chain_noise: float) -> None:
    check_frames("wander", frames)


EXPERIMENTS: dict[str, Kind] = {
    "raster": Kind(1000, _check_raster, lambda frames, _seed, _folder: raster(frames)),
    "circle": Kind(1000, _check_circle, lambda frames, _seed, _folder: circle(frames)),
    "wander": Kind(600, _check_wander, lambda frames, seed, _folder: wander(frames, seed)),
    "caliterra": Kind(75, check_caliterra, caliterra, "projective"),
}


def experiment_named(name: str) -> Kind:
    """Return a kind of experiment by its name."""
    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
