"""Sequences with a cut: joined by what they revisit, or told apart where nothing joins them."""

from __future__ import annotations

import numpy as np
import pytest

import smalti
from smalti.cli.build_command import closing_words
from smalti.records import Pair
from tests.building.filmed import along, error_px, joined, write_images


def images_of(*sequences):
    return [sequence.frame(n) for sequence in sequences for n in range(len(sequence))]


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A flight to the right; a cut; one that begins in the far corner and comes back over the first."""
    base = tmp_path_factory.mktemp("cut")
    sequence = joined(along([(90, 80), (440, 80)]), along([(600, 400), (600, 90), (250, 90)]))
    with smalti.build(write_images(base / "images", images_of(sequence)), base / "out", budget=20) as project:
        yield project, sequence


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """Two scenes: the first, the second, and the first again further on."""
    base = tmp_path_factory.mktemp("strangers")
    first, again = along([(100, 100), (360, 100)]), along([(330, 120), (580, 120)])
    second = along([(100, 300), (420, 300)], seed=2)
    folder = write_images(base / "images", images_of(first, second, again))
    with smalti.build(folder, base / "out", budget=12) as project:
        yield project, first, second, again


def test_a_cut_breaks_the_chain(cut):
    project, _ = cut
    last = len(along([(90, 80), (440, 80)])) - 1
    assert project.outcome.breaks == (Pair(last, last + 1),)


def test_a_cut_is_joined_by_the_loops_that_come_back(cut):
    project, sequence = cut
    assert project.parts == 1
    assert project.not_placed == {}
    assert project.outcome.unjoined == ()
    assert error_px(project, sequence) < 0.3


def test_the_report_tells_where_the_sequence_broke(cut):
    assert 'id="breaks"' in (cut[0].folder / "report.html").read_text()


def test_unrelated_scenes_are_mosaics_of_their_own(strangers):
    project, first, second, again = strangers
    assert project.parts == 2
    parts = {placement.number: placement.part for placement in project.placements}
    of_second = range(len(first), len(first) + len(second))
    assert len(parts) == len(first) + len(second) + len(again)
    assert {number for number, part in parts.items() if part == 1} == set(of_second)
    assert project.outcome.unjoined != ()


def test_each_is_right_in_itself(strangers):
    project, first, second, again = strangers
    assert error_px(project, second, part=1, first=len(first)) < 0.3
    whole = joined(first, again)
    maps = [placement.final for placement in project.placements if placement.part == 0]
    assert whole.truth_error(np.array(maps)).rms < 0.3


def test_nothing_is_flung(strangers):
    """The mosaics are no larger than what their frames cover in their scenes."""
    project, first, second, again = strangers
    for part, sequence in ((0, joined(first, again)), (1, second)):
        canvas = project.mosaic(part).canvas()
        covered = np.ptp(sequence.camera.footprints.reshape(-1, 2), axis=0)
        # A mosaic lies as its reference frame does, which is turned a little.
        assert canvas.width < 1.15 * covered[0] + 40
        assert canvas.height < 1.15 * covered[1] + 40


def test_each_has_its_picture_and_is_told_of(strangers):
    project = strangers[0]
    assert (project.folder / "mosaic.png").is_file()
    assert (project.folder / "mosaic-2.png").is_file()
    assert not (project.folder / "mosaic-3.png").exists()
    assert "2 mosaics" in closing_words(project)
    report = (project.folder / "report.html").read_text()
    assert 'id="breaks"' in report


def test_no_link_joins_the_strangers(strangers):
    project, first, second, _ = strangers
    of_second = range(len(first), len(first) + len(second))
    for link in project.links:
        if link.state == "accepted":
            assert (link.pair.i in of_second) == (link.pair.j in of_second)
