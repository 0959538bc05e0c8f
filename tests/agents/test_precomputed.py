"""The agent that answers from a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smalti.agents.agent import PrecomputedAgent
from smalti.errors import PairError, TableError
from smalti.records import Landmarks, Pair, Verdict

FRAMES = 6
PAIRS = [Pair(0, 1), Pair(0, 4), Pair(1, 2), Pair(3, 5)]


def landmarks_of(pair: Pair, count: int = 4, sigma: float = 1.0) -> Landmarks:
    rng = np.random.default_rng([pair.i, pair.j])
    points = rng.uniform(0, 100, size=(count, 2))
    return Landmarks(pair, points + 5.0, points, sigma)


@pytest.fixture
def agent() -> PrecomputedAgent:
    return PrecomputedAgent.from_landmarks(landmarks_of(pair) for pair in PAIRS)


def test_yes_exactly_for_the_pairs_of_the_table(agent: PrecomputedAgent) -> None:
    every_pair = [Pair(i, j) for i in range(FRAMES) for j in range(i + 1, FRAMES)]
    assert [pair for pair in every_pair if agent.answer(pair).verdict is Verdict.YES] == PAIRS


def test_all_other_pairs_get_a_no(agent: PrecomputedAgent) -> None:
    assert agent.answer(Pair(2, 3)).verdict is Verdict.NO


def test_a_frame_beyond_the_table_gets_a_no(agent: PrecomputedAgent) -> None:
    assert agent.answer(Pair(3, 1000)).verdict is Verdict.NO


@pytest.mark.parametrize("pair", PAIRS)
def test_an_answer_carries_the_landmarks_of_its_pair(agent: PrecomputedAgent, pair: Pair) -> None:
    found, given = agent.answer(pair).landmarks, landmarks_of(pair)
    assert found is not None
    assert found.pair == pair
    np.testing.assert_array_equal(found.points_i, given.points_i)
    np.testing.assert_array_equal(found.points_j, given.points_j)


def test_each_pair_keeps_its_own_sigma() -> None:
    given = [landmarks_of(Pair(0, 1), sigma=0.5), landmarks_of(Pair(1, 2), sigma=3.0)]
    agent = PrecomputedAgent.from_landmarks(given)
    found = [agent.landmarks(pair) for pair in (Pair(0, 1), Pair(1, 2))]
    assert [np.unique(landmarks.sigma).tolist() for landmarks in found if landmarks] == [[0.5], [3.0]]


def test_pairs_lists_the_table_in_order() -> None:
    agent = PrecomputedAgent.from_landmarks(landmarks_of(pair) for pair in reversed(PAIRS))
    assert agent.pairs() == PAIRS


def test_an_empty_table_answers_no_to_everything() -> None:
    agent = PrecomputedAgent.from_landmarks([])
    assert agent.answer(Pair(0, 1)).verdict is Verdict.NO
    assert agent.pairs() == []


def test_a_pair_given_twice_is_refused() -> None:
    with pytest.raises(PairError, match=r"\(0, 1\) is given twice"):
        PrecomputedAgent.from_landmarks([landmarks_of(Pair(0, 1)), landmarks_of(Pair(0, 1), count=5)])


def test_a_table_out_of_order_is_refused() -> None:
    pairs = np.array([[0, 2], [0, 2], [0, 2], [0, 1], [0, 1], [0, 1]])
    points = np.zeros((6, 2))
    with pytest.raises(PairError, match="order"):
        PrecomputedAgent(pairs, points, points, np.ones(6))


def test_a_table_whose_rows_of_a_pair_are_not_together_is_refused() -> None:
    pairs = np.array([[0, 1], [0, 2], [0, 1]])
    points = np.zeros((3, 2))
    with pytest.raises(PairError, match="order"):
        PrecomputedAgent(pairs, points, points, np.ones(3))


def test_a_table_is_read_from_csv_with_the_asked_sigma(tmp_path: Path) -> None:
    file = tmp_path / "landmarks.csv"
    file.write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n0,3,1,2,3,4\n0,3,5,6,7,8\n0,3,9,1,2,3\n")
    found = PrecomputedAgent.from_csv(file, sigma=2.0).landmarks(Pair(0, 3))
    assert found is not None
    assert found.points_i.tolist() == [[1, 2], [5, 6], [9, 1]]
    assert np.unique(found.sigma).tolist() == [2.0]


def test_a_csv_that_is_missing_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"nowhere\.csv"):
        PrecomputedAgent.from_csv(tmp_path / "nowhere.csv")


def test_a_table_may_be_named_by_a_text(tmp_path: Path) -> None:
    table = tmp_path / "landmarks.csv"
    table.write_text("frame_i,frame_j,x_i,y_i,x_j,y_j\n0,5,10,20,12,21\n")
    assert PrecomputedAgent.from_csv(str(table)).pairs() == [Pair(0, 5)]
