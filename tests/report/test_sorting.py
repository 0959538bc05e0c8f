"""The page's script, run against as much of a browser as it touches."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files

import pytest

BROWSER = """
class Cell {
  constructor(text, kind) {
    this.textContent = text; this.attributes = {};
    this.classList = { contains: (name) => name === kind };
  }
  replaceChildren(button) { this.button = button; }
  getAttribute(name) { return this.attributes[name] ?? null; }
  setAttribute(name, value) { this.attributes[name] = value; }
  removeAttribute(name) { delete this.attributes[name]; }
}
const heads = [new Cell("number", "n"), new Cell("word", "")];
const lines = [["10", "b"], ["–", "a"], ["-2.5", "–"], ["9", "a10"], ["9", "a9"]];
const body = {
  rows: lines.map((line) => ({ cells: line.map((text) => new Cell(text)) })),
  replaceChildren(...rows) { this.rows = rows; },
};
const table = { tHead: { rows: [{ cells: heads }] }, tBodies: [body] };
const document = {
  querySelectorAll: () => [table],
  createElement: () => ({ addEventListener(_, act) { this.click = act; } }),
};
const column = (n) => body.rows.map((row) => row.cells[n].textContent);
"""

CLICKS = """
const seen = [];
for (const n of [0, 0, 1, 1]) {
  heads[n].button.click();
  seen.push([column(n), heads.map((head) => head.getAttribute("aria-sort"))]);
}
console.log(JSON.stringify(seen));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to run the page's script")
def test_a_click_sorts_and_a_second_one_turns_round_with_what_is_missing_last():
    script = files("smalti.report").joinpath("sorting.js").read_text(encoding="utf-8").removeprefix('"use strict";')
    run = subprocess.run(["node", "-e", BROWSER + script + CLICKS], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [
        [["-2.5", "9", "9", "10", "–"], ["ascending", None]],
        [["10", "9", "9", "-2.5", "–"], ["descending", None]],
        [["a", "a9", "a10", "b", "–"], [None, "ascending"]],
        [["b", "a10", "a9", "a", "–"], [None, "descending"]],
    ]
