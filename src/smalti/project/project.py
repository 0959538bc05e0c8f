"""A project: the folder of a build, to look at and to go on with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.engine.link_confirmation import unconfirmed_frames
from smalti.errors import ProjectError, TableError
from smalti.frames.occlusions import COLOUR_STEPS, Highlights, Palette
from smalti.frames.painted_masks import PaintedMasks
from smalti.frames.source import FrameSource, open_source
from smalti.frames.visibility import FrameMasks, PartFinder
from smalti.geometry.homographies import project_points
from smalti.geometry.lens import Lens
from smalti.geometry.outline import Outline
from smalti.georeference.georeferencing import Georeference, fit_georeference
from smalti.georeference.positions import read_positions
from smalti.interchange.atomic_files import naming
from smalti.interchange.landmarks_csv import FrameSize, read_landmarks
from smalti.interchange.regular_files import kind_of
from smalti.interchange.transforms_json import PlacedBy
from smalti.notebook_html import draw_card, say_answers, say_error, shrink
from smalti.project.answer_store import FILE_NAME, Store
from smalti.project.array_cache import Cache
from smalti.project.database import is_writable
from smalti.project.entries import AnswerEntry, FrameEntry, History, LinkEntry, LinkState, Placement, Role
from smalti.project.evaluation import Evaluation, evaluate
from smalti.project.facts import (
    Binding,
    FieldOfView,
    GivenMasks,
    Keyframes,
    LeftOutPlaces,
    Outcome,
    OwnMasks,
    RegistrationFacts,
    SourceFacts,
)
from smalti.project.packing import pack_mask, pack_picture, unpack_mask, unpack_picture, unpack_tracks
from smalti.project.people import PersonMeasure, errors_of_all, measure_people
from smalti.project.project_info import ChainCounts, FrameCounts, LensNumbers, ProjectInfo, count_joined
from smalti.project.project_lock import ProjectLock, make_folder
from smalti.project.shown_frames import fill_gaps
from smalti.project.unplaced_frames import UnplacedFrame, what_to_try
from smalti.records import Verdict
from smalti.registration.camera_tracking import Track
from smalti.rendering.frame_survey import Survey
from smalti.rendering.mosaic import DEFAULT_MEMORY, Mosaic

LARGEST_SHOWN_BYTES = 64_000_000
"""A notebook shows a small picture of a `mosaic.png` of at most this size: it is read within a second."""


class Project:
    """The folder of a build. Everything that was learned is in one file; the folder `cache` may be deleted."""

    def __init__(self, folder: Path, store: Store, source: str | list[str] | None = None) -> None:
        """Wrap an open store; `source` is where the frames are now, if they were moved."""
        self.folder = folder
        self.store = store
        self.lock: ProjectLock | None = None  # of a project that was begun, until it is closed
        self.cache = Cache(folder / "cache")
        self._moved_to = source

    @classmethod
    def open(cls, folder: str | Path, *, source: str | Path | None = None, to_write: bool = False) -> Project:
        """Open the project in a folder, to look at it; `source` says where its frames are now, if they were moved.

        It may lie where nothing can be written. `to_write` is for those who add answers; they lock it first.
        """
        folder = Path(folder)
        if kind_of(folder, ProjectError) != "folder":
            raise ProjectError(f"{folder}: no such project; build one with: smalti build INPUT -o {folder}")
        store = Store.open(folder / FILE_NAME, read_only=not to_write)
        return cls(folder, store, None if source is None else str(source))

    @classmethod
    def begin(
        cls,
        folder: Path,
        source: FrameSource,
        location: str | list[str],
        binding: Binding,
        what: str = "smalti build",
    ) -> Project:
        """Make the project of a source, or go on with the one that is there if it is of the same.

        Nobody else can begin it until it is closed; `what` tells them why.
        """
        make_folder(folder)
        facts = SourceFacts(location, source.fingerprint, source.width, source.height, binding)
        with ExitStack() as stack:
            lock = stack.enter_context(ProjectLock(folder, what))
            project = stack.enter_context(cls(folder, Store.create(folder / FILE_NAME), location))
            project.lock = lock
            known = project.store.fact(SourceFacts)
            if known is not None and (known.fingerprint, known.binding) != (facts.fingerprint, facts.binding):
                other = "other frames" if known.fingerprint != facts.fingerprint else "other options"
                raise ProjectError(f"{folder}: holds a build of {other}; name another folder or delete this one")
            project.store.keep_fact(facts)
            stack.pop_all()
        return project

    @cached_property
    def source(self) -> FrameSource:
        """The frames, opened when first needed."""
        facts = self.source_facts
        source = open_source(self._moved_to or facts.location, facts.binding.source)
        if (source.fingerprint, source.width, source.height) != (facts.fingerprint, facts.width, facts.height):
            source.close()
            raise ProjectError(
                f"{source.path}: is not the source that {self.folder} was built from; give that one with --source"
            )
        return source

    @property
    def source_facts(self) -> SourceFacts:
        """What the project's file says about its source, which may have been moved."""
        return self.store.known_fact(SourceFacts)

    @property
    def outcome(self) -> Outcome:
        """The numbers of the finished mosaic."""
        outcome = self.store.fact(Outcome)
        if outcome is None:
            raise ProjectError(
                f"{self.folder}: the build is not finished; run the same smalti build command again, or press stop "
                "here in the page"
            )
        if not {placement.number for placement in self.placements}.issuperset(outcome.references):
            raise ProjectError(
                f"{self.folder}: its reference frame lies on no mosaic; run the same smalti build command again"
            )
        return outcome

    @property
    def width(self) -> int:
        """Of the frames, in pixels."""
        return self.source_facts.width

    @property
    def height(self) -> int:
        """Of the frames, in pixels."""
        return self.source_facts.height

    @property
    def outline(self) -> Outline:
        """Of the frames."""
        return Outline.of_pixels(self.width, self.height)

    @property
    def lens(self) -> Lens:
        """What bends the straight pixels, of which the final maps are, to those that the frames show."""
        outcome = self.store.fact(Outcome)
        k1, k2 = (0.0, 0.0) if outcome is None or outcome.lens is None else outcome.lens
        return Lens(self.outline, k1, k2)

    @property
    def mask(self) -> NDArray[np.bool_] | None:
        """Where the frames show the scene (h, w), None for everywhere."""
        field = self.store.fact(FieldOfView)
        if field is None or field.mask is None:
            return None
        try:
            return unpack_mask(field.mask, self.width, self.height)
        except ValueError as error:
            raise ProjectError(
                f"{self.folder}: holds {error}; run the same smalti build command again to find the field of view"
            ) from None

    def keep_mask(self, mask: NDArray[np.bool_] | None, finder: PartFinder | None = None) -> None:
        """Keep the mask that the frames share, and what finds each frame's own."""
        if isinstance(finder, FrameMasks):
            field, overlays, palette = map(pack_mask, (finder.field, finder.overlays, finder.palette.common))
            self.store.keep_fact(OwnMasks(field, overlays, palette, finder.disc_changes, finder.highlights.level))
        if isinstance(finder, PaintedMasks):
            self.store.keep_fact(GivenMasks(tuple(map(pack_picture, finder.pictures))))
        self.__dict__.pop("finder", None)
        self.store.keep_fact(FieldOfView(None if mask is None else pack_mask(mask)))

    @cached_property
    def finder(self) -> PartFinder | None:
        """What finds the parts of a frame: the scene, highlights, tools; None in projects of an older Smalti."""
        own, given = self.store.fact(OwnMasks), self.store.fact(GivenMasks)
        try:
            if given is not None and len(given.masks) != len(self.frames or given.masks):
                raise ValueError("masks of other frames")
            if given is not None:
                return PaintedMasks(tuple(unpack_picture(mask, self.width, self.height) for mask in given.masks))
            if own is None:
                return None
            field, overlays = (unpack_mask(packed, self.width, self.height) for packed in (own.field, own.overlays))
            palette = Palette(unpack_mask(own.palette, COLOUR_STEPS, COLOUR_STEPS))
        except ValueError as error:
            raise ProjectError(
                f"{self.folder}: holds {error}; run the same smalti build command again in another folder"
            ) from None
        return FrameMasks(field, own.disc_changes, Highlights(own.highlights), palette, overlays)

    @property
    def own_masks(self) -> PartFinder | None:
        """The same if frames differ in what hides the scene, else None: then the mask that they share says all."""
        return self.finder if self.finder is not None and self.finder.differ else None

    @property
    def tracks(self) -> dict[int, tuple[int, Track]]:
        """How the frames of a video were followed: from which good keyframe, and where each lies in it."""
        keyframes, frames = self.store.fact(Keyframes), self.frames
        if keyframes is None or not any(frame.is_between for frame in frames):
            return {}
        try:
            found = unpack_tracks(keyframes.tracks, len(frames))
            # Frames in a fog are alike, wherever they lie.
            return {number: (key, track) for number, (key, track) in found.items() if not frames[key].is_set_aside}
        except ValueError as error:
            raise ProjectError(
                f"{self.folder}: holds {error}; run the same smalti build command again in another folder"
            ) from None

    @property
    def is_finished(self) -> bool:
        """Whether the mosaic was computed by the answers that are in force."""
        outcome = self.store.fact(Outcome)
        return outcome is not None and self.store.history().is_that_of(outcome.finished_after)

    @property
    def placed_by(self) -> list[AnswerEntry]:
        """The answers by which the mosaic was computed: people may have answered since then."""
        outcome, history = self.outcome, self.store.history()
        then = history.at(outcome.finished_after)
        known = {entry.answer.pair for entry in then}
        # Frames that were set aside are asked about last; somebody may have answered before that was done.
        return [*then, *(e for e in history.answers if e.role is Role.ASIDE and e.answer.pair not in known)]

    @property
    def frames(self) -> list[FrameEntry]:
        """All frames of the source that were chosen."""
        return self.store.frames()

    @property
    def answers(self) -> list[AnswerEntry]:
        """All answers in force, in the order in which they were given."""
        return self.store.answers()

    @property
    def links(self) -> list[LinkEntry]:
        """What became of every yes."""
        return self.store.links()

    @property
    def placements(self) -> list[Placement]:
        """Where the frames lie; those that could not be placed are missing."""
        return self.store.placements()

    @property
    def not_placed(self) -> dict[int, str]:
        """The frames that lie on no mosaic, and why."""
        placed = {placement.number for placement in self.placements}
        contradicted = {
            n for link in self.links if link.state is LinkState.REJECTED for n in (link.pair.i, link.pair.j)
        }
        return {
            frame.number: "its keyframes are not placed"
            if frame.is_between
            else frame.reason
            or ("its matches contradict each other" if frame.number in contradicted else "matches no other frame")
            for frame in self.frames
            if frame.number not in placed
        }

    @property
    def unconfirmed(self) -> set[int]:
        """The frames that a single match, or several in a row, join to most of their mosaic: nothing checks these.

        Tiles that lie where their neighbours say are not among them: no match places these.
        """
        accepted = [(link.pair.i, link.pair.j) for link in self.links if link.state is LinkState.ACCEPTED]
        ends = np.array(accepted, dtype=np.int64).reshape(-1, 2)
        hanging = unconfirmed_frames(len(self.frames), ends)
        frames, placed = self.frames, [placement.number for placement in self.placements]
        used = np.array([number for number in placed if not frames[number].reason], dtype=np.int64)
        tracks = self.tracks
        for number in np.setdiff1d(placed, ends).tolist():
            # Placed at last: between its keyframes, or beside a neighbour.
            after = int(np.searchsorted(used, number))
            beside = used[max(after - 1, 0) : after + 1]
            hanging[number] = number not in tracks or not len(beside) or bool(hanging[beside].any())
        hanging[list(self._by_neighbours)] = False
        return {number for number in placed if hanging[number]}

    @property
    def how_placed(self) -> dict[int, PlacedBy]:
        """What places each frame, if it is placed."""
        how: dict[int, PlacedBy] = {
            n: "keyframes" if frame.is_between else "matches" for n, frame in enumerate(self.frames)
        }
        return how | dict.fromkeys(self._by_neighbours, "neighbours")

    @property
    def _by_neighbours(self) -> frozenset[int]:
        outcome = self.store.fact(Outcome)
        return frozenset() if outcome is None else frozenset(outcome.by_neighbours)

    @property
    def parts(self) -> int:
        """How many mosaics there are; more than one where the sequence could not be joined."""
        return len({placement.part for placement in self.placements})

    @property
    def unplaced(self) -> tuple[UnplacedFrame, ...]:
        """The frames that lie on no mosaic, each with what to try; of those between keyframes, none."""
        frames = self.frames
        return tuple(
            UnplacedFrame(number, frames[number].label, reason, what_to_try(reason))
            for number, reason in self.not_placed.items()
            if not frames[number].is_between
        )

    @property
    def is_writable(self) -> bool:
        """Whether files can be written in the folder; on read-only media they cannot."""
        return is_writable(self.folder / FILE_NAME)

    @property
    def _rendering_folder(self) -> Path:
        return self.cache.folder / "rendering"

    def survey(self) -> Survey:
        """Return the reduced frames. Who reads the frames keeps them there, so that rendering need not read them."""
        with naming(self._rendering_folder):
            self._rendering_folder.mkdir(parents=True, exist_ok=True)
        numbers = range(len(self.source))
        return Survey(self._rendering_folder, numbers, self.width, self.height, self.mask, self.own_masks)

    def mosaic(
        self,
        part: int = 0,
        *,
        all_frames: bool = False,
        by_chain: bool = False,
        memory_bytes: int = DEFAULT_MEMORY,
        folder: Path | None = None,
        say: Callable[[str], None] = lambda message: None,
    ) -> Mosaic:
        """Return a mosaic, to be rendered; part 0 is the largest.

        Of a video with keyframes it has these, and others only where no keyframe shows a place. `all_frames` are for
        blends that average, which profit from more of them. `by_chain` draws the same frames where the chain alone has
        them.
        Working files go to `folder`, by default to the project's cache, or where that cannot be written to the
        system's folder of temporary files. `say` is told of damaged ones.
        """
        if folder is None and self.is_writable:
            folder = self._rendering_folder
        placed = [placement for placement in self.placements if placement.part == part]
        if not placed:
            parts = self.parts
            known = f"it has parts 0 to {parts - 1}" if parts else "nothing was placed, build it first"
            raise ProjectError(f"{self.folder}: has no mosaic of part {part}; {known}")
        placed = self._shown(placed, all_frames)
        return Mosaic(
            self.source,
            {placement.number: placement.chain if by_chain else placement.final for placement in placed},
            self.width,
            self.height,
            self.mask,
            lens=self.lens,
            sigma_px={placement.number: placement.sigma_px for placement in placed},
            memory_bytes=memory_bytes,
            folder=folder,
            say=say,
            finder=self.own_masks,
        )

    def _shown(self, placed: list[Placement], all_frames: bool) -> list[Placement]:
        frames = self.frames
        if not any(frame.is_between for frame in frames):
            return placed
        chosen = {
            p.number for p in placed if not (frame := frames[p.number]).reason or (all_frames and frame.is_between)
        }
        chosen |= fill_gaps({p.number: p.final for p in placed}, chosen, self.lens, self.mask)
        return [placement for placement in placed if placement.number in chosen]

    def georeference(self, positions: str | Path, part: int = 0) -> Georeference:
        """Return where a mosaic lies in the world, by a table of where its frames were taken."""
        path = Path(positions)
        centres = {
            placement.number: project_points(placement.final, self.outline.centre[None])[0]
            for placement in self.placements
            if placement.part == part
        }
        labels = {frame.number: frame.label for frame in self.frames}
        return fit_georeference(read_positions(path, labels), centres)

    def evaluate(self, landmarks: str | Path) -> Evaluation:
        """Hold landmarks of a CSV file against the mosaic."""
        path = Path(landmarks)
        records = read_landmarks(
            path, frames=FrameSize(self.width, self.height, self.source_facts.binding.source.max_size)
        )
        if not records:
            raise TableError(f"{path}: holds no landmarks; give a row for each")
        last = len(self.frames) - 1
        for record in records:
            if record.pair.j > last:
                raise ProjectError(f"{path}: names frame {record.pair.j}, but the project has only frames 0 to {last}")
        return evaluate(self.placements, records, self.lens)

    def info(self) -> ProjectInfo:
        """Return what there is to know in numbers."""
        frames, answers, links = self.frames, self.answers, self.links
        loop = [entry for entry in answers if entry.role is Role.LOOP]
        verdicts = Counter(entry.answer.verdict for entry in loop)
        placed, parts = len(self.placements), self.parts
        accepted = {entry.pair for entry in links if entry.state is LinkState.ACCEPTED}
        outcome = self.store.fact(Outcome)
        if outcome is None and not placed:
            # No mosaic was finished: what the answers so far join.
            accepted = {entry.answer.pair for entry in answers if entry.answer.verdict is Verdict.YES}
            placed, parts = count_joined(accepted)
        roles = Counter(entry.role for entry in answers if entry.answer.pair in accepted)
        # A retry stands for an attempt before it, unless the pair was never asked about.
        again = {entry.answer.pair for entry in answers if entry.role is Role.RETRY}
        logged = (entry.answer for entry in self.store.log() if entry.answer is not None)
        before = {entry.answer.pair for entry in logged if entry.role is not Role.RETRY and entry.answer.pair in again}
        first_roles = [entry.role for entry in answers if entry.role is not Role.RETRY or entry.answer.pair in before]
        registration = self.store.fact(RegistrationFacts)
        info = ProjectInfo(
            folder=str(self.folder),
            source=self.source_facts.location,
            frames=FrameCounts(
                read=len(frames),
                placed=placed,
                keyframes=sum(not frame.reason for frame in frames) if any(one.is_between for one in frames) else None,
                set_aside=sum(frame.is_set_aside for frame in frames),
                not_placed=len(frames) - placed,
            ),
            parts=parts,
            chain=ChainCounts(links=roles[Role.CHAIN], bridges=roles[Role.BRIDGE], checks=roles[Role.CHECK]),
            asked=len(loop),
            yes=verdicts[Verdict.YES],
            no=verdicts[Verdict.NO],
            unsure=verdicts[Verdict.UNSURE],
            rejected=sum(entry.state is LinkState.REJECTED for entry in links),
            unconfirmed=len(self.unconfirmed),
            attempts=sum(role is not Role.NEAR for role in first_roles),
            matched_near=sum(entry.role is Role.NEAR for entry in answers),
            tried_again=sum(entry.role is Role.RETRY for entry in answers),
            lens=self._describe_lens(),
            registered_by=None if registration is None else registration.method,
            links_by_method=dict(Counter(sorted(entry.answer.method for entry in answers if entry.answer.method))),
            people=self.measured_people(),
            left_out_landmarks=errors_of_all(self.store.history(), self.store.fact(LeftOutPlaces)),
            seconds={name: round(seconds, 2) for name, seconds in self.store.stages().items()},
        )
        if outcome is None:
            return info
        return replace(
            info,
            frames=replace(info.frames, by_neighbours=len(outcome.by_neighbours)),
            raster=outcome.raster,
            unplaced=list(self.unplaced),
            predicted_error_px=outcome.predicted_error_px,
            error_bound_px=outcome.error_bound_px,
            ahead_px=outcome.ahead_px,
            worth_going_on=outcome.worth_going_on,
            chain_error_px=outcome.chain_error_px,
            left_out_px=outcome.left_out_px,
            family=outcome.family,
            noise=outcome.noise,
            camera=outcome.camera,
            stopped=outcome.stopped,
        )

    def measured_people(self, history: History | None = None) -> list[PersonMeasure]:
        """Return what known pairs and left-out landmarks say of the people who answered, by the log or a part of it."""
        outcome = self.store.fact(Outcome)
        return measure_people(
            self.store.history() if history is None else history,
            self.outline,
            self.lens,
            noise=None if outcome is None else outcome.noise,
            links={link.pair: link for link in self.links},
            left_out=self.store.fact(LeftOutPlaces),
        )

    def _describe_lens(self) -> LensNumbers | None:
        lens = self.lens
        return None if lens.is_undistorted else LensNumbers(lens.k1, lens.k2, 100.0 * lens.stretch)

    def _repr_html_(self) -> str:
        """Show the numbers that matter, and the mosaic, in a notebook."""
        info = self.info()
        frames = info.frames
        rows = [
            ("frames placed", f"{frames.placed} of {frames.read}"),
            ("parts", str(info.parts)),
            ("predicted error", say_error(info.predicted_error_px, info.error_bound_px)),
            ("questions asked", say_answers(info.yes, info.no, info.unsure)),
            ("rejected links", str(info.rejected)),
            ("unconfirmed frames", str(info.unconfirmed)),
            ("folder", str(self.folder)),
        ]
        return draw_card(self.folder.name.removesuffix(".smalti"), rows, self._read_thumbnail())

    def _read_thumbnail(self) -> NDArray[np.uint8] | None:
        path = self.folder / "mosaic.png"
        if not path.is_file() or path.stat().st_size > LARGEST_SHOWN_BYTES:
            return None
        image = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        if image is None or image.ndim != 3 or image.shape[2] != 4:
            return None
        return shrink(np.asarray(image[..., [2, 1, 0, 3]], dtype=np.uint8))

    def close(self) -> None:
        """Let go of the files."""
        if "source" in self.__dict__:
            self.source.close()
        self.store.close()
        self.unlock()

    def unlock(self) -> None:
        """Let others work in the folder."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
