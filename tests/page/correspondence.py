"""Answers sent without a page, where a test is about what comes after them."""

from __future__ import annotations

from typing import Any

from smalti.records import Pair
from smalti_lab.simulated_agents import OracleAgent
from tests.page.program import Program


def give_truth(program: Program, eye: OracleAgent, count: int) -> list[Pair]:
    """Answer so many questions, and return their pairs."""
    asked = []
    question = program.get("api/question")
    for _ in range(count):
        pair = Pair(question["i"], question["j"])
        question = program.post("api/answers", truth_on(eye, pair, question["revision"]))["question"]
        asked.append(pair)
    return asked


def given(program: Program) -> list[dict[str, Any]]:
    """Return what people answered, in the order in which they did; not what became of it on the mosaic."""
    rows = [row for row in program.get("api/answers") if row["author"] == "person"]
    lasting = ("place", "i", "j", "verdict", "landmarks")
    return [{name: row[name] for name in lasting} for row in sorted(rows, key=lambda row: int(row["place"]))]


def truth_on(eye: OracleAgent, pair: Pair, seen: int) -> dict[str, Any]:
    """Return the message that answers a pair."""
    known = eye.answer(pair).landmarks
    sheet = [] if known is None else zip(known.points_i.tolist(), known.points_j.tolist(), strict=True)
    landmarks = [{"x_i": i[0], "y_i": i[1], "x_j": j[0], "y_j": j[1]} for i, j in sheet]
    verdict = "yes" if landmarks else "no"
    return {"i": pair.i, "j": pair.j, "verdict": verdict, "landmarks": landmarks, "seen_revision": seen}
