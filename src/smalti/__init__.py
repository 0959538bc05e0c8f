"""Smalti: mosaics from video, with the fewest questions asked.

The names below are the public interface; they are imported when first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from smalti.adjustment.adjustment import Adjustment
    from smalti.adjustment.centres import Centres
    from smalti.adjustment.covariance import Covariance
    from smalti.adjustment.link import Link, fit_link
    from smalti.adjustment.local_covariance import LocalCovariance
    from smalti.adjustment.refinement import Refinement, refine
    from smalti.agents import Agent, OracleAgent, PrecomputedAgent
    from smalti.agents.person import SimulatedPerson
    from smalti.building.build import build
    from smalti.errors import SmaltiError
    from smalti.film.film import make_film
    from smalti.geometry.family import AFFINE, SIMILARITY, TRANSLATION, Family
    from smalti.geometry.outline import Outline
    from smalti.loop import ActiveLoop, StopReason, StopRule
    from smalti.overlap.external import ExternalModel, FixedProbabilities, NoExternalModel, PositionSensor
    from smalti.overlap.signatures import WeightedSignatures
    from smalti.project.project import Project
    from smalti.project.uncertainty import Uncertainty
    from smalti.records import Answer, Expectation, Landmarks, Pair, Suggestion, Verdict
    from smalti.rendering.mosaic import Mosaic
    from smalti.replaying.order import Replay
    from smalti.replaying.replay import replay
    from smalti.suggestion.strategies import STRATEGIES, Strategy, strategy_named
    from smalti.suggestion.view import View
    from smalti.synthetic.endoscopy.sequence import EndoscopeSequence
    from smalti.synthetic.sequence import SyntheticSequence

_HOME = {
    "AFFINE": "smalti.geometry.family",
    "STRATEGIES": "smalti.suggestion.strategies",
    "SIMILARITY": "smalti.geometry.family",
    "TRANSLATION": "smalti.geometry.family",
    "ActiveLoop": "smalti.loop",
    "Adjustment": "smalti.adjustment.adjustment",
    "Agent": "smalti.agents",
    "Answer": "smalti.records",
    "Centres": "smalti.adjustment.centres",
    "Covariance": "smalti.adjustment.covariance",
    "EndoscopeSequence": "smalti.synthetic.endoscopy.sequence",
    "Expectation": "smalti.records",
    "ExternalModel": "smalti.overlap.external",
    "Family": "smalti.geometry.family",
    "FixedProbabilities": "smalti.overlap.external",
    "Landmarks": "smalti.records",
    "Link": "smalti.adjustment.link",
    "NoExternalModel": "smalti.overlap.external",
    "OracleAgent": "smalti.agents",
    "Outline": "smalti.geometry.outline",
    "Pair": "smalti.records",
    "PositionSensor": "smalti.overlap.external",
    "PrecomputedAgent": "smalti.agents",
    "LocalCovariance": "smalti.adjustment.local_covariance",
    "Refinement": "smalti.adjustment.refinement",
    "SimulatedPerson": "smalti.agents.person",
    "SmaltiError": "smalti.errors",
    "StopReason": "smalti.loop",
    "StopRule": "smalti.loop",
    "Strategy": "smalti.suggestion.strategies",
    "Suggestion": "smalti.records",
    "Uncertainty": "smalti.project.uncertainty",
    "Verdict": "smalti.records",
    "View": "smalti.suggestion.view",
    "WeightedSignatures": "smalti.overlap.signatures",
    "build": "smalti.building.build",
    "Project": "smalti.project.project",
    "Mosaic": "smalti.rendering.mosaic",
    "SyntheticSequence": "smalti.synthetic.sequence",
    "make_film": "smalti.film.film",
    "replay": "smalti.replaying.replay",
    "Replay": "smalti.replaying.order",
    "fit_link": "smalti.adjustment.link",
    "refine": "smalti.adjustment.refinement",
    "strategy_named": "smalti.suggestion.strategies",
}

__all__ = [
    "AFFINE",
    "SIMILARITY",
    "STRATEGIES",
    "TRANSLATION",
    "ActiveLoop",
    "Adjustment",
    "Agent",
    "Answer",
    "Centres",
    "Covariance",
    "EndoscopeSequence",
    "Expectation",
    "ExternalModel",
    "Family",
    "FixedProbabilities",
    "Landmarks",
    "Link",
    "LocalCovariance",
    "Mosaic",
    "NoExternalModel",
    "OracleAgent",
    "Outline",
    "Pair",
    "PositionSensor",
    "PrecomputedAgent",
    "Project",
    "Refinement",
    "Replay",
    "SimulatedPerson",
    "SmaltiError",
    "StopReason",
    "StopRule",
    "Strategy",
    "Suggestion",
    "SyntheticSequence",
    "Uncertainty",
    "Verdict",
    "View",
    "WeightedSignatures",
    "build",
    "fit_link",
    "make_film",
    "refine",
    "replay",
    "strategy_named",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'smalti' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
