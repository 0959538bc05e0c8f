"""The ground's colours: rows of the fields, patches, and the light on its slopes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled
from smalti.synthetic.landscape.noise import fractal_noise
from smalti.synthetic.landscape.parcels import Parcel

TRAM_LINES_APART = 88.0
"""Pixels between the tracks that a sprayer leaves in a crop."""


MIDDLE_GREY = 128.0
"""The brightness at which a contrast in grey levels is meant; darker land varies less, and keeps its colour."""


def paint_ground(width: int, height: int, parcels: Sequence[Parcel], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the land without anything that stands on it: (height, width, 3)."""
    labels = np.zeros((height, width), np.int32)
    for label, parcel in enumerate(parcels):
        parcel.draw_on(labels, label)
    broad = fractal_noise(width, height, 512, 64, rng)
    patchy = fractal_noise(width, height, 64, 8, rng, roughness=0.75)
    fine = fractal_noise(width, height, 8, 2, rng, roughness=0.8)
    light = np.array([parcel.land.light + parcel.tint for parcel in parcels], np.float32)
    dark = np.array([parcel.land.dark + parcel.tint for parcel in parcels], np.float32)
    # One row a parcel: the rows' direction over their period, their contrast, the patches' strength, and the
    # tram lines' frequency (0 for none).
    rows = np.array([_describe_rows(parcel) for parcel in parcels], np.float32)
    picture = np.empty((height, width, 3), np.uint8)
    _paint(picture, labels, broad, patchy, fine, light, dark, rows)
    return picture


def _describe_rows(parcel: Parcel) -> tuple[float, ...]:
    frequency = 1 / parcel.row_period
    has_tram_lines = parcel.land.name in ("wheat", "young crop", "rape", "maize")
    return (
        -np.sin(parcel.row_angle) * frequency,
        np.cos(parcel.row_angle) * frequency,
        parcel.land.contrast,
        parcel.land.patches,
        parcel.row_period / TRAM_LINES_APART if has_tram_lines else 0.0,
    )


@compiled
def _paint(
    picture: NDArray[np.uint8],
    labels: NDArray[np.int32],
    broad: NDArray[np.float32],
    patchy: NDArray[np.float32],
    fine: NDArray[np.float32],
    light: NDArray[np.float32],
    dark: NDArray[np.float32],
    rows: NDArray[np.float32],
) -> None:
    height, width = labels.shape
    for y in range(height):
        for x in range(width):
            parcel = labels[y, x]
            coarse, medium, small = broad[y, x], patchy[y, x], fine[y, x]
            # Patches push the rows aside a little: no two places of a field look the same.
            phase = x * rows[parcel, 0] + y * rows[parcel, 1] + 0.22 * medium + 0.10 * small
            grey = rows[parcel, 2] * np.sin(2 * np.pi * phase) * (0.75 + 0.35 * medium)
            grey += rows[parcel, 3] * (medium + 0.7 * small)
            # Tussocks and stones, bare spots and holes: what is rare is what tells places apart.
            grey += 18.0 * (max(small - 0.9, 0.0) - max(-small - 0.9, 0.0))
            tram = phase * rows[parcel, 4]
            from_track = abs(tram - np.floor(tram) - 0.5) * TRAM_LINES_APART
            if rows[parcel, 4] > 0 and 3.0 < from_track < 6.5:
                grey -= 20.0 + 5.0 * small
            # The sun stands in the upper left; slopes that fall towards it are lighter.
            slope = broad[y, x] - broad[max(y - 6, 0), max(x - 6, 0)]
            sun = 1.0 - 0.9 * min(max(slope, -0.12), 0.12)
            mix = min(max(0.5 + 0.42 * coarse + 0.16 * medium, 0.0), 1.0)
            for c in range(3):
                value = light[parcel, c] * mix + dark[parcel, c] * (1 - mix)
                # Dry patches are redder, moist ones bluer.
                value = (value + grey * (0.4 + 0.6 * value / MIDDLE_GREY) + 3.5 * (1 - c) * coarse) * sun
                picture[y, x, c] = np.uint8(min(max(value, 0.0), 255.0))
