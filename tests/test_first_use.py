"""The first use after installation: help at once, and compiled code that is kept, found again, and never stale."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

INNER = "from smalti.compiled import compiled\n\nFACTOR = 2\n\n\n@compiled\ndef scale(x):\n    return FACTOR * x\n"
OUTER = """
from inner import scale
from smalti.compiled import compiled

@compiled
def run(x):
    return scale(x) + 1

print(run(10), sum(run.stats.cache_hits.values()))
"""
PARALLEL = """
import numba, numpy as np
from smalti.compiled import compiled_parallel, prange

@compiled_parallel
def total(x):
    tripled = np.empty(len(x))
    for n in prange(len(x)):
        tripled[n] = 3.0 * x[n]
    return tripled.sum() + (x * x).mean()

x = np.random.default_rng(0).normal(size=100_001)
for threads in (1, 2):
    numba.set_num_threads(threads)
    print(repr(total(x)))
"""


@pytest.fixture
def installation(tmp_path):
    """A folder of modules that cannot keep compiled code beside them, not even for root; and a home."""
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "__pycache__").touch()
    (folder / "inner.py").write_text(INNER)
    (folder / "outer.py").write_text(OUTER)
    (folder / "parallel.py").write_text(PARALLEL)
    (tmp_path / "home").mkdir()
    return folder


def use(folder: Path, module: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    path = os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    home = {"HOME": str(folder.parent / "home"), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        env={**inherited, **home, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_code_of_a_read_only_installation_is_kept_for_the_user_until_a_kernel_it_contains_changes(installation):
    assert use(installation, "outer").stdout == "21 0\n"
    assert list((installation.parent / "home").rglob("outer.run*.nbc"))
    assert use(installation, "outer").stdout == "21 1\n"
    (installation / "inner.py").write_text(INNER.replace("FACTOR = 2", "FACTOR = 30"))
    assert use(installation, "outer").stdout == "301 0\n"


def test_where_compiled_code_cannot_be_kept_it_works_all_the_same_and_says_so(installation):
    used = use(installation, "outer", HOME=str(installation / "inner.py"))
    assert used.stdout == "21 0\n"
    assert "set NUMBA_CACHE_DIR" in used.stderr
    assert "Traceback" not in used.stderr


def test_a_sum_in_a_parallel_kernel_does_not_depend_on_the_number_of_threads(installation):
    one, two = use(installation, "parallel", NUMBA_NUM_THREADS="2").stdout.split()
    assert one == two


def test_help_takes_less_than_a_third_of_a_second():
    # Processor time, and the best of three: other programs on the machine do not count.
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "smalti.cli.main", "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.3
