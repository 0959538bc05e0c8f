"""The hooks of the documentation site, imported without MkDocs."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


@cache
def hook(name: str) -> ModuleType:
    """Import a hook of the site."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / "_hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
