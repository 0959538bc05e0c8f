"""The settings of a build."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import get_args

from smalti.building.keyframes import parse_share
from smalti.errors import UnknownNameError, UsageError
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import family_named
from smalti.project.facts import Binding, Method, Registration

ATTEMPTS_PER_FRAME = 3
"""Matching attempts per frame that a build may make by default, the chain included."""

LONGEST_NUMBER = 15
"""Digits of a frame number; longer ones are typing errors."""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How to build. The frames, their chain and their appearance depend on `source`, `mask`, `keyframes` and `seed`."""

    source: SourceSettings = field(default_factory=SourceSettings)
    mask: str = "auto"  # "auto", "none", or the path of an image or of a folder of images
    registration: Registration = "auto"  # of pairs, unless the user gives a matcher
    method: Method = "smalti"
    family: str = "projective"  # of the maps
    reference: str = "auto"  # number of the frame that defines the mosaic's coordinates
    budget: int | None = None  # questions of the loop; None: as long as they pay, at most 3 attempts per frame in all
    target_px: float | None = None
    seed: int = 0
    keyframes: str = "auto"  # "auto", "all", or the share of the view that is new in the next keyframe

    def __post_init__(self) -> None:
        parse_share(self.keyframes)
        family_named(self.family)
        if self.method not in get_args(Method):
            raise UnknownNameError("method", self.method, get_args(Method))
        if self.reference != "auto" and not (self.reference.isdecimal() and len(self.reference) <= LONGEST_NUMBER):
            raise UsageError(f"reference {self.reference}: give the number of a frame, or auto")
        if self.registration not in get_args(Registration):
            raise UnknownNameError("registration", self.registration, get_args(Registration))
        if self.budget is not None and self.budget < 0:
            raise UsageError(f"budget {self.budget}: give the number of questions, 0 for none")
        if self.target_px is not None and not 0 < self.target_px < math.inf:
            raise UsageError(f"target {self.target_px} px: give a positive number of pixels")
        if self.seed < 0:
            raise UsageError(f"seed {self.seed}: give a whole number, 0 or more")

    @property
    def asker(self) -> str:
        """Everything that determines the questions. Other settings would ask other questions."""
        return self.method if self.family == "projective" else f"{self.method} {self.family}"

    def loop_budget(self, frames: int, spent: int) -> int:
        """Return the number of questions for the loop after `spent` attempts on the chain."""
        if self.budget is not None:
            return self.budget
        return max(0, ATTEMPTS_PER_FRAME * frames - spent)

    def binding(self, matcher: str = "keypoints") -> Binding:
        """Return the settings that must be the same to resume a build. `matcher` is the name of the user's own."""
        return Binding(self.source, self.mask, self.seed, matcher, self.keyframes)
