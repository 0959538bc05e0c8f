"""Choose keyframes while a video is read: the frames that the engine uses. All others are only followed.

A keyframe is taken when a set share of the view is new, when the light or the field of view has changed, or before the
track is lost. Of the last frames before that the sharpest is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.frames.quality import FrameMeasure
from smalti.geometry.homographies import apply_map, invert_homographies, normalise
from smalti.geometry.outline import Outline
from smalti.project.facts import Keyframes
from smalti.project.packing import pack_tracks
from smalti.records import Homographies, Points
from smalti.registration.camera_tracking import Anchor, Track, View

USUAL_SHARE = 0.25
"""Share of the view that is new in the next keyframe."""

SMALLEST_SHARE, LARGEST_SHARE = 0.01, 0.6

CANDIDATES_FROM = 0.85
"""Of the share: from there on, the sharpest frame is looked for."""

AT_MOST_BEYOND = 1.3
"""Of the share: a frame that goes farther beyond it is no keyframe if the one before it can be."""

LEAST_SURE_PX = 0.7
"""A track that is less sure is about to be lost."""

CHANGED_LIGHT = 1.5
CHANGED_FIELD = 0.15
"""Share of the frame's area."""

BLURRED = 0.25
"""Share of the sharpness of the keyframe before. A frame as blurred that cannot be followed is not worth a keyframe."""

GRID = 16, 12


class Why(StrEnum):
    """Why a frame is a keyframe."""

    FIRST = "the first frame"
    VIEW = "a part of the view was new"
    LIGHT = "the light had changed"
    FIELD = "the field of view had changed"
    LOST = "the frames after it could not be followed from the keyframe before"
    APART = "it could not be followed from the keyframe before"
    LAST = "the last frame"


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A frame that was read, as far as the choice needs it."""

    number: int
    image: NDArray[np.uint8]  # (h, w, 3)
    gray: NDArray[np.uint8]  # (h, w)
    mask: NDArray[np.bool_] | None  # (h, w)
    measured: FrameMeasure
    view: View | None = None  # of the tracker
    track: Track | None = None  # from the latest keyframe
    new: float = 0.0  # share of the view, since then

    @property
    def place(self) -> Homographies:
        """(3, 3): the map to the latest keyframe."""
        return np.eye(3) if self.track is None else self.track.anchor_from_frame


@dataclass
class KeyframeChooser:
    """Follows the camera. Feed it frames in their order; it returns those that become keyframes, a little later."""

    share: float
    outline: Outline
    within: NDArray[np.bool_] | None  # (h, w): what the frames show of the scene
    why: dict[int, Why] = field(default_factory=dict)  # of the keyframes
    tracks: dict[int, tuple[int, Track]] = field(default_factory=dict)  # of all frames but the first of each stretch
    _key: Frame | None = None
    _anchor: Anchor | None = None
    _latest: Frame | None = None  # the last frame that could be followed
    _sharpest: Frame | None = None  # of the frames that may become the next keyframe
    _motion: Homographies = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        grid = self.outline.corners[0] + 0.5 + _grid() * (self.outline.corners[2] - self.outline.corners[0] - 1.0)
        self._grid = grid[self._shows(grid)]

    def take(self, frame: Frame) -> list[Frame]:
        """Take the next frame, and return the new keyframes."""
        if frame.measured.is_blank:
            return []
        frame = replace(frame, view=View.of(frame.gray, frame.mask))
        if self._key is None:
            return [self._begin(frame, Why.FIRST)]
        chosen: list[Frame] = []
        followed = self._follow(frame)
        if followed is None and self._latest is not None:
            chosen.append(self._continue_from(self._latest, Why.LOST))
            followed = self._follow(frame)
        if followed is None:
            if frame.measured.sharpness < BLURRED * self._key.measured.sharpness:
                return chosen
            return [*chosen, self._begin(frame, Why.APART)]
        why = self._reason(followed)
        if why is None:
            self._note(followed)
            return chosen
        best = self._best(followed) if why is Why.VIEW else followed
        if best is not followed:
            chosen.append(self._continue_from(best, why))
            again = self._follow(frame, _between(best, followed))
            if again is None:
                return [*chosen, self._begin(frame, Why.APART)]
            followed, why = again, self._reason(again)
        self._note(followed)
        return chosen if why is None else [*chosen, self._continue_from(followed, why)]

    def finish(self) -> list[Frame]:
        """Return the last frame as a keyframe: it holds the frames before it on their other side."""
        return [] if self._latest is None else [self._continue_from(self._latest, Why.LAST)]

    @property
    def record(self) -> Keyframes:
        """The choice, to be kept."""
        chosen = tuple((number, str(why)) for number, why in sorted(self.why.items()))
        return Keyframes(self.share, chosen, pack_tracks(self.tracks))

    def _begin(self, frame: Frame, why: Why) -> Frame:
        """Make a frame a keyframe that is not followed from the one before."""
        self.why[frame.number] = why
        assert frame.view is not None
        self._key, self._anchor = frame, Anchor.of(frame.view)
        self._latest = self._sharpest = None
        self._motion = np.eye(3)
        return frame

    def _continue_from(self, frame: Frame, why: Why) -> Frame:
        """Make a frame a keyframe that was followed."""
        motion = self._motion
        self._begin(frame, why)
        self._motion = motion
        return frame

    def _follow(self, frame: Frame, guess: Homographies | None = None) -> Frame | None:
        """Return the frame with its track from the latest keyframe, None if it is lost."""
        assert self._anchor is not None
        assert frame.view is not None
        before = np.eye(3) if self._latest is None else self._latest.place
        track = self._anchor.follow(frame.view, before @ self._motion if guess is None else guess)
        if track is None:
            track = self._anchor.follow(frame.view, before)
        if track is None:
            track = self._anchor.follow(frame.view, self._anchor.guess_shift(frame.view))
        return None if track is None else replace(frame, track=track, new=self._new(track.anchor_from_frame))

    def _note(self, frame: Frame) -> None:
        """Keep the track of a frame, which is the latest now."""
        assert self._key is not None
        assert frame.track is not None
        self.tracks[frame.number] = self._key.number, frame.track
        before = np.eye(3) if self._latest is None else self._latest.place
        self._motion = normalise(invert_homographies(before) @ frame.place)
        self._latest = frame
        if frame.new >= CANDIDATES_FROM * self.share and (
            self._sharpest is None or frame.measured.sharpness > self._sharpest.measured.sharpness
        ):
            self._sharpest = frame

    def _reason(self, frame: Frame) -> Why | None:
        """Return why a frame that was followed has to be a keyframe, None if it has not."""
        assert self._key is not None
        assert frame.track is not None
        if frame.new > self.share:
            return Why.VIEW
        if not 1.0 / CHANGED_LIGHT < frame.track.gain < CHANGED_LIGHT:
            return Why.LIGHT
        if abs(frame.measured.visible - self._key.measured.visible) > CHANGED_FIELD:
            return Why.FIELD
        return Why.LOST if frame.track.sigma_px > LEAST_SURE_PX else None

    def _best(self, frame: Frame) -> Frame:
        """Return the keyframe to take when this frame shows enough that is new."""
        if self._sharpest is not None:
            return self._sharpest
        if self._latest is not None and frame.new > AT_MOST_BEYOND * self.share:
            return self._latest
        return frame

    def _new(self, anchor_from_frame: Homographies) -> float:
        """Return the share of the view that only one of the two frames shows."""
        there, back = (
            apply_map(one, self._grid) for one in (anchor_from_frame, invert_homographies(anchor_from_frame))
        )
        return 1.0 - float(min(np.mean(self._shows(points)) for points in (there, back)))

    def _shows(self, points: Points) -> NDArray[np.bool_]:
        shown = self.outline.contains(points)
        if self.within is not None:
            columns, rows = np.clip(points.round(), 0, np.array(self.within.shape[::-1]) - 1).astype(int).T
            shown &= self.within[rows, columns]
        return shown


def _between(before: Frame, after: Frame) -> Homographies:
    """Return where a frame lies in one before it, if both were followed from one keyframe."""
    return normalise(invert_homographies(before.place) @ after.place)


def _grid() -> Points:
    across, down = np.meshgrid(*((np.arange(cells) + 0.5) / cells for cells in GRID))
    return np.column_stack([across.ravel(), down.ravel()])


def parse_share(text: str) -> float | None:
    """Return the share of a setting; None for "auto" and "all"."""
    if text in ("auto", "all"):
        return None
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not SMALLEST_SHARE <= share <= LARGEST_SHARE:
        raise UsageError(
            f"keyframes {text}: give auto, all, or the share of the view that is new in the next keyframe, "
            f"{SMALLEST_SHARE:g} to {LARGEST_SHARE:g}"
        )
    return share
