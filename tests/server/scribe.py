"""Somebody who gives answers of many kinds over HTTP, and remembers what was acknowledged."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field

import numpy as np

from smalti.geometry.linear_maps import apply, compose, invert

APART = 3
"""Frames nearer than this are of the chain, whose answers are another matter."""

SPREAD_PX = 4
"""Deviation of the landmarks of a yes across their line. Those of a thinner strip are rightly refused."""

MOST_ANSWERS = 4
"""In force: each is taken up again after every kill, which takes its time."""


@dataclass(frozen=True)
class Memory:
    """What must be there: the revision, the answers in force, and those before and after by undo and redo."""

    revision: int
    answers: dict = field(default_factory=dict)  # (i, j) -> (verdict, reason)
    controls: frozenset = frozenset()  # (i, j, person) of known pairs
    done: tuple = ()
    undone: tuple = ()

    def after(self, act):
        """Return what must be there after an act that is kept, the same where there is nothing to undo or redo."""
        path, body = act
        if path == "/api/undo":
            if not self.done:
                return self
            return self._next(*self.done[-1], self.done[:-1], (*self.undone, (self.answers, self.controls)))
        if path == "/api/redo":
            if not self.undone:
                return self
            return self._next(*self.undone[-1], (*self.done, (self.answers, self.controls)), self.undone[:-1])
        done = (*self.done, (self.answers, self.controls))
        if body.get("is_known"):
            return self._next(self.answers, self.controls | {(body["i"], body["j"], body["person"])}, done, ())
        answers = {pair: given for pair, given in self.answers.items() if pair != (body["i"], body["j"])}
        if path == "/api/answers":
            answers[body["i"], body["j"]] = body["verdict"], body["reason"]
        return self._next(answers, self.controls, done, ())

    def _next(self, answers, controls, done, undone):
        return Memory(self.revision + 1, answers, controls, done, undone)


class Wire:
    """A connection to a server on this machine; small, for it is made anew after every kill."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def get(self, path):
        return self._ask("GET", path)[1]

    def post(self, path, body):
        return self._ask("POST", path, json.dumps(body), {"Content-Type": "application/json"})

    def close(self):
        self._connection.close()

    def _ask(self, *request):
        self._connection.request(*request)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


class Scribe:
    """Answers at random, by the truth or against it; `pending` is the act whose acknowledgement is awaited."""

    def __init__(self, sequence, revision, rng):
        self._sequence, self._rng = sequence, rng
        self.memory = Memory(revision)
        self.pending = None
        self.acknowledged = 0
        self.seconds = 0.05  # that an act takes, about

    def check(self, wire):
        """Compare what a server knows with what it acknowledged, and maybe one act more."""
        state = wire.get("/api/state")
        rows = [row for row in wire.get("/api/answers") if row["role"] == "loop"]
        known = {(row["i"], row["j"]): (row["verdict"], row["reason"]) for row in rows}
        if self.pending is not None and state["revision"] == self.memory.revision + 1:
            self.memory = self.memory.after(self.pending)
        self.pending = None
        assert state["revision"] == self.memory.revision
        assert known == self.memory.answers
        assert (state["undo"] is None, state["redo"] is None) == (not self.memory.done, not self.memory.undone)

    def act(self, wire):
        """Do one thing, and remember it once it is acknowledged."""
        self.pending = path, body = self._choose()
        began = time.monotonic()
        status, outcome = wire.post(path, body)
        self.seconds += 0.2 * (time.monotonic() - began - self.seconds)
        after = self.memory.after(self.pending)
        assert status == (400 if after is self.memory else 200), outcome
        if status == 200:
            assert outcome["state"]["revision"] == after.revision
            self.acknowledged += 1
        self.memory, self.pending = after, None

    def _choose(self):
        seen = {"seen_revision": self.memory.revision}
        kind = self._rng.choice(["no", "unsure", "yes", "change", "undo", "redo", "removal", "known"])
        known = sorted(self.memory.answers)
        if kind in ("undo", "redo"):
            return f"/api/{kind}", seen
        if known and (kind == "removal" or len(known) > MOST_ANSWERS):
            i, j = known[self._rng.integers(len(known))]
            return "/api/answers/removal", {"i": i, "j": j, **seen}
        i, j = known[self._rng.integers(len(known))] if kind == "change" and known else self._pair()
        landmarks = self._landmarks(i, j) if kind in ("yes", "change", "known") else []
        verdict = "yes" if landmarks else "unsure" if kind == "unsure" else "no"
        reason = f"act {self._rng.integers(2**32)}"
        body = {"i": i, "j": j, "verdict": verdict, "landmarks": landmarks, "reason": reason, "seconds": 1.5}
        if kind == "known":  # a new name every time: who answers the same pair again says nothing new
            body |= {"is_known": True, "person": f"person {self._rng.integers(2**32)}"}
        return "/api/answers", {**body, **seen}

    def _pair(self):
        i = int(self._rng.integers(len(self._sequence) - APART))
        return i, int(self._rng.integers(i + APART, len(self._sequence)))

    def _landmarks(self, i, j):
        maps = self._sequence.mosaic_from_frame
        points_j = self._rng.uniform(5, [self._sequence.width - 6, self._sequence.height - 6], (24, 2))
        points_i = apply(compose(invert(maps[i]), maps[j]), points_j)
        seen = self._sequence.outline.contains(points_i)
        points_i = points_i + self._rng.normal(0, 0.5, points_i.shape)
        if seen.sum() < 4 or np.linalg.svd(np.cov(points_j[seen].T), compute_uv=False)[-1] < SPREAD_PX**2:
            return []
        rows = np.column_stack([points_i, points_j])[seen].tolist()
        return [dict(zip(("x_i", "y_i", "x_j", "y_j"), row, strict=True)) for row in rows]
