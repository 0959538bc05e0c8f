"""Import public names when they are first used, so that `import smalti` and the command line start at once."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def names_for_type_checkers(source: str) -> dict[str, str]:
    """Return name → module of the `if TYPE_CHECKING:` block of a package, where its public names are written once."""
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    return {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def find(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return a public name of a package, imported now."""
    if name not in homes:
        raise AttributeError(f"module '{package}' has no attribute '{name}'")
    return getattr(import_module(homes[name]), name)
