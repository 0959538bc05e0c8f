"""The first use after installation: help at once, and compiled code that is kept, found again, and never stale."""

from __future__ import annotations

import inspect
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from smalti.building.compile_ahead import KERNELS, kernels
from smalti_lab import SyntheticSequence, procedural_scene, wander, write_video

INNER = "from smalti.compiled import compiled\n\nFACTOR = 2\n\n\n@compiled\ndef scale(x):\n    return FACTOR * x\n"
OUTER = """
from inner import scale
from smalti.compiled import compiled

@compiled
def run(x):
    return scale(x) + 1

print(run(10), sum(run.stats.cache_hits.values()))
"""
CONSTANTS = """
from inner import scale
from smalti.compiled import compiled

@compiled
def run(x):
    return scale(1) + scale(2) + scale(x)

print(run(10), len(scale.overloads))
"""
BUILD = """
import sys
from smalti import build
from smalti.building.compile_ahead import recording

with recording() as lines, build(*sys.argv[1:]):
    print("\\n".join(lines))
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
    (folder / "constants.py").write_text(CONSTANTS)
    (folder / "parallel.py").write_text(PARALLEL)
    (tmp_path / "home").mkdir()
    return folder


def use(folder: Path, module: str, **environment: str) -> subprocess.CompletedProcess[str]:
    process = start(folder, module, **environment)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start(folder: Path, module: str, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    path = os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    home = {"HOME": str(folder.parent / "home"), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", f"import {module}"],
        env={**inherited, **home, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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


def test_two_programs_at_once_compile_a_kernel_once(installation):
    both = [start(installation, "outer") for _ in range(2)]
    assert sorted(process.communicate()[0] for process in both) == ["21 0\n", "21 1\n"]
    assert not list((installation.parent / "home").rglob("*.lock"))


def test_a_kernel_that_others_call_with_constants_is_compiled_once(installation):
    assert use(installation, "constants").stdout == "26 1\n"


def test_every_kernel_that_a_build_calls_is_on_the_list_of_those_compiled_ahead(tmp_path):
    path = wander((900, 700), 12, (240, 180), step=0.25, seed=1)
    video = write_video(SyntheticSequence(procedural_scene(900, 700, 1), path), tmp_path / "flight.mp4")
    built = subprocess.run(
        [sys.executable, "-c", BUILD, video, tmp_path / "out"], capture_output=True, text=True, check=True
    )
    called, listed = set(built.stdout.splitlines()), set(KERNELS.read_text().splitlines())
    assert len(called) > 50
    assert called <= listed, "run python benchmarks/first_use.py --record"


def test_every_kernel_on_the_list_can_be_compiled_ahead():
    listed = kernels()
    assert len(listed) == len(KERNELS.read_text().splitlines())
    for kernel, signature in listed:
        assert len(signature) == len(inspect.signature(kernel.py_func).parameters), kernel


def test_compiling_ahead_ends_with_the_program_that_started_it(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "smalti.building.compile_ahead"],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
    )
    assert len(list(tmp_path.rglob("*.nbc"))) < 10  # of some hundred


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
