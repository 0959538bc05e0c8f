"""A small part of every attack of `make campaign`, always the same; and that the campaign sees what is wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.campaign import commands
from tests.campaign.__main__ import ATTACKS, run_attack
from tests.campaign.commands import Ended, Trial, Worker, try_all, workers
from tests.campaign.samples import BUILD, write_images

SMALL = {
    "kills": 3,
    "bit_flips": 33,
    "fuzzed_inputs": 36,
    "bad_options": 20,
    "hostile_projects": 8,
    "hostile_requests": 60,
    "slow_clients": 5,
    "dropped_streams": 50,
}
FIRST = 1


@pytest.mark.parametrize("attack", SMALL)
def test_a_small_part_of_an_attack_breaks_nothing(attack):
    tally = run_attack(attack, SMALL[attack], FIRST)
    assert tally.failures == []
    assert tally.tried == SMALL[attack]


def ended(code=1, err="smalti: clip.mp4: is empty; copy it again\n", **more):
    return Ended("smalti build clip.mp4", code, "", err, quiet=True, **more)


def test_one_line_of_a_refused_command_is_right():
    assert ended().fault == ""
    assert ended(0, "").fault == ""


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (ended(err="Traceback (most recent call last):\n  File x\nKeyError: 1\n"), "traceback: KeyError: 1"),
        (ended(err="smalti: one\nsmalti: two\n"), "2 lines on standard error"),
        (ended(0, "libtiff: something\n"), "1 lines on standard error"),
        (ended(err=""), "without a word"),
        (ended(-11, ""), "exit code -11"),
        (ended(3), "exit code 3"),
        (ended(stopped="takes 2100 MB"), "takes 2100 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_is_seen(wrong, words):
    assert words in wrong.fault


@pytest.fixture
def worker():
    with workers(1) as (one,):
        yield one


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("LONGEST_SECONDS", 0.3, "hangs for more than"), ("MOST_MEGABYTES", 60, "takes")],
)
def test_a_command_beyond_a_limit_is_ended_and_the_next_one_works(worker, tmp_path, monkeypatch, limit, value, words):
    images = write_images(tmp_path / "walk")
    with monkeypatch.context() as context:
        context.setattr(commands, limit, value)
        context.setattr(commands, "LOOKING_SECONDS", 0.01)
        assert words in worker.run("build", images, "-o", tmp_path / "out", *BUILD).fault
    assert worker.run("--version").out.startswith("smalti ")


def test_every_try_has_its_own_seed_folder_and_line(tmp_path):
    seen = Counter()

    def try_one(number, rng, worker: Worker, place):
        seen[number, int(rng.integers(10**9))] += 1
        assert not list(place.iterdir())
        return Trial(f"number {number}", "tried", ("it broke",) if number == 8 else ())

    tallies = [try_all("nothing", count, seed, tmp_path, try_one) for count, seed in ((3, 7), (1, 8))]
    assert [tally.failures for tally in tallies] == [["seed 8: number 8: it broke"]] * 2
    assert sorted(seen.values()) == [1, 1, 2]


def test_the_whole_campaign_has_the_promised_numbers():
    promised = {"kills": 320, "bit_flips": 500, "fuzzed_inputs": 1000, "bad_options": 1000, "hostile_projects": 300}
    promised |= {"hostile_requests": 1000, "slow_clients": 100, "dropped_streams": 500}
    assert promised.items() <= {name: count for name, (_, count) in ATTACKS.items()}.items()
