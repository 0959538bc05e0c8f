"""What a build can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from smalti.errors import UnknownNameError, UsageError
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import family_named
from smalti.project.facts import Binding, Method, Registration

ATTEMPTS_PER_FRAME = 3
"""Matching attempts a frame that a build may spend by default, the chain included."""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How to build; the frames, their chain and their looks depend on `source`, `mask` and `seed`."""

    source: SourceSettings = field(default_factory=SourceSettings)
    mask: str = "auto"  # "auto", "none", or the path of an image
    registration: Registration = "auto"  # of pairs, where no matcher of the user's does it
    method: Method = "smalti"
    family: str = "projective"  # of the maps
    reference: str = "auto"  # the frame that the mosaic is seen from, by its number
    budget: int | None = None  # questions of the loop; None: so that all attempts together are 3 a frame
    target_px: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        family_named(self.family)
        if self.method not in get_args(Method):
            raise UnknownNameError("method", self.method, get_args(Method))
        if self.reference != "auto" and not self.reference.isdecimal():
            raise UsageError(f"reference {self.reference}: give the number of a frame, or auto")
        if self.registration not in get_args(Registration):
            raise UnknownNameError("registration", self.registration, get_args(Registration))
        if self.budget is not None and self.budget < 0:
            raise UsageError(f"budget {self.budget}: give the number of questions, 0 for none")
        if self.target_px is not None and not self.target_px > 0:
            raise UsageError(f"target {self.target_px} px: give a positive number of pixels")
        if self.seed < 0:
            raise UsageError(f"seed {self.seed}: give a whole number, 0 or more")

    @property
    def asker(self) -> str:
        """What decides which questions are asked: others would not ask the same ones again."""
        return self.method if self.family == "projective" else f"{self.method} {self.family}"

    def loop_budget(self, frames: int, spent: int) -> int:
        """Return how many questions the loop may ask after `spent` attempts on the chain."""
        if self.budget is not None:
            return self.budget
        return max(0, ATTEMPTS_PER_FRAME * frames - spent)

    def binding(self, matcher: str = "keypoints") -> Binding:
        """Return what must be the same for a build to be resumed; `matcher` is the name of the user's own one."""
        return Binding(self.source, self.mask, self.seed, matcher)
