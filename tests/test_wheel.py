"""The wheel carries the page, and is built on machines without node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The source distribution, unpacked: what is not in it cannot be in the wheel."""
    folder = tmp_path_factory.mktemp("sources")
    run_hatchling(ROOT, "sdist", folder, os.environ)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


@pytest.fixture
def without_node(tmp_path):
    """An environment in which a shell is all that can be found."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    return {**os.environ, "PATH": str(tmp_path / "bin")}


def run_hatchling(folder, target, output, environment):
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(output)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_sources_have_the_pages_sources_and_nothing_that_is_made_of_them(sources):
    assert (sources / "web" / "package-lock.json").exists()
    assert (sources / "web" / "src" / "main.ts").exists()
    assert not (sources / "web" / "node_modules").exists()
    assert not (sources / "src" / "smalti" / "server" / "page").exists()


def test_a_wheel_built_without_node_contains_the_page(sources, without_node, tmp_path):
    assert shutil.which("node", path=without_node["PATH"]) is None
    built = run_hatchling(sources, "wheel", tmp_path, without_node)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        page = packed.read("smalti/server/page/index.html").decode()
    scripts = [Path(name).name for name in names if name.startswith("smalti/server/page/assets/")]
    assert any(name.endswith(".js") and name in page for name in scripts)
    assert not any("node_modules" in name or name.startswith("web/") for name in names)


def test_a_page_that_cannot_be_built_is_told_in_one_line_instead_of_an_empty_wheel(sources, without_node, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(sources, broken, ignore=shutil.ignore_patterns("node_modules"))
    (broken / "web" / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": {}}))
    built = run_hatchling(broken, "wheel", tmp_path, without_node)
    assert built.returncode != 0
    assert f"{broken / 'web'}: `npm ci" in built.stderr.splitlines()[-1]
    assert "Traceback" not in built.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_the_lock_names_no_host_to_fetch_from():
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert not [name for name, entry in packages.items() if "resolved" in entry]
    assert all("integrity" in entry for entry in packages.values())
