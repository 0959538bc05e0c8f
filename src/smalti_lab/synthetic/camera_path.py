"""Paths of a camera over a scene, and the unsteadiness of its handling.

Every path is paced evenly: consecutive frames lie `step` frame widths apart along it. The whole frame stays inside the
scene, whatever the handling of the camera. A path that does not fit is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

from smalti.errors import UsageError
from smalti.geometry.linear_maps import apply
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points, Transforms
from smalti_lab.synthetic.degradation import draw_drift

STEP = 0.28
POINTS_A_KNOT = 64


@dataclass(frozen=True, slots=True, eq=False)
class CameraPath:
    """The position of each frame in the scene, in scene pixels."""

    name: str
    width: int
    height: int
    mosaic_from_frame: Transforms  # (N, 2, 3)

    def __post_init__(self) -> None:
        maps = np.array(self.mosaic_from_frame, dtype=np.float64)
        if maps.ndim != 3 or maps.shape[1:] != (2, 3) or not len(maps):
            raise UsageError(f"path '{self.name}': mosaic_from_frame has shape {maps.shape}, expected (N, 2, 3)")
        if not np.isfinite(maps).all():
            raise UsageError(f"path '{self.name}': mosaic_from_frame holds numbers that are not finite")
        maps.setflags(write=False)
        object.__setattr__(self, "mosaic_from_frame", maps)

    def __len__(self) -> int:
        return len(self.mosaic_from_frame)

    @property
    def outline(self) -> Outline:
        """The frame's outline in its own pixels."""
        return Outline.of_pixels(self.width, self.height)

    @property
    def centres(self) -> Points:
        """(N, 2): the frames' centres in the scene."""
        return apply(self.mosaic_from_frame, self.outline.centre[None])[:, 0]

    @property
    def footprints(self) -> Points:
        """(N, 4, 2): the frames' corners in the scene."""
        return apply(self.mosaic_from_frame, self.outline.corners)


def raster(
    scene_size: tuple[int, int],
    frames: int,
    frame_size: tuple[int, int] = (320, 240),
    *,
    step: float = STEP,
    sidelap: float = 0.3,
    strips: int | None = None,
    handling: Handling | None = None,
    seed: int = 0,
) -> CameraPath:
    """Fly strips to and fro. Neighbouring strips overlap by `sidelap` of the frame's height.

    Without `strips`, their number makes the block's shape most like the scene's.
    """
    handling = handling or Handling()
    free_x, free_y = _free_size("raster", scene_size, frame_size, frames, step, handling)
    pace = _pace(frame_size, step, handling)
    if not 0 <= sidelap < 1:
        raise UsageError(f"raster: sidelap {sidelap} is not a fraction below 1")
    apart = (1 - sidelap) * frame_size[1] * handling.scale

    def strip_length(count: int) -> float:
        return ((frames - 1) * pace - (count - 1) * apart) / count

    fitting = [
        count
        for count in range(1, int(free_y / apart) + 2)
        if 0 <= strip_length(count) <= free_x and (count - 1) * apart <= free_y
    ]
    if strips is not None:
        fitting = [count for count in fitting if count == strips]
    if not fitting:
        asked = "" if strips is None else f" in {strips} strips"
        raise UsageError(
            f"raster: {frames} frames{asked} do not fit into a scene of {scene_size[0]} × {scene_size[1]} pixels; "
            "give fewer frames, a smaller step, more sidelap, another number of strips or a larger scene"
        )
    shape = free_x / free_y if free_y > 0 else math.inf
    count = min(fitting, key=lambda count: abs(strip_length(count) - shape * (count - 1) * apart))
    length = strip_length(count)
    ends = [((n + side) % 2 * length, n * apart) for n in range(count) for side in (0, 1)]
    corners = np.array(ends) - [length / 2, (count - 1) * apart / 2]
    return _fly("raster", _pace_out(corners, pace, frames), scene_size, frame_size, handling, seed)


def circle(
    scene_size: tuple[int, int],
    frames: int,
    frame_size: tuple[int, int] = (320, 240),
    *,
    step: float = STEP,
    revolutions: int = 1,
    handling: Handling | None = None,
    seed: int = 0,
) -> CameraPath:
    """Fly whole circles about the centre of the scene. After the last frame the first would come again."""
    handling = handling or Handling()
    free = min(_free_size("circle", scene_size, frame_size, frames, step, handling))
    if revolutions < 1:
        raise UsageError(f"circle: {revolutions} revolutions, give at least 1")
    around = frames * _pace(frame_size, step, handling)
    radius = around / revolutions / (2 * np.pi)
    if 2 * radius > free:
        raise UsageError(
            f"circle: {frames} frames in {revolutions} revolutions need a circle {2 * radius:.0f} pixels across, the "
            f"scene has room for {free:.0f}; give at least {math.ceil(around / np.pi / free)} revolutions or a "
            "smaller step"
            if free > 0
            else f"circle: a scene of {scene_size[0]} × {scene_size[1]} pixels leaves no room for a circle"
        )
    angle = 2 * np.pi * revolutions * np.arange(frames) / frames
    offsets = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return _fly("circle", offsets, scene_size, frame_size, handling, seed)


def wander(
    scene_size: tuple[int, int],
    frames: int,
    frame_size: tuple[int, int] = (320, 240),
    *,
    step: float = STEP,
    visits: float = 2.0,
    handling: Handling | None = None,
    seed: int = 0,
) -> CameraPath:
    """Walk about smoothly at random, and come back to places already seen.

    The walk keeps to a part of the scene so small that on average each place is passed at least `visits` times.
    """
    handling = handling or Handling()
    free = np.array(_free_size("wander", scene_size, frame_size, frames, step, handling))
    if visits <= 0:
        raise UsageError(f"wander: {visits} visits, give a positive number")
    pace = _pace(frame_size, step, handling)
    swept = frames * pace * frame_size[1] * handling.scale
    # The frames cover the region of their centres and half a frame around it.
    frame = np.array(frame_size) * handling.scale
    part = min(math.sqrt(swept / visits / float(np.prod(free + frame))), 1.0)
    home = np.clip(part * (free + frame) - frame, np.minimum(free, 2 * pace), free)
    per_frame = 16
    rng = np.random.default_rng([seed, 0])
    # Curvature is smooth over a few frames. The free walk is longer than needed, because rounding its bounces and
    # cutting it to length shorten it.
    bend = gaussian_filter1d(rng.standard_normal(3 * frames * per_frame), 4 * per_frame)
    direction = rng.uniform(0, 2 * np.pi) + np.cumsum(bend / bend.std()) * 0.12 / per_frame
    start = rng.uniform(-home / 2, home / 2)
    walk = start + np.cumsum(np.column_stack([np.cos(direction), np.sin(direction)]), axis=0) * pace / per_frame
    return _fly("wander", _pace_out(_fold(walk, home), pace, frames), scene_size, frame_size, handling, seed)


def follow_curve(knots: Points, run: NDArray[np.float64]) -> Points:
    """Return the points (n, 2) on the smooth curve through `knots` (k, 2), after the ways `run` (n,) along it."""
    count = len(knots)
    smooth = CubicSpline(np.arange(count), knots)(np.linspace(0, count - 1, count * POINTS_A_KNOT))
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(smooth, axis=0), axis=1))])
    return np.column_stack([np.interp(run, along, smooth[:, c]) for c in (0, 1)])


def _fold(walk: Points, size: NDArray[np.float64]) -> Points:
    """Reflect a walk at the sides of a box about the origin, and round the corners of each reflection."""
    roundness = 0.985
    swing = np.sin(np.pi * walk / np.maximum(size, 1e-9))
    return size / 2 * np.arcsin(roundness * swing) / math.asin(roundness)


def _pace_out(line: Points, pace: float, frames: int) -> Points:
    """Return points (frames, 2) that lie `pace` apart along a polyline."""
    run = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    wanted = pace * np.arange(frames)
    assert wanted[-1] <= run[-1] * (1 + 1e-9) + 1e-9, "the way is too short"
    return np.column_stack([np.interp(wanted, run, line[:, c]) for c in (0, 1)])


def _pace(frame_size: tuple[int, int], step: float, handling: Handling) -> float:
    return step * frame_size[0] * handling.scale


def _free_size(
    name: str,
    scene_size: tuple[int, int],
    frame_size: tuple[int, int],
    frames: int,
    step: float,
    handling: Handling,
) -> tuple[float, float]:
    """Return the width and height of the region where a frame's centre may be."""
    if frames < 1:
        raise UsageError(f"{name}: {frames} frames, give at least 1")
    if not 0 < step < 1:
        raise UsageError(f"{name}: step {step} must lie between 0 and 1 frame widths, or frames do not overlap")
    reach_x, reach_y = handling.reach(*frame_size)
    free = scene_size[0] - 2 * reach_x, scene_size[1] - 2 * reach_y
    if min(free) < 0:
        raise UsageError(
            f"{name}: a frame of {frame_size[0]} × {frame_size[1]} with this handling needs {2 * reach_x:.0f} × "
            f"{2 * reach_y:.0f} pixels, the scene has {scene_size[0]} × {scene_size[1]}"
        )
    return free


def _fly(
    name: str,
    offsets: Points,
    scene_size: tuple[int, int],
    frame_size: tuple[int, int],
    handling: Handling,
    seed: int,
) -> CameraPath:
    """Hold a camera at `offsets` (N, 2) from the centre of the scene."""
    middle = Outline.of_pixels(*scene_size).centre
    pose: Pose = handling.hold(len(offsets), np.random.default_rng([seed, 1]))
    return CameraPath(name, *frame_size, pose.place(middle + offsets, Outline.of_pixels(*frame_size)))


SLOWNESS_FRAMES = 15.0
"""Heading and zoom change over about so many frames."""
SHAKE_LIMIT = 3.0
"""Shake is cut off at so many standard deviations, so that the reach of a path is known in advance."""


@dataclass(frozen=True, slots=True)
class Handling:
    """How much a camera deviates from level and straight flight. All zero: it only shifts."""

    heading_degrees: float = 0.0  # slow turns, up to this angle either way
    zoom: float = 0.0  # slow changes of scale, up to this fraction either way
    shake_px: float = 0.0  # standard deviation of each coordinate, in frame pixels, independent from frame to frame
    shake_degrees: float = 0.0  # the same for the heading
    scale: float = 1.0  # scene pixels a frame pixel, without zoom

    def __post_init__(self) -> None:
        for name in ("heading_degrees", "zoom", "shake_px", "shake_degrees"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise UsageError(f"handling: {name} is {value}, give 0 or a positive number")
        if not 0 < self.scale < math.inf:
            raise UsageError(f"handling: scale is {self.scale}, give a positive number")

    def reach(self, width: int, height: int) -> tuple[float, float]:
        """Return how far, in scene pixels, a frame may extend from its position on the path along x and y."""
        turn = math.radians(self.heading_degrees + SHAKE_LIMIT * self.shake_degrees)
        largest = self.scale * (1 + self.zoom)
        shake = SHAKE_LIMIT * self.shake_px * self.scale * (1 + self.zoom)
        diagonal = math.hypot(width, height) / 2
        # A side reaches farthest when the diagonal lies along the axis, or else at the largest turn.
        to_x, to_y = math.atan2(height, width), math.atan2(width, height)
        reach_x = diagonal * math.cos(max(to_x - turn, 0.0))
        reach_y = diagonal * math.cos(max(to_y - turn, 0.0))
        return largest * reach_x + shake, largest * reach_y + shake

    def hold(self, frames: int, rng: np.random.Generator) -> Pose:
        """Draw heading, scale and shake of all frames."""
        heading = self.heading_degrees * draw_drift(frames, SLOWNESS_FRAMES, rng)
        heading += self.shake_degrees * _shake((frames,), rng)
        scale = self.scale * (1 + self.zoom) ** draw_drift(frames, SLOWNESS_FRAMES, rng)
        shift = self.shake_px * scale[:, None] * _shake((frames, 2), rng)
        return Pose(np.radians(heading), scale, shift)


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Turn, scale and shift of each frame."""

    heading: NDArray[np.float64]  # (N,), radians, clockwise on the screen
    scale: NDArray[np.float64]  # (N,), scene pixels a frame pixel
    shift: Points  # (N, 2), scene pixels

    def place(self, centres: Points, outline: Outline) -> Transforms:
        """Return `mosaic_from_frame` (N, 2, 3) of frames whose own centres are held over `centres` (N, 2)."""
        cos, sin = self.scale * np.cos(self.heading), self.scale * np.sin(self.heading)
        linear = np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)
        origin = centres + self.shift - linear @ outline.centre
        return np.concatenate([linear, origin[:, :, None]], axis=2)


def view_tilted(
    centres: Points,
    turn: NDArray[np.float64],
    scale: NDArray[np.float64],
    lean: NDArray[np.float64],
    focal_px: float,
    middle: Points,
) -> Homographies:
    """Return `plane_from_frame` (N, 3, 3) of a pinhole camera whose middle pixel shows `centres`.

    `lean` (N, 2) is the rotation vector of the tilt, about the camera's x and y axes, in radians.
    """
    ray_from_pixel = np.array(
        [[1 / focal_px, 0, -middle[0] / focal_px], [0, 1 / focal_px, -middle[1] / focal_px], [0, 0, 1]]
    )
    none = np.zeros(len(turn))
    plane_from_camera = (
        Rotation.from_rotvec(np.column_stack([none, none, turn])) * Rotation.from_rotvec(np.column_stack([lean, none]))
    ).as_matrix()
    rays: Homographies = plane_from_camera @ ray_from_pixel
    distance = (focal_px * scale)[:, None, None]
    # A ray meets the plane where its third coordinate is 1.
    axis = plane_from_camera[:, :2, 2:] / plane_from_camera[:, 2:, 2:]
    rays[:, :2] = distance * rays[:, :2] + (centres[:, :, None] - distance * axis) * rays[:, 2:]
    return rays


def _shake(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.clip(rng.standard_normal(shape), -SHAKE_LIMIT, SHAKE_LIMIT)
