"""The package as others see it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import smalti

ROOT = Path(__file__).parent.parent


def test_every_exported_name_can_be_imported():
    assert sorted(smalti.__all__) == sorted(smalti._HOME)
    for name in smalti.__all__:
        assert getattr(smalti, name) is getattr(importlib.import_module(smalti._HOME[name]), name)


def test_the_version_is_that_of_the_project_file_and_the_changelog():
    assert f'version = "{smalti.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## [{smalti.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_folders_import_only_folders_before_them():
    order = (
        *("errors", "compiled", "records", "geometry", "georeference", "synthetic", "frames", "rendering", "sparse"),
        *("registration", "engine", "appearance", "overlap", "suggestion", "interchange", "agents"),
        *("answered_loop", "loop", "paper"),
        *("project", "film", "report", "building", "experiments", "replaying", "annotation", "server", "cli"),
    )
    for path in (ROOT / "src" / "smalti").rglob("*.py"):
        room = path.relative_to(ROOT / "src" / "smalti").with_suffix("").parts[0]
        if room == "__init__":
            continue
        used = re.findall(r"^\s*from smalti\.(\w+)[\w.]* import", path.read_text(), flags=re.MULTILINE)
        late = [other for other in used if order.index(other) > order.index(room)]
        assert not late, f"{path.name} imports {late}"
