"""Keypoints matched near the expected place: wrong acceptances, and the time compared with matching all keypoints.

    python benchmarks/near_matches.py [--sets caliterra,obriens] [--pairs 2000]

The landmarks of a set tell which pairs overlap and where (a homography of each pair's landmarks).

- *Overlap*: pairs of the table. `yes` is the share that is accepted near the expected place alone and by comparing all
  keypoints, with the median number of landmarks and the processor milliseconds a pair.
- *Apart*: pairs that the table does not list, nor pairs of their neighbours in time; each is expected where a random
  pair of the table lies. `accepted` counts those that are accepted all the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import cv2
import numpy as np

from sets import DATA, SEVEN, find_set
from smalti.agents.matcher import REACH, KeypointAgent
from smalti.frames.pixels import in_gray
from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.outline import Outline
from smalti.interchange.landmarks_csv import read_landmarks
from smalti.records import Expectation, Landmarks, Pair
from smalti.registration.keypoints import find_keypoints, match_expected
from smalti.registration.robust_fit import FitSettings, fit_matches

SIGMA_PX = 3.0
"""Of the expected places."""

MOST_TIMED = 100
"""Pairs of which all keypoints are compared too."""

NEIGHBOURS = 3
"""Frames on either side: a pair is apart if none of their pairs is in the table."""

MOST_DRAWN = 50
"""Pairs drawn for each that is wanted; in some sets nearly all frames overlap."""


def main() -> None:
    judge_sets(__doc__, judge)


def judge_sets(explanation: str | None, judge_set: Callable[[str, int], str]) -> None:
    """Print what is found of each set; pairs apart are drawn from all of them in equal numbers."""
    parser = argparse.ArgumentParser(description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SEVEN), metavar="NAME,NAME,…")
    parser.add_argument("--pairs", type=int, default=2000, metavar="N", help="pairs apart, in all sets together")
    options = parser.parse_args()
    names = options.sets.split(",")
    for name in names:
        print(judge_set(name, options.pairs // len(names)), flush=True)


def judge(name: str, wanted: int) -> str:
    frame_set = find_set(name, DATA)
    assert frame_set.landmarks is not None
    with open_source(str(frame_set.location), SourceSettings(every=frame_set.every)) as source:
        found = [find_keypoints(in_gray(image)) for _, image in source.read_many(range(len(source)))]
        outline = Outline.of_pixels(source.width, source.height)
    records = read_landmarks(frame_set.landmarks)
    agent, settings = KeypointAgent(lambda n: found[n], outline), FitSettings()
    reach = REACH * SIGMA_PX + settings.threshold_px
    rng = np.random.default_rng(0)

    def near(pair: Pair, expected: Expectation) -> Landmarks | None:
        matches = match_expected(found[pair.i], found[pair.j], expected, reach)
        return fit_matches(pair, *matches, outline, settings).landmarks

    chosen = [records[n] for n in rng.permutation(len(records))[:MOST_TIMED]]
    places = [(record.pair, expected_of(record)) for record in chosen]
    began = time.process_time()
    there = [near(pair, expected) for pair, expected in places]
    then = time.process_time()
    anywhere = [agent.answer(pair).landmarks for pair, _ in places]
    ended = time.process_time()
    listed = {record.pair for record in records}
    drawn = np.sort(rng.integers(0, len(found), (MOST_DRAWN * wanted, 2)), axis=1).tolist()
    apart = [Pair(i, j) for i, j in drawn if i < j and not is_listed(i, j, listed)][:wanted]
    accepted = sum(near(pair, places[int(rng.integers(len(places)))][1]) is not None for pair in apart)
    told = [say("near", there, then - began), say("all", anywhere, ended - then)]
    return f"{name:<20} {'; '.join(told)}; apart: {accepted} of {len(apart)} accepted"


def say(kind: str, found: list[Landmarks | None], seconds: float) -> str:
    counts = [len(landmarks) for landmarks in found if landmarks is not None]
    share, milliseconds = len(counts) / len(found), 1000 * seconds / len(found)
    return f"{kind} {share:.1%} yes, {np.median(counts):.0f} landmarks, {milliseconds:.1f} ms"


def expected_of(record: Landmarks) -> Expectation:
    """Return the place of a pair, moved by a random error of `SIGMA_PX`."""
    i_from_j, _ = cv2.findHomography(record.points_j, record.points_i, cv2.LMEDS)
    rng = np.random.default_rng([record.pair.i, record.pair.j])
    moved = np.eye(3)
    moved[:2, 2] = rng.normal(0.0, SIGMA_PX, 2)
    return Expectation(moved @ i_from_j, SIGMA_PX)


def is_listed(i: int, j: int, listed: set[Pair]) -> bool:
    """Tell whether two frames, or neighbours of them in time, are known to overlap, or are neighbours themselves."""
    reach = range(-NEIGHBOURS, NEIGHBOURS + 1)
    return any(i + a >= j + b or (i + a >= 0 and Pair(i + a, j + b) in listed) for a in reach for b in reach)


if __name__ == "__main__":
    main()
