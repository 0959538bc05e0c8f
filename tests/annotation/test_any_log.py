"""Whatever is in the log can be opened: by the annotator and by a build, which goes on."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import smalti
from smalti.errors import NothingToUndoError, PairError
from smalti.project.answer_store import Store
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Author, Landmarks, Pair, Verdict
from tests.building.filmed import TINY, TINY_BUDGET, built_tiny, copied, tiny, tiny_video, true_landmarks

FRAMES = 12
KINDS = ("true", "shifted", "one point", "a line", "one place", "outside")


def landmarks(pair: Pair, kind: str) -> Landmarks:
    """Landmarks as a careful person, a careless one and a broken program would give them."""
    if kind in ("true", "shifted"):
        found = true_landmarks(tiny(), np.array([[pair.i, pair.j]]))
        if found:
            by = 40.0 if kind == "shifted" else 0.0
            return Landmarks(pair, found[0].points_i + by, found[0].points_j)
        kind = "outside"
    points = np.random.default_rng([pair.i, pair.j]).uniform(0, TINY[1], (8, 2))
    if kind == "one point":
        points = points[:1]
    elif kind == "a line":
        points = np.column_stack([points[:, 0], 0.5 * points[:, 0]])
    elif kind == "one place":
        points = np.repeat(points[:1], 8, axis=0)
    else:
        points = 1e6 * points
    return Landmarks(pair, points, points[::-1].copy() if kind == "outside" else points)


PAIRS = st.tuples(st.integers(0, FRAMES - 1), st.integers(0, FRAMES - 1)).filter(lambda ij: ij[0] < ij[1])
NEAR = st.integers(0, FRAMES - 3).flatmap(lambda i: st.tuples(st.just(i), st.integers(i + 1, i + 2)))
GIVES = st.tuples(
    st.just("give"),
    st.one_of(NEAR, PAIRS),
    st.sampled_from(Author),
    st.sampled_from(Role),
    st.sampled_from(Verdict),
    st.sampled_from(KINDS),
)
ACTS = st.lists(
    st.one_of(GIVES, GIVES, st.tuples(st.just("remove"), NEAR), st.tuples(st.just("undo")), st.tuples(st.just("redo"))),
    min_size=1,
    max_size=12,
)


def write(store: Store, act: tuple) -> None:
    if act[0] == "give":
        _, (i, j), author, role, verdict, kind = act
        pair = Pair(i, j)
        given = landmarks(pair, kind) if verdict is Verdict.YES else None
        store.keep_answer(AnswerEntry(Answer(pair, verdict, given, author=author), role, 1.0))
    elif act[0] == "remove":
        store.remove_answer(Pair(*act[1]))
    else:
        store.undo() if act[0] == "undo" else store.redo()


def open_everything(folder, source) -> None:
    with smalti.Session.open(folder, moved_to=source) as session:
        opened = session.mosaic().maps
        assert np.isfinite(opened).all()
        session.state()
    with smalti.Session.open(folder, moved_to=source) as session:
        assert session.mosaic().maps == opened
    smalti.build(source, folder, budget=TINY_BUDGET + 2).close()
    with smalti.Project.open(folder) as project:
        assert project.is_finished
        assert project.placements


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(ACTS)
def test_any_log_can_be_opened(tmp_path_factory, acts):
    base = tmp_path_factory.getbasetemp()
    folder = copied(built_tiny(base), tmp_path_factory.mktemp("log") / "tiny.smalti")
    with closing(Store.open(folder / "project.sqlite")) as store:
        for act in acts:
            try:
                write(store, act)
            except (PairError, NothingToUndoError):
                continue
    open_everything(folder, tiny_video(base))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("author", list(Author))
def test_a_yes_on_a_link_of_the_chain_can_be_opened_whatever_its_landmarks(tmp_path_factory, tmp_path, kind, author):
    base = tmp_path_factory.getbasetemp()
    folder = copied(built_tiny(base), tmp_path / "tiny.smalti")
    with closing(Store.open(folder / "project.sqlite")) as store:
        write(store, ("give", (4, 5), author, Role.CHAIN, Verdict.YES, kind))
        write(store, ("give", (2, 9), author, Role.LOOP, Verdict.YES, kind))
    open_everything(folder, tiny_video(base))
