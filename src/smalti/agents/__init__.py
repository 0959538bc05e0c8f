"""Who answers: one small interface, and two agents that need no images."""

from __future__ import annotations

from smalti.agents.agent import Agent, PrecomputedAgent
from smalti_lab.simulated_agents import OracleAgent

__all__ = ["Agent", "OracleAgent", "PrecomputedAgent"]
