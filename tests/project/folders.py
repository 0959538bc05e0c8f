"""Folders of small images, and projects of them, put together by hand."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.project.entries import FrameEntry, LinkState, Role
from smalti.project.facts import Binding, Noise
from smalti.project.project import Project
from tests.project.entries import link, no, outcome, shifted, yes

WIDTH, HEIGHT = 48, 36
BINDING = Binding(SourceSettings(), mask="auto", seed=0, matcher="keypoints")


def write_images(folder: Path, count: int = 4, seed: int = 0) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(seed)
    for n in range(count):
        small = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        assert cv2.imwrite(str(folder / f"{n}.png"), cv2.resize(small, (WIDTH, HEIGHT)))
    return folder


def begin(folder: Path, images: Path, binding: Binding = BINDING) -> Project:
    with open_source(images, binding.source) as source:
        return Project.begin(folder, source, str(images), binding)


def finish(project: Project) -> None:
    """Four frames, two of them on a mosaic, a third on another, the last set aside; a loop and a rejected one."""
    store = project.store
    store.keep_frames([FrameEntry(n, f"{n}.png", "too blurred" if n == 3 else "") for n in range(4)])
    entries = [yes(0, 1), no(1, 2, Role.CHAIN), yes(0, 2, Role.BRIDGE), yes(1, 3, Role.CHECK)]
    entries += [yes(0, 3, Role.LOOP), yes(2, 3, Role.LOOP)]
    for entry in entries:
        store.keep_answer(entry)
    links = [link(0, 1), link(0, 2), link(1, 3), link(0, 3), link(2, 3, LinkState.REJECTED)]
    store.keep_result(
        [shifted(0, 0), shifted(1, 20), shifted(2, 0, part=1)],
        links,
        outcome(
            finished_after=len(entries),
            references=(0, 2),
            predicted_error_px=0.5,
            chain_error_px=8.0,
            left_out_px=0.75,
            noise=Noise(chain=1.2, matcher=1.0, person=1.0),
            camera={"turn": 0.01, "tilt": None},
        ),
    )
    store.add_seconds("reading", 1.23456)
