"""The strategies by name, each in a file of its own."""

from __future__ import annotations

from smalti.errors import UnknownNameError
from smalti.suggestion.strategies.area import Area
from smalti.suggestion.strategies.elibol import Elibol
from smalti.suggestion.strategies.external_only import ExternalOnly
from smalti.suggestion.strategies.paper import Paper
from smalti.suggestion.strategies.position_only import PositionOnly
from smalti.suggestion.strategies.sawhney import Sawhney
from smalti.suggestion.strategies.smalti import Smalti
from smalti.suggestion.strategies.strategy import Strategy
from smalti.suggestion.strategies.xia import Xia

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (Smalti(), Paper(), ExternalOnly(), PositionOnly(), Elibol(), Sawhney(), Xia(), Area())
}


def strategy_named(name: str) -> Strategy:
    """Look a strategy up by its name."""
    if name not in STRATEGIES:
        raise UnknownNameError("strategy", name, STRATEGIES)
    return STRATEGIES[name]


__all__ = ["STRATEGIES", "Strategy", "strategy_named"]
