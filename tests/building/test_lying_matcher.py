"""A matcher that lies in one yes of ten: the mosaic hardly suffers, and every lie that can be seen is named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import smalti
from smalti.active_loop import ActiveLoop
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import apply
from smalti.project.entries import LinkState
from smalti.records import Answer, Landmarks, Pair
from smalti_lab.synthetic.camera_path import wander
from smalti_lab.synthetic.synthetic_files import write_frames
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.building.filmed import HANDLING, SCENE_SIZE, TINY, TrueMatcher, error_px, scene
from tests.film.projects import CHAIN, LOOPS, OUTLINE, Plan, landmarks_of
from tests.rendering.scene import shift, turn

FRAMES = 60
SHARE_OF_LIES = 0.1


class LyingMatcher(TrueMatcher):
    """Moves, turns or enlarges one yes in ten, each in its own way."""

    def __init__(self, sequence: SyntheticSequence) -> None:
        super().__init__(sequence)
        self.lies: set[Pair] = set()

    def match(self, pair):
        found = super().match(pair)
        rng = np.random.default_rng([9, pair.i, pair.j])
        if found is None or rng.random() >= SHARE_OF_LIES:
            return found
        self.lies.add(pair)
        return apply(lie(rng), found[0]), found[1]


def lie(rng):
    """Return a map (2, 3) of frame i that is far from none: a shift, a turn or a zoom about its centre."""
    turn, zoom, shift = 0.0, 1.0, np.zeros(2)
    kind = rng.integers(3)
    if kind == 0:
        direction = rng.uniform(0, 2 * np.pi)
        shift = rng.uniform(15, 60) * np.array([np.cos(direction), np.sin(direction)])
    elif kind == 1:
        turn = np.radians(rng.uniform(10, 40)) * rng.choice([-1, 1])
    else:
        zoom = rng.uniform(1.2, 1.6) ** rng.choice([-1, 1])
    linear = zoom * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    centre = np.array(TINY) / 2
    return np.column_stack([linear, centre + shift - linear @ centre])


@pytest.fixture(scope="module")
def sequence():
    return SyntheticSequence(scene(), wander(SCENE_SIZE, FRAMES, TINY, step=0.2, visits=3, handling=HANDLING, seed=4))


@pytest.fixture(scope="module")
def images(sequence, tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    write_frames(sequence, folder, ".png")
    return folder


@pytest.fixture(scope="module")
def honest_px(sequence, images, tmp_path_factory):
    with smalti.build(images, tmp_path_factory.mktemp("honest") / "out", matcher=TrueMatcher(sequence)) as project:
        assert project.info().rejected == 0
        return error_px(project, sequence)


@pytest.fixture(scope="module")
def lied_to(sequence, images, tmp_path_factory):
    matcher = LyingMatcher(sequence)
    with smalti.build(images, tmp_path_factory.mktemp("lies") / "out", matcher=matcher) as project:
        yield project, matcher.lies


def redundant(project, lies):
    """Return the lies between frames that honest answers join without them."""
    honest = [entry.answer.pair for entry in project.answers if entry.answer.landmarks is not None]
    ends = np.array([(pair.i, pair.j) for pair in honest if pair not in lies]).T
    _, part = connected_components(coo_array((np.ones(ends.shape[1]), ends), shape=(FRAMES, FRAMES)), directed=False)
    return {pair for pair in lies if part[pair.i] == part[pair.j]}


def test_there_are_lies_on_the_chain_and_among_the_loops(lied_to):
    _, lies = lied_to
    assert len(lies) >= 8
    assert any(pair.j == pair.i + 1 for pair in lies)
    assert any(pair.j > pair.i + 2 for pair in lies)


def test_the_mosaic_hardly_suffers(lied_to, honest_px, sequence):
    project, _ = lied_to
    assert project.parts == 1
    assert len(project.placements) == FRAMES
    assert error_px(project, sequence) < 1.3 * honest_px


def test_every_lie_that_others_contradict_is_rejected(lied_to):
    project, lies = lied_to
    rejected = {link.pair for link in project.links if link.state is LinkState.REJECTED}
    assert redundant(project, lies) <= rejected


def test_no_honest_answer_is_rejected(lied_to):
    project, lies = lied_to
    assert {link.pair for link in project.links if link.state is LinkState.REJECTED} <= lies


def test_the_report_names_every_rejected_one(lied_to):
    project, _ = lied_to
    report = (project.folder / "report.html").read_text()
    told = report[report.index('id="rejected"') :]
    for link in project.links:
        if link.state is LinkState.REJECTED:
            labels = [project.frames[number].label for number in (link.pair.i, link.pair.j)]
            assert all(label in told for label in labels), link.pair


@pytest.mark.parametrize(("drift_degrees", "lie_px"), [(0.0, (40.0, 25.0)), (3.0, (40.0, 25.0)), (1.0, (120.0, 75.0))])
def test_a_lie_among_few_loops_is_rejected_and_leaves_no_trace(drift_degrees, lie_px):
    """So few that it bends what all the others say, before it is known for a lie."""
    plan = Plan(lies=dict.fromkeys(CHAIN, turn(drift_degrees)))
    plan.lies[0, 5] = shift(*lie_px)
    honest = [*LOOPS, (0, 6), (1, 5), (1, 7), (2, 6)]

    def see(i, j):
        record = landmarks_of(plan, i, j)
        noise = np.random.default_rng([i, j]).normal(0.0, 0.5, record.points_i.shape)
        return Landmarks(record.pair, record.points_i + noise, record.points_j, record.sigma)

    start = ActiveLoop.start(8, OUTLINE, [see(i, j) for i, j in CHAIN], lens=Lens(OUTLINE))
    without = start.replay(Answer.yes(see(i, j)) for i, j in honest)
    lied_to = without.record(Answer.yes(see(0, 5)))
    assert set(lied_to.rejected) == {Pair(0, 5)}
    np.testing.assert_allclose(lied_to.mosaic_from_frame, without.mosaic_from_frame, atol=0.1)
