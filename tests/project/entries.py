"""Entries of a project's file, made from nothing but numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smalti.project.answer_store import Store
from smalti.project.entries import AnswerEntry, LinkEntry, LinkState, Placement, Role
from smalti.project.facts import Noise, Outcome
from smalti.records import Answer, Landmarks, Pair


def yes(i: int, j: int, role: Role = Role.CHAIN, landmarks: int = 12) -> AnswerEntry:
    rng = np.random.default_rng([i, j])
    points_i, points_j = rng.normal(100, 60, (2, landmarks, 2))
    record = Landmarks(Pair(i, j), points_i, points_j, rng.uniform(0.2, 3.0, landmarks))
    return AnswerEntry(Answer.yes(record, f"{landmarks} of 99 matches agree"), role, 0.125 * j)


def no(i: int, j: int, role: Role = Role.LOOP) -> AnswerEntry:
    return AnswerEntry(Answer.no(Pair(i, j), "4 of 14 matches agree, 11 needed"), role, 0.5)


def unsure(i: int, j: int) -> AnswerEntry:
    return AnswerEntry(Answer.unsure(Pair(i, j), "too dark"), Role.LOOP, 1.5)


def placement(number: int, part: int = 0) -> Placement:
    rng = np.random.default_rng([number, part])
    return Placement(number, part, rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), float(rng.random()))


def shifted(number: int, x: float, y: float = 0.0, part: int = 0) -> Placement:
    """A frame that lies at (x, y) on its mosaic."""
    shift = np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])
    return Placement(number, part, shift, shift, 0.5)


def link(i: int, j: int, state: LinkState = LinkState.ACCEPTED, chi2: float = 5.5) -> LinkEntry:
    return LinkEntry(Pair(i, j), state, chi2, 0.75, 1.25)


def outcome(**changes: object) -> Outcome:
    """The numbers of a small finished project, with some of them changed."""
    plain = Outcome(
        finished_after=0,
        method="smalti",
        family="projective",
        references=(0,),
        breaks=(),
        unjoined=(),
        lens=None,
        stopped="budget",
        noise=Noise(1.0, 1.0, 1.0),
        camera=None,
        chain_error_px=None,
        left_out_px=None,
        chain_predicted_px=1.0,
        predicted_error_px=0.5,
        error_bound_px=None,
        ahead_px=None,
        worth_going_on=None,
    )
    return replace(plain, **changes)


def forget_outcome(store: Store) -> None:
    """Make a project one whose build is not finished."""
    with store._database.writing() as connection:
        connection.execute("DELETE FROM fact WHERE name = ?", (Outcome.NAME,))
