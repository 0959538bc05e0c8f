"""Smalti: mosaics from video, with the fewest questions asked.

The names in the block below are the public interface. They are imported when first used. `as` tells type checkers that
a name is public.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it; importing typing would take longer than all of this file
if TYPE_CHECKING:
    from smalti.active_loop import ActiveLoop as ActiveLoop
    from smalti.agents.agent import Agent as Agent, PrecomputedAgent as PrecomputedAgent
    from smalti.agents.matcher import Matcher as Matcher
    from smalti.annotation.session import Session as Session
    from smalti.building.build import build as build
    from smalti.errors import SmaltiError as SmaltiError
    from smalti.film.film import make_film as make_film
    from smalti.geometry.lens import Lens as Lens
    from smalti.geometry.outline import Outline as Outline
    from smalti.loop_setup import StopReason as StopReason, StopRule as StopRule
    from smalti.overlap.external_model import (
        ExternalModel as ExternalModel,
        FixedProbabilities as FixedProbabilities,
        PositionSensor as PositionSensor,
    )
    from smalti.overlap.weighted_signatures import WeightedSignatures as WeightedSignatures
    from smalti.project.project import Project as Project
    from smalti.project.uncertainty import Uncertainty as Uncertainty
    from smalti.records import (
        Answer as Answer,
        Author as Author,
        Landmarks as Landmarks,
        Pair as Pair,
        Suggestion as Suggestion,
        Verdict as Verdict,
    )
    from smalti.rendering.mosaic import Mosaic as Mosaic
    from smalti.server.serving import annotate as annotate
    from smalti.suggestion.state_view import View as View
    from smalti.suggestion.strategy import Strategy as Strategy

__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    from smalti.lazy_names import find, names_for_type_checkers  # noqa: PLC0415

    homes = names_for_type_checkers(__loader__.get_source(__name__))  # type: ignore[name-defined]
    return list(homes) if name == "__all__" else find(__name__, homes, name)


def __dir__() -> list[str]:
    from smalti.lazy_names import names_for_type_checkers  # noqa: PLC0415

    return sorted({*globals(), *names_for_type_checkers(__loader__.get_source(__name__))})  # type: ignore[name-defined]
