"""Studies: what is run, what is kept, what an interruption costs."""

from __future__ import annotations

import contextlib
import csv
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.errors import OutputError, SmaltiError, UnknownNameError, UsageError
from smalti.paper.paper_loop import PaperLoop
from smalti.records import Pair
from smalti_lab.experiments.experiment import experiment_named
from smalti_lab.experiments.methods import STRATEGIES, FrameMaps, Method
from smalti_lab.experiments.run_store import UNFINISHED, make_folder
from smalti_lab.experiments.runs import Row, Run, RunSettings, perform
from smalti_lab.experiments.study import StudySettings, conduct, conduct_all, expected_seconds
from smalti_lab.experiments.study_report import COLUMNS, curves_csv, write_reports
from smalti_lab.experiments.study_summary import summarise
from smalti_lab.experiments.worlds import circle, raster

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
        ({"experiment": "spiral"}, UnknownNameError, "raster, circle, wander, caliterra"),
        ({"strategies": ("paper", "oracle")}, UnknownNameError, "external-only"),
        ({"family": "projective"}, UnknownNameError, "similarity"),
        ({"family": "spline", "strategies": ("smalti",)}, UnknownNameError, "rigid"),
        ({"frames": 2}, UsageError, "at least 3"),
        ({"queries": 0}, UsageError, "at least 1"),
        ({"seeds": (1, 1)}, UsageError, "twice"),
        ({"seeds": ()}, UsageError, "at least one"),
        ({"seeds": (-1,)}, UsageError, "not negative"),
        ({"appearance": "blurred"}, UnknownNameError, "own, none, uninformative, adversarial, overconfident"),
        ({"chain_noise": 0.0}, UsageError, "positive number"),
        ({"batch": 0}, UsageError, "at least 1"),
    ],
)
def test_wrong_settings_are_refused_with_what_would_be_right(change, error, word):
    with pytest.raises(error, match=word):
        StudySettings(**{"experiment": "raster", "frames": 24, **change})


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


@pytest.mark.parametrize(("strategy", "answers"), [("sawhney", {"yes", "no"}), ("smalti", {"yes"})])
def test_every_row_has_the_error_of_the_mosaic_after_its_answer(strategy, answers):
    run = RunSettings("circle", 40, 6, "affine", strategy, 1)
    rows = perform(run, pictured=False, on_answer=lambda: None).rows
    assert answers <= {row.answer for row in rows}
    world = circle(40)
    agent = world.agent(1)
    state = world.start(agent, world.external, Method(strategy))
    for row in rows:
        if row.query:
            state = state.record(agent.answer(Pair(row.i, row.j)))
        delivered = world.finish(state)(state)
        assert row.relative_rmsd_px == world.relative_rmsd(delivered)
        assert row.own_rmsd_px == world.relative_rmsd(FrameMaps.of(state))
        assert row.shape_rmsd_px == world.shape_rmsd(delivered)


def rows_of(**changes) -> list[Row]:
    settings = replace(RunSettings("raster", 24, 3, "affine", "paper", 1), **changes)
    return perform(settings, pictured=False, on_answer=lambda: None).rows


def test_a_row_has_the_probability_that_was_stated_of_its_pair_before_the_answer():
    world = raster(24)
    agent = world.agent(1)
    state = world.start(agent, world.external, Method("paper"))
    rows = rows_of()
    assert np.isnan(rows[0].probability)
    for row in rows[1:]:
        reasons = state.likely(Pair(row.i, row.j)).reasons
        assert row.probability == reasons["position"] * reasons["external"]
        state = state.record(agent.answer(Pair(row.i, row.j)))


def test_a_strategy_that_states_nothing_has_no_probability():
    assert all(np.isnan(row.probability) for row in rows_of(strategy="xia"))


def test_questions_of_a_batch_are_chosen_before_any_of_them_is_answered():
    world = raster(24)
    agent = world.agent(1)
    start = world.start(agent, world.external, Method("smalti"))
    expected = [state.answers[-1].pair for state, _ in zip(start.run(agent, 3), range(3), strict=False)]
    rows = rows_of(strategy="smalti", batch=3)
    assert [Pair(row.i, row.j) for row in rows[1:]] == expected
    assert all(0 < row.probability <= 1 for row in rows[1:])


def test_looks_and_the_noise_of_the_chain_are_those_of_the_settings():
    plain, blind, noisy = rows_of(), rows_of(appearance="none"), rows_of(chain_noise=3.0)
    assert blind[1].probability != plain[1].probability
    assert noisy[0].relative_rmsd_px > 2 * plain[0].relative_rmsd_px


def test_kept_runs_are_not_performed_again(small_study, monkeypatch):
    folder, runs, _ = small_study
    monkeypatch.setattr("smalti_lab.experiments.study.worker_pool", lambda _: contextlib.nullcontext())
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


@pytest.fixture(scope="module")
def two_studies(tmp_path_factory):
    """One of two strategies and one of one, in the order of their folders."""
    folder = tmp_path_factory.mktemp("studies")
    studies = {
        folder / "raster": StudySettings("raster", frames=12, queries=2, seeds=(1, 2), strategies=("xia", "sawhney")),
        folder / "circle": StudySettings("circle", frames=40, queries=2, seeds=(3,), strategies=("position-only",)),
    }
    told: list[int] = []
    runs = conduct_all(studies, workers=2, on_progress=told.append)
    return studies, runs, told


def test_each_of_several_studies_gets_its_own_runs_in_their_order(two_studies):
    studies, runs, _ = two_studies
    for folder, settings in studies.items():
        assert [run.settings for run in runs[folder]] == settings.runs


def test_progress_counts_the_questions_of_all_studies(two_studies):
    studies, _, told = two_studies
    assert sum(told) == sum(len(settings.runs) * settings.queries for settings in studies.values())
    assert min(told) > 0


def test_each_of_several_studies_keeps_its_runs_in_its_own_folder(two_studies, monkeypatch):
    studies, runs, _ = two_studies
    monkeypatch.setattr("smalti_lab.experiments.study.worker_pool", lambda _: contextlib.nullcontext())
    for folder, settings in studies.items():
        again = conduct(settings, folder, workers=1, on_progress=lambda _: None)
        assert curves_csv(again) == curves_csv(runs[folder])


def test_a_report_is_complete_and_clears_the_kept_runs(two_studies):
    studies, runs, _ = two_studies
    folder = next(folder for folder in studies if folder.name == "circle")
    assert (folder / UNFINISHED).exists()
    written = write_reports({folder: studies[folder]}, runs)
    figures = ("rmsd", "prediction", "reliability", "trajectories", "overlap", "external", "evolution")
    expected = {"curves.csv", "summary.json", *(f"{n}.{e}" for n in figures for e in ("png", "svg"))}
    assert {path.name for path in folder.iterdir()} == expected
    assert all(path.stat().st_size > 0 for path in folder.iterdir())
    assert set(written) == {folder / name for name in expected}
    assert json.loads((folder / "summary.json").read_text())["strategies"]["position-only"]["seeds"]["3"]


def test_no_kept_run_is_cleared_before_every_report_is_written(tmp_path, monkeypatch):
    studies = {tmp_path / "raster": SMALL, tmp_path / "circle": SMALL}
    for folder in studies:
        make_folder(folder / UNFINISHED)

    def draw(_settings, _runs, folder):
        if folder.parent.name == "circle":
            raise KeyboardInterrupt

    monkeypatch.setattr("smalti_lab.experiments.study_report.draw_figures", draw)
    monkeypatch.setattr("smalti_lab.experiments.study_report.summarise", lambda *_: {})
    with pytest.raises(KeyboardInterrupt):
        write_reports(studies, {folder: [] for folder in studies})
    assert (tmp_path / "raster" / "curves.csv").exists()
    assert all((folder / UNFINISHED).exists() for folder in studies)


def finished(settings: RunSettings, seconds: float) -> Run:
    row = Row(0, None, None, "", 1.0, 1.0, 1.0, 1.0, np.nan, np.nan, seconds / 2)
    return Run(settings, [row, row], "budget", 1.0, *np.zeros((3, 3, 2)), {})


def test_a_run_is_expected_to_take_as_long_as_those_of_other_seeds_on_average():
    paper_1, paper_2, xia_1, _ = SMALL.runs
    known = [finished(paper_1, 4.0), finished(paper_2, 8.0), finished(xia_1, 1.0)]
    assert expected_seconds(paper_1, known) == pytest.approx(6.0)
    other_world = StudySettings("circle", frames=40, queries=3, strategies=("paper",)).runs[0]
    assert expected_seconds(other_world, known) == float("inf")


def test_the_longest_runs_begin_first_once_it_is_known_which_they_are(tmp_path, monkeypatch):
    settings = StudySettings("raster", frames=12, queries=1, seeds=(1, 2, 3), strategies=("xia", "paper", "elibol"))
    seconds = {"xia": 1.0, "paper": 5.0, "elibol": 3.0}
    begun: list[tuple[str, int]] = []

    class Pool:
        count = 1

        def start(self, run, pictured, folder):
            begun.append((run.strategy, run.seed))
            future: Future[Run] = Future()
            future.set_result(finished(run, seconds[run.strategy]))
            return future

        def count_answers(self):
            return 0

    monkeypatch.setattr("smalti_lab.experiments.study.worker_pool", lambda count: contextlib.nullcontext(Pool()))
    conduct(settings, tmp_path, workers=1, on_progress=lambda _: None)
    one_of_each = [("xia", 1), ("paper", 1), ("elibol", 1)]
    assert begun == [*one_of_each, ("paper", 2), ("paper", 3), ("elibol", 2), ("elibol", 3), ("xia", 2), ("xia", 3)]


def test_a_worker_that_is_killed_ends_the_study_with_one_line(tmp_path):
    def kill(_):
        for process in multiprocessing.active_children():
            process.kill()

    settings = StudySettings("raster", frames=24, queries=20, seeds=(1, 2), strategies=("paper",))
    with pytest.raises(SmaltiError, match="start again with fewer jobs"):
        conduct(settings, tmp_path, workers=1, on_progress=kill)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        make_folder(blocked / "study")


def test_an_interrupted_study_goes_on_and_ends_as_if_never_interrupted(tmp_path):
    command = [
        *(sys.executable, "-m", "smalti.cli.main", "experiment", "raster", "--frames", "60", "--queries", "12"),
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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_runs_in_its_own_loop(strategy):
    world = raster(12)
    state = world.start(world.agent(1), world.external, Method(strategy))
    assert type(state) is (ActiveLoop if strategy == "smalti" else PaperLoop)
    assert state.strategy.name == strategy


def test_a_bound_is_stated_by_smalti_alone():
    assert np.isnan(rows_of()[-1].bound_px)
    assert np.isfinite(rows_of(strategy="smalti")[-1].bound_px)


@pytest.mark.parametrize(("experiment", "family"), [("raster", "affine"), ("caliterra", "projective")])
def test_maps_are_affine_but_for_smalti_on_real_frames(experiment, family):
    kind = experiment_named(experiment)
    assert (kind.usual_family("smalti"), kind.usual_family("paper")) == (family, "affine")


def test_a_study_of_smalti_alone_has_no_pictures_of_all_pairs(tmp_path):
    settings = replace(SMALL, strategies=("smalti",), seeds=(1,), queries=1)
    runs = conduct(settings, tmp_path, workers=1, on_progress=lambda _: None)
    assert runs[0].pictures == {}
    write_reports({tmp_path: settings}, {tmp_path: runs})
    names = {path.name for path in tmp_path.iterdir()}
    assert "rmsd.png" in names
    assert "overlap.png" not in names
