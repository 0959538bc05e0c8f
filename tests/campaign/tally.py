"""What an attack of the campaign reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias


@dataclass
class Tally:
    """How often an attack was tried, and what it broke."""

    attack: str
    tried: int = 0
    failures: list[str] = field(default_factory=list)  # a line each: what was done, and what went wrong
    outcomes: dict[str, int] = field(default_factory=dict)  # how often the product answered in which way

    def count(self, outcome: str) -> None:
        """Count one try and how the product answered."""
        self.tried += 1
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


Attack: TypeAlias = Callable[[int, int, Path], Tally]
"""Tries `count` times in an empty `folder`, with randomness from `seed` alone: attack(count, seed, folder)."""
