"""Smalti: mosaics from video, with the fewest questions asked.

The names below are the public interface; they are imported when first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from smalti.agents import Agent, OracleAgent, PrecomputedAgent
    from smalti.agents.person import SimulatedPerson
    from smalti.building.build import build
    from smalti.engine.covariance import Covariance
    from smalti.engine.estimate import Estimate
    from smalti.engine.links import Link, fit_link
    from smalti.errors import SmaltiError
    from smalti.film.film import make_film
    from smalti.geometry.lens import Lens
    from smalti.geometry.maps import AFFINE, PROJECTIVE, RIGID, SIMILARITY, TRANSLATION, Family
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
    from smalti.suggestion.strategy import Strategy
    from smalti.suggestion.view import View
    from smalti.synthetic.endoscopy.sequence import EndoscopeSequence
    from smalti.synthetic.sequence import SyntheticSequence

_HOME = {
    "Estimate": "smalti.engine.estimate",
    "Lens": "smalti.geometry.lens",
    "PROJECTIVE": "smalti.geometry.maps",
    "RIGID": "smalti.geometry.maps",
    "AFFINE": "smalti.geometry.maps",
    "SIMILARITY": "smalti.geometry.maps",
    "TRANSLATION": "smalti.geometry.maps",
    "ActiveLoop": "smalti.loop",
    "Agent": "smalti.agents",
    "Answer": "smalti.records",
    "Covariance": "smalti.engine.covariance",
    "EndoscopeSequence": "smalti.synthetic.endoscopy.sequence",
    "Expectation": "smalti.records",
    "ExternalModel": "smalti.overlap.external",
    "Family": "smalti.geometry.maps",
    "FixedProbabilities": "smalti.overlap.external",
    "Landmarks": "smalti.records",
    "Link": "smalti.engine.links",
    "NoExternalModel": "smalti.overlap.external",
    "OracleAgent": "smalti.agents",
    "Outline": "smalti.geometry.outline",
    "Pair": "smalti.records",
    "PositionSensor": "smalti.overlap.external",
    "PrecomputedAgent": "smalti.agents",
    "SimulatedPerson": "smalti.agents.person",
    "SmaltiError": "smalti.errors",
    "StopReason": "smalti.loop",
    "StopRule": "smalti.loop",
    "Strategy": "smalti.suggestion.strategy",
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
