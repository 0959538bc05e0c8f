"""The agent that compares all pixels: what it makes of what it is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.agents import matcher as dense
from smalti.agents.matcher import DenseAgent
from smalti.records import Answer, Expectation, Pair

PAIR = Pair(2, 7)


@pytest.fixture
def asked(monkeypatch):
    """What the registration is asked, instead of being done."""
    heard = []

    def register(pair, in_i, in_j, expected, settings):
        heard.append((in_i, in_j, *expected))
        return Answer.no(pair)

    monkeypatch.setattr(dense, "register", register)
    return heard


def agent():
    return DenseAgent(lambda number: f"frame {number}")


def test_it_looks_where_it_is_told_at_the_frames_of_the_pair(asked):
    expected = Expectation(np.array([[1.0, 0.1, 5.0], [-0.1, 1.0, 7.0]]), 3.0)
    agent().answer_expecting(PAIR, expected)
    assert asked == [("frame 2", "frame 7", expected)]


def test_told_nothing_it_looks_anywhere(asked):
    agent().answer(PAIR)
    assert math.isinf(asked[0][2].sigma_px)
