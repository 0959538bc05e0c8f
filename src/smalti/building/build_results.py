"""What a build has found, in the numbers of the source, to be kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.active_loop import ActiveLoop
from smalti.building.source_questions import Questions
from smalti.engine.camera_priors import KINDS
from smalti.engine.estimate import Estimate
from smalti.engine.links import map_in_pixels
from smalti.engine.robust_estimate import final_estimate
from smalti.frame_numbers import FrameNumbers
from smalti.frames.quality import BLANK
from smalti.geometry.homographies import apply_map, normalise, project_points
from smalti.geometry.lens import Lens
from smalti.paper.paper_loop import PaperLoop
from smalti.project.entries import FrameEntry, LinkEntry, LinkState, Placement, Role
from smalti.project.facts import Noise, Outcome
from smalti.project.project import Project
from smalti.records import Expectation, Homographies, Landmarks, Pair
from smalti.registration.feature_pyramid import tangent_at

LEFT_OUT_EVERY, FEWEST_LEFT_OUT = 5, 3
"""One loop in so many is left out of a trial, to measure the mosaic by it; with fewer than so many, none."""


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """The mosaics that people get, whatever method made them; frames are counted as the engine does."""

    maps: Homographies  # (N, 3, 3), px of each part's reference frame
    part: NDArray[np.int64]  # (N,), the largest first
    references: Sequence[int]  # of every part
    sigma_px: NDArray[np.float64]  # (N,)
    weights: Mapping[Pair, float]  # of the accepted links
    rejected: Collection[Pair]
    chi2: Mapping[Pair, float]
    lens: Lens
    final: Estimate | None  # the paper's method makes none

    @classmethod
    def of(cls, loop: ActiveLoop | PaperLoop) -> Delivered:
        """Look at the landmarks once more, and take the mosaic that they make."""
        if isinstance(loop, PaperLoop):
            pairs = [*loop.chain, *loop.links]
            spread = loop.view.centres.spread_squared[:, loop.reference]
            one, nothing = dict.fromkeys(pairs, 1.0), dict.fromkeys(pairs, 0.0)
            maps, reference = loop.mosaic_from_frame, loop.reference
            return cls(maps, loop.part, [reference], np.sqrt(spread), one, (), nothing, loop.lens, None)
        final = final_estimate(loop.estimate)
        references = final.system.references[final.part]
        seen = final.conservative_covariance.of_pairs(np.column_stack([np.arange(final.frames), references]))
        spread = np.where(np.arange(final.frames) == references, 0.0, seen.cov[:, 0, ::2].sum(axis=1))
        return cls(
            final.mosaic_from_frame,
            final.part,
            final.system.references.tolist(),
            np.sqrt(spread),
            dict(zip(final.system.place_of, final.noise_model.robust_weights.tolist(), strict=True)),
            final.rejected.keys(),
            loop.estimate.chi2(),
            final.lens or loop.lens,
            final,
        )


def place_frames(by_chain: Homographies, delivered: Delivered, numbers: FrameNumbers) -> list[Placement]:
    """Return where the usable frames lie, by the chain alone and at last; frames that nothing joins lie nowhere."""
    seen = by_chain.copy()
    for part, reference in enumerate(delivered.references):
        own = delivered.part == part
        seen[own] = delivered.maps[reference] @ np.linalg.inv(by_chain[reference]) @ by_chain[own]
    seen, sizes = normalise(seen), np.bincount(delivered.part)
    return [
        Placement(numbers.in_source(n), int(part), seen[n], delivered.maps[n], float(delivered.sigma_px[n]))
        for n, part in enumerate(delivered.part)
        if sizes[part] > 1
    ]


ASIDE_SHARE, ASIDE_PX = 0.25, 0.05
"""How far a frame that was set aside may lie from where the frames around it suggest: share of the distance between
these, and of a frame's diagonal; standard deviation."""

AROUND = 3
"""Frames with which each is compared: the one before, the one after, and the nearest others on the mosaic."""


def place_asides(
    frames: Sequence[FrameEntry], placements: Sequence[Placement], questions: Questions, lens: Lens
) -> list[Placement]:
    """Return where frames lie that were set aside: beside one of the frames around them that they match.

    Where these are on one mosaic, they tell about where the frame is, and it is looked for there first. Frames in which
    nothing stands out from the noise match nothing.
    """
    placed = {placement.number: placement for placement in placements}
    numbers = np.array(sorted(placed))
    centres = project_points(
        np.array([placed[n].final for n in numbers.tolist()]).reshape(-1, 3, 3), lens.outline.centre[None]
    )[:, 0]
    found = []
    for frame in frames:
        if not frame.reason or frame.reason in BLANK or frame.number in placed or not len(numbers):
            continue
        after = int(np.searchsorted(numbers, frame.number))
        around = list(range(max(0, after - 1), min(after + 1, len(numbers))))
        predicted = _predict(frame.number, [placed[int(numbers[n])] for n in around], lens)
        if predicted is not None:
            at = apply_map(predicted.i_from_j, lens.outline.centre[None])[0]
            same = np.array([placed[n].part == placed[int(numbers[around[0]])].part for n in numbers.tolist()])
            away = np.where(same, np.linalg.norm(centres - at, axis=1), np.inf)
            away[around] = np.inf
            near = np.argsort(away, kind="stable")[: AROUND - len(around)]
            around += [int(n) for n in near if np.isfinite(away[n])]
        for neighbour in numbers[around].tolist():
            beside = placed[neighbour]
            answer = questions.ask_of_source(
                Pair(*sorted((frame.number, neighbour))), Role.ASIDE, _expect(frame.number, beside, predicted, lens)
            )
            if answer.landmarks is not None:
                i_from_j = map_in_pixels(answer.landmarks, lens.outline, lens)
                neighbour_from_frame = i_from_j if neighbour < frame.number else np.linalg.inv(i_from_j)
                chain, final = (normalise(known @ neighbour_from_frame) for known in (beside.chain, beside.final))
                found.append(Placement(frame.number, beside.part, chain, final, beside.sigma_px))
                break
    return found


def _predict(number: int, around: Sequence[Placement], lens: Lens) -> Expectation | None:
    """Return about where a frame lies, by the placed frames before and after it; None unless both are on one mosaic."""
    if len(around) < 2 or around[0].part != around[1].part:
        return None
    centre = lens.outline.centre
    before, after = (project_points(one.final, centre[None])[0] for one in around)
    share = (number - around[0].number) / (around[1].number - around[0].number)
    nearer = around[0] if share <= 0.5 else around[1]
    final = tangent_at(nearer.final, centre)
    final[:2, 2] += (1.0 - share) * before + share * after - apply_map(final, centre[None])[0]
    sigma_px = ASIDE_SHARE * float(np.linalg.norm(after - before)) + ASIDE_PX * 2.0 * lens.outline.outer_half_side
    return Expectation(final, sigma_px)


def _expect(number: int, beside: Placement, predicted: Expectation | None, lens: Lens) -> Expectation | None:
    """Return where a frame lies in one beside it, or the other way round, by where it lies on the mosaic."""
    if predicted is None:
        return None
    first, second = (beside.final, predicted.i_from_j) if beside.number < number else (predicted.i_from_j, beside.final)
    undistort = None if lens.is_undistorted else lens.undistort
    return Expectation(normalise(np.linalg.inv(first) @ second), predicted.sigma_px, undistort=undistort)


def judge_links(delivered: Delivered, landmarks: Mapping[Pair, Landmarks], numbers: FrameNumbers) -> list[LinkEntry]:
    """Return what the mosaics say of every yes between their frames."""
    entries = []
    for pair in sorted({*delivered.weights, *delivered.rejected}):
        rejected = pair in delivered.rejected
        joined = delivered.part[pair.i] == delivered.part[pair.j]
        entries.append(
            LinkEntry(
                numbers.pair_in_source(pair),
                LinkState.REJECTED if rejected else LinkState.ACCEPTED,
                float(delivered.chi2[pair]) if joined else np.inf,
                0.0 if rejected else delivered.weights[pair],
                residual_px(delivered.maps, landmarks[pair], delivered.lens) if joined else np.inf,
            )
        )
    return entries


def residual_px(mosaic_from_frame: Homographies, landmarks: Landmarks, lens: Lens) -> float:
    """Return the RMS distance, in frame i as it is seen, between landmarks and where the mosaic (N, 3, 3) has them.

    Of landmarks on curves it is the distance across them.
    """
    i_from_j = np.linalg.inv(mosaic_from_frame[landmarks.pair.i]) @ mosaic_from_frame[landmarks.pair.j]
    with np.errstate(divide="ignore", invalid="ignore"):
        mapped = np.nan_to_num(apply_map(i_from_j, lens.undistort(landmarks.points_j)), posinf=1e6, neginf=-1e6)
    off = landmarks.without_along(lens.distort(mapped) - landmarks.points_i)
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


def chain_error_px(start: ActiveLoop | PaperLoop, loop: ActiveLoop | PaperLoop, delivered: Delivered) -> float | None:
    """Return the RMS by which the chain alone misses the landmarks of the accepted loops, None where there are none."""
    loops = [pair for pair in loop.links if pair in delivered.weights and start.part[pair.i] == start.part[pair.j]]
    landmarks = loop.landmarks
    return _rms(start.mosaic_from_frame, [landmarks[pair] for pair in loops], start.lens)


def left_out_px(loop: ActiveLoop | PaperLoop) -> float | None:
    """Return the RMS error on loops that were left out of a trial, None where too few can be spared."""
    landmarks = loop.landmarks
    chosen = sorted(pair for pair in loop.links if pair not in loop.rejected)[::LEFT_OUT_EVERY]
    if len(chosen) < FEWEST_LEFT_OUT:
        return None
    trial = loop
    for pair in chosen:
        trial = trial.forget(pair)
    tried = Delivered.of(trial)
    kept = [landmarks[pair] for pair in chosen if tried.part[pair.i] == tried.part[pair.j]]
    return _rms(tried.maps, kept, tried.lens)


def summarise(
    start: ActiveLoop | PaperLoop,
    loop: ActiveLoop | PaperLoop,
    delivered: Delivered,
    numbers: FrameNumbers,
    revision: int,
) -> Outcome:
    """Return the numbers that `info` and the report tell; `revision` is that of the log in the loop's last state."""
    sizes = np.bincount(delivered.part)
    outcome = Outcome(
        finished_after=revision,
        method="paper" if isinstance(loop, PaperLoop) else "smalti",
        family=family_of(loop),
        references=tuple(
            numbers.in_source(frame) for part, frame in enumerate(delivered.references) if sizes[part] > 1
        ),
        breaks=_breaks(start.part, numbers),
        unjoined=_breaks(delivered.part, numbers),
        lens=None if delivered.lens.is_undistorted else (delivered.lens.k1, delivered.lens.k2),
        # A matcher is asked until there is a reason to stop, a person until it is enough.
        stopped=str(loop.stop_reason() or "person"),
        noise=Noise(1.0, 1.0, 1.0),
        camera=None,
        chain_error_px=chain_error_px(start, loop, delivered),
        left_out_px=left_out_px(loop),
        chain_predicted_px=start.predicted_error_px,
        predicted_error_px=loop.predicted_error_px,
        error_bound_px=None,
        ahead_px=None,
        worth_going_on=None,
    )
    if isinstance(loop, PaperLoop):
        return outcome
    noise_model = loop.estimate.noise_model
    return replace(
        outcome,
        noise=Noise(*noise_model.noise),
        camera={
            kind: None if not np.isfinite(value) else value
            for kind, value in zip(KINDS, noise_model.camera.deviations, strict=True)
        },
        error_bound_px=loop.error_bound_px,
        ahead_px={str(answers): px for answers, px in loop.prediction.ahead_px.items()},
        worth_going_on=loop.prediction.worth_going_on,
    )


def family_of(loop: ActiveLoop | PaperLoop) -> str:
    """Return the name of the family of the maps."""
    return (loop.adjustment if isinstance(loop, PaperLoop) else loop.estimate).family.name


def keep_result(
    project: Project, placements: Sequence[Placement], links: Sequence[LinkEntry], outcome: Outcome
) -> None:
    """Keep the result as one; it is that of the log at a revision, and of the frames asked about aside since then."""
    store = project.store
    since = [entry for entry in store.log() if entry.place > outcome.finished_after]
    if all(entry.answer is not None and entry.answer.role in (Role.ASIDE, Role.CONTROL) for entry in since):
        outcome = replace(outcome, finished_after=store.revision)
    store.keep_result(placements, links, outcome)


def _breaks(part: NDArray[np.int64], numbers: FrameNumbers) -> tuple[Pair, ...]:
    """Return the consecutive frames that lie on different mosaics."""
    return tuple(numbers.pair_in_source(Pair(n, n + 1)) for n in np.flatnonzero(np.diff(part)).tolist())


def _rms(maps: Homographies, records: Sequence[Landmarks], lens: Lens) -> float | None:
    if not records:
        return None
    return float(np.sqrt(np.mean([residual_px(maps, record, lens) ** 2 for record in records])))
