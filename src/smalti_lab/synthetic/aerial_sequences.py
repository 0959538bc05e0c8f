"""Long aerial sequences with exact truth: a video with crossings, a video straight ahead, a survey in strips.

The camera tilts a little, so that maps are homographies. The country below is painted block by block: it can have any
size, and no two places look the same. A frame takes a few milliseconds, so that an hour of video can be made while one
waits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.errors import UsageError
from smalti.geometry.homographies import project_points
from smalti.geometry.outline import Outline
from smalti.records import Homographies, Points
from smalti_lab.synthetic.camera_path import Handling, follow_curve, raster, view_tilted, wander
from smalti_lab.synthetic.degradation import Degradation, draw_drift
from smalti_lab.synthetic.scene import procedural_scene
from smalti_lab.synthetic.synthetic_sequence import RenderedFrames

FRAME = (640, 480)
FOCAL_PX = 700.0
BLOCK, SHARED = 2048, 96
"""Side of a block of country, and how much of it fades into the next one, in pixels."""

LIGHT = Degradation(exposure=0.06, noise=1.5, vignetting=0.12)
BYTE_DEVIATION = math.sqrt(4 * (256**2 - 1) / 12)
"""Standard deviation of the sum of four random bytes, which stands for normal noise."""

KNOT_STEP = 0.28
"""Frame widths between the points through which a video's path is drawn."""

AHEAD = 4
"""Frames that are rendered before they are asked for, a core."""


@dataclass(frozen=True, slots=True)
class Unsteadiness:
    """How far a camera deviates from level flight either way, and over how many frames that changes."""

    heading_degrees: float = 12.0
    zoom: float = 0.05
    tilt_degrees: float = 3.0
    slowness_frames: float = 60.0

    @property
    def reach(self) -> Handling:
        """The handling that needs as much room. A tilted frame shows a little more on one side."""
        more = 1 + FRAME[0] / FOCAL_PX * math.tan(math.radians(self.tilt_degrees))
        return Handling(self.heading_degrees, (1 + self.zoom) * more - 1)

    def hold(self, centres: Points, size: tuple[int, int], rng: np.random.Generator) -> Homographies:
        """Return `mosaic_from_frame` (N, 3, 3) of frames that look at `centres` (N, 2) with their middle."""

        def drift() -> NDArray[np.float64]:
            return draw_drift(len(centres), self.slowness_frames, rng)

        turn = math.radians(self.heading_degrees) * drift()
        scale = (1 + self.zoom) ** drift()
        lean = math.radians(self.tilt_degrees) / math.sqrt(2) * np.column_stack([drift(), drift()])
        maps = view_tilted(centres, turn, scale, lean, FOCAL_PX, Outline.of_pixels(*size).centre)
        return maps / maps[:, 2:, 2:]


@dataclass(frozen=True, eq=False)
class AerialSequence(RenderedFrames):
    """Frames of a scene under a camera that tilts. Frame n is always the same."""

    scene: NDArray[np.uint8]  # (h, w, 3)
    mosaic_from_frame: Homographies  # (N, 3, 3), the truth, in scene pixels
    size: tuple[int, int] = FRAME
    degradation: Degradation = field(default_factory=lambda: LIGHT)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.degradation.blur_px or self.degradation.motion_blur:
            raise UsageError("an aerial sequence has no blur; give exposure, noise and vignetting only")
        room = Outline.of_pixels(self.scene.shape[1], self.scene.shape[0])
        corners = project_points(self.mosaic_from_frame, Outline.of_pixels(*self.size).corners)
        inside = room.contains(corners, tolerance=1e-6).all(axis=1)
        if not inside.all():
            raise UsageError(f"frame {int(np.argmin(inside))} leaves the scene of {room.width:g} × {room.height:g} px")

    def __len__(self) -> int:
        return len(self.mosaic_from_frame)

    @property
    def width(self) -> int:
        """Width of a frame in pixels."""
        return self.size[0]

    @property
    def height(self) -> int:
        """Height of a frame in pixels."""
        return self.size[1]

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """(N,): each frame's exposure."""
        return self.degradation.gains(len(self), self.seed)

    def frame(self, n: int) -> NDArray[np.uint8]:
        """Render frame n: (height, width, 3), RGB."""
        frame = np.empty((self.height, self.width, 3), np.uint8)
        noise = np.float32(self.degradation.noise / BYTE_DEVIATION)
        start = np.random.default_rng([self.seed, 3, n]).integers(1, 2**32, self.height, np.uint32)
        _film(self.scene, self.mosaic_from_frame[n], np.float32(self.gains[n]), self._falloff, noise, start, frame)
        return frame

    @cached_property
    def _falloff(self) -> NDArray[np.float32]:
        """The share of the light that reaches each pixel: (h, w)."""
        x, y = (np.arange(side) - (side - 1) / 2 for side in self.size)
        away = 4 * (x[None] ** 2 + y[:, None] ** 2) / (self.width**2 + self.height**2)
        return np.asarray(1 - self.degradation.vignetting * away, np.float32)

    def read_many(self, indices: Iterable[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Render frames on all cores, a few ahead of the one that is asked for."""
        cores = os.cpu_count() or 1
        numbers = iter(indices)
        _ = self.gains, self._falloff  # before the threads start
        with ThreadPoolExecutor(cores) as pool:
            ahead: list[tuple[int, Future[NDArray[np.uint8]]]] = []
            for n in islice(numbers, AHEAD * cores):
                ahead.append((n, pool.submit(self.frame, n)))
            while ahead:
                n, rendered = ahead.pop(0)
                yield n, rendered.result()
                for other in islice(numbers, 1):
                    ahead.append((other, pool.submit(self.frame, other)))


def fly_about(frames: int, seed: int = 0, *, step_px: float = 6.0, visits: float = 1.5) -> AerialSequence:
    """Film a walk at random that crosses itself: every place is passed `visits` times on average."""
    held = Unsteadiness()
    run = step_px * np.arange(frames, dtype=np.float64)
    pace = KNOT_STEP * FRAME[0]
    knots = math.ceil(run[-1] / pace) + 4
    # The area that the frames sweep, divided by the visits, and the room that a frame needs around its centre.
    reach = held.reach.reach(*FRAME)
    side = math.sqrt(max(run[-1], pace) * FRAME[1] / visits)
    size = math.ceil(side + 2 * reach[0]), math.ceil(side + 2 * reach[1])
    spare = Handling(held.reach.heading_degrees, held.reach.zoom, shake_px=10)  # a spline overshoots its knots a little
    places = wander(size, knots, FRAME, step=KNOT_STEP, visits=1e-3, handling=spare, seed=seed).centres
    maps = held.hold(follow_curve(places, run), FRAME, np.random.default_rng([seed, 1]))
    return AerialSequence(paint_country(*size, seed), maps, seed=seed)


def fly_ahead(frames: int, seed: int = 0, *, step: float = 0.55) -> AerialSequence:
    """Photograph straight ahead, `step` frame widths apart, and never return: a frame overlaps its neighbours alone."""
    held = Unsteadiness(slowness_frames=15.0)
    reach = held.reach.reach(*FRAME)
    size = math.ceil(step * FRAME[0] * (frames - 1) + 2 * reach[0]) + 1, math.ceil(2 * reach[1]) + 41
    along = step * FRAME[0] * np.arange(frames)
    centres = np.column_stack([reach[0] + along, size[1] / 2 + 20 * np.sin(along / 900)])
    maps = held.hold(centres, FRAME, np.random.default_rng([seed, 1]))
    return AerialSequence(paint_country(*size, seed), maps, seed=seed)


def survey(frames: int, seed: int = 0, *, step: float = 0.4, sidelap: float = 0.3) -> AerialSequence:
    """Photograph strips to and fro. Each frame sees 1 - `step` of the one before, and `sidelap` of the next strip."""
    held = Unsteadiness(heading_degrees=4.0, zoom=0.03, tilt_degrees=2.0, slowness_frames=3.0)
    spare = Handling(held.heading_degrees, held.reach.zoom, shake_px=8.0)
    reach = spare.reach(*FRAME)
    area = frames * step * FRAME[0] * (1 - sidelap) * FRAME[1]
    side = math.sqrt(area) + FRAME[0]
    size = math.ceil(side + 2 * reach[0]), math.ceil(side + 2 * reach[1])
    strips = max(round(math.sqrt(area) / ((1 - sidelap) * FRAME[1])), 1)
    path = raster(size, frames, FRAME, step=step, sidelap=sidelap, strips=strips, handling=spare, seed=seed)
    maps = held.hold(path.centres, FRAME, np.random.default_rng([seed, 1]))
    return AerialSequence(paint_country(*size, seed), maps, seed=seed)


def paint_country(width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """Paint farmland of any size, (height, width, 3): blocks that fade into each other. Memory is the picture's."""
    country = np.zeros((height, width, 3), np.uint8)
    ramp = (np.arange(SHARED, dtype=np.float64) + 0.5)[:, None, None] / SHARED
    step = BLOCK - SHARED
    for row, top in enumerate(range(0, max(height - SHARED, 1), step)):
        strip = np.zeros((BLOCK, width, 3), np.uint8)
        for column, left in enumerate(range(0, max(width - SHARED, 1), step)):
            block = procedural_scene(BLOCK, BLOCK, seed=1_000_003 * seed + 1_009 * row + column)
            block = block[:, : width - left]
            if left:
                weight = ramp.transpose(1, 0, 2)[:, : block.shape[1]]
                block[:, :SHARED] = _mix(strip[:, left : left + SHARED], block[:, :SHARED], weight)
            strip[:, left : left + BLOCK] = block
        strip = strip[: height - top]
        if top:
            strip[:SHARED] = _mix(country[top : top + SHARED], strip[:SHARED], ramp[: len(strip)])
        country[top : top + BLOCK] = strip
    return country


def _mix(first: NDArray[np.uint8], second: NDArray[np.uint8], weight: NDArray[np.float64]) -> NDArray[np.uint8]:
    mixed = (1 - weight) * first + weight * second
    return np.rint(mixed).astype(np.uint8)


@compiled
def _film(
    scene: NDArray[np.uint8],
    mosaic_from_frame: Homographies,
    gain: np.float32,
    falloff: NDArray[np.float32],
    noise: np.float32,
    start: NDArray[np.uint32],
    frame: NDArray[np.uint8],
) -> None:
    """Sample the scene at every pixel's own coordinates, and expose it: `start` (h,) are the seeds of the rows' noise.

    The kernel is R. Keys' of four points, exact for polynomials of the second degree.
    """
    rows, columns = scene.shape[:2]
    across, down = np.empty(4, np.float32), np.empty(4, np.float32)
    sums = np.empty(12, np.float32)
    for v in range(frame.shape[0]):
        state = np.int64(start[v])
        for u in range(frame.shape[1]):
            depth = mosaic_from_frame[2, 0] * u + mosaic_from_frame[2, 1] * v + mosaic_from_frame[2, 2]
            x = (mosaic_from_frame[0, 0] * u + mosaic_from_frame[0, 1] * v + mosaic_from_frame[0, 2]) / depth
            y = (mosaic_from_frame[1, 0] * u + mosaic_from_frame[1, 1] * v + mosaic_from_frame[1, 2]) / depth
            # At the scene's border the polynomial of the last four pixels continues.
            left = min(max(math.floor(x), 1), columns - 3)
            top = min(max(math.floor(y), 1), rows - 3)
            _weigh(np.float32(x - left), across)
            _weigh(np.float32(y - top), down)
            for k in range(4):
                sums[3 * k] = sums[3 * k + 1] = sums[3 * k + 2] = np.float32(0)
            for j in range(4):
                weight = down[j]
                for k in range(4):
                    for c in range(3):
                        sums[3 * k + c] += weight * np.float32(scene[top - 1 + j, left - 1 + k, c])
            # Marsaglia's xorshift of 32 bits, in 64.
            state ^= (state << 13) & 0xFFFFFFFF
            state ^= state >> 17
            state ^= (state << 5) & 0xFFFFFFFF
            bytes_sum = (state & 255) + ((state >> 8) & 255) + ((state >> 16) & 255) + (state >> 24)
            grain = noise * (np.float32(bytes_sum) - np.float32(510))
            light = gain * falloff[v, u]
            for c in range(3):
                value = np.float32(0)
                for k in range(4):
                    value += across[k] * sums[3 * k + c]
                value = value * light + grain + np.float32(0.5)
                frame[v, u, c] = np.uint8(min(max(value, np.float32(0)), np.float32(255)))


@compiled
def _weigh(t: np.float32, weights: NDArray[np.float32]) -> None:
    """Fill in the weights of the pixels -1, 0, 1 and 2 around a point that lies `t` to the right of pixel 0."""
    half, two = np.float32(0.5), np.float32(2)
    weights[0] = half * t * (-np.float32(1) + t * (two - t))
    weights[1] = half * (two + t * t * (np.float32(3) * t - np.float32(5)))
    weights[2] = half * t * (np.float32(1) + t * (np.float32(4) - np.float32(3) * t))
    weights[3] = half * t * t * (t - np.float32(1))
