"""Vessels that a person draws along in both frames: landmarks of them, kept in the log and exported."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.annotation.messages import Origin, TraceVessel
from smalti.annotation.session import Session
from smalti.geometry.homographies import apply_map
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.project.answer_backup import read_backup
from smalti.project.packing import unpack_log_row
from smalti.records import Pair
from smalti_lab.synthetic.synthetic_files import write_frames
from tests.annotation.people import give
from tests.building.filmed import TrueMatcher, copied
from tests.vessels import HAND_PX, bare_place, true_map, vessel_walk, vessels_in

OFF_PX = (9.0, -7.0)


@pytest.fixture(scope="module")
def vessel_base(tmp_path_factory):
    base = tmp_path_factory.mktemp("vessels")
    write_frames(vessel_walk(), base / "walk", ".png")
    Session.open(base / "walk", base / "walk.smalti", matcher=TrueMatcher(vessel_walk(), noise_px=1.2)).close()
    return base / "walk.smalti"


@pytest.fixture
def session(vessel_base, tmp_path):
    with Session.open(copied(vessel_base, tmp_path / "walk.smalti")) as session:
        yield session


def pair_with_vessels(count):
    return next(
        pair for i in range(10) for j in range(i + 3, 10) for pair in (Pair(i, j),) if len(vessels_in(pair)) >= count
    )


def trace(session, pair, lines, seed=0):
    """Draw along a vessel as a person does, who sees the other frame where it is expected to a few pixels."""
    rng = np.random.default_rng(seed)
    strokes = [
        line[:: max(1, len(line) // 15)] + rng.normal(0, HAND_PX, line[:: max(1, len(line) // 15)].shape)
        for line in lines
    ]
    expected = true_map(pair)
    expected[:2, 2] += OFF_PX
    return session.trace(
        TraceVessel(
            i=pair.i,
            j=pair.j,
            stroke_i=strokes[0].tolist(),
            stroke_j=strokes[1].tolist(),
            i_from_j=(expected / expected[2, 2]).ravel().tolist(),
            sigma_px=15.0,
        )
    )


def test_landmarks_lie_on_the_same_vessel_in_both_frames(session):
    pair = pair_with_vessels(1)
    found = trace(session, pair, vessels_in(pair)[0])
    assert found.found, found.reason
    points_i, points_j = (
        np.array([(one.x_i, one.y_i) for one in found.landmarks]),
        np.array([(one.x_j, one.y_j) for one in found.landmarks]),
    )
    off = apply_map(true_map(pair), points_j) - points_i
    angles = np.radians([one.along_deg for one in found.landmarks])
    across = off[:, 1] * np.cos(angles) - off[:, 0] * np.sin(angles)
    assert np.sqrt(np.mean(across**2)) < 0.6
    assert {one.origin for one in found.landmarks} == {Origin.TRACED}


def test_a_stroke_on_bare_tissue_gives_a_reason_and_no_landmark(session):
    pair = pair_with_vessels(1)
    bare = bare_place(pair) + np.linspace((0.0, -20.0), (0.0, 20.0), 40)
    found = trace(session, pair, (bare, vessels_in(pair)[0][1]))
    assert not found.found
    assert found.landmarks == []
    assert f"frame {pair.i}" in found.reason


def test_the_log_its_backup_and_the_export_keep_what_is_free(session, tmp_path):
    pair = pair_with_vessels(2)
    curves = [trace(session, pair, lines, seed) for seed, lines in enumerate(vessels_in(pair)[:2])]
    assert all(found.found for found in curves), [found.reason for found in curves]
    drawn = [one.model_copy(update={"curve": k}) for k, found in enumerate(curves) for one in found.landmarks]
    give(session, pair.i, pair.j, "yes", drawn)
    assert session.look(pair.i, pair.j).answer.landmarks == drawn
    kept = next(entry.answer for entry in session.project.answers if entry.answer.pair == pair).landmarks
    np.testing.assert_allclose(np.degrees(np.arctan2(*kept.along.T[::-1])), [one.along_deg for one in drawn])
    rows = read_backup(session.project.folder / "answers.jsonl").rows
    backed_up = unpack_log_row(rows[-1]).answer.answer.landmarks
    np.testing.assert_array_equal(backed_up.along, kept.along)
    _, content = session.export("landmarks.csv")
    (tmp_path / "landmarks.csv").write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    exported = next(one for one in read_landmarks(tmp_path / "landmarks.csv") if one.pair == pair)
    np.testing.assert_allclose(exported.along, kept.along, atol=1e-4)
    row = next(row for row in session.answers() if (row.i, row.j) == (pair.i, pair.j))
    assert row.residual_px < 1.0
