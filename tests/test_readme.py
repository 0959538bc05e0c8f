"""The README's code does what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import smalti
from smalti import ActiveLoop, Outline, Pair, Project, Session, Suggestion
from smalti.registration.keypoints import find_keypoints, match_keypoints
from smalti_lab import OracleAgent, SimulatedPerson
from smalti_lab.experiments.worlds import CONTROL_POINTS
from smalti_lab.synthetic.camera_path import wander
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_video
from smalti_lab.synthetic.synthetic_sequence import SyntheticSequence

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def code_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def small_world():
    """Return an agent over 40 frames of 640 × 480 that go out and come back beside their way, and signatures."""
    n = np.arange(40)
    x = np.where(n < 20, n, 39 - n) * 160.0
    maps = np.tile(np.eye(2, 3), (40, 1, 1))
    maps[:, 0, 2], maps[:, 1, 2] = x, np.where(n < 20, 0.0, 120.0)
    agent = OracleAgent(maps, Outline.of_pixels(640, 480), CONTROL_POINTS * [6.0, 4.5], sigma=0.5, seed=1)
    looks = np.exp(-((x[:, None] - np.linspace(0, 3200, 60)) ** 2) / 2e4)
    return agent, looks / np.linalg.norm(looks, axis=1, keepdims=True)


def test_the_first_example_runs_and_reaches_its_target(capsys):
    agent, signatures = small_world()
    chain = [agent.answer(Pair(n, n + 1)).landmarks for n in range(39)]
    names = {"matches": [(c.points_i, c.points_j) for c in chain], "signatures": signatures, "ask": agent.answer}
    exec(code_blocks()[1], names)
    assert names["loop"].predicted_error_px <= 2
    assert names["mosaic_from_frame"].shape == (40, 3, 3)
    assert "px" in capsys.readouterr().out


def test_the_own_strategy_of_the_example_ranks_by_distance_in_time():
    agent, _ = small_world()
    names = {"np": np, "Suggestion": Suggestion, "Pair": Pair}
    exec(code_blocks()[2].split("loop =")[0], names)
    chain = [agent.answer(Pair(n, n + 1)).landmarks for n in range(39)]
    loop = ActiveLoop.start(40, agent.outline, chain, strategy=names["Farthest"]())
    assert loop.suggest(2)[0].pair == Pair(0, 39)
    assert [s.pair.j - s.pair.i for s in loop.suggest(3)] == [39, 38, 38]


def test_the_build_example_makes_a_mosaic(tmp_path, monkeypatch):
    path = wander((500, 400), 14, (200, 150), seed=2)
    sequence = SyntheticSequence(procedural_scene(500, 400, 2), path)
    monkeypatch.chdir(tmp_path)
    write_video(sequence, Path("flight.mp4"))

    def find_matches(image_i, image_j):
        gray = (image.mean(axis=2).round().astype(np.uint8) for image in (image_i, image_j))
        return match_keypoints(*map(find_keypoints, gray))

    names = {"find_matches": find_matches}
    exec(code_blocks()[0], names)
    names["project"].close()
    assert Path("flight.tif").stat().st_size > 10_000
    assert Path("flight.smalti/report.html").exists()


def test_the_annotation_example_keeps_the_answer_of_an_agent(tmp_path, monkeypatch):
    sequence = SyntheticSequence(procedural_scene(500, 400, 2), wander((500, 400), 14, (200, 150), seed=2))
    monkeypatch.chdir(tmp_path)
    write_video(sequence, Path("flight.mp4"))

    def annotate(source, *, target_px):
        # As if a person had opened the page and ended it at once.
        Session.open(source, "flight.smalti", target_px=target_px).close()
        return Project.open("flight.smalti")

    monkeypatch.setattr(smalti, "annotate", annotate, raising=False)
    person = SimulatedPerson(sequence.points_in, sequence.field, unsure=0.0)
    names = {"smalti": smalti, "Pair": Pair, "agent": person}
    exec(code_blocks()[3], names)
    names["project"].close()
    with Project.open("flight.smalti") as project:
        assert project.answers[-1].answer.author == "person"
