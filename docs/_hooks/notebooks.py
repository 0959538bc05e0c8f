"""Turn the notebooks of docs/notebooks/ into pages of the site, with what their cells show.

The notebooks are kept without outputs. The site runs them, and so does a test: their results are never stale.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every notebook; the notebook itself stays beside it, to be downloaded."""
    from mkdocs.structure.files import File  # noqa: PLC0415

    for path in notebooks():
        content = write_page(path, shown=run(path.read_text(encoding="utf-8")))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files


def notebooks() -> list[Path]:
    """Return all notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def write_page(path: Path, shown: tuple[str, ...] = ()) -> str:
    """Return a notebook as Markdown; `shown` is what each code cell shows, as HTML."""
    parts, results = [], iter(shown)
    for cell in cells_of(path.read_text(encoding="utf-8")):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts += [f"```python\n{text}\n```", next(results, "")]
    title, *others = parts
    heading, _, rest = title.partition("\n")
    download = f"[Download this notebook]({path.name})"
    return "\n\n".join(part for part in (heading, download, rest.strip(), *others) if part) + "\n"


def cells_of(text: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(text)["cells"]
    return cells


@cache
def run(text: str) -> tuple[str, ...]:
    """Run the code cells of a notebook one after the other; return what each shows, as HTML without line breaks."""
    names: dict[str, Any] = {"__name__": "__main__"}
    code = ["".join(cell["source"]) for cell in cells_of(text) if cell["cell_type"] == "code"]
    return tuple("".join(_run_cell(cell, f"cell {n}", names)) for n, cell in enumerate(code))


def _run_cell(code: str, name: str, names: dict[str, Any]) -> Iterator[str]:
    """Run a cell; yield what it prints, and how the value of its last line shows itself."""
    tree = ast.parse(code, name)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(last, name, "eval"), names)
    if printed.getvalue():
        yield _preformatted(printed.getvalue())
    if value is not None:
        yield value._repr_html_() if hasattr(value, "_repr_html_") else _preformatted(repr(value))


def _preformatted(text: str) -> str:
    # A raw block of Markdown ends at an empty line: line breaks are written as entities.
    return f'<pre class="notebook-output">{escape(text.rstrip(), quote=False).replace(chr(10), "&#10;")}</pre>'


GENERATED = {f"notebooks/{path.stem}.md": partial(write_page, path) for path in notebooks()}
"""The pages without what the cells show, for checks that need not run them."""
