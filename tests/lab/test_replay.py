"""A project's answers in the order of other strategies, on projects put together by hand and on one of images."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest

from smalti.building.build_settings import BuildSettings
from smalti.building.chain import register_chain
from smalti.building.preparation import LONGEST_BASELINE, prepare
from smalti.building.source_questions import Questions
from smalti.errors import ProjectError, UnknownNameError, UsageError
from smalti.frame_numbers import FrameNumbers
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.linear_maps import apply, compose, invert, square
from smalti.progress import Silence
from smalti.project.entries import AnswerEntry, FrameEntry, Role
from smalti.project.facts import Binding, RegistrationFacts
from smalti.project.project import Project
from smalti.project.project_lock import ProjectLock
from smalti.records import Answer, Author, Pair, Suggestion, Verdict
from smalti_lab import replaying as difference
from smalti_lab.experiments.methods import FrameMaps
from smalti_lab.replaying import AS_ASKED, Difference, Order, Step, recollect, replay
from smalti_lab.synthetic.camera_path import raster as raster_path
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence
from tests.building.filmed import HANDLING, SCENE_SIZE, TINY, TrueMatcher, scene, write_images
from tests.worlds import OUTLINE, measured, random_walk, raster

FRAMES, ASIDE = 13, 4
USED = tuple(n for n in range(FRAMES) if n != ASIDE)
ANSWERS = [(1, 6, "unsure"), (3, 8, "yes"), (0, 5, "no"), (2, 9, "yes"), (1, 10, "yes"), (0, 11, "yes")]
"""Numbers of the engine, which does not know frame 4."""

BINDING = Binding(SourceSettings(), mask="none", seed=0, matcher="keypoints")


class Witness:
    """Answers by the truth, with a noise that depends on the pair alone; frames of the source."""

    def __init__(self, truth, broken=()):
        self.truth, self.broken, self.asked = truth, broken, []

    def answer(self, pair):
        self.asked.append(pair)
        inner = Pair(USED.index(pair.i), USED.index(pair.j))
        if (inner.i, inner.j) in self.broken:
            return Answer.no(pair)
        return Answer.yes(self.landmarks(inner)).of_pair(pair)

    def landmarks(self, pair):
        rng = np.random.default_rng((pair.i, pair.j))
        return measured(rng, self.truth, pair, np.vstack([OUTLINE.corners, OUTLINE.centre]), 1.0)


def make_project(folder, *, answers=ANSWERS, dense=False, broken=(), author=Author.MATCHER):
    """Two rows of six frames, forth and back, and a frame between them that was set aside."""
    source = SimpleNamespace(fingerprint="f", width=int(OUTLINE.width), height=int(OUTLINE.height))
    project = Project.begin(folder, source, "nowhere", BINDING)
    project.unlock()
    truth = raster(np.random.default_rng(0), len(USED), 1).truth
    if dense:
        truth[:, :, 2] *= 0.15  # slow enough for checks over several frames
    store, witness = project.store, Witness(truth, broken)
    store.keep_frames(FrameEntry(n, f"{n}.png", "too dark" if n == ASIDE else "") for n in range(FRAMES))
    store.keep_fact(RegistrationFacts("auto", "all pixels" if dense else "keypoints"))
    questions = Questions(store, lambda role: witness, FrameNumbers(USED))
    longest = LONGEST_BASELINE if dense else 0
    register_chain(len(USED), project.outline, questions.ask, 2 * len(USED), longest)
    for i, j, verdict in answers:
        landmarks = witness.landmarks(Pair(i, j)) if verdict == "yes" else None
        answer = Answer(Pair(i, j), Verdict(verdict), landmarks, author=author)
        store.keep_answer(AnswerEntry(answer.of_pair(Pair(USED[i], USED[j])), Role.LOOP, 0.1))
    looks = np.random.default_rng(1).uniform(size=(len(USED), 20))
    project.cache.keep_array("signatures", looks / np.linalg.norm(looks, axis=1, keepdims=True))
    return project


class Backwards:
    """Asks the last of the candidates, by their numbers, and stops before the first pairs."""

    name = "backwards"

    def __init__(self, fewest=0):
        self.fewest = fewest

    def rank(self, view, top):
        candidates = np.argwhere(view.candidates)
        return [Suggestion(Pair(*map(int, candidates[-1])), 1.0)] if len(candidates) > self.fewest else []


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with make_project(tmp_path_factory.mktemp("replay") / "out") as project:
        yield project


@pytest.fixture(scope="module")
def replayed(project):
    return replay(project, ["external-only", Backwards()])


def asked(order):
    return [(step.pair.i, step.pair.j, str(step.verdict)) for step in order.steps[1:]]


def in_source(answers):
    return [(USED[i], USED[j], verdict) for i, j, verdict in answers]


def test_the_first_order_is_that_of_the_log_in_numbers_of_the_source(replayed):
    assert replayed.as_asked.name == AS_ASKED
    assert asked(replayed.as_asked) == in_source(ANSWERS)


def test_a_strategy_chooses_among_the_answered_pairs_until_all_are_asked(replayed):
    assert asked(replayed.orders[2]) == in_source(sorted(ANSWERS, reverse=True))


def test_a_strategy_gets_the_answers_that_were_given(replayed):
    order = replayed.orders[1]
    assert order.name == "external-only"
    assert asked(order) != asked(replayed.as_asked)
    assert sorted(asked(order)) == sorted(in_source(ANSWERS))


def test_errors_are_those_of_the_loop_after_the_same_answers(project, replayed):
    known = recollect(project)
    by_pair = {answer.pair: answer for answer in known.answers}
    state = known.start
    final = known.start.replay(known.answers).mosaic_from_frame
    one_part = np.zeros(12, dtype=np.int64)
    for step in replayed.orders[2].steps:
        if step.pair is not None:
            state = state.record(by_pair[Pair(USED.index(step.pair.i), USED.index(step.pair.j))])
        assert step.predicted_error_px == state.predicted_error_px
        assert step.difference_px == Difference(final, OUTLINE, one_part).px(state.mosaic_from_frame, one_part)


def test_the_end_of_the_log_is_the_final_mosaic_and_the_chain_alone_is_not(replayed):
    assert replayed.as_asked.steps[-1].difference_px == 0.0
    assert {order.steps[0].difference_px for order in replayed.orders} == {replayed.as_asked.steps[0].difference_px}
    assert replayed.as_asked.steps[0].difference_px > 0.5


def test_of_an_answer_that_was_revised_the_latest_counts_where_it_was_given(tmp_path):
    with make_project(tmp_path / "out", answers=[(0, 11, "no"), *ANSWERS]) as project:
        assert asked(replay(project, []).as_asked) == in_source(ANSWERS)


def test_a_strategy_that_has_nothing_more_to_ask_ends_early(project):
    order = replay(project, [Backwards(fewest=4)]).orders[1]
    assert asked(order) == in_source(sorted(ANSWERS, reverse=True)[:2])


def test_what_a_person_said_is_replayed_as_a_persons_word(tmp_path):
    with make_project(tmp_path / "out", author=Author.PERSON) as project:
        assert {answer.author for answer in recollect(project).answers} == {Author.PERSON}


def test_a_project_of_all_pixels_is_taken_up_with_its_long_checks(tmp_path):
    with make_project(tmp_path / "out", dense=True) as project:
        checks = {entry.answer.pair for entry in project.answers if entry.role is Role.CHECK}
        start = recollect(project).start
        assert max(pair.j - pair.i for pair in start.chain) > 2
        assert {Pair(USED.index(pair.i), USED.index(pair.j)) for pair in checks} <= start.chain.keys()


def test_an_answer_that_became_a_link_of_the_chain_is_no_question(tmp_path):
    with make_project(tmp_path / "out", answers=[(4, 6, "yes"), *ANSWERS]) as project:
        project.store.keep_answer(AnswerEntry(Answer.no(Pair(USED[5], USED[6])), Role.CHAIN, 0.1))
        witness = Witness(raster(np.random.default_rng(0), len(USED), 1).truth)
        questions = Questions(project.store, lambda role: witness, FrameNumbers(USED))
        register_chain(len(USED), project.outline, questions.ask, 2 * len(USED))
        assert Pair(4, 6) in recollect(project).start.chain
        assert asked(replay(project, []).as_asked) == in_source(ANSWERS)


def test_parts_that_no_answer_joins_are_not_compared(tmp_path):
    broken = {(i, j) for i in range(6) for j in range(6, 12)}
    with make_project(tmp_path / "out", answers=[(1, 4, "yes")], broken=broken) as project:
        known = recollect(project)
        first, last = replay(project, []).as_asked.steps
    before, after = (FrameMaps.of(state) for state in (known.start, known.start.replay(known.answers)))
    np.testing.assert_array_equal(after.part, np.repeat([0, 1], 6))
    measure = Difference(after.mosaic_from_frame, OUTLINE, after.part)
    assert first.difference_px == measure.px(before.mosaic_from_frame, before.part)
    assert first.difference_px > last.difference_px == 0.0


def test_a_part_that_is_joined_late_counts_as_lost_before(tmp_path):
    broken = {(i, j) for i in range(6) for j in range(6, 12)}
    with make_project(tmp_path / "out", answers=[(0, 5, "no"), (0, 11, "yes")], broken=broken) as project:
        first, after_no, last = replay(project, []).as_asked.steps
    assert first.difference_px == after_no.difference_px > 15.0
    assert last.difference_px == 0.0


def test_the_state_before_the_first_question_is_that_of_a_build(tmp_path):
    camera = raster_path(SCENE_SIZE, 12, TINY, handling=HANDLING, sidelap=0.5, step=0.25, seed=5)
    sequence = SyntheticSequence(scene(), camera)
    images = [image for _, image in sequence.read_many(range(12))]
    images.insert(ASIDE, np.zeros_like(images[0]))
    settings = BuildSettings(budget=3, mask="none")
    matcher = TrueMatcher(sequence, noise_px=1.0)
    with (
        open_source(write_images(tmp_path / "images", images)) as source,
        Project.begin(tmp_path / "out", source, str(tmp_path / "images"), BINDING) as project,
    ):
        preparation = prepare(project, source, settings, matcher, Silence())
        *_, last = preparation.start.run(preparation.questions.asking(Role.LOOP, preparation.start.link_of))
        known = recollect(project)
        order = replay(project, ["smalti"]).orders[1]
    assert known.numbers == preparation.numbers
    assert known.start.chain.keys() == preparation.start.chain.keys()
    np.testing.assert_array_equal(known.start.mosaic_from_frame, preparation.start.mosaic_from_frame)
    # Other pairs may be asked, so other ones are looked at closely.
    assert known.start.predicted_error_px == pytest.approx(preparation.start.predicted_error_px, rel=1e-6)
    assert order.steps[-1].predicted_error_px == pytest.approx(last.predicted_error_px, rel=1e-6)
    assert [known.numbers.pair_in_engine(s.pair) for s in order.steps[1:]] == [answer.pair for answer in last.answers]


def test_nothing_in_the_project_is_changed(tmp_path):
    make_project(tmp_path / "out").close()

    def contents():
        with closing(sqlite3.connect(tmp_path / "out" / "project.sqlite")) as connection:
            rows = list(connection.iterdump())
        files = {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "cache").rglob("*")}
        return rows, files, sorted(path.name for path in (tmp_path / "out").iterdir())

    before = contents()
    with Project.open(tmp_path / "out") as project:
        replay(project, [Backwards()])
    assert contents() == before


def test_a_project_that_others_work_on_can_be_replayed(project, replayed):
    with ProjectLock(project.folder, "smalti annotate"):
        assert replay(project, []).as_asked == replayed.as_asked


def test_a_project_without_answers_is_refused(tmp_path):
    with (
        make_project(tmp_path / "out", answers=[]) as project,
        pytest.raises(ProjectError, match="no question was answered yet"),
    ):
        replay(project)


def test_a_chain_that_is_not_whole_is_refused_and_nobody_is_asked(tmp_path):
    with make_project(tmp_path / "out") as project:
        project.store.remove_answer(Pair(5, 6))
        revision = project.store.revision
        with pytest.raises(ProjectError, match="chain is not registered to the end; go on with smalti build"):
            replay(project)
        assert project.store.revision == revision


def test_looks_that_were_deleted_are_asked_for(tmp_path):
    with make_project(tmp_path / "out") as project:
        project.cache.clear()
        with pytest.raises(
            ProjectError, match="appearance of its frames is not in its cache folder; run the same smalti build"
        ):
            replay(project)


def test_strategies_given_twice_or_unknown_are_refused(project):
    with pytest.raises(UsageError, match="given twice: paper, paper"):
        replay(project, ["paper", "paper"])
    with pytest.raises(UnknownNameError, match="unknown strategy 'papre'"):
        replay(project, ["papre"])


@pytest.mark.parametrize(("limit", "answers"), [(10.0, 0), (5.0, 3), (3.0, 3), (2.0, 4), (1.0, None)])
def test_an_order_has_arrived_where_it_stays(limit, answers):
    values = [9.0, 4.0, 6.0, 3.0, 2.0]
    by_difference = Order("any", tuple(Step(None, None, 0.5, value) for value in values))
    by_prediction = Order("any", tuple(Step(None, None, value, 0.5) for value in values))
    assert by_difference.answers_until_alike(limit) == answers
    assert by_prediction.answers_until_predicted(limit) == answers


def walk_of(frames=7):
    rng = np.random.default_rng(3)
    maps = random_walk(rng, frames, raster(rng, frames, 1).family)
    return maps, maps + rng.normal(0.0, [[0.01, 0.01, 2.0]], maps.shape)


ONE_PART = np.zeros(7, dtype=np.int64)


@pytest.mark.parametrize("part", [ONE_PART, np.repeat([0, 1], [3, 4])])
def test_the_difference_is_the_rms_over_the_points_that_frames_of_a_part_share(part):
    maps, other = walk_of()
    share = (np.arange(difference.GRID) + 0.5) / difference.GRID
    points = np.array(
        [[OUTLINE.left + OUTLINE.width * x, OUTLINE.top + OUTLINE.height * y] for y in share for x in share]
    )
    squares = []
    for i in range(len(maps)):
        for j in i + 1 + np.flatnonzero(part[i + 1 :] == part[i]):
            seen = apply(compose(invert(maps[i]), maps[j]), points)
            moved = apply(compose(invert(other[i]), other[j]), points)
            squares.extend(np.sum((seen - moved) ** 2, axis=1)[OUTLINE.contains(seen)])
    expected = np.sqrt(np.mean(squares))
    assert Difference(square(maps), OUTLINE, part).px(square(other), ONE_PART) == pytest.approx(expected, rel=1e-9)


def test_the_difference_does_not_see_a_mosaic_moved_as_a_whole():
    maps, other = walk_of()
    measure = Difference(square(maps), OUTLINE, ONE_PART)
    whole = np.array([[0.9, -0.3, 40.0], [0.3, 0.9, -7.0], [1e-4, 2e-4, 1.0]])
    assert measure.px(whole @ square(maps), ONE_PART) < 1e-9
    assert measure.px(whole @ square(other), ONE_PART) == pytest.approx(measure.px(square(other), ONE_PART))


def test_frames_that_nothing_joins_yet_are_off_by_a_diagonal():
    maps, _ = walk_of()
    measure = Difference(square(maps), OUTLINE, ONE_PART)
    assert measure.px(square(maps), np.arange(7)) == pytest.approx(np.hypot(OUTLINE.width, OUTLINE.height))


def test_of_too_many_pairs_some_tell_the_same(monkeypatch):
    maps, other = walk_of(40)
    other[:20] = maps[:20]
    part = np.zeros(40, dtype=np.int64)
    whole = Difference(square(maps), OUTLINE, part).px(square(other), part)
    monkeypatch.setattr(difference, "MOST_PAIRS", 60)
    some = Difference(square(maps), OUTLINE, part).px(square(other), part)
    assert some != whole
    assert some == pytest.approx(whole, rel=0.3)
