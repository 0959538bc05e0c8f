"""Guided registration: pairs whose place is known to a few pixels; wrong acceptances by each method and by all.

    python benchmarks/guided.py [--sets caliterra,obriens] [--pairs 2000]

The landmarks of a set tell which pairs overlap and where (a homography of each pair's landmarks).

- *Overlap*: pairs of the table. The share that each method registers near the expected place, with the median number of
  landmarks and the processor milliseconds a pair.
- *Apart*: pairs that the table does not list, nor pairs of their neighbours in time; each is expected where a random
  pair of the table lies. `accepted` counts what each method and all in turn accept all the same; `chance` is the share
  of candidates within reach that match.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import cv2
import numpy as np

from near_matches import MOST_DRAWN, NEIGHBOURS, SIGMA_PX, judge_sets
from sets import DATA, find_set
from smalti.agents.agent import ExpectingAgent
from smalti.agents.guided import NARROW_STRIP, REACH, THRESHOLD_PX, GuidedKeypointAgent, count_candidates
from smalti.agents.matcher import DenseAgent
from smalti.agents.registration_methods import KEYPOINTS, PIXELS
from smalti.building.frame_views import FrameViews
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.outline import Outline
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.records import Expectation, Pair
from smalti.registration.keypoints import Keypoints, find_keypoints, match_expected

MOST_TIMED = 60
"""Overlapping pairs that are tried."""


def main() -> None:
    judge_sets(__doc__, judge)


def judge(name: str, wanted: int) -> str:
    frame_set = find_set(name, DATA)
    assert frame_set.landmarks is not None
    rng = np.random.default_rng(1)
    known = {record.pair: record for record in read_landmarks(frame_set.landmarks) if len(record) >= 8}
    listed = {record.pair for record in read_landmarks(frame_set.landmarks)}
    with open_source(str(frame_set.location), SourceSettings(every=frame_set.every)) as source:
        views, outline = FrameViews(source, "auto"), Outline.of_pixels(source.width, source.height)
        found: dict[int, Keypoints] = {}

        def keypoints_of(n: int) -> Keypoints:
            if n not in found:
                found[n] = find_keypoints(*views.read_gray(n))
            return found[n]

        guided = GuidedKeypointAgent(keypoints_of, views.read_gray, outline)
        agents: dict[str, ExpectingAgent] = {KEYPOINTS: guided, PIXELS: DenseAgent(views.prepared, NARROW_STRIP)}
        pairs = list(known)
        places = {}
        for pair in pairs:
            i_from_j, _ = cv2.findHomography(known[pair].points_j, known[pair].points_i, 0)
            if i_from_j is not None:
                places[pair] = Expectation(np.asarray(i_from_j, dtype=np.float64), SIGMA_PX)
        said = [name]
        chosen = [list(places)[n] for n in rng.permutation(len(places))[:MOST_TIMED]]
        for method, agent in agents.items():
            began = time.process_time()
            answers = [agent.answer_expecting(pair, places[pair]) for pair in chosen]
            spent = 1e3 * (time.process_time() - began) / max(len(chosen), 1)
            counts = [len(answer.landmarks) for answer in answers if answer.landmarks is not None]
            said.append(
                f"{method}: yes {len(counts)} of {len(chosen)}, "
                f"{np.median(counts) if counts else 0:.0f} landmarks, {spent:.0f} ms"
            )
        accepted, apart, candidates, matched = Counter[str](), 0, 0, 0
        for _ in range(MOST_DRAWN * wanted):
            if apart == wanted:
                break
            i, j = sorted(int(n) for n in rng.choice(len(source), 2, replace=False))
            near = range(-NEIGHBOURS, NEIGHBOURS + 1)
            others = {(i + a, j + b) for a in near for b in near}
            if any(0 <= a < b and Pair(a, b) in listed for a, b in others) or j - i <= 2 * NEIGHBOURS:
                continue
            apart += 1
            pair, expected = Pair(i, j), places[list(places)[int(rng.integers(len(places)))]]
            reach = REACH * SIGMA_PX + THRESHOLD_PX
            candidates += count_candidates(keypoints_of(i), keypoints_of(j), expected, reach)
            matched += len(match_expected(keypoints_of(i), keypoints_of(j), expected, reach)[0])
            verdicts = {
                method: agent.answer_expecting(pair, replace(expected)).landmarks is not None
                for method, agent in agents.items()
            }
            accepted.update(method for method, yes in verdicts.items() if yes)
            accepted["in turn"] += any(verdicts.values())
        chance = matched / max(candidates, 1)
        said.append(f"apart {apart}: accepted {dict(accepted)}, chance {chance:.1e}")
    return "; ".join(said)


if __name__ == "__main__":
    main()
