"""From the loop's last state to what people get: parts, robust weights, homographies where they are better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.consensus import find_consensus
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.perspective import fit_perspective, residual_px
from smalti.adjustment.refinement import refine
from smalti.belief import Belief
from smalti.building.settings import Finish
from smalti.geometry.affine import compose, invert, square
from smalti.geometry.outline import Outline
from smalti.loop import ActiveLoop
from smalti.records import Homographies, Landmarks, Pair, Transforms

LEFT_OUT_EVERY = 5
"""One link in so many, of those that can be spared, judges whether homographies are better."""

FEWEST_LEFT_OUT = 3

LARGEST_CHANGE = 0.75
"""Of depth over half a frame, from the calmest reference: with more, a flat picture of all frames makes no sense."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedPart:
    """Frames that are connected, on a mosaic of their own."""

    frames: tuple[int, ...]
    reference: int  # one of the frames
    affine: Transforms  # (n, 2, 3), in the order of `frames`
    final: Homographies  # (n, 3, 3)
    sigma_px: NDArray[np.float64]  # (n,): of the centres relative to the reference
    perspective: bool
    left_out_px: dict[str, float]  # RMS on links left out of a trial fit, by finish; empty where none could be spared
    weights: dict[Pair, float]  # of the links
    chi2: dict[Pair, float]  # of the links, and of the held ones between its frames
    residuals_px: dict[Pair, float]  # RMS of the landmarks on the final mosaic


def finish_parts(loop: ActiveLoop, landmarks: Mapping[Pair, Landmarks], finish: Finish) -> list[FinishedPart]:
    """Return every connected part of two frames or more, finished, the largest first."""
    numbers = loop.adjustment.parts_without(loop.priors)
    members = [np.flatnonzero(numbers == part) for part in np.unique(numbers)]
    members.sort(key=lambda frames: (-len(frames), int(frames[0])))
    return [_finish(loop, frames, landmarks, finish) for frames in members if len(frames) > 1]


def _finish(
    loop: ActiveLoop, frames: NDArray[np.int64], landmarks: Mapping[Pair, Landmarks], finish: Finish
) -> FinishedPart:
    place = {int(frame): n for n, frame in enumerate(frames)}
    inside = {pair for pair in (*loop.adjustment.links, *loop.held) if pair.i in place and pair.j in place}
    renumbered = {pair: Pair(place[pair.i], place[pair.j]) for pair in inside}
    links = [
        replace(link, pair=renumbered[pair])
        for pair, link in loop.adjustment.links.items()
        if pair in inside and pair not in loop.priors
    ]
    held = {renumbered[pair]: replace(loop.held[pair], pair=renumbered[pair]) for pair in inside & loop.held.keys()}
    of_part = [landmarks[pair].of_pair(renumbered[pair]) for pair in sorted(inside) if pair not in loop.held]

    outline = loop.adjustment.outline
    adjustment = Adjustment(len(frames), outline, links, family=loop.adjustment.family, reference="auto")
    chi2 = Belief(adjustment, held).chi2()
    insisted = {renumbered[pair] for pair in inside & loop.insisted}
    # A person's word counts in full, however the others see it.
    weights = find_consensus(adjustment, {record.pair: record for record in of_part}).weights | dict.fromkeys(
        insisted, 1.0
    )
    weighted = adjustment.weighted(weights)
    affine = refine(weighted).mosaic_from_frame
    left_out_px = _judge(weighted, of_part) if finish == "auto" else {}
    perspective = finish == "homography" or (
        "homography" in left_out_px and left_out_px["homography"] < left_out_px["affine"]
    )
    final, reference = square(affine), weighted.reference
    if perspective:
        fitted = fit_perspective(affine, outline, of_part, reference).mosaic_from_frame
        reference, change = _calmest_reference(fitted, outline)
        perspective = change <= LARGEST_CHANGE or finish == "homography"
        if perspective:
            final = np.linalg.inv(fitted[reference]) @ fitted
            final /= final[:, 2:, 2:]
            affine = compose(invert(affine[reference]), affine)
        else:
            reference = weighted.reference
    original = {new: old for old, new in renumbered.items()}
    in_reference = np.column_stack([np.arange(len(frames)), np.full(len(frames), reference)])
    return FinishedPart(
        frames=tuple(int(frame) for frame in frames),
        reference=int(frames[reference]),
        affine=affine,
        final=final,
        sigma_px=np.sqrt(LocalCovariance(weighted, affine).of_pairs(in_reference).cov[:, 0, ::2].sum(axis=1)),
        perspective=perspective,
        left_out_px=left_out_px,
        weights={original[pair]: weight for pair, weight in weights.items()},
        chi2={original[pair]: value for pair, value in chi2.items()},
        residuals_px={
            pair: residual_px(final, landmarks[pair].of_pair(renumbered[pair]))
            for pair in sorted(inside)
            if pair in landmarks
        },
    )


def _calmest_reference(maps: Homographies, outline: Outline) -> tuple[int, float]:
    """Return the frame from which the others are seen with least perspective, and how much that is at worst.

    It is the change of depth over half a frame: at 1 a corner lies at infinity.
    """
    unit_from_pixels = square(outline.unit_from_pixels)
    units = unit_from_pixels @ maps @ np.linalg.inv(unit_from_pixels)
    worst = []
    for inverse in np.linalg.inv(units):
        seen = inverse @ units
        change = np.abs(seen[:, 2, :2]).sum(axis=1) / seen[:, 2, 2]
        worst.append(float(np.max(np.where(change >= 0, change, np.inf))))
    return int(np.argmin(worst)), min(worst)


def _judge(adjustment: Adjustment, landmarks: Sequence[Landmarks]) -> dict[str, float]:
    """Fit both ways without some of the links; return the RMS of either on these, px."""
    left_out: list[Pair] = []
    trial = adjustment
    spare = sorted(pair for pair in adjustment.links if pair.j - pair.i > 1)
    for pair in spare[::LEFT_OUT_EVERY]:
        if not trial.needed_of([pair]):
            trial = trial.remove(pair)
            left_out.append(pair)
    if len(left_out) < FEWEST_LEFT_OUT:
        return {}
    kept = [record for record in landmarks if record.pair in trial.links]
    judges = [record for record in landmarks if record.pair in set(left_out)]
    affine = refine(trial).mosaic_from_frame
    fitted = fit_perspective(affine, trial.outline, kept, trial.reference).mosaic_from_frame
    return {
        name: float(np.sqrt(np.mean([residual_px(maps, record) ** 2 for record in judges])))
        for name, maps in (("affine", square(affine)), ("homography", fitted))
    }
