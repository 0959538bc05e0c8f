"""Studies: what is run, what is kept, what an interruption costs."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from smalti.errors import OutputError, UnknownNameError, UsageError
from smalti.experiments.report import COLUMNS, curves_csv, summarise, write_report
from smalti.experiments.runs import perform
from smalti.experiments.study import UNFINISHED, StudySettings, conduct, make_folder

SMALL = StudySettings("raster", frames=24, queries=3, seeds=(1, 2), strategies=("paper", "xia"))


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    told: list[int] = []
    runs = conduct(SMALL, folder, workers=2, on_progress=told.append)
    return folder, runs, told


def without_seconds(text: str) -> list[list[str]]:
    return [row[:-1] for row in csv.reader(text.splitlines())]


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"experiment": "spiral"}, UnknownNameError, "raster, circle"),
        ({"strategies": ("paper", "oracle")}, UnknownNameError, "external-only"),
        ({"family": "projective"}, UnknownNameError, "similarity"),
        ({"frames": 2}, UsageError, "at least 3"),
        ({"queries": 0}, UsageError, "at least 1"),
        ({"seeds": (1, 1)}, UsageError, "twice"),
        ({"seeds": ()}, UsageError, "at least one"),
        ({"seeds": (-1,)}, UsageError, "not negative"),
    ],
)
def test_wrong_settings_are_refused_with_what_would_be_right(change, error, word):
    with pytest.raises(error, match=word):
        StudySettings(**{"experiment": "raster", **change})


def test_runs_come_back_by_strategy_then_seed(small_study):
    _, runs, _ = small_study
    assert [(run.settings.strategy, run.settings.seed) for run in runs] == [
        ("paper", 1),
        ("paper", 2),
        ("xia", 1),
        ("xia", 2),
    ]


def test_progress_counts_every_question_once(small_study):
    _, _, told = small_study
    assert sum(told) == len(SMALL.runs) * SMALL.queries


def test_only_the_pictured_run_keeps_matrices(small_study):
    _, runs, _ = small_study
    assert [bool(run.pictures) for run in runs] == [True, False, False, False]


def test_same_seeds_give_the_same_curves_whatever_the_number_of_workers(small_study, tmp_path):
    _, runs, _ = small_study
    again = conduct(SMALL, tmp_path, workers=1, on_progress=lambda _: None)
    assert without_seconds(curves_csv(again)) == without_seconds(curves_csv(runs))


def test_a_worker_process_finds_what_this_process_finds(small_study):
    _, runs, _ = small_study
    here = perform(SMALL.runs[0], pictured=False, on_answer=lambda: None)
    assert without_seconds(curves_csv([here])) == without_seconds(curves_csv([runs[0]]))


def test_kept_runs_are_not_performed_again(small_study, monkeypatch):
    folder, runs, _ = small_study
    monkeypatch.setattr("smalti.experiments.study.perform", None)
    again = conduct(SMALL, folder, workers=1, on_progress=lambda _: None)
    assert curves_csv(again) == curves_csv(runs)
    assert np.array_equal(again[0].pictures["exact"], runs[0].pictures["exact"])


def test_curves_have_the_promised_columns_and_an_empty_query_zero(small_study):
    _, runs, _ = small_study
    rows = list(csv.DictReader(curves_csv(runs).splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [rows[0][name] for name in ("query", "i", "j", "answer")] == ["0", "", "", ""]
    assert all(row["answer"] in ("yes", "no", "unsure") for row in rows if row["query"] != "0")
    assert all(float(row["relative_rmsd_px"]) > 0 for row in rows)


def test_summary_means_are_those_of_the_curves(small_study):
    _, runs, _ = small_study
    summary = summarise(SMALL, runs)
    rows = list(csv.DictReader(curves_csv(runs).splitlines()))
    last = [float(r["relative_rmsd_px"]) for r in rows if r["strategy"] == "paper" and r["query"] == "3"]
    assert summary["strategies"]["paper"]["relative_rmsd_px"]["3"]["mean"] == pytest.approx(np.mean(last), rel=1e-12)


def test_report_writes_all_files_and_clears_the_kept_runs(tmp_path):
    settings = StudySettings("circle", frames=40, queries=2, seeds=(3,), strategies=("position-only",))
    runs = conduct(settings, tmp_path, workers=1, on_progress=lambda _: None)
    assert (tmp_path / UNFINISHED).exists()
    write_report(settings, runs, tmp_path)
    figures = ("rmsd", "prediction", "trajectories", "overlap", "external", "evolution")
    expected = {"curves.csv", "summary.json", *(f"{n}.{e}" for n in figures for e in ("png", "svg"))}
    assert {path.name for path in tmp_path.iterdir()} == expected
    assert all(path.stat().st_size > 0 for path in tmp_path.iterdir())
    assert json.loads((tmp_path / "summary.json").read_text())["strategies"]["position-only"]["seeds"]["3"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        make_folder(blocked / "study")


def test_an_interrupted_study_goes_on_and_ends_as_if_never_interrupted(tmp_path):
    command = [
        *(sys.executable, "-m", "smalti.cli.main", "experiment", "raster", "--frames", "80", "--queries", "20"),
        *("--seeds", "1,2,3,4", "--strategies", "paper", "--jobs", "1", "-q", "--out"),
    ]
    first = subprocess.Popen(
        [*command, str(tmp_path / "a")],
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them ignore interrupts, and so their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    kept = tmp_path / "a" / UNFINISHED
    give_up = time.monotonic() + 240
    while not list(kept.glob("*.npz")) and time.monotonic() < give_up:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGINT)
    _, words = first.communicate(timeout=60)
    assert first.returncode == 130, words
    assert "interrupted" in words
    assert "Traceback" not in words
    finished_before = {path: path.stat().st_mtime_ns for path in kept.glob("*.npz")}
    assert 1 <= len(finished_before) < 4
    assert not (tmp_path / "a" / "curves.csv").exists()

    subprocess.run([*command, str(tmp_path / "a")], check=True, timeout=240)
    subprocess.run([*command, str(tmp_path / "b")], check=True, timeout=240)
    curves = [without_seconds((tmp_path / name / "curves.csv").read_text()) for name in "ab"]
    assert curves[0] == curves[1]
