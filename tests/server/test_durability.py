"""Killed at any moment, the server has kept every answer that it acknowledged, and goes on as if nothing happened."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from smalti.project.project import Project
from tests.building.filmed import tiny
from tests.server.kills import Killer, Nursery, wait_until_asking
from tests.server.projects import prepared_tiny
from tests.server.scribe import Scribe, Wire

KILLS = 45  # the campaign has 200
BETWEEN_REPLAYS = 15
EARLY = 0.15
"""How often it is killed while it prepares, within the seconds that that takes."""

PREPARING_SECONDS = 0.2


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return the folder of a project about which nothing was answered, and its revision."""
    folder = prepared_tiny(tmp_path_factory.mktemp("prepared"))
    with Project.open(folder) as project:
        return folder, project.store.revision


@pytest.fixture
def nursery(prepared, tmp_path):
    nursery = Nursery(shutil.copytree(prepared[0], tmp_path / "scratch.smalti"))
    yield nursery
    nursery.close()


def test_45_kills_at_random_moments_lose_nothing(prepared, nursery, tmp_path):
    folder, revision = shutil.copytree(prepared[0], tmp_path / "tiny.smalti"), prepared[1]
    rng = np.random.default_rng(5)
    scribe, unfinished, early = Scribe(tiny(), revision, rng), 0, 0
    for kill in range(KILLS + 1):
        process, port = nursery.serve(folder)
        is_compared = kill % BETWEEN_REPLAYS == 0 or kill == KILLS
        with Killer(process) as killer, closing(Wire(port)) as wire:
            if not is_compared and rng.random() < EARLY:
                early += 1
                killer.kill_within(PREPARING_SECONDS * rng.random())
                wait_until_asking(wire)
                continue
            wait_until_asking(wire)
            scribe.check(wire)
            for _ in range(rng.integers(1, 3)):
                scribe.act(wire)
            if is_compared:
                compare_with_replay(wire, folder, nursery, tmp_path / str(kill) / "tiny.smalti")
            killer.kill_within(2 * scribe.seconds * rng.random())
            while True:
                scribe.act(wire)
        assert not is_compared or (tmp_path / str(kill)).exists()
        unfinished += scribe.pending is not None
    with Project.open(folder) as project:
        kept = project.store.history().controls
        assert {(one.answer.pair.i, one.answer.pair.j, one.person) for one in kept} == scribe.memory.controls
        assert len(kept) > 5
    # It was what it claims to be: many answers, most kills in the middle of one, some while it prepared.
    assert scribe.acknowledged > KILLS
    assert unfinished > KILLS / 2
    assert early > 2


def compare_with_replay(wire, folder, nursery, scratch):
    """Compare a server that has come here by acts and restarts with a fresh session on the same log."""
    said = [wire.get(f"/api/{what}") for what in ("state", "mosaic", "answers")]
    del said[0]["folder"]
    shutil.copytree(folder, scratch, ignore=shutil.ignore_patterns("project.sqlite*", "lock"))
    with (
        closing(sqlite3.connect(folder / "project.sqlite")) as log,
        closing(sqlite3.connect(scratch / "project.sqlite")) as copy,
    ):
        log.backup(copy)
    assert said == nursery.replay(scratch)
