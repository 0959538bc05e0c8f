"""What was reported as kept is there after the process was killed."""

from __future__ import annotations

import signal
from contextlib import closing

from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.entries import Act, History
from smalti.records import Author, Pair
from tests.project.acts import given
from tests.project.processes import run, whole_answers

ANSWER_UNTIL_KILLED = """
import sys
from pathlib import Path
from smalti.project.answer_store import Store
from tests.project.entries import yes

store = Store.create(Path(sys.argv[1]))
n = len(store.answers())
while True:
    store.keep_answer(yes(n, n + 1, landmarks=200))
    n += 1
    print(n, flush=True)
"""

CHANGE_UNTIL_KILLED = """
import sys
from pathlib import Path
from smalti.project.answer_store import Store
from smalti.records import Author, Pair
from tests.project.acts import PAIRS, given

store = Store.create(Path(sys.argv[1]))
while True:
    # Every kind of line in turn, each of which can be written at its place.
    place = store.revision + 1
    pair = PAIRS[place // 6 % 4]
    steps = [
        lambda: store.keep_answer(given(pair, Author.MATCHER, str(place))),
        lambda: store.keep_answer(given(pair, Author.PERSON, str(place))),
        store.undo,
        store.redo,
        lambda: store.remove_answer(pair),
        store.undo,
    ]
    steps[place % 6]()
    print(place, flush=True)
"""


def test_what_was_reported_as_kept_survives_a_killed_process(tmp_path):
    path = tmp_path / FILE_NAME
    reported = 0
    for session in range(3):
        with run(ANSWER_UNTIL_KILLED, path) as process:
            for line in process.stdout:
                reported = int(line)
                if reported >= 15 * (session + 1):
                    break
            process.send_signal(signal.SIGKILL)
            reported = max([reported, *map(int, process.stdout.read().split())])
            assert process.wait() == -signal.SIGKILL, process.stderr.read()
        # The last one may have been kept without having been reported.
        assert whole_answers(path) in (reported, reported + 1)


def test_undo_redo_and_removal_survive_a_killed_process_too(tmp_path):
    path = tmp_path / FILE_NAME
    Store.create(path).close()
    with closing(Store.open(path)) as store:
        for n in range(5):  # places 6, 12, … are a matcher's answer
            store.keep_answer(given(Pair(1, 7 + n), Author.MATCHER))
    reported = 5
    for session in range(3):
        with run(CHANGE_UNTIL_KILLED, path) as process:
            for line in process.stdout:
                reported = int(line)
                if reported >= 20 * (session + 1):
                    break
            process.send_signal(signal.SIGKILL)
            reported = max([reported, *map(int, process.stdout.read().split())])
            assert process.wait() == -signal.SIGKILL, process.stderr.read()
        with closing(Store.open(path)) as store:
            log = store.log()
            assert [entry.place for entry in log] == list(range(1, store.revision + 1))
            assert store.revision in (reported, reported + 1)
            acts = [Act.GIVE, Act.GIVE, Act.UNDO, Act.REDO, Act.REMOVE, Act.UNDO]
            assert [entry.act for entry in log[5:]] == [acts[place % 6] for place in range(6, store.revision + 1)]
            replayed = History.of(log)
            assert [entry.place for entry in store.answers()] == [entry.place for entry in replayed.answers]
            for entry in replayed.answers[5:]:
                assert entry.answer.reason == str(entry.place)
