"""The package as others see it."""

from __future__ import annotations

import ast
import graphlib
from collections import Counter
from pathlib import Path

import pytest

import smalti
import smalti_lab

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"


@pytest.mark.parametrize("package", [smalti, smalti_lab], ids=lambda package: package.__name__)
def test_every_public_name_can_be_imported(package):
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name).__class__ is not type(package), f"{name} is a module"


def test_a_name_that_is_not_public_is_refused_as_usual():
    with pytest.raises(AttributeError, match="module 'smalti' has no attribute 'Mosaik'"):
        smalti.Mosaik  # noqa: B018


def test_the_version_is_that_of_the_project_file_and_the_changelog():
    assert f'version = "{smalti.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## [{smalti.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


ORDER = (
    *(
        "lazy_names",
        "errors",
        "records",
        "compiled",
        "progress",
        "frame_numbers",
        "notebook_html",
        "geometry",
        "interchange",
        "georeference",
        "frames",
        "registration",
    ),
    *(
        "appearance",
        "sparse",
        "engine",
        "overlap",
        "suggestion",
        "agents",
        "answered_loop",
        "loop_setup",
        "active_loop",
        "paper",
    ),
    *("rendering", "project", "report", "film", "building", "annotation", "server", "cli"),
)


def imports_of(path):
    """The modules that a module imports, wherever in its text."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.fixture(scope="module")
def imports():
    """Which modules of ours each of our modules imports."""
    paths = {".".join(path.relative_to(SOURCES).with_suffix("").parts): path for path in SOURCES.rglob("*.py")}
    modules = {name: path for name, path in paths.items() if path.stem != "__init__"}
    return {
        name: {
            other
            for full in imports_of(path)
            for other in (full, full.rpartition(".")[0])
            if other in modules and other != name
        }
        for name, path in modules.items()
    }


def test_folders_import_only_folders_before_them(imports):
    def place(module):
        return ORDER.index(module.split(".")[1])

    late = [
        (module, other)
        for module, others in imports.items()
        for other in others
        if module.startswith("smalti.") and other.startswith("smalti.") and place(other) > place(module)
    ]
    assert not late


def test_the_product_does_not_import_the_lab(imports):
    assert not [
        (module, other)
        for module, others in imports.items()
        for other in others
        if module.startswith("smalti.") and other.startswith("smalti_lab.")
    ]


def test_no_modules_import_each_other_in_a_circle(imports):
    graphlib.TopologicalSorter(imports).prepare()


def test_every_module_has_a_name_of_its_own(imports):
    names = Counter(module.rpartition(".")[2] for module in imports)
    assert not [name for name, count in names.items() if count > 1]
