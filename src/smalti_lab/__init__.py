"""The lab: synthetic sequences, experiments, replay, comparison strategies and simulated agents.

The names in the block below are its public interface. They are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smalti.lazy_names import find, names_for_type_checkers

if TYPE_CHECKING:
    from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence as EndoscopeSequence
    from smalti_lab.replaying import Replay as Replay, replay as replay
    from smalti_lab.simulated_agents import OracleAgent as OracleAgent, SimulatedPerson as SimulatedPerson
    from smalti_lab.synthetic.camera_path import (
        Handling as Handling,
        circle as circle,
        raster as raster,
        wander as wander,
    )
    from smalti_lab.synthetic.degradation import Degradation as Degradation
    from smalti_lab.synthetic.scene import load_scene as load_scene, procedural_scene as procedural_scene
    from smalti_lab.synthetic.synthetic_files import write_frames as write_frames, write_video as write_video
    from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence as SyntheticSequence

_HOMES = names_for_type_checkers(__loader__.get_source(__name__))  # type: ignore[name-defined]
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    return find(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
