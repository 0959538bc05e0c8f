"""Agents that ask other agents."""

from __future__ import annotations

from collections.abc import Sequence

from smalti.agents.agent import Agent, ask
from smalti.records import Answer, Expectation, Pair, Verdict


class Consultation:
    """Asks agents in turn, until one says yes."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self._agents = tuple(agents)

    def answer(self, pair: Pair) -> Answer:
        """Say yes with the landmarks of the first who finds some, or no and why nobody does."""
        return self._consult(pair, None)

    def answer_expecting(self, pair: Pair, expected: Expectation) -> Answer:
        """Say the same, telling those who want to know what is expected."""
        return self._consult(pair, expected)

    def _consult(self, pair: Pair, expected: Expectation | None) -> Answer:
        reasons = []
        for n, agent in enumerate(self._agents):
            if expected is None and isinstance(agent, Anywhere) and agent.who in self._agents[:n]:
                continue  # it was told nothing the first time, and would say the same again
            answer = ask(agent, pair, expected)
            if answer.verdict is Verdict.YES:
                return answer
            reasons.append(answer.reason)
        return Answer.no(pair, "; ".join(reasons))


class Anywhere:
    """Asks an agent without telling it what is expected."""

    def __init__(self, agent: Agent) -> None:
        self.who = agent

    def answer(self, pair: Pair) -> Answer:
        """Say what the agent says."""
        return self.who.answer(pair)
