"""What axe-core, which `make page` installs, finds wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = {"serious", "critical"}


def serious(page: Page) -> list[str]:
    """Return what axe-core calls serious or worse, a line each."""
    if not AXE.is_file():
        pytest.skip(f"{AXE}: not installed; `make page` installs it")
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in found["violations"]
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]
