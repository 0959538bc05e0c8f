"""How often each kind of pair gets a yes, learned from links and from refusals."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.engine.equations import System
from smalti.engine.links import fit_link
from smalti.geometry.homographies import PROJECTIVE
from smalti.records import Landmarks, Pair
from smalti.suggestion.answer_model import PRIOR_NO, PRIOR_YES, acceptance
from smalti.suggestion.pair_survey import REACHES
from tests.worlds import OUTLINE

KINDS = len(REACHES) + 1
NOTHING_REFUSED = np.empty((0, KINDS))


def shifted_by(shift, count):
    """A sequence of so many links, its frames each so many frame sizes further along x and along y."""
    offset = np.array(shift) * (OUTLINE.width, OUTLINE.height)
    landmarks = [Landmarks(Pair(n, n + 1), OUTLINE.corners + offset, OUTLINE.corners) for n in range(count)]
    return System.of(count + 1, OUTLINE, PROJECTIVE, [fit_link(some, OUTLINE) for some in landmarks])


def refused_of(kind, count):
    return np.tile(np.eye(KINDS)[kind], (count, 1))


@pytest.mark.parametrize(("shift", "kind", "axis"), [(0.4, 0, 0), (0.6, 1, 1), (0.9, 2, 0), (1.5, 3, 1)])
def test_links_are_yeses_of_the_kind_that_their_distance_makes_them(shift, kind, axis):
    moved = np.zeros(2)
    moved[axis] = shift
    yes = PRIOR_YES.copy()
    yes[kind] += 20.0
    np.testing.assert_allclose(acceptance(shifted_by(moved, 20), NOTHING_REFUSED), yes / (yes + PRIOR_NO))


def test_before_any_answer_rims_are_likely_to_be_refused_and_overlap_not():
    rates = acceptance(shifted_by((0.3, 0.0), 1), NOTHING_REFUSED)
    assert rates[0] > 0.95
    assert (rates[1:] < 0.2).all()


def test_an_agent_that_confirms_rims_gets_asked_about_them():
    assert acceptance(shifted_by((0.6, 0.0), 30), NOTHING_REFUSED)[1] > 0.9


def test_refusals_of_rims_are_learned():
    system = shifted_by((0.6, 0.0), 10)
    before = acceptance(system, NOTHING_REFUSED)
    after = acceptance(system, refused_of(1, 10))
    assert after[1] < 0.6 < 0.75 < before[1]
    np.testing.assert_allclose(np.delete(after, 1), np.delete(before, 1))


def test_a_refusal_that_may_be_of_several_kinds_is_put_down_to_the_one_that_is_refused_more_often():
    system = shifted_by((0.3, 0.0), 10)
    before = acceptance(system, NOTHING_REFUSED)
    doubtful = np.tile([0.5, 0.0, 0.5, 0.0, 0.0], (10, 1))
    after = acceptance(system, doubtful)
    assert after[0] > 0.97 * before[0]
    assert after[2] < 0.5 * before[2]
