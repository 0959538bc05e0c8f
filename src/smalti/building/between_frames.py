"""Place the frames between keyframes, by how the camera was followed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import logm

from smalti.geometry.homographies import (
    BASIS,
    PROJECTIVE,
    Family,
    apply_map,
    exponential,
    invert_homographies,
    normalise,
)
from smalti.geometry.lens import Lens
from smalti.project.entries import Placement
from smalti.records import Homographies, Points
from smalti.registration.camera_tracking import Track, fit_map

FEWEST_SHARED = 8
GRID = 7
"""Points a side, by which a map of pixels as recorded becomes one of undistorted pixels, or of fewer freedoms."""


@dataclass
class _Stretch:
    """The frames of a stretch in which the camera was never lost, each with its map to the stretch's first one."""

    numbers: list[int]
    first_from_frame: dict[int, Homographies]  # (3, 3), of pixels as recorded, divided by their norm
    sigma_px: dict[int, float]


def place_between(
    placements: Sequence[Placement], tracks: Mapping[int, tuple[int, Track]], lens: Lens, family: Family = PROJECTIVE
) -> list[Placement]:
    """Return where all other frames lie that were followed, by maps of the family that all maps are of.

    A frame has two predictions: from the keyframe before it and from the one after it. What they disagree by is shared
    out over the way between the two keyframes, so that the mosaic stays whole.
    """
    placed = {placement.number: placement for placement in placements}
    found: list[Placement] = []
    for stretch in _stretches(tracks):
        keys = [number for number in stretch.numbers if number in placed]
        between: dict[tuple[int | None, int | None], list[int]] = {}
        for number in stretch.numbers:
            if number not in placed and keys:
                after = bisect_right(keys, number)
                ends = keys[after - 1] if after else None, keys[after] if after < len(keys) else None
                between.setdefault(ends, []).append(number)
        for (before, after_it), numbers in between.items():
            one, other = (None if end is None else placed[end] for end in (before, after_it))
            if one is not None and other is not None and one.part == other.part:
                found += _place_within(numbers, one, other, stretch, lens, family)
            else:
                nearest = one if one is not None else other
                assert nearest is not None
                found += _place_beside(numbers, nearest, stretch, lens, family)
    return found


def _stretches(tracks: Mapping[int, tuple[int, Track]]) -> list[_Stretch]:
    """Return the stretches; a keyframe that could not be followed begins one."""
    stretch_of: dict[int, _Stretch] = {}
    stretches: list[_Stretch] = []
    for number, (key, track) in sorted(tracks.items()):
        if key not in stretch_of:
            stretch_of[key] = _Stretch([key], {key: np.eye(3)}, {key: 0.0})
            stretches.append(stretch_of[key])
        stretch = stretch_of[number] = stretch_of[key]
        product = stretch.first_from_frame[key] @ track.anchor_from_frame
        stretch.numbers.append(number)
        stretch.first_from_frame[number] = product / np.linalg.norm(product)
        stretch.sigma_px[number] = track.sigma_px
    return stretches


def _relative(stretch: _Stretch, key: int, numbers: Sequence[int], lens: Lens, family: Family) -> Homographies:
    """Return where frames lie in a keyframe, (n, 3, 3), of undistorted pixels."""
    first = invert_homographies(stretch.first_from_frame[key])
    maps = normalise(np.array([first @ stretch.first_from_frame[number] for number in numbers]))
    if lens.is_undistorted and family is PROJECTIVE:
        return maps
    corner, opposite = lens.outline.corners[[0, 2]]
    side = np.linspace(0.05, 0.95, GRID)
    grid = corner + np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) * (opposite - corner)
    return np.array([_fitted(one, grid, lens, family) for one in maps])


def _fitted(key_from_frame: Homographies, grid: Points, lens: Lens, family: Family) -> Homographies:
    """Return the nearest map of undistorted pixels, of the family."""
    tracked = apply_map(key_from_frame, grid)
    shared = lens.outline.contains(tracked)
    if np.sum(shared) < FEWEST_SHARED:
        shared[:] = True
    return fit_map(lens.undistort(grid[shared]), lens.undistort(tracked[shared]), family.freedom)


def _place_within(
    numbers: Sequence[int], before: Placement, after: Placement, stretch: _Stretch, lens: Lens, family: Family
) -> list[Placement]:
    maps = _relative(stretch, before.number, [*numbers, after.number], lens, family)
    before_from_frame, before_from_after = maps[:-1], maps[-1]
    grid = lens.outline.scaled(0.5).corners
    way_there = np.array([_moved(one, grid) for one in before_from_frame])
    way_on = np.array([_moved(invert_homographies(before_from_after) @ one, grid) for one in before_from_frame])
    share = (way_there + 1e-9) / (way_there + way_on + 2e-9)
    placed = {
        name: _shared_out(known_before, known_after, before_from_frame, before_from_after, share, lens)
        for name, known_before, known_after in (
            ("chain", before.chain, after.chain),
            ("final", before.final, after.final),
        )
    }
    missed = _moved(invert_homographies(before.final) @ after.final @ invert_homographies(before_from_after), grid)
    sigma = [
        np.sqrt(
            (1.0 - part) * before.sigma_px**2
            + part * after.sigma_px**2
            + part * (1.0 - part) * missed**2
            + stretch.sigma_px[number] ** 2
        )
        for number, part in zip(numbers, share.tolist(), strict=True)
    ]
    return [
        Placement(number, before.part, placed["chain"][n], placed["final"][n], float(sigma[n]))
        for n, number in enumerate(numbers)
    ]


def _shared_out(
    mosaic_from_before: Homographies,
    mosaic_from_after: Homographies,
    before_from_frame: Homographies,
    before_from_after: Homographies,
    share: NDArray[np.float64],
    lens: Lens,
) -> Homographies:
    """Return the maps (n, 3, 3) of frames that end where the keyframes lie, with what is missed shared out (n,)."""
    centre, unit = lens.outline.centre, lens.outline.unit
    pixels_from_units = np.array([[unit, 0.0, centre[0]], [0.0, unit, centre[1]], [0.0, 0.0, 1.0]])
    units_from_pixels = invert_homographies(pixels_from_units)
    after_from_frame = invert_homographies(before_from_after) @ before_from_frame
    by_before = mosaic_from_before @ before_from_after
    # Both maps are of the keyframe after: X is what the tracks have missed there.
    missed = units_from_pixels @ invert_homographies(by_before) @ mosaic_from_after @ pixels_from_units
    determinant = float(np.linalg.det(missed))
    direction = np.asarray(logm(missed / np.cbrt(determinant))) if determinant > 0.0 else np.array([1j])
    if np.isrealobj(direction):
        part_of_it = exponential(share[:, None] * _coefficients(direction)[None])
        return normalise(by_before @ pixels_from_units @ part_of_it @ units_from_pixels @ after_from_frame)
    # Something is badly wrong here, and there is no way from one to the other.
    is_before = (share < 0.5)[:, None, None]
    return normalise(np.where(is_before, by_before @ after_from_frame, mosaic_from_after @ after_from_frame))


def _coefficients(direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coefficients (8,) of a matrix (3, 3) in the directions in which a map moves, up to its scale."""
    traceless = direction - direction[2, 2] * np.eye(3)
    solved: NDArray[np.float64] = np.linalg.lstsq(BASIS.reshape(8, 9).T, traceless.ravel(), rcond=None)[0]
    return solved


def _place_beside(
    numbers: Sequence[int], key: Placement, stretch: _Stretch, lens: Lens, family: Family
) -> list[Placement]:
    key_from_frame = _relative(stretch, key.number, numbers, lens, family)
    return [
        Placement(
            number,
            key.part,
            normalise(key.chain @ key_from_frame[n]),
            normalise(key.final @ key_from_frame[n]),
            float(np.hypot(key.sigma_px, stretch.sigma_px[number])),
        )
        for n, number in enumerate(numbers)
    ]


def _moved(b_from_a: Homographies, points: Points) -> float:
    """Return how far a map moves points (n, 2), RMS."""
    return float(np.sqrt(np.mean(np.sum((apply_map(b_from_a, points) - points) ** 2, axis=1))))
