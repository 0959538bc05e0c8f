"""The queue of doubtful pairs on an endoscope: a matcher that misses many overlaps, and a person who is asked."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from smalti.annotation.session import Session
from smalti.records import Author, Pair, Verdict
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings, Hand
from smalti_lab.simulated_agents import SimulatedPerson
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_frames

FRAMES, SIDE = 90, 120
QUESTIONS, GOOD_PX = 15, 2.0
MISSED = 0.7
"""Share of the overlaps of frames far apart in time that the matcher misses."""

NEAR = 4
"""Frames so near in time are always matched, so that there is a chain; it drifts."""


def endoscope() -> EndoscopeSequence:
    hand = Hand(slowest_px=5.0, fastest_px=14.0, visits=1.0)
    return EndoscopeSequence(
        procedural_scene(1200, 1200, seed=3),
        EndoscopeSettings(frames=FRAMES, width=SIDE, height=SIDE, hand=hand),
        seed=2,
    )


class OftenBlind:
    """Matches by the truth, with noise, and misses most overlaps of frames far apart in time."""

    def __init__(self, sequence: EndoscopeSequence) -> None:
        self._sequence = sequence
        self._numbers = {image.tobytes(): n for n, image in sequence.read_many(range(FRAMES))}
        self._overlapping = {(int(i), int(j)) for i, j in sequence.overlapping_pairs(0.3)}

    def __call__(self, image_i, image_j):
        i, j = self._numbers[image_i.tobytes()], self._numbers[image_j.tobytes()]
        rng = np.random.default_rng([i, j])
        if (i, j) not in self._overlapping or (j - i > NEAR and rng.random() < MISSED):
            return None
        points_j = rng.uniform(0.2 * SIDE, 0.8 * SIDE, (80, 2))
        points_i = self._sequence.points_in(i, j, points_j)
        seen = ((points_i > 0) & (points_i < SIDE - 1)).all(axis=1)
        return points_i[seen] + rng.normal(0.0, 1.0, points_i[seen].shape), points_j[seen]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The session at its end, the sequence, and the error after every answer of the person."""
    sequence, folder = endoscope(), tmp_path_factory.mktemp("endoscope")
    write_frames(sequence, folder / "frames", ".png")
    person = SimulatedPerson(sequence.points_in, sequence.field, seed=1)
    errors_px = []

    def error_px() -> float:
        mosaic = session.mosaic()
        one = np.array(mosaic.parts) == 0
        maps = np.array(mosaic.maps).reshape(-1, 3, 3)
        return sequence.truth_error(maps[one], np.array(mosaic.numbers)[one]).rms

    with Session.open(folder / "frames", folder / "project", queue="doubtful", matcher=OftenBlind(sequence)) as session:
        start_px = error_px_of_start(session, sequence)
        for _ in range(QUESTIONS):
            session._auto_answerer.wait()
            question = session.question()
            assert question is not None
            session.record(person.answer(Pair(question.i, question.j)))
            errors_px.append(error_px())
        session._auto_answerer.wait()
        yield session, sequence, start_px, errors_px


def error_px_of_start(session: Session, sequence: EndoscopeSequence) -> float:
    start = session._answer_history.state_history.states[0].loop
    one = start.part == 0
    return sequence.truth_error(start.mosaic_from_frame[one], np.array(session._answer_history.numbers.used)[one]).rms


def given_by_matcher(session: Session, verdict: Verdict) -> list:
    states = session._answer_history.state_history.states
    return [
        (before.loop, after.entry.answer.pair)
        for before, after in pairwise(states)
        if after.entry.answer.author is Author.MATCHER and after.entry.answer.verdict is verdict
    ]


def test_fifteen_questions_at_most_bring_the_error_below_two_pixels(course):
    _, _, start_px, errors_px = course
    assert start_px > 1.5 * GOOD_PX
    assert min(errors_px) <= GOOD_PX
    assert errors_px[-1] <= GOOD_PX


def test_a_person_is_asked_where_the_matcher_missed_an_overlap(course):
    session, _, _, _ = course
    asked = {(row.i, row.j) for row in session.answers() if row.author is Author.PERSON}
    failed = {(pair.i, pair.j) for _, pair in given_by_matcher(session, Verdict.UNSURE)}
    assert len(asked & failed) >= 5


def test_the_matcher_alone_says_no_to_no_overlap_that_was_likely(course):
    session, sequence, _, _ = course
    overlapping = {(int(i), int(j)) for i, j in sequence.overlapping_pairs()}
    wrong = [
        loop.likely(pair).reasons["overlap"]
        for loop, pair in given_by_matcher(session, Verdict.NO)
        if (session._answer_history.outer(pair).i, session._answer_history.outer(pair).j) in overlapping
    ]
    assert max(wrong, default=0.0) < 0.5
