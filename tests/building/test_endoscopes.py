"""A scope that is lost for a while: what comes before the first question, and what ten answers of a person leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smalti.annotation.opening import LEAST_PART
from smalti.building.build_settings import BuildSettings
from smalti.building.preparation import prepare
from smalti.loop_setup import StopRule
from smalti.progress import Silence
from smalti.project.project import Project
from smalti_lab.endoscopy.disturbance import Disturbance
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import EndoscopeSettings
from smalti_lab.simulated_agents import SimulatedPerson
from smalti_lab.synthetic.scene import procedural_scene

SIDE, FRAMES = 260, 60


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A scope over farmland that is tissue today, disturbed for a third of the time."""
    settings = EndoscopeSettings(frames=FRAMES, width=SIDE, height=SIDE, disturbed=0.33)
    sequence = EndoscopeSequence(procedural_scene(900, 900, seed=2), settings, seed=1)
    build = BuildSettings()
    folder = tmp_path_factory.mktemp("endoscope") / "project"
    with Project.begin(folder, sequence, "synthetic", build.binding()) as project:
        project.source = sequence
        yield sequence, prepare(project, sequence, build, None, Silence(), LEAST_PART), project


def test_exactly_the_disturbed_frames_are_set_aside_with_a_reason(prepared):
    sequence, preparation, _ = prepared
    disturbed = set(np.flatnonzero(sequence.disturbance != Disturbance.NONE).tolist())
    assert len(disturbed) > FRAMES / 5
    assert {frame.number for frame in preparation.frames if frame.reason} == disturbed


def test_the_field_of_view_is_the_true_one_but_for_a_margin(prepared):
    sequence, _, project = prepared
    assert not (project.mask & ~sequence.field(0)).any()
    assert project.mask.sum() > 0.9 * sequence.field(0).sum()


def test_the_runs_between_are_registered_and_joined_across(prepared):
    _, preparation, _ = prepared
    assert not preparation.start.part.any()
    assert len(preparation.chain.links) >= len(preparation.numbers) - 1


def test_ten_answers_of_a_person_leave_little_of_the_drift(prepared):
    sequence, preparation, _ = prepared
    person = SimulatedPerson(sequence.points_in, sequence.field, seed=1)

    class InEngine:
        def answer(self, pair):
            return person.answer(preparation.numbers.pair_in_source(pair)).of_pair(pair)

    setup = replace(preparation.start.setup, stop_rule=StopRule(budget=10))
    *_, last = replace(preparation.start, setup=setup).run(InEngine())
    assert sequence.truth_error(last.mosaic_from_frame, preparation.numbers.used).rms < 3.0
