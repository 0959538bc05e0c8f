"""`smalti annotate` as it is, killed in the middle of answers."""

from __future__ import annotations

import shutil
from contextlib import closing, contextmanager

import numpy as np

from smalti.project.project import Project
from tests.building.filmed import tiny
from tests.forks import Forked
from tests.server import real_program
from tests.server.kills import Killer, wait_until_asking
from tests.server.projects import prepared_tiny
from tests.server.scribe import Scribe, Wire

KILLS = 2


@contextmanager
def annotating(folder):
    """Run the command on a folder; yield its process and port."""
    with closing(Forked(real_program.run, ["annotate", "-q", "--no-browser", str(folder)])) as process:
        yield process.pid, int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])


def test_2_kills_of_the_command_lose_nothing(tmp_path):
    folder = shutil.copytree(prepared_tiny(tmp_path), tmp_path / "answered" / "tiny.smalti")
    with Project.open(folder) as project:
        revision = project.store.revision
    rng = np.random.default_rng(6)
    scribe = Scribe(tiny(), revision, rng)
    for kill in range(KILLS + 1):
        with annotating(folder) as (process, port), closing(Wire(port)) as wire:
            wait_until_asking(wire)
            scribe.check(wire)
            if kill < KILLS:
                scribe.act(wire)
                with Killer(process) as killer:
                    killer.kill_within(4 * scribe.seconds * rng.random())
                    while True:
                        scribe.act(wire)
    assert scribe.acknowledged >= KILLS
