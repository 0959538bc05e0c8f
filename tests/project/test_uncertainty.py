"""± px at any place of a finished project, relative to any frame."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smalti.adjustment.link import fit_link
from smalti.building.finish import finish_parts
from smalti.building.questions import Questions
from smalti.building.results import judge_links, keep_result, place_asides, place_parts
from smalti.errors import ProjectError
from smalti.geometry.affine import apply, compose, invert
from smalti.loop import ActiveLoop
from smalti.project.entries import FrameEntry, LinkState, Role
from smalti.project.project import Project
from smalti.project.uncertainty import Uncertainty
from smalti.records import Answer, Pair
from tests.project.folders import begin, write_images
from tests.worlds import OUTLINE, measured, spread_points

ASIDE, NOISE = 4, 1.75
USED = [n for n in range(14) if n != ASIDE]
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


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Thirteen frames that went through the finish of a build, and one that was set aside and placed at last."""
    folder = tmp_path_factory.mktemp("camera")
    with begin(folder / "out", write_images(folder / "images", 14)) as project:
        project.store.keep_facts(width=120, height=80)
        frames = [FrameEntry(n, f"{n}.png", "too blurred" if n == ASIDE else "") for n in range(14)]
        project.store.keep_frames(frames)
        questions = Questions(project.store, lambda role: Camera(), USED)
        chain = [questions.ask(Pair(n, n + 1), Role.CHAIN).landmarks for n in range(12)]
        start = ActiveLoop.start(13, OUTLINE, chain, noise=NOISE)
        loop = start.replay(questions.ask(pair, Role.LOOP) for pair in LOOPS)
        parts = finish_parts(loop, questions.landmarks(), "affine")
        placements = place_parts(parts, start, USED)
        placements += place_asides(frames, placements, questions)
        facts = {"noise": NOISE, "noise_factors": loop.factors, "references": [USED[part.reference] for part in parts]}
        keep_result(project, placements, judge_links(loop, parts, USED), project.store.revision, **facts)
        yield project


def deviations(uncertainty: Uncertainty, numbers: list[int]) -> np.ndarray:
    return np.array([uncertainty.at(number, CENTRE)[0] for number in numbers])


def test_centres_are_as_sure_as_the_build_said(project):
    said = {placement.number: placement.sigma_px for placement in project.placements}
    found = Uncertainty.of(project)
    # The build linearises about the linear mosaic, this about the refined one.
    np.testing.assert_allclose(deviations(found, USED), [said[n] for n in USED], rtol=0.02, atol=1e-9)
    assert max(said.values()) > 1.0


def test_by_default_it_is_relative_to_the_frame_whose_pixels_are_the_mosaics(project):
    found = Uncertainty.of(project)
    (reference,) = project.store.fact("references")
    assert (found.part, found.relative_to) == (0, reference)
    assert set(found.spread) == set(range(14))
    assert not found.at(reference, OUTLINE.corners).any()


def test_relative_to_another_frame_that_one_is_sure(project):
    found = Uncertainty.of(project, relative_to=13)
    assert found.relative_to == 13
    assert not found.at(13, OUTLINE.corners).any()
    assert found.at(12, CENTRE)[0] < found.at(6, CENTRE)[0]


def test_two_frames_are_equally_sure_of_a_place_that_both_show(project):
    maps = {placement.number: placement.affine for placement in project.placements}
    in_6 = apply(compose(invert(maps[6]), maps[2]), CENTRE)
    there, back = Uncertainty.of(project, relative_to=6), Uncertainty.of(project, relative_to=2)
    scale = np.linalg.det(compose(invert(maps[6]), maps[2])[:, :2]) ** 0.5
    assert there.at(2, CENTRE)[0] / scale == pytest.approx(back.at(6, in_6)[0], rel=0.05)


def test_corners_are_less_sure_than_the_centre(project):
    found = Uncertainty.of(project)
    for number in set(range(14)) - {found.relative_to}:
        assert found.at(number, OUTLINE.corners).max() > found.at(number, CENTRE)[0]


def test_a_frame_set_aside_adds_its_own_link_to_the_place_of_its_neighbour(project):
    maps = {placement.number: placement.affine for placement in project.placements}
    (entry,) = [entry for entry in project.answers if entry.role is Role.ASIDE]
    neighbour = min({entry.answer.pair.i, entry.answer.pair.j} - {ASIDE})
    beside = apply(compose(invert(maps[neighbour]), maps[ASIDE]), CENTRE)
    # By hand: the variance of a fitted map at a point of j, in i, is σ² x̃ᵀ (Σ x̃ x̃ᵀ)⁻¹ x̃ a coordinate.
    link = fit_link(entry.answer.landmarks)
    whitened = np.linalg.solve(link.root, np.append(CENTRE[0], 1.0))
    assert (entry.answer.pair.i, entry.answer.pair.j) == (neighbour, ASIDE)
    chain_noise = NOISE * project.store.fact("noise_factors")[0]
    own = 2 * chain_noise**2 * whitened @ whitened
    assert Uncertainty.of(project, relative_to=neighbour).at(ASIDE, CENTRE)[0] ** 2 == pytest.approx(own, rel=1e-6)
    found = Uncertainty.of(project, relative_to=12)
    scale = abs(np.linalg.det(compose(invert(maps[12]), maps[neighbour])[:, :2]))
    transported = found.at(neighbour, beside)[0] ** 2
    assert found.at(ASIDE, CENTRE)[0] ** 2 == pytest.approx(transported + scale * own, rel=0.01)


def test_links_that_were_held_make_nothing_surer(project, tmp_path):
    before = deviations(Uncertainty.of(project), USED)
    with copied(project, tmp_path) as copy:
        links = [
            replace(entry, state=LinkState.HELD) if entry.pair.j - entry.pair.i > 2 else entry for entry in copy.links
        ]
        copy.store.keep_result(copy.placements, links)
        after = deviations(Uncertainty.of(copy), USED)
    assert after.max() > 1.5 * before.max()


def test_a_link_counts_by_its_weight_and_the_noise_of_the_build(project, tmp_path):
    before = deviations(Uncertainty.of(project), USED)
    with copied(project, tmp_path) as copy:
        links = [replace(entry, weight=entry.weight / 4) for entry in copy.links]
        copy.store.keep_result(copy.placements, links, noise=3 * NOISE)
        after = deviations(Uncertainty.of(copy), USED)
    np.testing.assert_allclose(after, 2 * 3 * before, rtol=1e-9)


def test_where_the_chain_had_placed_the_frames_does_not_matter(project, tmp_path):
    before = Uncertainty.of(project).spread[9]
    with copied(project, tmp_path) as copy:
        placements = [replace(placement, chain=1.5 * np.eye(2, 3)) for placement in copy.placements]
        copy.store.keep_result(placements, copy.links)
        assert np.array_equal(Uncertainty.of(copy).spread[9], before)


def test_each_part_has_its_own(project, tmp_path):
    # Without the links across, frames 7 and up are a mosaic of their own.
    with copied(project, tmp_path) as copy:
        placements = [replace(placement, part=int(placement.number > 6)) for placement in copy.placements]
        copy.store.keep_result(placements, copy.links, references=[2, 9])
        found = Uncertainty.of(copy, 1)
        assert (found.part, found.relative_to) == (1, 9)
        assert set(found.spread) == set(range(7, 14))
        with pytest.raises(ProjectError, match=f"{copy.folder}: frame 3 is not on the mosaic of part 1; name one"):
            Uncertainty.of(copy, 1, relative_to=3)
        with pytest.raises(ProjectError, match="has no mosaic of part 2; it has 2 in all"):
            Uncertainty.of(copy, 2)
        with pytest.raises(ProjectError, match="frame 3 is not on the mosaic of part 1"):
            found.at(3, CENTRE)


def test_frames_that_no_link_joins_are_an_error_of_one_line(project, tmp_path):
    with copied(project, tmp_path) as copy:
        copy.store.keep_result(copy.placements, [entry for entry in copy.links if entry.pair.i < 6])
        with pytest.raises(ProjectError, match="do not determine how frames of part 0 lie to frame 2; name another"):
            Uncertainty.of(copy, relative_to=2)


def copied(project: Project, folder: Path) -> Project:
    copy = folder / "copy"
    shutil.copytree(project.folder, copy)
    return Project.open(copy)
