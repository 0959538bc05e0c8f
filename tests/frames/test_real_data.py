"""Real sequences: all of each frame is scene, and none is to be set aside."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from smalti.frames.field_of_view import find_field
from smalti.frames.quality import measure_frames, unusable
from smalti.frames.source import SourceSettings, open_source

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[3] / "shared" / "data"))

SEQUENCES = {
    "caliterra": ("caliterra/frames", 75),
    "obriens": ("obriens/frames", 87),
    "copr": ("copr/frames", 41),
    "brighton": ("brighton/frames", 18),
    "airplane01": ("airplane01/frames", 300),
    "dendritic": ("dendritic_cols0-2/frames", 44),
    "street pan": ("street_pan_test3/test3.mp4", 222),
}


@pytest.fixture(params=SEQUENCES)
def grays(request):
    place, frames = SEQUENCES[request.param]
    if not (DATA / place).exists():
        pytest.skip(f"no real data: {DATA / place} is absent, set SMALTI_DATA to its root")
    every = 3 if place.endswith(".mp4") else 1
    with open_source(DATA / place, SourceSettings(every=every, max_size=640)) as source:
        assert len(source) == frames
        yield [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for _, image in source.read_many(range(frames))]


def test_real_frames_are_all_of_use_and_all_scene(grays):
    assert unusable(list(measure_frames(grays))) == {}
    for samples in (16, 20, 30, 40):
        chosen = np.unique(np.linspace(0, len(grays) - 1, samples).round().astype(int))
        assert find_field(grays[index] for index in chosen).mean() > 0.99
