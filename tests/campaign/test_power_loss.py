"""A power loss takes nothing that was acknowledged, and leaves no half of a file under its final name."""

from __future__ import annotations

import sys
from contextlib import closing

import numpy as np
import pytest

from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.project_lock import make_folder
from tests.campaign.forgetful_disk import CANNOT_RECORD, can_record
from tests.campaign.power_loss import (
    Recorded,
    judge,
    log_rows,
    losses,
    record_answers,
    record_build,
    record_outputs,
    replayed_whole,
)
from tests.campaign.tally import Tally

pytestmark = pytest.mark.skipif(not can_record(), reason=CANNOT_RECORD)


@pytest.fixture
def recorded(tmp_path):
    return Recorded.in_folder(tmp_path)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return record_answers(tmp_path_factory.mktemp("answers"), seed=1, acts=15)


def left_at_the_end(recorded, count=40):
    """Yield the folders that power losses after the last operation leave."""
    moments = losses(recorded, count, np.random.default_rng(0), last=True)
    yield from (loss.folder for loss in moments)


def harm(recorded, check, count):
    tally = Tally("power loss")
    for loss in losses(recorded, count, np.random.default_rng(2)):
        judge(tally, loss, check)
    assert tally.tried == count
    return tally.failures


WRITE = """
import os, sys
file = os.open(sys.argv[1] + "/unfinished", os.O_CREAT | os.O_WRONLY)
os.write(file, bytes(range(256)) * 40)
for what in sys.argv[2:]:
    if what == "file":
        os.fsync(file)
    elif what == "folder":
        os.fsync(os.open(sys.argv[1], os.O_RDONLY))
    else:
        os.rename(sys.argv[1] + "/unfinished", sys.argv[1] + "/" + what)
"""


@pytest.mark.parametrize(
    ("steps", "possible"),
    [
        (["whole"], ["nothing", "torn", "whole"]),
        (["whole", "folder"], ["torn", "whole"]),
        (["file", "whole"], ["nothing", "whole"]),
        (["file", "whole", "folder"], ["whole"]),
    ],
    ids="-".join,
)
def test_the_disk_forgets_what_was_not_synced_and_nothing_else(steps, possible, recorded):
    recorded.run(sys.executable, "-c", WRITE, recorded.after, *steps)
    found = set()
    for folder in left_at_the_end(recorded):
        path = folder / "whole"
        content = path.read_bytes() if path.exists() else None
        found.add("nothing" if content is None else "whole" if content == bytes(range(256)) * 40 else "torn")
    assert sorted(found) == possible


def test_no_write_of_the_product_is_overlooked(answers, tmp_path):
    assert replayed_whole(answers[0], tmp_path / "again") == []


def test_no_acknowledged_answer_is_lost(answers):
    assert harm(*answers, 12) == []


def test_a_build_goes_on_to_the_same_bytes(tmp_path):
    assert harm(*record_build(tmp_path, seed=0), 4) == []


def test_a_file_that_has_its_name_is_whole(tmp_path):
    names = ("mosaic.png", "mosaic.dzi", "film.gif", "frames")
    assert harm(*record_outputs(tmp_path, seed=0, names=names), 40) == []


ANSWER = """
import os, sys
from pathlib import Path
from smalti.project.answer_store import Store
from tests.project.entries import yes

reader = Store.open(Path(sys.argv[1]))
reader.revision  # SQLite makes its -wal file now, for this connection
Store.open(Path(sys.argv[1])).keep_answer(yes(0, 1))
os._exit(0)
"""


def test_an_answer_is_kept_where_somebody_else_made_the_wal_file(recorded):
    for folder in (recorded.before, recorded.after):
        Store.create(folder / FILE_NAME).close()
    recorded.run(sys.executable, "-c", ANSWER, recorded.after / FILE_NAME)
    assert {len(log_rows(folder)) for folder in left_at_the_end(recorded)} == {1}


MAKE = """
import os, sys
from pathlib import Path
from smalti.project.project_lock import make_folder

make_folder(Path(sys.argv[1]))
os._exit(0)
"""


def test_the_folder_of_a_new_project_stays_with_all_that_were_made_for_it(recorded):
    recorded.run(sys.executable, "-c", MAKE, recorded.after / "survey" / "first.smalti")
    assert all((folder / "survey" / "first.smalti").is_dir() for folder in left_at_the_end(recorded))


def test_a_project_is_begun_where_a_power_loss_left_a_journal_alone(tmp_path):
    (tmp_path / f"{FILE_NAME}-journal").write_bytes(bytes(512))
    make_folder(tmp_path)
    with closing(Store.create(tmp_path / FILE_NAME)) as store:
        assert store.revision == 0
