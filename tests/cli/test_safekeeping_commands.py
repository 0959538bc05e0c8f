"""`smalti check` and `smalti import`, and what other commands do on read-only media."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import smalti
from smalti.cli.main import main
from smalti.interchange.checksums import seal
from smalti.project.answer_store import Store
from smalti.records import Answer, Author, Pair
from smalti_lab.synthetic.synthetic_files import write_video
from tests.building.filmed import TINY_BUDGET, copied, tiny
from tests.project.entries import no
from tests.project.old_files import downgrade

FACTS = (
    *("outcome", "predicted errors", "field of view", "registration", "trials of registration methods"),
    "questions asked by",
)


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(tiny(), tmp_path_factory.mktemp("source") / "tiny.mp4")


@pytest.fixture(scope="module")
def built(video, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "tiny.smalti"
    smalti.build(video, folder, budget=TINY_BUDGET).close()
    return folder


@pytest.fixture
def folder(built, tmp_path):
    return copied(built, tmp_path / "tiny.smalti")


def run(capfd, *words) -> tuple[int, str, str]:
    code = main(list(map(str, words)))
    told = capfd.readouterr()
    return code, told.out, told.err


def check(capfd, folder, *words) -> list[str]:
    """The lines about damage; none means that the exit code is 0."""
    code, out, err = run(capfd, "check", folder, *words)
    lines = [line.removeprefix("damaged: ") for line in out.splitlines() if line.startswith("damaged: ")]
    assert code == (1 if lines else 0)
    assert err == (f"smalti: {folder}: {_count(len(lines))} damaged, see above\n" if lines else "")
    return lines


def _count(number: int) -> str:
    return "1 thing is" if number == 1 else f"{number} things are"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flip(path: Path, at: int = -1) -> None:
    whole = bytearray(path.read_bytes())
    whole[at if at >= 0 else len(whole) // 2] ^= 1
    path.write_bytes(whole)


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "project.sqlite")) as plain, plain:
        triggers = plain.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            plain.execute(f"DROP TRIGGER {name}")
        assert plain.execute(statement).rowcount
        for _, sql in triggers:
            plain.execute(sql)


def build(folder, video) -> None:
    smalti.build(video, folder, budget=TINY_BUDGET).close()


def test_a_project_as_it_was_built_is_whole_and_is_not_changed_by_looking(folder, capfd):
    before = content(folder)
    code, out, err = run(capfd, "check", folder)
    assert (code, out, err) == (0, f"{folder}: everything is as it was written\n", "")
    assert content(folder) == before


@pytest.mark.parametrize("name", ["mosaic.png", "transforms.json", "landmarks.csv", "report.html"])
def test_a_delivered_file_that_changed_or_is_missing_is_named(folder, capfd, name):
    flip(folder / name)
    [line] = check(capfd, folder)
    assert line.startswith(f"{folder / name}: is not as it was delivered; run the same smalti build")
    (folder / name).unlink()
    [line] = check(capfd, folder)
    assert line.startswith(f"{folder / name}: is missing")


def test_every_cached_file_is_compared_and_a_missing_one_is_no_damage(folder, capfd):
    cached = sorted(path for path in (folder / "cache").rglob("*") if path.is_file())
    assert {path.suffix for path in cached} == {".npz", ".bin"}
    for path in cached:
        whole = path.read_bytes()
        flip(path)
        [line] = check(capfd, folder)
        assert line.startswith(f"{path}: is damaged; it is computed again")
        path.write_bytes(whole)
    shutil.rmtree(folder / "cache")
    assert check(capfd, folder) == []


def test_a_picture_of_the_page_that_changed_is_named(folder, capfd):
    picture = folder / "cache" / "pictures" / "frames" / "000001.jpg"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(seal(b"picture"))
    assert check(capfd, folder) == []
    flip(picture)
    [line] = check(capfd, folder)
    assert line.startswith(f"{picture}: is damaged")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_a_byte_of_the_source_that_changed_anywhere_is_noticed(built, video, tmp_path, capfd, share):
    moved = Path(shutil.copy(video, tmp_path / "moved.mp4"))
    assert check(capfd, built, "--source", moved) == []
    flip(moved, int(share * moved.stat().st_size))
    [line] = check(capfd, built, "--source", moved)
    assert str(moved) in line


def test_a_source_that_is_elsewhere_is_not_called_damaged(built, tmp_path, capfd):
    code, out, _ = run(capfd, "check", built, "--source", tmp_path / "nowhere.mp4")
    assert code == 0
    assert "not compared" in out
    assert "nowhere.mp4" in out


def test_damaged_records_and_a_damaged_copy_of_the_answers_are_named_and_told_as_json(folder, capfd):
    change(folder, "UPDATE link SET weight = weight / 2 + 0.01 WHERE rowid = 1")
    change(folder, "UPDATE log SET seconds = seconds + 1 WHERE place = 3")
    flip(folder / "answers.jsonl")
    code, out, _ = run(capfd, "check", folder, "--json")
    assert code == 1
    found = json.loads(out)
    assert found["project"] == str(folder)
    assert [any(word in line for line in found["damaged"]) for word in ("links", "answer 3", "answers.jsonl")] == [
        True
    ] * 3


def test_a_file_that_sqlite_calls_malformed_is_a_finding(folder, capfd):
    path = folder / "project.sqlite"
    whole = bytearray(path.read_bytes())
    whole[4096 : 2 * 4096] = bytes(4096)
    path.write_bytes(whole)
    assert check(capfd, folder)


def test_a_project_of_0_2_0_says_what_cannot_be_compared_yet(folder, capfd):
    downgrade(folder / "project.sqlite")
    code, out, _ = run(capfd, "check", folder)
    assert code == 0
    assert "has no checksums yet" in out


def test_a_build_brings_a_project_of_0_2_0_up_to_date_with_the_same_mosaic(folder, built, video, capfd):
    downgrade(folder / "project.sqlite")
    build(folder, video)
    assert run(capfd, "check", folder) == (0, f"{folder}: everything is as it was written\n", "")
    for name in ("transforms.json", "landmarks.csv", "mosaic.png", "answers.jsonl"):
        assert (folder / name).read_bytes() == (built / name).read_bytes()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE link SET weight = weight / 2 + 0.01 WHERE rowid = 1",
        "UPDATE placement SET sigma_px = sigma_px + 1 WHERE number = 3",
        "UPDATE placement SET final = zeroblob(72) WHERE number = 3",
        "UPDATE frame SET reason = 'too dark' WHERE number = 3",
        "UPDATE stage SET seconds = 1e9 WHERE rowid = 1",
        "UPDATE digest SET checksum = x'00' WHERE name = 'frame'",
        *(f"UPDATE fact SET value = replace(value, '0', '1') || ' ' WHERE name = '{name}'" for name in FACTS[:1]),
        *(f"UPDATE fact SET value = value || 'x' WHERE name = '{name}'" for name in FACTS[2:]),
        "UPDATE fact SET checksum = x'00' WHERE name = 'content of the source'",
    ],
)
def test_a_build_over_damaged_results_computes_them_again_to_the_same_bytes(folder, built, video, capfd, statement):
    change(folder, statement)
    assert check(capfd, folder)
    build(folder, video)
    assert check(capfd, folder) == []
    for name in ("transforms.json", "landmarks.csv", "mosaic.png"):
        assert (folder / name).read_bytes() == (built / name).read_bytes()


def test_a_build_over_a_damaged_cache_computes_it_again_and_says_so(folder, built, video, capfd):
    for path in (folder / "cache").rglob("*"):
        if path.is_file():
            flip(path)
    (folder / "cache" / "likeness.npz").write_bytes(b"damaged")
    code, _, err = run(capfd, "build", video, "-o", folder, "--budget", TINY_BUDGET)
    assert code == 0
    assert "likeness.npz: is damaged; it is computed again" in err
    assert (folder / "transforms.json").read_bytes() == (built / "transforms.json").read_bytes()


def test_a_source_that_changed_is_refused_when_its_frames_are_read_again(folder, video, tmp_path):
    moved = Path(shutil.copy(video, tmp_path / "moved.mp4"))
    flip(moved, int(0.3 * moved.stat().st_size))
    shutil.rmtree(folder / "cache")
    with pytest.raises(smalti.errors.ProjectError, match=r"has changed since .* was built from it"):
        build(folder, moved)


def test_a_lost_database_comes_back_from_the_copy_of_its_answers_to_the_same_mosaic(folder, built, video, capfd):
    (folder / "project.sqlite").unlink()
    code, _, err = run(capfd, "info", folder)
    assert code == 1
    new = folder.with_name("new")
    assert f"make a new project with: smalti import NEW {folder / 'answers.jsonl'}" in err
    code, out, err = run(capfd, "import", new, folder / "answers.jsonl")
    assert (code, err) == (0, "")
    assert f"for the mosaic, run: smalti build {video} -o {new}" in out
    build(new, video)
    for name in ("transforms.json", "landmarks.csv", "mosaic.png", "answers.jsonl"):
        assert (new / name).read_bytes() == (built / name).read_bytes()
    assert check(capfd, new) == []


def test_an_import_into_the_project_itself_adds_nothing(folder, capfd):
    code, out, _ = run(capfd, "import", folder, folder / "answers.jsonl")
    assert code == 0
    assert out.startswith(f"{folder}: 0 entries added, ")


def test_a_project_restored_from_an_older_copy_gets_the_entries_that_it_lacks(folder, tmp_path, capfd):
    older = copied(folder, tmp_path / "older")
    with closing(Store.open(folder / "project.sqlite")) as store:
        store.keep_answer(no(0, 9))
        wanted = store.log_checksums()
    assert run(capfd, "import", older, folder / "answers.jsonl")[0] == 0
    with closing(Store.open(older / "project.sqlite", read_only=True)) as store:
        assert store.log_checksums() == wanted


def person(pair: Pair, verdict: str = "no") -> smalti.project.entries.AnswerEntry:
    answer = Answer(pair, verdict, author=Author.PERSON)
    return smalti.project.entries.AnswerEntry(answer, smalti.project.entries.Role.LOOP, 1.0)


def test_into_another_log_go_the_answers_that_it_lacks_and_its_own_stay(folder, tmp_path, capfd):
    other = copied(folder, tmp_path / "other")
    with closing(Store.open(folder / "project.sqlite")) as store:
        matched = store.answers()[0].answer.pair
        for entry in (person(Pair(0, 9)), person(Pair(0, 10)), person(Pair(0, 11)), person(matched)):
            store.keep_answer(entry)
        store.undo()
        store.redo()
    with closing(Store.open(other / "project.sqlite")) as store:
        store.keep_answer(person(Pair(0, 10), "unsure"))
        store.keep_answer(person(Pair(0, 11)))
    code, out, _ = run(capfd, "import", other, folder / "answers.jsonl")
    assert code == 0
    assert "2 entries added" in out
    assert "not taken: 1 answers, because people answered otherwise" in out
    with closing(Store.open(other / "project.sqlite", read_only=True)) as store:
        history = store.history()
        assert history.answer_of(Pair(0, 9)).answer.verdict == "no"
        assert history.answer_of(Pair(0, 10)).answer.verdict == "unsure"
        assert history.answer_of(matched).answer.author is Author.PERSON


def test_answers_about_other_frames_are_refused_in_one_line(built, video, tmp_path, capfd):
    for options in ({"every": 2}, {"max_size": 100}):
        folder = tmp_path / str(options)
        smalti.build(video, folder, budget=0, **options).close()
        code, out, err = run(capfd, "import", folder, built / "answers.jsonl")
        assert (code, out) == (1, "")
        assert len(err.splitlines()) == 1
        assert "its answers are about" in err


def test_a_damaged_file_of_answers_is_refused_and_makes_no_project(built, tmp_path, capfd):
    damaged = Path(shutil.copy(built / "answers.jsonl", tmp_path / "answers.jsonl"))
    flip(damaged)
    code, _, err = run(capfd, "import", tmp_path / "new", damaged)
    assert code == 1
    assert "damaged" in err
    assert not (tmp_path / "new").exists()


READ_ONLY = """mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@" """


def on_read_only_media(folder: Path, *words) -> subprocess.CompletedProcess[str]:
    """Run a command while nothing can be written in a folder, by nobody: root needs a mount for that."""
    command = [sys.executable, "-m", "smalti.cli.main", *map(str, words)]
    if os.geteuid() == 0:
        command = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(folder), *command]
    else:
        folder.chmod(0o555)
        (folder / "project.sqlite").chmod(0o444)
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    finally:
        folder.chmod(0o755)


@pytest.fixture
def media(folder):
    """A project, on a system where a folder can be made read-only."""
    if os.geteuid() == 0:
        tried = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(folder), "touch", str(folder / "written")]
        done = subprocess.run(tried, capture_output=True, check=False) if shutil.which("unshare") else None
        if done is None or b"Read-only" not in done.stderr:
            pytest.skip("root cannot make a read-only mount here")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["check"],
        ["evaluate", "--landmarks", "{folder}/landmarks.csv"],
        ["render", "-o", "{out}/m.tif", "-q"],
        ["film", "-o", "{out}/m.mp4", "--seconds", "6", "--size", "160", "-q"],
        ["undistort", "-o", "{out}/frames", "-q"],
        ["replay", "--out", "{out}/replay", "-q"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_that_only_reads_works_on_read_only_media(media, tmp_path, words):
    out = tmp_path / "out"
    out.mkdir()
    (media / "cache" / "rendering").exists() and shutil.rmtree(media / "cache" / "rendering")
    before = content(media)
    named = [word.format(folder=media, out=out) for word in words[1:]]
    done = on_read_only_media(media, words[0], media, *named)
    assert done.returncode == 0, done.stderr
    assert content(media) == before
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("command", ["build", "annotate"])
def test_a_command_that_writes_says_so_on_read_only_media(media, video, command):
    words = ["build", video, "-o", media] if command == "build" else ["annotate", media, "--port", "0", "--no-browser"]
    done = on_read_only_media(media, *words)
    assert done.returncode == 1
    assert done.stderr == (
        f"smalti: {media}: cannot be written, and build and annotate add to a project; copy it to a writable folder\n"
    )
