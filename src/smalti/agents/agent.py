"""What an agent is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from smalti.records import Answer, Expectation, Pair


class Agent(Protocol):
    """Looks at two frames and says whether, and how, they overlap."""

    def answer(self, pair: Pair) -> Answer:
        """Say yes with landmarks, no, or unsure."""
        ...


@runtime_checkable
class ExpectingAgent(Protocol):
    """An agent that looks better when it is told where."""

    def answer(self, pair: Pair) -> Answer:
        """Say yes with landmarks, no, or unsure, without being told anything."""
        ...

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Say yes with landmarks, no, or unsure; the frames are thought to lie like this to each other."""
        ...


def ask(agent: Agent, pair: Pair, expected: Expectation | None) -> Answer:
    """Ask an agent, and tell it what is expected if it wants to know."""
    if expected is not None and isinstance(agent, ExpectingAgent):
        return agent.answer_expecting(pair, expected)
    return agent.answer(pair)
