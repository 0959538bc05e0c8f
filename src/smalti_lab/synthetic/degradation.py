"""The faults of a real camera: blur, changing exposure, vignetting, noise; and slow random change."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from smalti.errors import UsageError
from smalti.records import Points

DRIFT_FRAMES = 20.0
FRAMES_BETWEEN_STEPS = 60.0


@dataclass(frozen=True, slots=True)
class Degradation:
    """The amount of each fault; none by default."""

    blur_px: float = 0.0  # standard deviation of a Gaussian
    motion_blur: float = 0.0  # fraction of the path to the next frame during which the shutter is open
    exposure: float = 0.0  # largest change of brightness either way, as a fraction
    noise: float = 0.0  # standard deviation in grey levels, independent for each pixel and channel
    vignetting: float = 0.0  # fraction of the light that the corners lack

    def __post_init__(self) -> None:
        for name in ("blur_px", "motion_blur", "exposure", "noise", "vignetting"):
            value = getattr(self, name)
            below = 1.0 if name in ("exposure", "vignetting") else math.inf
            if not 0 <= value < below:
                limit = " below 1" if below == 1.0 else ""
                raise UsageError(f"degradation: {name} is {value}, give 0 or a positive number{limit}")

    def gains(self, frames: int, seed: int) -> NDArray[np.float64]:
        """Return each frame's exposure (frames,): a slow drift and sometimes a step, within 1 ± `exposure`."""
        rng = np.random.default_rng([seed, 2])
        drift = draw_drift(frames, DRIFT_FRAMES, rng)
        is_step = rng.random(frames) < 1 / FRAMES_BETWEEN_STEPS
        levels = rng.uniform(-1, 1, frames + 1)[np.cumsum(is_step)]
        return np.asarray(1 + self.exposure * (0.5 * drift + 0.5 * levels), np.float64)

    def margin(self, motion: Points) -> int:
        """Return the number of pixels around a frame that its blur uses, for a camera that moves by `motion` (2,)."""
        if not (self.blur_px or self.motion_blur):
            return 0
        return math.ceil(4 * self.blur_px + self.motion_blur * float(np.linalg.norm(motion)) / 2) + 1

    def apply(
        self, sharp: NDArray[np.float32], motion: Points, gain: float, rng: np.random.Generator
    ) -> NDArray[np.uint8]:
        """Turn the image of the lens into what the camera records: (h, w, 3).

        `sharp` has `margin(motion)` pixels more on every side than the frame. `motion` (2,) is the motion to the next
        frame in frame pixels.
        """
        margin = self.margin(motion)
        image = sharp
        if self.motion_blur:
            image = np.asarray(cv2.filter2D(image, -1, trail(self.motion_blur * motion)), np.float32)
        if self.blur_px:
            image = np.asarray(cv2.GaussianBlur(image, (0, 0), self.blur_px), np.float32)
        if margin:
            image = image[margin:-margin, margin:-margin]
        if self.vignetting:
            image = image * _falloff(image.shape[1], image.shape[0], self.vignetting)
        image = image * np.float32(gain)
        if self.noise:
            image = image + np.float32(self.noise) * rng.standard_normal(image.shape, dtype=np.float32)
        return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def trail(motion: Points) -> NDArray[np.float32]:
    """Return the kernel of a straight motion during the exposure, centred so that the picture does not shift."""
    half = math.ceil(float(np.linalg.norm(motion)) / 2) + 1
    kernel = np.zeros((2 * half + 1, 2 * half + 1))
    # Points along the trail, dense enough that the kernel is smooth. Each is divided among its four neighbours.
    for t in np.linspace(-0.5, 0.5, 16 * half + 1):
        x, y = half + t * motion
        column, row = int(x), int(y)
        right, down = x - column, y - row
        kernel[row : row + 2, column : column + 2] += np.outer([1 - down, down], [1 - right, right])
    return np.asarray(kernel / kernel.sum(), np.float32)


def _falloff(width: int, height: int, vignetting: float) -> NDArray[np.float32]:
    """Return (h, w, 1): 1 in the middle, 1 - vignetting in the corners, with circular symmetry."""
    x = np.arange(width) - (width - 1) / 2
    y = np.arange(height) - (height - 1) / 2
    away = (x[None, :] ** 2 + y[:, None] ** 2) / (width**2 + height**2) * 4
    return np.asarray(1 - vignetting * away, np.float32)[:, :, None]


def draw_drift(frames: int, slowness_frames: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a smooth random function of time, (frames,), between -1 and 1, that changes over `slowness_frames`."""
    margin = int(4 * slowness_frames)
    smooth = gaussian_filter1d(rng.standard_normal(frames + 2 * margin), slowness_frames)[margin : margin + frames]
    deviation = (2 * math.sqrt(math.pi) * slowness_frames) ** -0.5
    return np.asarray(np.tanh(smooth / deviation), np.float64)
