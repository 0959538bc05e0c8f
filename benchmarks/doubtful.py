"""How many questions a person gets in the queue of doubtful pairs, and how exact the mosaic becomes.

    python benchmarks/doubtful.py --folder studies/doubtful [--seeds 1,2,3] [--frames 160] [--questions 15]

Synthetic endoscopes of low contrast over tissue. A simulated person answers what the matcher cannot. One row an answer
of the person: the true and the predicted error, px. `wrong_no` are overlapping pairs that the matcher alone answered
no, and `sure` those of them with a posterior above 0.5 before.
"""

from __future__ import annotations

import argparse
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np

from smalti.annotation.session import Session
from smalti.records import Author, Pair, Verdict
from smalti_lab.endoscopy.endoscope_sequence import EndoscopeSequence
from smalti_lab.endoscopy.endoscope_settings import Camera, EndoscopeSettings, Hand, Tissue
from smalti_lab.simulated_agents import SimulatedPerson
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_files import write_frames

SCENE, SIDE = 2400, 240


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="for frames and projects, made anew")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--frames", type=int, default=160)
    parser.add_argument("--questions", type=int, default=15)
    parser.add_argument("--contrast", type=float, default=5.5, help="of the tissue, grey levels (5.5)")
    options = parser.parse_args()
    for seed in options.seeds:
        sequence = endoscope(seed, options.frames, options.contrast)
        folder = options.folder / f"{seed}-{options.frames}-{options.contrast:g}"
        shutil.rmtree(folder, ignore_errors=True)
        write_frames(sequence, folder / "frames", ".png")
        with Session.open(folder / "frames", folder / "project", queue="doubtful") as session:
            play(session, sequence, seed, options.questions)


def endoscope(seed: int, frames: int, contrast: float) -> EndoscopeSequence:
    """Return a scope that moves fast over tissue of low contrast, so that the matcher fails often."""
    settings = EndoscopeSettings(
        frames=frames,
        width=SIDE,
        height=SIDE,
        tissue=Tissue(contrast=contrast),
        camera=Camera(noise=4.0),
        hand=Hand(slowest_px=6.0, fastest_px=18.0, visits=1.0),
    )
    return EndoscopeSequence(procedural_scene(SCENE, SCENE, seed=seed + 1), settings, seed=seed)


def play(session: Session, sequence: EndoscopeSequence, seed: int, questions: int) -> None:
    """Answer as a person, and print how the error falls."""
    person = SimulatedPerson(sequence.points_in, sequence.field, seed=seed)
    history = session._answer_history
    for count in range(questions + 1):
        session._auto_answerer.wait()
        loop, counts = history.loop, session.state().counts
        largest = loop.part == 0
        error_px = sequence.truth_error(loop.mosaic_from_frame[largest], np.array(history.numbers.used)[largest]).rms
        by_matcher = counts.yes + counts.no + counts.unsure - counts.by_person
        errors = f"error {error_px:.2f} px, predicted {loop.predicted_error_px:.2f} px"
        placed = f"{int(largest.sum())} of {len(largest)} frames"
        print(
            f"seed {seed}, {count:2} answers of the person, {by_matcher} of the matcher: {errors}, {placed}, "
            f"{session.state().stopped or 'going on'}",
            flush=True,
        )
        question = session.question()
        if question is None:
            break
        if count < questions:
            session.record(person.answer(Pair(question.i, question.j)))
    wrong, sure, failed = judge_noes(session, sequence)
    print(f"seed {seed}: {failed} failures of the matcher; wrong_no {wrong}, sure {sure}")


def judge_noes(session: Session, sequence: EndoscopeSequence) -> tuple[int, int, int]:
    """Return how many overlapping pairs the matcher answered no, how many were likely, and how often it failed."""
    history = session._answer_history
    overlapping = {(int(i), int(j)) for i, j in sequence.overlapping_pairs()}
    states, wrong, sure = history.state_history.states, 0, 0
    for before, after in pairwise(states):
        answer = None if after.entry is None else after.entry.answer
        if answer is None or answer.author is not Author.MATCHER or answer.verdict is not Verdict.NO:
            continue
        pair = history.outer(answer.pair)
        if (pair.i, pair.j) in overlapping:
            wrong += 1
            sure += before.loop.likely(answer.pair).reasons["overlap"] > 0.5
    return wrong, int(sure), len(history.loop.failed_pairs)


if __name__ == "__main__":
    main()
