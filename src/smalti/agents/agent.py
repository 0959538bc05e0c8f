"""What an agent is."""

from __future__ import annotations

from typing import Protocol

from smalti.records import Answer, Pair


class Agent(Protocol):
    """Looks at two frames and says whether, and how, they overlap."""

    def answer(self, pair: Pair) -> Answer:
        """Say yes with landmarks, no, or unsure."""
        ...
