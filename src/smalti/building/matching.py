"""Who registers frames: keypoints where they are found, all pixels where they are not. The sequence itself tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from smalti.adjustment.link import fit_link
from smalti.agents.agent import Agent
from smalti.agents.consultation import Anywhere, Consultation
from smalti.agents.dense import DenseAgent
from smalti.agents.matcher import CallableAgent, KeypointAgent, Matcher
from smalti.building.settings import Registration
from smalti.building.sight import Sight
from smalti.project.entries import Role
from smalti.project.project import Project
from smalti.records import Landmarks, Pair
from smalti.registration.fitting import FitSettings

TRIALS = 12
"""Consecutive pairs, spread over the sequence, that are registered in both ways to see which is better."""

GOOD_SHARE, GOOD_LANDMARKS = 0.9, 100
"""Of the trials, and of the median one: keypoints that match so often and so many are enough, and a pair that they do
not match does not overlap."""

CLEARLY_MORE = 0.1
"""Of the trials: who registers so many more is better, else who does it more precisely."""

EXACT_PX, NOTHING_PX = 1e-6, 1e6
"""Residuals of a map that its landmarks were made by, and a σ that says nothing."""

FEWEST_TRUSTED = 30
"""Matches that agree, from which on keypoints are believed where all pixels tell more: the paper's number."""


@dataclass(frozen=True, slots=True)
class Trial:
    """How one way of registering did."""

    share: float  # of the pairs that it found a map of
    landmarks: float  # median
    sigma_px: float  # median, of mapped points

    @property
    def is_good(self) -> bool:
        """Tell whether there is no need for anything else."""
        return self.share >= GOOD_SHARE and self.landmarks >= GOOD_LANDMARKS

    def is_better_than(self, other: Trial) -> bool:
        """Tell which of two ways to prefer."""
        if abs(self.share - other.share) > CLEARLY_MORE:
            return self.share > other.share
        return self.sigma_px < other.sigma_px


@dataclass(frozen=True, slots=True, eq=False)
class Matchers:
    """Who is asked: about consecutive frames and their neighbours, and about frames far apart."""

    near: Agent
    far: Agent
    is_dense: bool = False  # whether looks go by all pixels too

    def of_role(self, role: Role) -> Agent:
        """Return who is asked in a role."""
        return self.far if role is Role.LOOP else self.near


def choose_matchers(
    project: Project, sight: Sight, matcher: Matcher | None, registration: Registration, used: Sequence[int]
) -> Matchers:
    """Return a matcher of the user's, or those that serve this sequence best."""
    if matcher is not None:
        agent = CallableAgent(matcher, project.source.read, project.outline)
        return Matchers(agent, agent)
    keypoints = KeypointAgent(project.cache.keypoints, project.outline)
    dense = DenseAgent(sight.prepared)
    if registration == "keypoints":
        return Matchers(keypoints, keypoints)
    if registration == "dense":
        return Matchers(Consultation([dense, Anywhere(dense)]), dense, is_dense=True)
    by_keypoints, by_pixels = _trials(project, keypoints, dense, used)
    if by_pixels is None or not by_pixels.is_better_than(by_keypoints):
        near = Consultation([keypoints, dense, Anywhere(dense)])
        return Matchers(near, keypoints if by_pixels is None else Consultation([keypoints, dense]))
    trusted = KeypointAgent(project.cache.keypoints, project.outline, FitSettings(least_inliers=FEWEST_TRUSTED))
    near, far = Consultation([dense, trusted, Anywhere(dense)]), Consultation([dense, trusted])
    return Matchers(near, far, is_dense=True)


def _trials(project: Project, keypoints: Agent, dense: Agent, used: Sequence[int]) -> tuple[Trial, Trial | None]:
    """Return how keypoints do, and how all pixels do where keypoints are not good; found once, then kept."""
    known = project.store.fact("trials")
    if known is None:
        first = np.unique(np.linspace(0, len(used) - 2, min(TRIALS, len(used) - 1)).round().astype(int))
        pairs = [Pair(used[n], used[n + 1]) for n in first]
        by_keypoints = _try(keypoints, pairs)
        found = [by_keypoints] if by_keypoints.is_good else [by_keypoints, _try(dense, pairs)]
        known = [astuple(trial) for trial in found]
        project.store.keep_facts(trials=known)
    trials = [Trial(*values) for values in known]
    return trials[0], trials[1] if len(trials) > 1 else None


def _try(agent: Agent, pairs: Sequence[Pair]) -> Trial:
    found = [landmarks for pair in pairs if (landmarks := agent.answer(pair).landmarks) is not None]
    if not found:
        return Trial(0.0, 0.0, NOTHING_PX)
    counts = [len(landmarks) for landmarks in found]
    return Trial(len(found) / len(pairs), float(np.median(counts)), float(np.median([_sigma_px(one) for one in found])))


def _sigma_px(landmarks: Landmarks) -> float:
    """Return how precisely an affine map through landmarks maps them, about: three parameters a coordinate.

    Matches say by their residuals how good they are; a grid laid over a map has none, its σ is known.
    """
    residual = fit_link(landmarks).residual_px / math.sqrt(2.0)
    of_one = residual if residual > EXACT_PX else float(np.mean(landmarks.sigma))
    return of_one * math.sqrt(3 / len(landmarks))
