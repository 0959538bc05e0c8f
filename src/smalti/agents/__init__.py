"""Who answers: one small interface, and two agents that need no images."""

from __future__ import annotations

from smalti.agents.agent import Agent
from smalti.agents.oracle import OracleAgent
from smalti.agents.precomputed import PrecomputedAgent

__all__ = ["Agent", "OracleAgent", "PrecomputedAgent"]
