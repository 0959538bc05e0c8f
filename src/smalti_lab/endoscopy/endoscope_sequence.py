"""A synthetic endoscopic video: frames rendered on demand, with the true position of every point."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.errors import UsageError
from smalti.geometry.homographies import invert_homographies, project_points
from smalti.geometry.outline import Outline
from smalti.records import Homographies, PairNumbers, Points
from smalti_lab.endoscopy.disturbance import draw_disturbances, first_of_burst, spoil
from smalti_lab.endoscopy.endoscope_light import Lighting, Particles, draw_lighting, draw_particles
from smalti_lab.endoscopy.endoscope_motion import Motion, move_hand
from smalti_lab.endoscopy.endoscope_settings import Camera, EndoscopeSettings
from smalti_lab.endoscopy.endoscope_view import FieldsOfView, draw_fields, view_tissue
from smalti_lab.endoscopy.obstruction import DIRT, INK, STEEL, Obstructions, draw_obstructions
from smalti_lab.endoscopy.tissue import DEVIATION, GREY, Deformation, draw_deformation, prepare_tissue
from smalti_lab.synthetic.degradation import Degradation, draw_drift, trail
from smalti_lab.synthetic.synthetic_sequence import RenderedFrames
from smalti_lab.synthetic.truth import LEAST_OVERLAP, CommonPoints, PairErrors, measure_common_points

FOCUS_FRAMES = 25.0

(
    HAND_STREAM,
    TISSUE_STREAM,
    FIELD_STREAM,
    LIGHT_STREAM,
    PARTICLES_STREAM,
    FOCUS_STREAM,
    BURSTS_STREAM,
    BURST_STREAM,
    NOISE_STREAM,
    GRAIN_STREAM,
    OBSTACLES_STREAM,
) = range(10, 21)
"""Streams of random numbers of the same seed. Lower numbers belong to draws of other sequences too."""

TISSUE_COLOUR = (184.0, 104.0, 88.0)
TINT = (0.75, 1.15, 0.95)
"""Colour of the tissue in full light, and the contrast of each channel: blood hides least in green."""

GLINT = (255.0, 252.0, 246.0)
PARTICLE = (226.0, 214.0, 190.0)
SURROUND = (9.0, 6.0, 6.0)
RIM_PX = 1.5
"""Half the width of the field's soft rim."""


@dataclasses.dataclass(frozen=True, eq=False)
class EndoscopeSequence(RenderedFrames):
    """Frames of a scope over deforming tissue; a source of frames.

    Frame n is always the same. No affine map or homography is exact here: the truth is `scene_from_frame` and its
    inverse, point by point.
    """

    scene: NDArray[np.uint8]  # (h, w, 3)
    settings: EndoscopeSettings = dataclasses.field(default_factory=EndoscopeSettings)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.scene.ndim != 3 or self.scene.shape[2] != 3 or self.scene.dtype != np.uint8:
            raise UsageError(f"a scene is (h, w, 3) of uint8, this one is {self.scene.shape} of {self.scene.dtype}")
        _ = self.motion  # refuses a scene that is too small

    def __len__(self) -> int:
        return self.settings.frames

    # The truth.

    def scene_from_frame(self, n: int, points: Points) -> Points:
        """Return the positions in the scene of points (m, 2) of frame n."""
        return self.deformation.deform(n, project_points(self.motion.plane_from_frame[n], points))

    def frame_from_scene(self, n: int, points: Points) -> Points:
        """Return the positions in frame n of points (m, 2) of the scene, inside its field of view or not."""
        return project_points(self._frame_from_plane[n], self.deformation.undo(n, points))

    def points_in(self, i: int, j: int, points_j: Points) -> Points:
        """Return the positions in frame i of points (m, 2) of frame j."""
        return self.frame_from_scene(i, self.scene_from_frame(j, points_j))

    def field(self, n: int) -> NDArray[np.bool_]:
        """Return which pixels (h, w) of frame n lie in its field of view."""
        return np.asarray(self.fields.depths(n) >= 0, np.bool_)

    @cached_property
    def disturbance(self) -> NDArray[np.str_]:
        """(N,): the `Disturbance` of each frame."""
        return draw_disturbances(len(self), self.settings.disturbed, self._draw(BURSTS_STREAM))

    def overlapping_pairs(self, least: float = LEAST_OVERLAP) -> PairNumbers:
        """Return the pairs (n, 2), i < j, of which i sees at least this fraction of the field of view of j."""
        return np.argwhere(np.triu(self._common_points[0] >= least, k=1))

    def truth_error(self, mosaic_from_frame: NDArray[np.float64], frames: Iterable[int] | None = None) -> PairErrors:
        """Compare estimated maps, (n, 2, 3) or (n, 3, 3), with the truth, over all pairs that overlap by a tenth.

        `frames` are the numbers of the placed frames, in the order of the maps; all by default. The first call computes
        the common points of all pairs.
        """
        return measure_common_points(mosaic_from_frame, self._common_points[1], len(self), frames)

    @property
    def outline(self) -> Outline:
        """The frame's outline in its own pixels."""
        return Outline.of_pixels(self.width, self.height)

    # The picture.

    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render frame n: (height, width, 3), RGB."""
        if not 0 <= n < len(self):
            raise UsageError(f"frame {n}: the sequence has frames 0 to {len(self) - 1}")
        camera, motion = self.settings.camera, self.motion.step(n)
        margin = reach_of_blur(camera, motion)
        view = view_tissue(self._tissue, self.motion, self.deformation, self.fields, n, margin)
        view = blur_view(view, camera.motion_blur * motion, self._blurs[n])[margin:-margin, margin:-margin]
        shade = self.lighting.shade(n)
        image = colour_tissue(view, self.settings.tissue.contrast, shade)
        lay_over(image, GLINT, self.lighting.glints(n))
        lay_over(image, PARTICLE, self.particles.cover(n))
        obstacles = self.obstructions
        if self.settings.obstacles.tool:
            lay_over(image, STEEL, obstacles.tool(n))
        first = first_of_burst(self.disturbance, n)
        image = spoil(self.disturbance[n], image, shade, n - first, self._draw(BURST_STREAM, first))
        if self.settings.obstacles.dirt:
            lay_over(image, DIRT, obstacles.dirt)
        if self.settings.obstacles.logo or self.settings.obstacles.clock:
            lay_over(image, INK, obstacles.overlays(n))
        return record(image, self.fields.depths(n), camera, self._draw(NOISE_STREAM, n))

    @cached_property
    def motion(self) -> Motion:
        """The motion of the hand."""
        return move_hand(self.settings, self._scene_size, self.seed, self._draw(HAND_STREAM))

    @cached_property
    def deformation(self) -> Deformation:
        """The deformation of the tissue."""
        return draw_deformation(self.settings.tissue, len(self), self._scene_size, self._draw(TISSUE_STREAM))

    @cached_property
    def fields(self) -> FieldsOfView:
        """The field of view of each frame."""
        return draw_fields(self.settings, self.motion, self._draw(FIELD_STREAM))

    @cached_property
    def lighting(self) -> Lighting:
        """The light of each frame."""
        light = self.settings.light
        gains = Degradation(exposure=light.exposure).gains(len(self), self.seed)
        return draw_lighting(light, gains, self.fields, self.motion.pan, self._draw(LIGHT_STREAM))

    @cached_property
    def particles(self) -> Particles:
        """The particles in front of the tissue."""
        return draw_particles(
            self.settings.particles, (self.width, self.height), self.motion.pan, self._draw(PARTICLES_STREAM)
        )

    @cached_property
    def obstructions(self) -> Obstructions:
        """What else hides the tissue."""
        return draw_obstructions(self.settings.obstacles, self.fields, self._draw(OBSTACLES_STREAM))

    def hidden(self, n: int) -> dict[str, NDArray[np.float32]]:
        """Return the share (h, w) of each pixel of frame n that hides the tissue, by what hides it."""
        obstacles = self.obstructions
        return {
            "highlights": self.lighting.glints(n),
            "particles": self.particles.cover(n),
            "tool": obstacles.tool(n),
            "dirt": obstacles.dirt,
            "overlays": obstacles.overlays(n),
        }

    @cached_property
    def _blurs(self) -> NDArray[np.float64]:
        camera = self.settings.camera
        return (
            camera.blur_px + camera.defocus_px * (1 + draw_drift(len(self), FOCUS_FRAMES, self._draw(FOCUS_STREAM))) / 2
        )

    @cached_property
    def _tissue(self) -> NDArray[np.uint8]:
        return prepare_tissue(self.scene, self._draw(GRAIN_STREAM))

    @cached_property
    def _frame_from_plane(self) -> Homographies:
        return invert_homographies(self.motion.plane_from_frame)

    @cached_property
    def _common_points(self) -> tuple[NDArray[np.float32], CommonPoints]:
        return find_common_points(self.fields, self.scene_from_frame, self.frame_from_scene, LEAST_OVERLAP)

    @property
    def _scene_size(self) -> tuple[int, int]:
        return self.scene.shape[1], self.scene.shape[0]

    def _draw(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *stream])

    # The interface of a source of frames.

    @property
    def width(self) -> int:
        """Width of a frame in pixels."""
        return self.settings.width

    @property
    def height(self) -> int:
        """Height of a frame in pixels."""
        return self.settings.height

    @property
    def labels(self) -> tuple[str, ...]:
        """One for each frame."""
        return tuple(f"endoscope {n}" for n in range(len(self)))

    @property
    def files(self) -> tuple[Path, ...]:
        """None: the frames are computed."""
        return ()

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything that the frames depend on."""
        digest = hashlib.sha256(repr((self.scene.shape, self.settings, self.seed)).encode())
        digest.update(np.ascontiguousarray(self.scene).data)
        return digest.hexdigest()[:16]


def reach_of_blur(camera: Camera, motion: Points) -> int:
    """Return the largest number of pixels around a frame that its blur uses, for a scope that moves by `motion`."""
    return (
        math.ceil(4 * (camera.blur_px + camera.defocus_px) + camera.motion_blur * float(np.linalg.norm(motion)) / 2) + 1
    )


def blur_view(view: NDArray[np.float32], motion: Points, blur_px: float) -> NDArray[np.float32]:
    """Blur along the motion (2,) of the scope while the shutter is open, and out of focus."""
    moved = cv2.filter2D(view, -1, trail(motion))
    return np.asarray(cv2.GaussianBlur(moved, (0, 0), blur_px) if blur_px else moved, np.float32)


def colour_tissue(view: NDArray[np.float32], contrast: float, shade: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn prepared tissue (h, w) into lit tissue (3, h, w), RGB in grey levels."""
    detail = (view - np.float32(GREY)) * np.float32(contrast / DEVIATION)
    return np.stack([shade * (colour + tint * detail) for colour, tint in zip(TISSUE_COLOUR, TINT, strict=True)])


def lay_over(image: NDArray[np.float32], colour: tuple[float, float, float], part: NDArray[np.float32]) -> None:
    """Mix a colour into an image (3, h, w), in place, by each pixel's share (h, w)."""
    for c, level in enumerate(colour):
        image[c] += part * (level - image[c])


def record(
    image: NDArray[np.float32], depth: NDArray[np.float32], camera: Camera, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return the frame (h, w, 3) of the file. `depth` (h, w) is how far inside the field a pixel lies."""
    outside = np.clip(np.float32(0.5) - depth / np.float32(2 * RIM_PX), 0, 1)
    lay_over(image, SURROUND, outside)
    # Such files keep little of the noise in colour.
    noise = np.float32(camera.noise) * rng.standard_normal(depth.shape, dtype=np.float32)
    levels = cv2.merge([cv2.add(channel, noise, dtype=cv2.CV_8U) for channel in image[::-1]])
    _, encoded = cv2.imencode(".jpg", levels, (cv2.IMWRITE_JPEG_QUALITY, camera.jpeg_quality))
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR_RGB), np.uint8)


def find_common_points(
    fields: FieldsOfView,
    scene_from_frame: Callable[[int, Points], Points],
    frame_from_scene: Callable[[int, Points], Points],
    least: float,
) -> tuple[NDArray[np.float32], CommonPoints]:
    """Return the fraction (N, N) of the field of j that each i < j sees, and the points of pairs that share `least`."""
    frames = len(fields.centres)
    grids = np.stack([fields.grid(n) for n in range(frames)])
    own = np.stack([fields.contains(n, grid) for n, grid in enumerate(grids)])
    in_scene = np.stack([scene_from_frame(n, grid) for n, grid in enumerate(grids)])
    middles = in_scene.mean(axis=1)
    reaches = np.linalg.norm(in_scene - middles[:, None], axis=2).max(axis=1)
    shares = np.zeros((frames, frames), np.float32)
    pairs, points_i, is_common = [np.empty((0, 2), np.int64)], [np.empty((0, *grids.shape[1:]))], [own[:0]]
    for i in range(frames - 1):
        away = np.linalg.norm(middles[i + 1 :] - middles[i], axis=1)
        # The points end a little before the rim.
        later = i + 1 + np.flatnonzero(away < 1.2 * (reaches[i] + reaches[i + 1 :]))
        points = frame_from_scene(i, in_scene[later].reshape(-1, 2)).reshape(-1, *grids.shape[1:])
        both = fields.contains(i, points) & own[later]
        shares[i, later] = both.sum(axis=1) / own[later].sum(axis=1)
        kept = np.flatnonzero(shares[i, later] >= least)
        pairs.append(np.column_stack([np.full(len(kept), i), later[kept]]))
        points_i.append(points[kept])
        is_common.append(both[kept])
    numbers = np.concatenate(pairs)
    return shares, CommonPoints(numbers, np.concatenate(points_i), grids[numbers[:, 1]], np.concatenate(is_common))
