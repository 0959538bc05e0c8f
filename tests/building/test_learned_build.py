"""A build that matches by learned keypoints."""

from __future__ import annotations

import numpy as np

from smalti.building.build import build
from smalti.project.project import Project
from tests.building.filmed import strips, write_images
from tests.building.test_matcher_choice import dull
from tests.registration.learned import needs_weights

pytestmark = needs_weights


def test_dull_frames_are_built_by_learned_keypoints_and_the_project_says_so(tmp_path):
    rng = np.random.default_rng(1)
    write_images(tmp_path / "images", [dull(strips().frame(n), rng) for n in range(5)])
    with build(tmp_path / "images", tmp_path / "project", registration="learned", budget=2, progress=False) as project:
        info = project.info()
        assert info.registered_by == "learned keypoints"
        assert (info.frames.placed, info.parts) == (5, 1)
        maps = {placement.number: placement.final for placement in project.placements}
    with Project.open(tmp_path / "project") as again:
        assert all("matches agree" in entry.answer.reason for entry in again.store.answers())
    assert strips().truth_error(np.array([maps[n] for n in range(5)]), list(range(5))).rms < 1.0
