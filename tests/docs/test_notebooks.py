"""The notebooks run, show what they promise, and are kept without outputs."""

from __future__ import annotations

import json

import pytest

from tests.docs.hooks import hook

notebooks = hook("notebooks")
PATHS = notebooks.notebooks()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_has_no_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        known = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            known |= {"execution_count", "outputs"}
            assert (cell["execution_count"], cell["outputs"]) == (None, [])
        assert set(cell) == known
        assert cell["source"]
        assert all(isinstance(line, str) for line in cell["source"])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_objects_show_themselves(path):
    shown = notebooks.run(path.read_text(encoding="utf-8"))
    assert any("<table>" in cell for cell in shown)
    assert any('src="data:image/jpeg;base64,' in cell for cell in shown)
    page = notebooks.write_page(path, shown)
    assert all(cell in page for cell in shown)
    assert page.startswith("# ")


def test_there_are_three_notebooks():
    assert [path.stem for path in PATHS] == ["annotate_and_evaluate", "build_and_look", "plug_in_a_matcher"]
