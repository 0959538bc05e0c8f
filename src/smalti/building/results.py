"""What a build has found, in the numbers of the source, to be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from smalti.adjustment.link import fit_link
from smalti.adjustment.perspective import residual_px
from smalti.building.chain import Chain
from smalti.building.finish import FinishedPart
from smalti.building.questions import Questions
from smalti.geometry.affine import compose, invert, square
from smalti.loop import ActiveLoop
from smalti.project.entries import FrameEntry, LinkEntry, LinkState, Placement, Role
from smalti.project.project import Project
from smalti.records import Landmarks, Pair


def place_parts(parts: Sequence[FinishedPart], start: ActiveLoop, used: Sequence[int]) -> list[Placement]:
    """Return where the usable frames lie, by the chain alone and at last."""
    by_chain = start.refined.mosaic_from_frame
    placements = []
    for number, part in enumerate(parts):
        reference_from_mosaic = invert(by_chain[part.reference])
        for n, frame in enumerate(part.frames):
            chain = compose(reference_from_mosaic, by_chain[frame])
            placements.append(
                Placement(used[frame], number, chain, part.affine[n], part.final[n], float(part.sigma_px[n]))
            )
    return placements


def place_asides(
    frames: Sequence[FrameEntry], placements: Sequence[Placement], questions: Questions
) -> list[Placement]:
    """Return where frames that were set aside lie: beside the nearest frame of either side that they match."""
    placed = {placement.number: placement for placement in placements}
    numbers = np.array(sorted(placed))
    found = []
    for frame in frames:
        if not frame.reason or not len(numbers):
            continue
        after = int(np.searchsorted(numbers, frame.number))
        for neighbour in numbers[max(0, after - 1) : after + 1]:
            pair = Pair(*sorted((frame.number, int(neighbour))))
            answer = questions.ask_of_source(pair, Role.ASIDE)
            if answer.landmarks is not None:
                i_from_j = fit_link(answer.landmarks).i_from_j
                neighbour_from_frame = i_from_j if neighbour < frame.number else invert(i_from_j)
                at = placed[int(neighbour)]
                found.append(
                    Placement(
                        frame.number,
                        at.part,
                        compose(at.chain, neighbour_from_frame),
                        compose(at.affine, neighbour_from_frame),
                        at.final @ square(neighbour_from_frame),
                        at.sigma_px,
                    )
                )
                break
    return found


def judge_links(loop: ActiveLoop, parts: Sequence[FinishedPart], used: Sequence[int]) -> list[LinkEntry]:
    """Return what the finished mosaics say of every yes between their frames; a held one between two is held."""
    entries = []
    for pair in sorted({*loop.adjustment.links, *loop.held} - loop.priors):
        state = LinkState.HELD if pair in loop.held else LinkState.BELIEVED
        part = next((part for part in parts if pair in part.chi2), None)
        chi2 = np.inf if part is None else part.chi2[pair]
        residual = np.inf if part is None else part.residuals_px[pair]
        weight = 0.0 if part is None or pair in loop.held else part.weights[pair]
        entries.append(LinkEntry(Pair(used[pair.i], used[pair.j]), state, float(chi2), weight, float(residual)))
    return entries


def chain_error_px(
    start: ActiveLoop, loop: ActiveLoop, landmarks: Mapping[Pair, Landmarks], finish: Sequence[FinishedPart]
) -> float | None:
    """Return the RMS by which the chain alone misses the landmarks of the believed loops, None where there are none."""
    by_chain = square(start.refined.mosaic_from_frame)
    part_of = {frame: number for number, part in enumerate(finish) for frame in part.frames}
    loops = [
        landmarks[pair]
        for pair in loop.adjustment.links
        if pair not in start.chain and pair in landmarks and part_of.get(pair.i) == part_of.get(pair.j)
    ]
    if not loops:
        return None
    return float(np.sqrt(np.mean([residual_px(by_chain, record) ** 2 for record in loops])))


def summarise(
    chain: Chain, start: ActiveLoop, loop: ActiveLoop, parts: Sequence[FinishedPart], used: Sequence[int]
) -> dict[str, object]:
    """Return the facts of a build that `info` and the report tell."""
    return {
        "noise": chain.noise,
        "noise_factors": list(loop.factors),
        "turn": loop.turn,
        "chain_predicted_px": start.predicted_error_px,
        "predicted_error_px": loop.predicted_error_px,
        "error_bound_px": loop.error_bound_px,
        "ahead_px": {str(answers): px for answers, px in loop.outlook.ahead_px.items()},
        "worth_going_on": loop.outlook.worth_going_on,
        # A matcher is asked until there is a reason to stop, a person until it is enough.
        "stopped": str(loop.stop_reason() or "person"),
        "finish": ["homography" if part.perspective else "affine" for part in parts],
        "left_out_px": [part.left_out_px for part in parts],
        "references": [used[part.reference] for part in parts],
        "guesses": [[used[pair.i], used[pair.j]] for pair in sorted(start.priors)],
        "unjoined": [[used[pair.i], used[pair.j]] for pair in sorted(loop.priors)],
    }


def keep_result(
    project: Project, placements: Sequence[Placement], links: Sequence[LinkEntry], revision: int, **facts: object
) -> None:
    """Keep the result as one; it is that of the log at a revision, and of the frames asked about aside since then."""
    store = project.store
    since = [entry for entry in store.log() if entry.place > revision]
    if all(entry.answer is not None and entry.answer.role is Role.ASIDE for entry in since):
        revision = store.revision
    store.keep_result(placements, links, finished_after=revision, **facts)
