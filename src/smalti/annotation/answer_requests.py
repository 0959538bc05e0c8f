"""Requests of a session that change its answers, and the check before one is given."""

from __future__ import annotations

from smalti.annotation import messages as say
from smalti.annotation.contradiction import find_contradiction, in_words
from smalti.annotation.landmark_messages import (
    leave_last_out,
    person_named,
    read_answer,
    read_landmarks,
    write_given,
)
from smalti.annotation.open_session import OpenSession
from smalti.annotation.overview import describe_act, describe_answer, say_learned
from smalti.errors import ChangedMeanwhileError, LandmarkError
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Author, Pair, Verdict


class AnswerRequests(OpenSession):
    """The requests that change answers. An answer is on disk before anything else is done with it."""

    def record(self, answer: Answer) -> say.Outcome:
        """Keep an answer, and return the next question and whether the answer contradicts the others.

        The pair need not be the one asked; frames have their numbers in the source.
        """
        with self._engine_first():
            inner = self._answer_history.inner(answer.pair)
            if answer.landmarks is not None:  # those that make no link are refused before they are kept
                self._answer_history.loop.link_of(answer.landmarks.of_pair(inner))
            return self._keep(AnswerEntry(answer, self._answer_history.role_of(answer.pair), 0.0))

    def give(self, request: say.GiveAnswer, page: str = "") -> say.Outcome:
        """Keep a person's answer from the page, and return the next question."""
        pair = Pair(request.i, request.j)
        with self._engine_first():
            self._answer_history.inner(pair)
            self._people[page] = person_named(request.person)
            if request.is_known:
                return self._keep_known(request, page)
            if self._measures.check_landmarks:
                request = request.model_copy(update={"landmarks": leave_last_out(request.landmarks)})
            entry = read_answer(request, self._answer_history.role_of(pair), self._answer_history.loop)
            return self._keep(entry, request.seen_revision, page)

    def remove(self, request: say.RemoveAnswer, page: str = "") -> say.Outcome:
        """Take an answer back. An answer of the chain is replaced by a person's "cannot tell"."""
        pair = Pair(request.i, request.j)
        with self._engine_first():
            self._answer_history.inner(pair)
            role = self._answer_history.role_of(pair)
            if role.is_after_chain:
                self.project.store.remove_answer(pair, seen_revision=request.seen_revision)
            else:
                answer = Answer.unsure(pair, "removed by a person", Author.PERSON)
                self.project.store.keep_answer(AnswerEntry(answer, role, 0.0), seen_revision=request.seen_revision)
            self._answer_history.take_up()
            return self._outcome(f"removed: frames {pair.i} and {pair.j}", page=page)

    def undo(self, request: say.Step, page: str = "") -> say.Outcome:
        """Take back the last action of a person."""
        with self._engine_first():
            undone = self.project.store.undo(seen_revision=request.seen_revision)
            self._answer_history.take_up()
            return self._outcome(f"undone: {describe_act(undone)}", page=page)

    def redo(self, request: say.Step, page: str = "") -> say.Outcome:
        """Bring back what was undone last."""
        with self._engine_first():
            redone = self.project.store.redo(seen_revision=request.seen_revision)
            self._answer_history.take_up()
            return self._outcome(f"redone: {describe_act(redone)}", page=page)

    def conflict(self, error: ChangedMeanwhileError) -> say.Conflict:
        """Describe what somebody else did meanwhile."""
        with self._engine_first():
            pair = error.pair
            known = None if pair is None else self._answer_history.history.answer_of(pair)
            return say.Conflict(
                explanation=str(error),
                i=0 if pair is None else pair.i,
                j=0 if pair is None else pair.j,
                theirs=None if known is None else write_given(known),
                state=self.state(),
            )

    def check(self, request: say.CheckLandmarks) -> say.Checked:
        """Return what is wrong with landmarks, and whether they would contradict the state."""
        pair = Pair(request.i, request.j)
        with self._engine_first():
            inner, loop = self._answer_history.inner(pair), self._answer_history.loop
            try:
                leaves_out = self._measures.check_landmarks and not request.is_known
                sheet = leave_last_out(request.landmarks) if leaves_out else request.landmarks
                landmarks = read_landmarks(pair, sheet, loop)
            except LandmarkError as error:
                return say.Checked(problem=str(error), contradiction=None)
            # What the mosaic says of a known pair would give its answer away.
            if request.is_known or loop.is_settled(inner):
                return say.Checked(problem=None, contradiction=None)
            answer = Answer.yes(landmarks.of_pair(inner), author=Author.PERSON)
            after = loop.record(answer)
            found = find_contradiction(loop, after, answer, self._answer_history.state_history.surprises())
            if self._queue is say.Queue.ALL or not self._auto_answerer.is_working:
                self._precomputation.precompute_answer(self._answer_history.state_history.now, answer, after)
            return say.Checked(
                problem=None, contradiction=None if found is None else in_words(found, self._answer_history)
            )

    def _keep(self, entry: AnswerEntry, seen_revision: int | None = None, page: str = "") -> say.Outcome:
        """Write an answer to disk, then go to the state after it."""
        self.project.store.keep_answer(entry, seen_revision=seen_revision)
        self._answer_history.take_up(self._precomputation.states)
        return self._outcome(describe_answer(entry.answer.pair, entry.answer.verdict), entry, page)

    def _keep_known(self, request: say.GiveAnswer, page: str) -> say.Outcome:
        """Write an answer to a known pair to disk, beside the one that is known; the mosaic stays as it is."""
        history, pair = self._answer_history.history, Pair(request.i, request.j)
        before = history.answer_of(pair)
        is_yes = before is not None and before.answer.landmarks is not None
        entry = read_answer(request, Role.CONTROL, self._answer_history.loop, Verdict.YES if is_yes else Verdict.NO)
        # A page that lost the connection sends its answer again.
        if not any(one.answer.pair == pair and one.person == entry.person for one in history.controls):
            self.project.store.keep_answer(entry)
            self._answer_history.take_up()
        return self._outcome(describe_answer(pair, entry.answer.verdict), page=page)

    def _outcome(self, done: str, given: AnswerEntry | None = None, page: str = "") -> say.Outcome:
        """Continue after a change that is on disk."""
        contradiction = None
        state_history = self._answer_history.state_history
        latest = state_history.now.entry
        if (
            given is not None
            and latest is not None
            and latest.answer.pair == self._answer_history.inner(given.answer.pair)
        ):
            answer = latest.answer
            found = find_contradiction(
                state_history.before.loop, state_history.now.loop, answer, state_history.earlier_surprises()
            )
            contradiction = None if found is None else in_words(found, self._answer_history)
            learned = say_learned(state_history.before, state_history.now, state_history.predicted_px)
            done = done if learned is None else f"{done}. {learned}"
        # After a contradiction the matcher waits: it would build on what may be wrong.
        self._go_to_next(matcher_first=contradiction is None)
        self._on_change()
        return say.Outcome(state=self.state(), question=self.question(page), contradiction=contradiction, done=done)
