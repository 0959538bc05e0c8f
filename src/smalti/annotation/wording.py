"""What happened, in words."""

from __future__ import annotations

from smalti.loop import StopReason
from smalti.project.entries import Act, LogEntry
from smalti.records import Pair, Verdict

VERDICTS = {Verdict.YES: "overlap", Verdict.NO: "no overlap", Verdict.UNSURE: "cannot tell"}

STOPPED = {
    StopReason.BUDGET: "the matcher has made all its attempts",
    StopReason.TARGET: "the error is below the target, nine times of ten",
    StopReason.NO_CANDIDATE: "no pair is left that would be worth a question",
}


def describe_answer(pair: Pair, verdict: Verdict) -> str:
    """Say what was answered."""
    return f"{VERDICTS[verdict]}, frames {pair.i} and {pair.j}"


def describe_act(entry: LogEntry) -> str:
    """Say what an entry of the log did."""
    if entry.act is Act.REMOVE or entry.answer is None:
        assert entry.pair is not None
        return f"removal, frames {entry.pair.i} and {entry.pair.j}"
    return describe_answer(entry.answer.answer.pair, entry.answer.answer.verdict)
