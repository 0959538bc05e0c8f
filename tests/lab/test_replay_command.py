"""`smalti replay`."""

from __future__ import annotations

import argparse
import csv
import re

import pytest
from PIL import Image

from smalti.errors import OutputError, UnknownNameError
from smalti.project.project import Project
from smalti.records import Pair, Verdict
from smalti_lab import replay_command as command
from smalti_lab.replaying import AS_ASKED, Order, Replay, Step, replay
from tests.lab.test_replay import ANSWERS, make_project


def run(*words):
    parser = argparse.ArgumentParser()
    command.add_to(parser.add_subparsers())
    options = parser.parse_args(["replay", *map(str, words)])
    options.run(options)
    return options


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command") / "out"
    make_project(folder).close()
    return folder


def made_up(name, predicted, difference):
    rows = zip(predicted, difference, strict=True)
    steps = [Step(Pair(0, n + 1), Verdict.YES if n % 2 else Verdict.NO, *row) for n, row in enumerate(rows)]
    return Order(name, (Step(None, None, predicted[0], difference[0]), *steps[1:]))


def test_it_shows_bars_prints_the_table_and_names_the_files(folder, tmp_path, capfd):
    options = run(folder, "--strategies", "paper, external-only", "--out", tmp_path / "new" / "results")
    told = capfd.readouterr()
    assert told.out.startswith(f"{len(ANSWERS)} answers: 4 yes, 1 no, 1 unsure\n")
    assert re.search(rf"^ +{AS_ASKED} +paper +external-only$", told.out, flags=re.MULTILINE)
    assert told.out.endswith("".join(f"{options.out / name}\n" for name in ("replay.csv", "replay.png")))
    assert "external-only: 100%" in told.err
    assert not options.resumes


def test_the_table_has_every_step_of_every_order(folder, tmp_path, capfd):
    run(folder, "--out", tmp_path, "-q")
    assert capfd.readouterr().err == ""
    with Project.open(folder) as project:
        expected = replay(project)
    with (tmp_path / "replay.csv").open() as file:
        rows = list(csv.DictReader(file))
    steps = [(order.name, n, step) for order in expected.orders for n, step in enumerate(order.steps)]
    for row, (name, count, step) in zip(rows, steps, strict=True):
        assert (row["order"], int(row["answers"])) == (name, count)
        assert (row["i"], row["j"]) == (("", "") if step.pair is None else (str(step.pair.i), str(step.pair.j)))
        assert row["verdict"] == (step.verdict or "")
        assert float(row["predicted_error_px"]) == step.predicted_error_px
        assert float(row["difference_px"]) == step.difference_px
    with Image.open(tmp_path / "replay.png") as picture:
        assert picture.width > 1000


def test_errors_are_shown_after_round_numbers_of_answers_and_at_the_end():
    given = made_up(AS_ASKED, [8.0, 4.0, 3.0, 2.0], [9.0, 5.0, 1.0, 0.0])
    early = made_up("early", [8.0, 2.5], [9.0, 1.5])
    lines = command.as_table(Replay((given, early))).splitlines()
    cells = [line.split() for line in lines]
    assert lines[0] == "3 answers: 2 yes, 1 no, 0 unsure"
    assert cells[4:9] == [
        ["after", "0", "9.00", "9.00"],
        ["after", "1", "5.00", "1.50"],
        ["after", "2", "1.00", "-"],
        ["after", "3", "0.00", "-"],
        ["stays", "within", "2", "px", "after", "2", "1"],
    ]
    assert cells[14] == ["after", "3", "2.00", "-"]
    assert cells[15] == ["stays", "within", "1.5", "×", "the", "last", "after", "2", "1"]
    assert "early has no more to ask after 1 of the 3 answers." in lines


def test_an_order_that_never_arrives_is_told_so():
    given, late = made_up(AS_ASKED, [8.0, 2.0], [9.0, 0.0]), made_up("late", [8.0, 7.0], [9.0, 8.0])
    lines = command.as_table(Replay((given, late))).splitlines()
    assert [line.split()[-1] for line in lines if "stays" in line] == ["never", "never"]
    assert not any("no more to ask" in line for line in lines)


def test_an_unknown_strategy_is_refused(folder):
    with pytest.raises(UnknownNameError, match="unknown strategy 'best'"):
        run(folder, "--strategies", "best", "-q")


def test_a_place_that_cannot_be_written_is_refused_before_the_replay(folder, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr("smalti_lab.replaying.replay", lambda *_, **__: pytest.fail("it was replayed first"))
    with pytest.raises(OutputError, match="taken: cannot be written"):
        run(folder, "--out", tmp_path / "taken", "-q")


def test_an_interrupted_replay_leaves_no_files(folder, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("smalti.active_loop.ActiveLoop.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(folder, "--out", tmp_path, "-q")
    assert list(tmp_path.iterdir()) == []
