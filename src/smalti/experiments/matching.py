"""All pairs of a folder of frames, matched as a build would."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from smalti.agents.matcher import KeypointAgent
from smalti.appearance.words import strongest_of_cells
from smalti.building.sight import Sight
from smalti.experiments.matches import Matches
from smalti.frames.gray import in_gray
from smalti.frames.source import open_source
from smalti.geometry.outline import Outline
from smalti.records import Pair
from smalti.registration.keypoints import find_keypoints


def match_all(folder: Path, frames: int) -> Matches:
    """Match all pairs of the first frames; of the keypoints, those are returned that words are made of."""
    with open_source(folder) as source:
        outline, sight = Outline.of_pixels(source.width, source.height), Sight(source, "auto")
        keypoints = [find_keypoints(in_gray(image), sight.mask(image)) for _, image in source.read_many(range(frames))]
    agent = KeypointAgent(keypoints.__getitem__, outline)
    answers = (agent.answer(Pair(i, j)) for i, j in combinations(range(frames), 2))
    found = [answer.landmarks for answer in answers if answer.landmarks is not None]
    return Matches.of(found, [strongest_of_cells(of_frame, outline) for of_frame in keypoints], outline)
