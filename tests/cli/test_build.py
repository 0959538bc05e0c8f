"""`smalti build` as it is typed: what it says, what it leaves, with which exit code."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from smalti.building import build_settings as settings
from smalti.cli import build_command as command
from smalti.cli.main import main
from smalti.geometry.homographies import FAMILIES
from smalti.project.project import Project
from smalti_lab.synthetic.synthetic_files import write_frames, write_video
from tests.building.walks import FRAME, FRAMES, truth_error_px, walk

ROOT = Path(__file__).parents[2]
FILES = ("project.sqlite", "mosaic.png", "report.html", "transforms.json", "landmarks.csv")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(walk(), tmp_path_factory.mktemp("source") / "walk.mp4")


@pytest.fixture(scope="module")
def built(video, tmp_path_factory):
    """Return the folder of a build, and what the command printed, in a process of its own."""
    folder = tmp_path_factory.mktemp("built") / "walk.smalti"
    words = [sys.executable, "-m", "smalti.cli.main", "build", str(video), "-o", str(folder), "--budget", "6"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


def build(video, folder, *options):
    return main(["build", "-q", str(video), "-o", str(folder), *map(str, options)])


def one_line(capfd):
    words = capfd.readouterr()
    assert words.out == ""
    assert len(words.err.splitlines()) == 1, words.err
    return words.err


def test_the_mosaic_lies_near_the_truth(built):
    assert truth_error_px(walk(), built[0]) < 0.3


def test_every_file_is_there_and_whole(built):
    for name in FILES:
        assert (built[0] / name).stat().st_size > 100, name
    assert not list(built[0].rglob("*.part"))


def test_the_closing_words_say_how_many_frames_and_where_the_files_are(built):
    folder, out, _ = built
    lines = out.splitlines()
    assert lines[0] == f"{FRAMES} of {FRAMES} frames on one mosaic: {folder / 'mosaic.png'}"
    assert lines[-1] == f"report: {folder / 'report.html'}"


def test_every_stage_shows_a_bar(built):
    for stage in ("reading", "chain", "asking", "rendering"):
        assert stage in built[2]
    assert "Traceback" not in built[2]


def test_quiet_says_nothing(video, tmp_path, capfd):
    assert build(video, tmp_path / "out", "--budget", 0) == 0
    assert capfd.readouterr() == ("", "")


def test_without_an_output_the_folder_has_the_name_of_the_video(video, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["build", "-q", str(video), "--budget", "0", "--end", "4"]) == 0
    assert (tmp_path / "walk.smalti" / "mosaic.png").exists()


def test_several_images_are_one_sequence(tmp_path):
    images = write_frames(walk(), tmp_path / "images", ".png")[:4]
    assert main(["build", "-q", *map(str, images), "-o", str(tmp_path / "out"), "--budget", "0"]) == 0
    with Project.open(tmp_path / "out") as project:
        assert [frame.label for frame in project.frames] == [path.name for path in images]


def test_frames_are_chosen_and_reduced(video, tmp_path):
    chosen = ("--every", 2, "--start", 1, "--end", 9, "--max-size", 120, "--budget", 0)
    assert build(video, tmp_path / "out", *chosen) == 0
    with Project.open(tmp_path / "out") as project:
        assert (project.width, project.height) == (FRAME[0] // 2, FRAME[1] // 2)
        maps = np.array([placement.final for placement in project.placements])
        assert [placement.number for placement in project.placements] == [0, 1, 2, 3]
    # A pixel of the reduced frame is two of the source: undone on both sides, the maps are those of the whole frames.
    doubled = np.array([[2.0, 0, 0.5], [0, 2, 0.5], [0, 0, 1]])
    assert walk().truth_error(doubled @ maps @ np.linalg.inv(doubled), range(1, 9, 2)).rms < 1.5


def test_a_video_can_be_cut_by_times(video, tmp_path):
    assert build(video, tmp_path / "out", "--start", "0.08s", "--end", "0:00.24", "--budget", 0) == 0
    with Project.open(tmp_path / "out") as project:
        assert len(project.frames) == 4  # 25 frames a second


BOUNDS_PX = {"translation": 12.0, "rigid": 6.0, "similarity": 0.5, "affine": 0.5, "projective": 0.5}
"""The camera turns by some degrees and zooms by some percent, which shifts and turns cannot follow."""


@pytest.mark.parametrize("family", BOUNDS_PX)
def test_maps_are_of_the_family_asked_for(family, video, tmp_path, capfd):
    assert build(video, tmp_path / "out", "--family", family, "--budget", 2, "--end", 8) == 0
    with Project.open(tmp_path / "out") as project:
        maps = np.array([placement.final for placement in project.placements])
        assert project.info().family == family
    assert len(maps) == 8
    linear, bent = maps[:, :2, :2], np.abs(maps[:, 2, :2]).max()
    scale = np.sqrt(np.linalg.det(linear))
    is_rigid = np.abs(linear @ np.swapaxes(linear, 1, 2) - scale[:, None, None] ** 2 * np.eye(2)).max() < 1e-9
    keeps = (np.abs(linear - np.eye(2)).max() < 1e-9, is_rigid and np.abs(scale - 1).max() < 1e-9, is_rigid, bent == 0)
    assert keeps == tuple(n >= list(BOUNDS_PX).index(family) for n in range(4))
    assert walk().truth_error(maps, range(8)).rms < BOUNDS_PX[family]
    assert main(["info", str(tmp_path / "out")]) == 0
    assert f"maps        {family}" in capfd.readouterr().out


def test_the_mosaic_is_seen_from_the_frame_asked_for(video, tmp_path):
    centre = np.array([(FRAME[0] - 1) / 2, (FRAME[1] - 1) / 2])
    found = {}
    for reference in ("2", "9"):
        folder = tmp_path / reference
        assert build(video, folder, "--reference", reference, "--budget", 3) == 0
        with Project.open(folder) as project:
            assert project.outcome.references == (int(reference),)
            found[reference] = {placement.number: placement.final for placement in project.placements}
        own = found[reference][int(reference)]
        x, y, w = own @ [*centre, 1.0]
        np.testing.assert_allclose([x / w, y / w], centre, atol=1e-6)
        # The derivative there: no turn, no zoom; level is level, so that it may be stretched and tilted a little.
        slope = (own[:2, :2] - np.outer([x / w, y / w], own[2, :2])) / w
        assert slope[0, 1] == pytest.approx(slope[1, 0], abs=1e-6)
        assert np.linalg.det(slope) == pytest.approx(1.0, abs=1e-6)
        assert truth_error_px(walk(), folder) < 0.3
    # Seen from elsewhere it is the same mosaic, moved, turned and scaled.
    from_two, from_nine = (np.array([maps[n] for n in range(FRAMES)]) for maps in found.values())
    moved = from_nine @ np.linalg.inv(from_two)
    moved /= moved[:, 2:, 2:]
    assert np.abs(moved - moved[0]).max() < 0.05
    assert np.abs(moved[0, 2, :2]).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--family", "bent"], "unknown family 'bent': choose from translation, rigid, similarity", 2),
        (["--method", "luck"], "unknown method 'luck': choose from smalti, paper", 2),
        (["--reference", "middle"], "reference middle: give the number of a frame, or auto", 2),
        (["--reference", "99"], "reference frame 99: is not used", 2),
    ],
)
def test_a_wrong_name_is_one_line(options, said, code, video, tmp_path, capfd):
    assert build(video, tmp_path / "out", "--budget", 0, *options) == code
    assert said in one_line(capfd)


def test_a_frame_that_was_set_aside_is_no_reference(tmp_path, capfd):
    (tmp_path / "frames").mkdir()
    for n in range(5):
        Image.fromarray(walk().frame(n) * (n != 2)).save(tmp_path / "frames" / f"{n}.png")
    assert build(tmp_path / "frames", tmp_path / "out", "--budget", 0, "--reference", 2) == 2
    assert "reference frame 2: is not used" in one_line(capfd)
    assert build(tmp_path / "frames", tmp_path / "out", "--budget", 0, "--reference", 3) == 0


def test_a_mask_from_a_file_hides_what_is_black(video, tmp_path):
    mask = np.zeros((FRAME[1], FRAME[0]), dtype=np.uint8)
    mask[:, 60:] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    assert build(video, tmp_path / "out", "--mask", tmp_path / "mask.png", "--budget", 0) == 0
    with Project.open(tmp_path / "out") as project:
        assert np.array_equal(project.mask, mask > 0)
        for entry in project.answers:
            assert entry.answer.landmarks.points_i[:, 0].min() > 55
            assert entry.answer.landmarks.points_j[:, 0].min() > 55


def test_a_mask_for_every_frame_keeps_what_moves_out_of_the_mosaic(tmp_path):
    """A white square moves on; the project needs neither the masks nor its cache to be drawn again."""
    frames, masks = tmp_path / "frames", tmp_path / "masks"
    frames.mkdir()
    masks.mkdir()
    for n in range(6):
        image, mask = walk().frame(n), np.full((FRAME[1], FRAME[0]), 255, dtype=np.uint8)
        there = (slice(60, 100), slice(30 + 25 * n, 70 + 25 * n))
        image[there], mask[there] = 255, 0
        Image.fromarray(image).save(frames / f"{n}.png")
        Image.fromarray(mask).save(masks / f"{n}.png")
    Image.fromarray(np.zeros_like(mask)).save(masks / "5.png")
    assert build(frames, tmp_path / "out", "--mask", masks, "--budget", 0) == 0
    assert build(frames, tmp_path / "none", "--mask", "none", "--budget", 0) == 0
    shutil.rmtree(masks)
    shutil.rmtree(tmp_path / "out" / "cache")
    with Project.open(tmp_path / "out") as project, Project.open(tmp_path / "none") as none:
        assert project.frames[5].reason  # its mask is black
        image, unmasked = (np.asarray(one.mosaic().image(4000)) for one in (project, none))
        with Image.open(tmp_path / "out" / "mosaic.png") as file:
            written = np.asarray(file.convert("RGBA"))
        np.testing.assert_array_equal(image, written)
    assert (unmasked[..., :3].min(axis=2) > 240).sum() > 100  # the seams avoid most of it by themselves
    assert not (image[..., :3].min(axis=2) > 240).any()


def test_a_round_field_of_view_is_found_unless_told_otherwise(tmp_path):
    x, y = np.meshgrid(np.arange(FRAME[0]), np.arange(FRAME[1]))
    inside = np.hypot(x - 119.5, y - 89.5) < 85
    (tmp_path / "round").mkdir()
    for n in range(6):
        Image.fromarray(walk().frame(n) * inside[:, :, None]).save(tmp_path / "round" / f"{n}.png")
    assert build(tmp_path / "round", tmp_path / "auto", "--budget", 0) == 0
    assert build(tmp_path / "round", tmp_path / "none", "--budget", 0, "--mask", "none") == 0
    with Project.open(tmp_path / "auto") as auto, Project.open(tmp_path / "none") as none:
        assert (auto.mask != inside).mean() < 0.05
        assert none.mask is None


def test_a_target_that_is_met_stops_the_questions(video, tmp_path):
    assert build(video, tmp_path / "out", "--target-px", 50) == 0
    with Project.open(tmp_path / "out") as project:
        assert (project.info().asked, project.info().stopped) == (0, "target")


@pytest.mark.parametrize("other", [["--seed", "1"], ["--mask", "none"]])
def test_other_options_on_a_project_are_one_line_and_change_nothing(other, built, video, capfd):
    folder = built[0]
    before = (folder / "transforms.json").read_bytes()
    assert build(video, folder, *other) == 1
    said = one_line(capfd)
    assert "other options" in said
    assert str(folder) in said
    assert (folder / "transforms.json").read_bytes() == before


def test_other_frames_on_a_project_are_one_line(built, video, capfd):
    assert build(video, built[0], "--every", 2) == 1
    assert "other frames" in one_line(capfd)


def test_names_in_the_help_are_those_of_the_tables():
    assert tuple(FAMILIES) == command.FAMILIES
    assert settings.Method.__args__ == command.METHODS
    assert settings.Registration.__args__ == command.REGISTRATIONS


def test_ctrl_c_in_a_compiled_kernel_is_an_interrupt_too(monkeypatch, capsys):
    def fail(options):
        try:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        except SystemError as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr("smalti.cli.build_command.run_build", fail)
    assert main(["build", "nowhere.mp4"]) == 130
    assert capsys.readouterr().err == "smalti: interrupted; run the same command to continue\n"


def test_any_other_system_error_is_not_hidden(monkeypatch):
    def fail(options):
        raise SystemError("something else")

    monkeypatch.setattr("smalti.cli.build_command.run_build", fail)
    with pytest.raises(SystemError, match="something else"):
        main(["build", "nowhere.mp4"])
