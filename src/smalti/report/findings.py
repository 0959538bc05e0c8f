"""Everything that the page tells of a project, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.project.entries import AnswerEntry, FrameEntry, History, LinkEntry, LinkState, Placement, Role
from smalti.project.facts import Keyframes, LeftOutPlaces, Outcome, SourceFacts
from smalti.project.people import LeftOutErrors, PersonMeasure, errors_of_all
from smalti.project.project import Project
from smalti.project.unplaced_frames import UnplacedFrame
from smalti.records import Homographies, Pair, Points


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One mosaic."""

    number: int  # from 0, the largest first
    frames: tuple[int, ...]  # ascending, without those between keyframes
    reference: int  # one of the frames
    final: Homographies  # (n, 3, 3)
    by_chain: Points  # (n, 2): the centres of the frames by the chain alone
    centres: Points  # (n, 2): at last

    @property
    def name(self) -> str:
        """What people call it."""
        return f"mosaic {self.number + 1}"

    @property
    def moves_px(self) -> np.ndarray:
        """(n,): by how much the answers moved the frames from where the chain had them."""
        return np.asarray(np.linalg.norm(self.centres - self.by_chain, axis=1))

    def segments(self, pairs: Sequence[Pair], centres: Points) -> np.ndarray:
        """Return (m, 2, 2): the lines between the centres of those pairs that lie on this mosaic."""
        place = {frame: n for n, frame in enumerate(self.frames)}
        ends = [(place[pair.i], place[pair.j]) for pair in pairs if pair.i in place and pair.j in place]
        return centres[np.array(ends, dtype=np.int64).reshape(-1, 2)]


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """A finished project. Frames have their numbers in the source everywhere."""

    source: str
    outline: Outline
    lens: Lens
    frames: tuple[FrameEntry, ...]
    placements: Mapping[int, Placement]  # in the order of the frames
    not_placed: Mapping[int, str]
    unplaced: tuple[UnplacedFrame, ...]  # the same without those between keyframes, with what to try
    unconfirmed: frozenset[int]  # frames that a single match joins to most of their mosaic
    keyframes: Keyframes | None  # None if all frames are used
    tracks_px: tuple[float, ...]  # the uncertainty of every track
    answers: tuple[AnswerEntry, ...]
    history: History  # the log up to the mosaic
    people: tuple[PersonMeasure, ...]  # what was measured of each
    left_out: LeftOutErrors | None  # at the landmarks that all people left out
    links: Mapping[Pair, LinkEntry]
    roles: Mapping[Pair, Role]
    parts: tuple[Part, ...]
    source_facts: SourceFacts
    outcome: Outcome
    seconds: Mapping[str, float]

    @classmethod
    def of(cls, project: Project) -> Findings:
        """Read a project, which must have a mosaic; what was answered since then is not part of it."""
        answers = tuple(project.placed_by)
        source, outcome = project.source_facts, project.outcome
        placements, frames = project.placements, tuple(project.frames)
        history = History.of(entry for entry in project.store.log() if entry.place <= outcome.finished_after)
        drawn = [placement for placement in placements if not frames[placement.number].is_between]
        return cls(
            source=name_source(source.location),
            outline=project.outline,
            lens=project.lens,
            frames=frames,
            placements={placement.number: placement for placement in placements},
            not_placed=project.not_placed,
            unplaced=project.unplaced,
            unconfirmed=frozenset(project.unconfirmed),
            keyframes=project.store.fact(Keyframes) if any(frame.is_between for frame in frames) else None,
            tracks_px=tuple(track.sigma_px for _, track in project.tracks.values()),
            answers=answers,
            history=history,
            people=tuple(project.measured_people(history)),
            left_out=errors_of_all(history, project.store.fact(LeftOutPlaces)),
            links={link.pair: link for link in project.links},
            roles={entry.answer.pair: entry.role for entry in answers},
            parts=tuple(_part(n, drawn, project.outline, outcome.references[n]) for n in range(project.parts)),
            source_facts=source,
            outcome=outcome,
            seconds=project.store.stages(),
        )

    def pairs(self, state: LinkState, *roles: Role) -> list[Pair]:
        """Return the links in a state, of these roles or of all."""
        return [
            pair
            for pair, link in self.links.items()
            if link.state is state and (not roles or self.roles[pair] in roles)
        ]

    @property
    def trajectory(self) -> list[Pair]:
        """Frames that follow each other. Where those between lie on another mosaic, no line leads over them."""
        drawn = (number for number in self.placements if not self.frames[number].is_between)
        return [Pair(one, following) for one, following in pairwise(drawn)]

    def label(self, frame: int) -> str:
        """Return a frame's number with its label."""
        label = self.frames[frame].label
        if label.startswith(f"frame {frame} "):  # of a video
            return label.removeprefix("frame ")
        return f"{frame} ({label})" if label and label != str(frame) else str(frame)


def name_source(location: str | list[str]) -> str:
    """Return what to call a source: the name of a file or folder, a pattern, or how many images there are."""
    if isinstance(location, list):
        return f"{len(location)} images" if len(location) > 1 else name_source(location[0])
    return location if "*" in location else Path(location).name or location


def _part(number: int, placements: Sequence[Placement], outline: Outline, reference: int) -> Part:
    own = [placement for placement in placements if placement.part == number]
    final = np.array([placement.final for placement in own])
    centre = outline.centre[None]
    return Part(
        number=number,
        frames=tuple(placement.number for placement in own),
        reference=reference,
        final=final,
        by_chain=project_points(np.array([placement.chain for placement in own]), centre)[:, 0],
        centres=project_points(final, centre)[:, 0],
    )
