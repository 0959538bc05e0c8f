"""The command line: one line for an error, the right exit code, nothing half-written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from smalti import __version__
from smalti.cli.main import main
from smalti.geometry.homographies import FAMILIES
from smalti_lab import experiment_command as experiment
from smalti_lab.experiments.experiment import EXPERIMENTS
from smalti_lab.experiments.methods import STRATEGIES
from smalti_lab.experiments.run_store import UNFINISHED
from smalti_lab.experiments.runs import APPEARANCES

SMALL = ["experiment", "raster", "--frames", "12", "--queries", "1", "--seeds", "1", "--strategies", "xia"]


@pytest.fixture
def without_figures(monkeypatch):
    """Figures take seconds; tests/lab/experiments/test_study.py looks at them."""
    monkeypatch.setattr("smalti_lab.experiments.study_report.draw_figures", lambda *_: None)


def test_a_small_experiment_says_where_its_files_are(tmp_path, capsys, without_figures):
    assert main([*SMALL, "--jobs", "1", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "curves.csv").exists()
    assert str(tmp_path / "out") in capsys.readouterr().out


def test_quiet_says_nothing(tmp_path, capfd):
    assert main([*SMALL, "--jobs", "1", "-q", "--out", str(tmp_path)]) == 0
    assert capfd.readouterr() == ("", "")


def test_several_experiments_get_a_folder_each(tmp_path, capsys, without_figures):
    words = ["--frames", "32", "--queries", "1", "--seeds", "1", "--strategies", "xia", "--jobs", "1"]
    assert main(["experiment", "raster", "circle", *words, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle", "raster"]
    for name in ("raster", "circle"):
        assert {path.name for path in (tmp_path / name).iterdir()} == {"curves.csv", "summary.json"}
        assert (tmp_path / name / "curves.csv").read_text().splitlines()[1].startswith(f"{name},32,xia,1,0,")
        assert str(tmp_path / name) in said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "name a command"),
        (["mosaic"], "invalid choice"),
        (["experiment", "raster"], "--out"),
        (["experiment", "spiral", "--out", "OUT"], "unknown experiment 'spiral'"),
        (["experiment", "--out", "OUT"], "EXPERIMENT"),
        ([*SMALL[:2], *SMALL[1:], "--out", "OUT"], "given twice"),
        (["experiment", "raster", "--learned", "--out", "OUT"], "--learned"),
        (["experiment", "raster", "circle", "--frames", "20", "--out", "OUT"], "at least 32"),
        (["experiment", "raster", "--strategies", "paper,guess", "--out", "OUT"], "unknown strategy 'guess'"),
        (["experiment", "raster", "--frames", "many", "--out", "OUT"], "invalid int"),
        (["experiment", "raster", "--seeds", "1,x", "--out", "OUT"], "whole numbers"),
        (["experiment", "raster", "--jobs", "0", "--out", "OUT"], "at least 1"),
        (["experiment", "raster", "--frames", "9" * 400, "--out", "OUT"], "at most 100000"),
        (["experiment", "raster", "--queries", "9" * 400, "--out", "OUT"], "at most 1000000000"),
        (["experiment", "raster", "--seeds", "9" * 400, "--out", "OUT"], "below 2^63"),
        (["experiment", "raster", "--colour", "red", "--out", "OUT"], "--colour"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_two(arguments, word, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(out) if argument == "OUT" else argument for argument in arguments]) == 2
    words = capsys.readouterr()
    assert words.out == ""
    assert word in words.err
    assert len(words.err.splitlines()) == 1
    assert not out.exists()


def test_an_unwritable_folder_is_one_line_and_exit_code_one(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main([*SMALL, "--out", str(tmp_path / "file")]) == 1
    words = capsys.readouterr().err
    assert str(tmp_path / "file") in words
    assert len(words.splitlines()) == 1
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_of_several_that_cannot_be_made_is_named_before_anything_is_run(tmp_path, capsys):
    (tmp_path / "circle").write_text("in the way")
    assert main([*SMALL[:2], "circle", "--frames", "32", "--out", str(tmp_path)]) == 1
    words = capsys.readouterr().err
    assert str(tmp_path / "circle") in words
    assert len(words.splitlines()) == 1
    assert not (tmp_path / "raster" / UNFINISHED).exists()


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"smalti {__version__}"


def test_names_in_the_help_are_those_of_the_tables():
    assert tuple(EXPERIMENTS) == experiment.EXPERIMENTS
    assert tuple(APPEARANCES) == experiment.APPEARANCES
    assert experiment.STRATEGIES == STRATEGIES
    assert tuple(FAMILIES) == experiment.FAMILIES


def test_help_does_not_load_the_engine():
    code = "import sys, smalti.cli.main as m\ntry: m.main(['--help'])\nexcept SystemExit: pass\n"
    code += "sys.exit('numba' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
