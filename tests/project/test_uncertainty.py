"""± px at any place of a finished project, relative to any frame."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.building.build_results import Delivered, judge_links, keep_result, place_asides, place_frames, summarise
from smalti.building.source_questions import Questions
from smalti.engine.links import linear_part
from smalti.errors import ProjectError
from smalti.frame_numbers import FrameNumbers
from smalti.geometry.homographies import apply_map, family_named
from smalti.geometry.lens import Lens
from smalti.project.entries import FrameEntry, Role
from smalti.project.project import Project
from smalti.project.uncertainty import Uncertainty
from smalti.records import Answer, Pair
from tests.project.folders import begin, write_images
from tests.worlds import OUTLINE, measured, spread_points

ASIDE = 4
USED = [n for n in range(14) if n != ASIDE]
NUMBERS = FrameNumbers(tuple(USED))
CHAIN = [Pair(n, n + 1) for n in range(12)]
LOOPS = [Pair(0, 11), Pair(1, 10), Pair(3, 8)]
CENTRE = OUTLINE.centre[None]


class Camera:
    """Goes six frames out, turns and zooms a little, and comes back beside its way; measures as asked."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        n = np.arange(14)
        self.truth = np.tile(np.eye(2, 3), (14, 1, 1)) + self.rng.normal(0.0, 0.03, (14, 2, 3))
        self.truth[:, 0, 2] = np.minimum(n, 13 - n) * OUTLINE.width / 4
        self.truth[:, 1, 2] = np.where(n < 7, 0.0, OUTLINE.height / 3)

    def answer(self, pair: Pair) -> Answer:
        return Answer.yes(measured(self.rng, self.truth, pair, spread_points(self.rng, 8), 0.5))


def finished(folder: Path, chain: Sequence[Pair], loops: Sequence[Pair], family: str = "projective") -> Project:
    """Thirteen frames that went through the end of a build, and one that was set aside and placed at last."""
    project = begin(folder / "out", write_images(folder / "images", 14))
    project.store.keep_fact(replace(project.source_facts, width=120, height=80))
    frames = [FrameEntry(n, f"{n}.png", "too blurred" if n == ASIDE else "") for n in range(14)]
    project.store.keep_frames(frames)
    questions = Questions(project.store, lambda role: Camera(), NUMBERS)
    records = [questions.ask(pair, Role.CHAIN).landmarks for pair in chain]
    start = ActiveLoop.start(13, OUTLINE, records, family=family_named(family), lens=Lens(OUTLINE))
    loop = start.replay(questions.ask(pair, Role.LOOP) for pair in loops)
    delivered = Delivered.of(loop)
    placements = place_frames(start.mosaic_from_frame, delivered, NUMBERS)
    placements += place_asides(frames, placements, questions, loop.lens)
    links = judge_links(delivered, loop.landmarks, NUMBERS)
    keep_result(project, placements, links, summarise(start, loop, delivered, NUMBERS, project.store.revision))
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Iterator[Project]:
    with finished(tmp_path_factory.mktemp("camera"), CHAIN, LOOPS) as project:
        yield project


@pytest.fixture(scope="module")
def torn(tmp_path_factory) -> Iterator[Project]:
    """Without links across, frames 0 to 6 and 7 to 13 are mosaics of their own; a loop lies within each."""
    chain = [pair for pair in CHAIN if pair != Pair(5, 6)]
    with finished(tmp_path_factory.mktemp("torn"), chain, [Pair(0, 2), Pair(8, 12)]) as project:
        yield project


def deviations(uncertainty: Uncertainty, numbers: Sequence[int]) -> np.ndarray:
    return np.array([uncertainty.at(number, CENTRE)[0] for number in numbers])


@pytest.mark.parametrize("family", ["similarity", "affine", "projective"])
def test_centres_are_as_sure_as_the_build_said(family, tmp_path):
    with finished(tmp_path, CHAIN, LOOPS, family) as project:
        said = {placement.number: placement.sigma_px for placement in project.placements}
        found = Uncertainty.of(project)
    np.testing.assert_allclose(deviations(found, USED), [said[n] for n in USED], rtol=1e-6, atol=1e-9)
    assert max(said.values()) > 0.3


def test_by_default_it_is_relative_to_the_frame_whose_pixels_are_the_mosaics(project):
    found = Uncertainty.of(project)
    (reference,) = project.outcome.references
    assert (found.part, found.relative_to) == (0, reference)
    assert set(found.spread) == set(range(14))
    assert not found.at(reference, OUTLINE.corners).any()


def test_relative_to_another_frame_that_one_is_sure(project):
    found = Uncertainty.of(project, relative_to=13)
    assert found.relative_to == 13
    assert not found.at(13, OUTLINE.corners).any()
    assert found.at(12, CENTRE)[0] < found.at(6, CENTRE)[0]


def test_two_frames_are_equally_sure_of_a_place_that_both_show(project):
    maps = {placement.number: placement.final for placement in project.placements}
    six_from_two = np.linalg.inv(maps[6]) @ maps[2]
    in_6 = apply_map(six_from_two, CENTRE)
    there, back = Uncertainty.of(project, relative_to=6), Uncertainty.of(project, relative_to=2)
    scale = np.linalg.det(linear_part(six_from_two)) ** 0.5
    assert there.at(2, CENTRE)[0] / scale == pytest.approx(back.at(6, in_6)[0], rel=0.05)


def test_corners_are_less_sure_than_the_centre(project):
    found = Uncertainty.of(project)
    for number in set(range(14)) - {found.relative_to}:
        assert found.at(number, OUTLINE.corners).max() > found.at(number, CENTRE)[0]


def test_a_frame_set_aside_is_as_sure_as_the_one_beside_which_it_was_laid(project):
    (entry,) = [entry for entry in project.answers if entry.role is Role.ASIDE]
    neighbour = min({entry.answer.pair.i, entry.answer.pair.j} - {ASIDE})
    found = Uncertainty.of(project, relative_to=12)
    np.testing.assert_array_equal(found.spread[ASIDE], found.spread[neighbour])
    from_aside, from_neighbour = (Uncertainty.of(project, relative_to=number) for number in (ASIDE, neighbour))
    np.testing.assert_array_equal(from_aside.spread[9], from_neighbour.spread[9])


def test_matches_that_the_mosaic_was_not_made_by_make_nothing_surer(project, tmp_path):
    """A smaller budget leaves answers in the log that no longer count."""
    before = deviations(Uncertainty.of(project), USED)
    with copied(project, tmp_path) as copy:
        links = [entry for entry in copy.links if entry.pair.j - entry.pair.i <= 2]
        copy.store.keep_result(copy.placements, links, copy.outcome)
        after = deviations(Uncertainty.of(copy), USED)
    assert after.max() > 1.5 * before.max()


def test_where_the_chain_had_placed_the_frames_does_not_matter(project, tmp_path):
    before = Uncertainty.of(project).spread[9]
    with copied(project, tmp_path) as copy:
        placements = [replace(placement, chain=1.5 * np.eye(3)) for placement in copy.placements]
        copy.store.keep_result(placements, copy.links, copy.outcome)
        assert np.array_equal(Uncertainty.of(copy).spread[9], before)


def test_each_part_has_its_own(torn):
    references = torn.outcome.references
    parts = [{p.number for p in torn.placements if p.part == part} for part in (0, 1)]
    assert sorted(map(sorted, parts)) == [[*range(7)], [*range(7, 14)]]
    for part in (0, 1):
        found = Uncertainty.of(torn, part)
        assert (found.part, found.relative_to) == (part, references[part])
        assert set(found.spread) == parts[part]
        other = min(parts[1 - part])
        with pytest.raises(ProjectError, match=f"frame {other} is not on the mosaic of part {part}; name one"):
            Uncertainty.of(torn, part, relative_to=other)
        with pytest.raises(ProjectError, match=f"frame {other} is not on the mosaic of part {part}"):
            found.at(other, CENTRE)
    with pytest.raises(ProjectError, match="has no mosaic of part 2; it has 2 in all"):
        Uncertainty.of(torn, 2)


def copied(project: Project, folder: Path) -> Project:
    copy = folder / "copy"
    shutil.copytree(project.folder, copy)
    return Project.open(copy, to_write=True)
