"""Smalti: mosaics from video, with the fewest questions asked.

The names below are the public interface; they are imported when first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from smalti.active_loop import ActiveLoop, StopReason, StopRule
    from smalti.agents.agent import Agent, PrecomputedAgent
    from smalti.building.build import build
    from smalti.engine.covariance import Covariance
    from smalti.engine.estimate import Estimate
    from smalti.engine.links import Link, fit_link
    from smalti.errors import SmaltiError
    from smalti.film.film import make_film
    from smalti.geometry.homographies import AFFINE, PROJECTIVE, RIGID, SIMILARITY, TRANSLATION, Family
    from smalti.geometry.lens import Lens
    from smalti.geometry.outline import Outline
    from smalti.overlap.external_model import ExternalModel, FixedProbabilities, NoExternalModel, PositionSensor
    from smalti.overlap.weighted_signatures import WeightedSignatures
    from smalti.project.project import Project
    from smalti.project.uncertainty import Uncertainty
    from smalti.records import Answer, Expectation, Landmarks, Pair, Suggestion, Verdict
    from smalti.rendering.mosaic import Mosaic
    from smalti.suggestion.state_view import View
    from smalti.suggestion.strategy import Strategy
    from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
    from smalti_lab.replay import Replay, replay
    from smalti_lab.simulated_agents import OracleAgent, SimulatedPerson
    from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

_HOME = {
    "Estimate": "smalti.engine.estimate",
    "Lens": "smalti.geometry.lens",
    "PROJECTIVE": "smalti.geometry.homographies",
    "RIGID": "smalti.geometry.homographies",
    "AFFINE": "smalti.geometry.homographies",
    "SIMILARITY": "smalti.geometry.homographies",
    "TRANSLATION": "smalti.geometry.homographies",
    "ActiveLoop": "smalti.active_loop",
    "Agent": "smalti.agents",
    "Answer": "smalti.records",
    "Covariance": "smalti.engine.covariance",
    "EndoscopeSequence": "smalti_lab.endoscopy.endoscope_sequence",
    "Expectation": "smalti.records",
    "ExternalModel": "smalti.overlap.external_model",
    "Family": "smalti.geometry.homographies",
    "FixedProbabilities": "smalti.overlap.external_model",
    "Landmarks": "smalti.records",
    "Link": "smalti.engine.links",
    "NoExternalModel": "smalti.overlap.external_model",
    "OracleAgent": "smalti.agents",
    "Outline": "smalti.geometry.outline",
    "Pair": "smalti.records",
    "PositionSensor": "smalti.overlap.external_model",
    "PrecomputedAgent": "smalti.agents",
    "SimulatedPerson": "smalti_lab.simulated_agents",
    "SmaltiError": "smalti.errors",
    "StopReason": "smalti.active_loop",
    "StopRule": "smalti.active_loop",
    "Strategy": "smalti.suggestion.strategy",
    "Suggestion": "smalti.records",
    "Uncertainty": "smalti.project.uncertainty",
    "Verdict": "smalti.records",
    "View": "smalti.suggestion.state_view",
    "WeightedSignatures": "smalti.overlap.weighted_signatures",
    "build": "smalti.building.build",
    "Project": "smalti.project.project",
    "Mosaic": "smalti.rendering.mosaic",
    "SyntheticSequence": "smalti_lab.synthetic.synthetic_sequence",
    "make_film": "smalti.film.film",
    "replay": "smalti_lab.replay",
    "Replay": "smalti_lab.replay",
    "fit_link": "smalti.engine.links",
}

__all__ = [
    "AFFINE",
    "PROJECTIVE",
    "RIGID",
    "SIMILARITY",
    "TRANSLATION",
    "ActiveLoop",
    "Agent",
    "Answer",
    "Covariance",
    "EndoscopeSequence",
    "Estimate",
    "Expectation",
    "ExternalModel",
    "Family",
    "FixedProbabilities",
    "Landmarks",
    "Lens",
    "Link",
    "Mosaic",
    "NoExternalModel",
    "OracleAgent",
    "Outline",
    "Pair",
    "PositionSensor",
    "PrecomputedAgent",
    "Project",
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
    "replay",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'smalti' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
