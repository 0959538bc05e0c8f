"""A session of questions: answers, undo and redo, restarts, conflicts; what is in the log is what is shown."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.annotation.answer_history import StateHistory
from smalti.annotation.messages import CheckLandmarks, Landmark, Origin, Queue
from smalti.annotation.overview import NOTICEABLE, make_question
from smalti.annotation.session import Session
from smalti.building import delivery
from smalti.building.build import build
from smalti.errors import (
    ChangedMeanwhileError,
    LandmarkError,
    NothingToUndoError,
    PairError,
    ProjectError,
    SingularSystemError,
    UsageError,
)
from smalti.geometry.homographies import apply_map
from smalti.geometry.lens import Lens
from smalti.geometry.linear_maps import apply, compose, invert
from smalti.progress import Silence
from smalti.project.entries import Act, AnswerEntry, FrameEntry, LinkState, Role, number_usable
from smalti.project.project import Project
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from smalti_lab.experiments.worlds import OUTLINE, raster
from tests.annotation.people import (
    answer,
    answer_next,
    error_px,
    fresh,
    give,
    marks,
    opened,
    redo,
    remove,
    undo,
    walk,
)
from tests.building.filmed import TrueMatcher


@pytest.fixture
def session(folder):
    with opened(folder) as session:
        yield session


def shown(session):
    """Everything that a page shows, but for the revision, which counts undone acts too."""
    mosaic = session.mosaic().model_dump(exclude={"revision"})
    question = session.question().model_dump(exclude={"revision"})
    rows = [row.model_dump() for row in session.answers()]
    return mosaic, question, rows, session.state().predicted_px


def test_ten_careful_answers_straighten_the_mosaic(session):
    before = error_px(session)
    answer_next(session, 10)
    assert error_px(session) < 0.6 * before


def test_answers_of_either_kind_are_counted_and_never_asked_again(session):
    asked = []
    for verdict in ("no", "unsure", "no"):
        question = session.question()
        asked.append((question.i, question.j))
        outcome = give(session, question.i, question.j, verdict)
        assert (outcome.question.i, outcome.question.j) == (session.question().i, session.question().j)
    counts = session.state().counts
    assert (counts.yes, counts.no, counts.unsure, counts.by_person) == (0, 2, 1, 3)
    assert (session.question().i, session.question().j) not in asked
    assert len(set(asked)) == 3


def test_the_error_is_told_after_every_answer(session):
    answer_next(session, 3)
    errors = session.state().errors
    assert [point.answers for point in errors] == [0, 1, 2, 3]
    assert errors[-1].predicted_px == session.state().predicted_px < errors[0].predicted_px


def test_a_restart_shows_the_same_to_the_last_bit(folder):
    with opened(folder) as session:
        asked = answer_next(session, 4)
        undo(session)
        remove(session, *asked[0])
        before = shown(session), session.state()
    with opened(folder) as session:
        assert (shown(session), session.state()) == before


def test_undo_goes_back_through_everything_and_redo_forth_again(session):
    states = [shown(session)]
    for _ in range(3):
        answer_next(session)
        states.append(shown(session))
    pair = session.answers()[-1]
    remove(session, pair.i, pair.j)
    states.append(shown(session))
    for state in states[-2::-1]:
        undo(session)
        assert shown(session) == state
    with pytest.raises(NothingToUndoError):
        undo(session)
    for state in states[1:]:
        redo(session)
        assert shown(session) == state
    with pytest.raises(NothingToUndoError):
        redo(session)


def test_undo_is_said_in_words_and_works_after_a_restart(folder):
    with opened(folder) as session:
        question = session.question()
        before = shown(session)
        give(session, question.i, question.j, "no")
    with opened(folder) as session:
        assert session.state().undo == f"no, frames {question.i} and {question.j}"
        undo(session)
        assert shown(session) == before
        assert session.state().redo == f"no, frames {question.i} and {question.j}"


def test_an_answer_given_again_replaces_the_earlier_one(session):
    question = session.question()
    give(session, question.i, question.j, "no")
    given = answer(session, question.i, question.j)
    assert given.state.counts.yes == 1
    assert given.state.counts.no == 0
    assert session.look(question.i, question.j).answer.verdict is Verdict.YES


def test_the_name_of_a_person_stands_with_every_answer_and_in_the_exported_table(folder):
    with opened(folder) as session:
        first = session.question()
        answer(session, first.i, first.j, person="  Ann\n Other ")
        second = session.question()
        give(session, second.i, second.j, "no", person="Ben")
    with opened(folder) as session:
        rows = {(row.i, row.j): row.person for row in session.answers()}
        _, table = session.export("landmarks.csv")
    assert rows[first.i, first.j] == "Ann Other"
    assert rows[second.i, second.j] == "Ben"
    assert rows[0, 1] == ""
    authors = {tuple(line.split(",")[:2]): line.split(",")[-1] for line in table.decode().splitlines()[1:]}
    assert authors[str(first.i), str(first.j)] == "Ann Other"
    assert authors["0", "1"] == "matcher"


def test_an_answer_that_contradicts_the_others_is_in_the_list_of_those_to_look_at_again(session):
    answer_next(session, 6)
    assert not any(row.contradicted for row in session.answers())
    question = session.question()
    landmarks = marks(question.i, question.j, by=(30.0, -20.0))
    assert landmarks
    give(session, question.i, question.j, "yes", landmarks)
    contradicted = [(row.i, row.j) for row in session.answers() if row.contradicted]
    assert contradicted == [(question.i, question.j)]


def test_landmarks_that_are_off_are_kept_but_do_not_count(session):
    question = session.question()
    sheet = [
        *marks(question.i, question.j),
        Landmark(x_i=0, y_i=0, x_j=150, y_j=90, origin=Origin.SNAPPED, active=False),
    ]
    give(session, question.i, question.j, "yes", sheet)
    assert session.look(question.i, question.j).answer.landmarks == sheet
    assert session.answers()[-1].landmarks == 6


@pytest.mark.parametrize(
    ("sheet", "words"),
    [
        ([], "needs at least one landmark"),
        ([Landmark(x_i=-x, y_i=y, x_j=x, y_j=y) for x, y in ((0, 0), (50, 0), (0, 50))], "mirrored"),
        ([Landmark(x_i=x + 400, y_i=y, x_j=x, y_j=y) for x, y in ((0, 0), (50, 0), (0, 50))], "far outside frame"),
        ([Landmark(x_i=x / 1e4, y_i=y / 1e4, x_j=x, y_j=y) for x, y in ((0, 0), (50, 0), (0, 50))], "stretch frame"),
        (
            [Landmark(x_i=x, y_i=y, x_j=x, y_j=y, active=False) for x, y in ((0, 0), (50, 0), (0, 50))],
            "needs at least one landmark",
        ),
    ],
)
def test_landmarks_that_no_camera_makes_are_explained_and_not_kept(session, sheet, words):
    question, revision = session.question(), session.revision
    with pytest.raises(LandmarkError, match=words):
        give(session, question.i, question.j, "yes", sheet)
    assert session.revision == revision
    checked = session.check(CheckLandmarks(i=question.i, j=question.j, landmarks=sheet))
    assert words in checked.problem


def test_landmarks_that_make_no_link_are_refused_before_they_are_kept(session):
    before, question = session.revision, session.question()
    points = np.array([[0.0, 0.0], [150.0, 0.0], [0.0, 100.0], [150.0, 110.0]])
    mirrored = Landmarks(Pair(question.i, question.j), points * [-1, 1] + [150, 0], points)
    with pytest.raises(LandmarkError, match="mirrored"):
        session.record(Answer.yes(mirrored, author=Author.PERSON))
    assert session.project.store.revision == before


def test_an_answer_is_kept_as_one_entry_even_if_the_engine_fails(session, monkeypatch):
    question, log = session.question(), session.project.store.log()
    monkeypatch.setattr(StateHistory, "follow", lambda *_: (_ for _ in ()).throw(SingularSystemError("no such mosaic")))
    with pytest.raises(SingularSystemError, match="no such mosaic"):
        answer(session, question.i, question.j)
    assert [entry.act for entry in session.project.store.log()[len(log) :]] == [Act.GIVE]


def test_frames_that_are_not_there_are_refused(session):
    with pytest.raises(PairError, match="0 to 27"):
        session.look(3, 28)
    with pytest.raises(PairError):
        give(session, 5, 5, "no")


def test_the_later_of_two_people_is_told(session):
    question, seen = session.question(), session.revision
    give(session, question.i, question.j, "no", seen_revision=seen)
    with pytest.raises(ChangedMeanwhileError) as caught:
        give(session, question.i, question.j, "unsure", seen_revision=seen)
    conflict = session.conflict(caught.value)
    assert (conflict.i, conflict.j) == (question.i, question.j)
    assert conflict.theirs.verdict is Verdict.NO
    assert session.state().counts.unsure == 0


def test_people_who_answer_about_different_pairs_do_not_disturb_each_other(session):
    first, seen = session.question(), session.revision
    give(session, first.i, first.j, "no", seen_revision=seen)
    second = session.question()
    give(session, second.i, second.j, "unsure", seen_revision=seen)
    assert session.state().counts.unsure == session.state().counts.no == 1


def test_a_link_of_the_chain_can_be_taken_out_and_brought_back(session):
    before = shown(session)
    assert [row.role for row in session.answers() if (row.i, row.j) == (7, 8)] == [Role.CHAIN]
    remove(session, 7, 8)
    row = next(row for row in session.answers() if (row.i, row.j) == (7, 8))
    assert (row.verdict, row.author, row.role) == (Verdict.UNSURE, Author.PERSON, Role.CHAIN)
    assert session.mosaic().maps != before[0]["maps"]
    undo(session)
    # The bridge over the gap stays in the log, and so among what is known.
    assert next(row for row in session.answers() if (row.i, row.j) == (7, 8)).verdict is Verdict.YES


def test_a_person_can_make_a_link_of_the_chain_better(session):
    answer(session, 7, 8)
    row = next(row for row in session.answers() if (row.i, row.j) == (7, 8))
    assert (row.author, row.role, row.landmarks) == (Author.PERSON, Role.CHAIN, 6)


def test_what_is_computed_ahead_changes_nothing(base, tmp_path, monkeypatch):
    ends = []
    for is_precomputed in (True, False):
        if not is_precomputed:
            monkeypatch.setattr(
                "smalti.annotation.precompute.Precomputation.look_ahead", lambda self, moment, asked: None
            )
        with opened(fresh(base, tmp_path / str(is_precomputed))) as session:
            for verdict in ("no", "unsure", "no"):
                question = session.question()
                if is_precomputed:
                    session._precomputation._thread.submit(lambda: None).result()  # all of it is done
                    assert session._precomputation.states
                give(session, question.i, question.j, verdict)
            answer_next(session)
            ends.append((shown(session), session.state().errors))
    assert ends[0] == ends[1]


def test_the_forecast_says_that_a_yes_helps_and_how_far_the_target_is(folder):
    with opened(folder) as session:
        now = session.state().predicted_px
    with opened(folder, target_px=0.6 * now) as session:
        question = session.question()
        forecast = session.forecast(question.i, question.j)
        assert forecast.now_px == now > forecast.after_yes_px
        assert 1 <= forecast.more <= 10
        assert not forecast.more_is_bound


def test_a_target_that_is_reached_is_said_and_questions_go_on(folder):
    with opened(folder, target_px=1e3) as session:
        assert "below the target" in session.state().stopped
        assert session.question() is not None


def test_a_second_program_is_sent_to_the_first(session, folder):
    with pytest.raises(ProjectError, match="is in use"):
        Session.open(folder)


def test_a_project_takes_no_other_folder(folder, tmp_path):
    with pytest.raises(UsageError, match="is already a project"):
        Session.open(folder, tmp_path / "other")


def test_the_matcher_answers_what_it_is_sure_of_and_a_person_the_rest(folder, monkeypatch):
    # A matcher that is never sure where frame 3 is concerned.
    monkeypatch.setattr(
        "smalti.annotation.auto_answer.is_sure", lambda answer, loop, earlier: 3 not in (answer.pair.i, answer.pair.j)
    )
    with opened(folder, queue=Queue.DOUBTFUL) as session:
        session._auto_answerer.wait()
        question = session.question()
        assert 3 in (question.i, question.j)
        rows = [row for row in session.answers() if row.role == Role.LOOP]
        assert rows
        assert all(row.author is Author.MATCHER and 3 not in (row.i, row.j) for row in rows)
        revision = session.revision
        answer(session, question.i, question.j)
        session._auto_answerer.wait()
        assert session.revision > revision
    with Project.open(folder) as project:
        assert sum(entry.answer.author is Author.PERSON for entry in project.answers) == 1


def test_stop_here_leaves_a_finished_project_in_which_people_are_believed(session, folder):
    [(i, j)] = answer_next(session)
    assert not session.state().finished
    session.finish(Silence())
    assert session.state().finished
    with Project.open(folder) as project:
        assert (folder / "mosaic.png").stat().st_size > 10_000
        link = next(link for link in project.links if link.pair == Pair(i, j))
        assert link.state is LinkState.ACCEPTED
        assert link.weight == 1.0
        assert "person" in (folder / "report.html").read_text()


def test_a_mosaic_without_the_latest_answer_is_not_taken_for_concluded(session, monkeypatch):
    answer_next(session)
    finish = delivery.place_frames

    def late(*given):
        answer_next(session)
        return finish(*given)

    monkeypatch.setattr(delivery, "place_frames", late)
    session.finish(Silence())
    assert not session.state().finished
    monkeypatch.undo()
    session.finish(Silence())
    assert session.state().finished


def test_a_build_goes_on_with_what_people_said(folder):
    with opened(folder) as session:
        asked = answer_next(session, 2)
        source = session.state().source
    with build(source, folder, budget=4, matcher=TrueMatcher(walk(), noise_px=1.2)) as project:
        loops = [entry.answer for entry in project.answers if entry.role is Role.LOOP]
        assert [(one.pair.i, one.pair.j) for one in loops[:2]] == asked
        assert [one.author for one in loops] == [Author.PERSON] * 2 + [Author.MATCHER] * 2
        accepted = {link.pair for link in project.links if link.state is LinkState.ACCEPTED}
        assert {Pair(*pair) for pair in asked} <= accepted


def test_the_mosaic_names_every_usable_frame_once(session):
    mosaic = session.mosaic()
    assert mosaic.numbers == list(range(28))
    assert len(mosaic.maps) == 9 * 28
    assert set(mosaic.parts) == {0}
    assert np.argmin(mosaic.sigma_px) == mosaic.numbers.index(mosaic.reference)


@pytest.mark.parametrize("count", [1, 2])
def test_few_landmarks_are_an_answer_and_straighten_the_mosaic_too(session, count):
    before = error_px(session)
    for _ in range(8):
        question = session.question()
        answer(session, question.i, question.j, count=count)
    assert error_px(session) < 0.8 < 0.7 * before
    assert {row.landmarks for row in session.answers() if row.role == Role.LOOP and row.verdict is Verdict.YES} == {
        count
    }


def test_landmarks_on_a_line_are_an_answer(session):
    question = session.question()
    on_line = [
        Landmark(x_i=x, y_i=y, x_j=p, y_j=q)
        for (x, y), (p, q) in zip(
            *truly(question.i, question.j, np.linspace([30.0, 20.0], [120.0, 80.0], 4)), strict=True
        )
    ]
    outcome = give(session, question.i, question.j, "yes", on_line)
    assert outcome.state.counts.yes == 1
    assert outcome.contradiction is None


def truly(i, j, points_i):
    """Points of i, and where the truth has them in j."""
    truth = walk().mosaic_from_frame
    return points_i.tolist(), apply(compose(invert(truth[j]), truth[i]), points_i).tolist()


def test_a_question_shows_the_probability_that_questions_are_chosen_by(session):
    question, loop = session.question(), session._answer_history.loop
    inner = session._answer_history.inner(Pair(question.i, question.j))
    pairs = np.array([[inner.i, inner.j]])
    assert question.overlap == pytest.approx(loop.posterior.of_pairs(pairs)[0], rel=1e-12)
    assert question.overlap == pytest.approx(loop.best.reasons["overlap"], rel=1e-9)
    assert question.joined


def test_where_a_frame_is_expected_comes_with_how_surely(session):
    question, loop = session.question(), session._answer_history.loop
    i_from_j = np.array(question.i_from_j).reshape(3, 3)
    maps = np.array(session.mosaic().maps).reshape(-1, 3, 3)
    relative = np.linalg.inv(maps[question.i]) @ maps[question.j]
    np.testing.assert_allclose(i_from_j, relative / relative[2, 2], rtol=1e-6, atol=1e-6)
    covariance = np.array(question.covariance).reshape(8, 8)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12
    centre = loop.covariance.of_pairs(np.array([[question.j, question.i]])).cov[0, 0]
    # What moves the centre are the two entries of the shift, in units, turned into i.
    slopes = relative[:2, :2] / relative[2, 2]
    centre_j = loop.outline.centre
    depth = relative[2, :2] @ centre_j / relative[2, 2] + 1.0
    seen = (relative[:2, :2] @ centre_j + relative[:2, 2]) / relative[2, 2] / depth
    slopes = (slopes - np.outer(seen, relative[2, :2] / relative[2, 2])) / depth
    shift = loop.outline.unit**2 * slopes @ covariance[np.ix_([2, 5], [2, 5])] @ slopes.T
    np.testing.assert_allclose([shift[0, 0], shift[0, 1], shift[1, 1]], centre, rtol=1e-4)


def test_frames_that_nothing_joins_are_asked_about_without_an_expectation():
    world = raster(12)
    chain = [landmarks for landmarks in world.chain(world.agent(3)) if landmarks.pair != Pair(5, 6)]
    loop = ActiveLoop.start(12, OUTLINE, chain, external=world.external)
    frames = [FrameEntry(n, f"{n}.png", "") for n in range(12)]
    numbers = number_usable(frames)
    question = make_question(loop, Pair(2, 9), numbers, frames, revision=0, suggested=False, answer=None)
    assert not question.joined
    assert question.i_from_j == np.eye(3).ravel().tolist()
    shift, turn = question.covariance[8 * 2 + 2], question.covariance[8 * 1 + 1]
    assert shift > 1000 * turn > 0
    assert make_question(loop, Pair(2, 4), numbers, frames, revision=0, suggested=False, answer=None).joined


def test_the_lens_is_in_what_the_page_gets_and_in_residuals(folder, monkeypatch):
    start = ActiveLoop.start.__func__

    def bent(cls, frames, outline, chain, **settings):
        return start(cls, frames, outline, chain, **{**settings, "lens": Lens(outline, 0.05)})

    monkeypatch.setattr(ActiveLoop, "start", classmethod(bent))
    with opened(folder) as session:
        loop = session._answer_history.loop
        assert session.state().lens.k1 == 0.05
        assert session.state().lens.unit_px == loop.lens.unit
        row = session.answers()[3]
        landmarks = loop.landmarks[Pair(row.i, row.j)]
        maps = np.array(session.mosaic().maps).reshape(-1, 3, 3)
        straight = loop.lens.undistort(landmarks.points_j)
        seen = loop.lens.distort(apply_map(np.linalg.inv(maps[row.i]) @ maps[row.j], straight))
        off = np.linalg.norm(seen - landmarks.points_i, axis=1)
        assert row.residual_px == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-9)


class Blind:
    """A matcher that finds nothing anywhere."""

    def __call__(self, image_i, image_j):
        return None


def test_what_a_blind_matcher_cannot_tell_a_person_is_asked(folder):
    with opened(folder, queue=Queue.DOUBTFUL, matcher=Blind()) as session:
        asked = []
        for _ in range(6):
            session._auto_answerer.wait()
            question = session.question()
            latest = session.answers()[-1]
            # The pair at which the matcher failed, not another one; its failure is kept as such.
            assert (latest.i, latest.j) == (question.i, question.j)
            assert question.suggested
            assert (latest.verdict, latest.author) == (Verdict.UNSURE, Author.MATCHER)
            asked.append(answer(session, question.i, question.j))
        session._auto_answerer.wait()
        by_matcher = [row for row in session.answers() if row.author is Author.MATCHER and row.verdict is Verdict.NO]
        overlapping = [row for row in by_matcher if marks(row.i, row.j)]
        assert not [row for row in overlapping if row.role is Role.LOOP]
        assert session.state().counts.by_person == 6


def test_a_person_is_asked_what_the_matcher_could_not_tell_in_an_earlier_build(folder):
    with Session.open(folder) as session:
        question = session.question()
        session.record(Answer.unsure(Pair(question.i, question.j), "10 matches needed"))
    with Session.open(folder) as session:
        loop, inner = session._answer_history.loop, Pair(question.i, question.j)
        assert not loop.is_settled(inner)
        assert session.look(question.i, question.j).overlap > 0.0
        answer(session, question.i, question.j)
        assert session._answer_history.loop.is_settled(inner)
        given = session.answers()[-1]
        assert (given.author, given.verdict) == (Author.PERSON, Verdict.YES)
        # The failure still tells how much the matcher misses, and undo brings it back.
        assert inner in session._answer_history.loop.failed_pairs
        undo(session)
        assert not session._answer_history.loop.is_settled(inner)


def test_after_a_contradiction_the_matcher_waits_for_the_person(folder):
    with opened(folder, queue=Queue.DOUBTFUL, matcher=Blind()) as session:
        for _ in range(4):
            session._auto_answerer.wait()
            question = session.question()
            answer(session, question.i, question.j)
        session._auto_answerer.wait()
        known = {(row.i, row.j) for row in session.answers()}
        i, j = next(
            (i, j) for i in range(28) for j in range(i + 3, 28) if (i, j) not in known and len(marks(i, j)) >= 6
        )
        outcome = give(session, i, j, "yes", marks(i, j, by=(25.0, -18.0)))
        assert outcome.contradiction is not None
        assert not session.is_working
        assert outcome.question is not None
        revision = session.revision
        # The person has the next word; then the matcher goes on.
        undo(session)
        session._auto_answerer.wait()
        assert session.revision > revision


def test_a_predicted_error_that_rises_is_explained(session):
    answer_next(session, 4)
    told = {}
    for by in ((0.0, 0.0), (25.0, -18.0)):
        i, j = next((i, j) for i in range(28) for j in range(i + 6, 28) if len(marks(i, j)) >= 6)
        before_px = session.state().predicted_px
        outcome = give(session, i, j, "yes", marks(i, j, by=by))
        told[by] = outcome.done
        rises = outcome.state.predicted_px > NOTICEABLE * before_px
        assert rises == ("The predicted error rose" in outcome.done)
        undo(session)
    # An answer that is wrong by thirty pixels makes all others look noisier.
    assert "your answers show that" in told[25.0, -18.0]


def test_a_session_takes_the_answers_of_an_agent(folder):
    with Session.open(folder) as session:
        question = session.question()
        outcome = session.record(Answer.no(Pair(question.i, question.j), author=Author.PERSON))
        assert outcome.state.counts.no == 1
        assert (outcome.question.i, outcome.question.j) != (question.i, question.j)
    with Session.open(folder) as session:
        assert session.state().counts.no == 1


def test_a_project_does_not_choose_its_frames_again(folder):
    with pytest.raises(UsageError, match=r"every: .* is a project, its frames are chosen; leave every out"):
        Session.open(folder, every=2)


def test_an_unknown_queue_is_refused(folder):
    with pytest.raises(UsageError, match="unknown queue 'some': choose from all, doubtful"):
        Session.open(folder, queue="some")


@pytest.mark.parametrize("verdict", Verdict)
def test_a_pair_that_the_matcher_failed_to_chain_is_asked_once(folder, verdict):
    with Session.open(folder) as session:
        pair = Pair(session.question().i, session.question().j)
        # As if the matcher had tried it as a bridge; the chain needs no bridge there.
        session.project.store.keep_answer(AnswerEntry(Answer.no(pair, "too few matches"), Role.BRIDGE, 0.1))
    with Session.open(folder) as session:
        assert (session.question().i, session.question().j) == (pair.i, pair.j)
        give(session, pair.i, pair.j, verdict, marks(pair.i, pair.j) if verdict is Verdict.YES else ())
        row = next(row for row in session.answers() if (row.i, row.j) == (pair.i, pair.j))
        assert (row.role, row.author, row.verdict) == (Role.BRIDGE, Author.PERSON, verdict)
        assert (session.question().i, session.question().j) != (pair.i, pair.j)
        undo(session)
        assert (session.question().i, session.question().j) == (pair.i, pair.j)


def test_a_build_uses_what_a_person_said_of_a_pair_that_could_not_be_chained(folder):
    with Session.open(folder) as session:
        pair, source = Pair(session.question().i, session.question().j), session.state().source
        session.project.store.keep_answer(AnswerEntry(Answer.no(pair, "too few matches"), Role.BRIDGE, 0.1))
    with Session.open(folder) as session:
        answer(session, pair.i, pair.j)
    with build(source, folder, budget=1, matcher=TrueMatcher(walk(), noise_px=1.2)) as project:
        assert pair in {link.pair for link in project.links if link.state is LinkState.ACCEPTED}


def test_a_session_shows_itself_in_a_notebook(session):
    shown = session._repr_html_()
    question = session.question()
    assert f">{question.i} and {question.j}<" in shown
    assert "not finished" in shown
