"""Place the tiles of a raster that no match of two tiles places: blank ones, and parts that blank ones surround.

First each is compared with all placed tiles around it at once: two or three points in every strip that it shares with
one of them are too few to match the two, but together they show where it lies (`_meet`). The others lie on the grid.

The placed tiles determine the grid of the stage: position = origin + place on the line · step + line · step, and an
offset of every second line, which a stage that goes back and forth has. To this the mean is added by which nearby tiles
deviate from the grid. The error is how far placed tiles lie from where their neighbours alone would have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from smalti.building.raster import Raster
from smalti.building.source_questions import Questions
from smalti.geometry.homographies import apply_map, invert_homographies, normalise, project_points
from smalti.geometry.lens import Lens
from smalti.project.entries import FrameEntry, Placement, Role
from smalti.records import Expectation, Homographies, Pair, Points
from smalti.registration.constellation import MEET_PX, Shift, Stars, find_shift
from smalti.registration.feature_pyramid import tangent_at

NEIGHBOURS = 12
"""Placed tiles whose deviation from the grid counts for a tile."""

FARTHEST_DEVIATION = 4.0
"""In usual deviations: tiles farther from the grid do not count for it."""

FEWEST_KEYPOINTS = 10
"""Tiles set aside that have so many are matched with their neighbours."""

BESIDE = ((0, 1), (0, -1), (1, 0), (-1, 0))
AROUND = (*BESIDE, (1, 1), (1, -1), (-1, 1), (-1, -1))

FEWEST_MET = 3
"""Spots by which a tile is placed: with fewer, a speck of dust would do."""

SAMPLED = 24
"""Points a side of a tile by which the share that others cover is measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """The raster of a source's frames."""

    raster: Raster
    places: Sequence[int]  # (N,)

    def cells(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """Return line and place on the line (n, 2) of frames."""
        return np.array([self.raster.cell(self.places[number]) for number in numbers], dtype=float).reshape(-1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Where the tiles of one mosaic lie, and where the others should."""

    placed: Sequence[Placement]
    cells: NDArray[np.float64]  # (n, 2)
    coefficients: NDArray[np.float64]  # (4, 2)
    deviations: Points  # (n, 2), px
    scatter_px: float  # RMS by which a coordinate deviates from what neighbours predict
    tree: cKDTree

    @classmethod
    def of(cls, tiles: Tiles, placed: Sequence[Placement], centre: Points) -> _Grid | None:
        """Fit the grid; return None if the tiles do not determine it."""
        cells = tiles.cells([placement.number for placement in placed])
        rows = _rows(cells)
        if np.linalg.matrix_rank(rows) < rows.shape[1]:
            rows[:, 3] = 0.0  # too few lines to tell the offset of every second one
        positions = project_points(np.array([placement.final for placement in placed]), centre[None])[:, 0]
        kept = np.ones(len(rows), dtype=bool)
        for _ in range(3):
            if np.linalg.matrix_rank(rows[kept, :3]) < 3:
                return None
            coefficients = np.asarray(np.linalg.lstsq(rows[kept], positions[kept], rcond=None)[0], dtype=np.float64)
            deviations = positions - rows @ coefficients
            size = np.linalg.norm(deviations, axis=1)
            kept = size <= FARTHEST_DEVIATION * np.median(size) + 1e-6
        tree = cKDTree(cells[kept])
        inner = cls(
            [p for p, k in zip(placed, kept, strict=True) if k], cells[kept], coefficients, deviations[kept], 0.0, tree
        )
        left = np.array([inner.deviations[n] - inner._mean_deviation(cell, n) for n, cell in enumerate(inner.cells)])
        return replace(inner, scatter_px=float(np.sqrt(np.mean(left**2))))

    def predict(self, number: int, cell: NDArray[np.float64], centre: Points) -> Placement:
        """Return where a tile should lie: with the turn and scale of its nearest neighbour."""
        position = (_rows(cell[None]) @ self.coefficients)[0] + self._mean_deviation(cell)
        distance, nearest = self.tree.query(cell)
        beside = self.placed[int(nearest)]
        final = tangent_at(beside.final, centre)
        final[:2, 2] += position - apply_map(final, centre[None])[0]
        chain = normalise(beside.chain @ np.linalg.inv(beside.final) @ final)
        sigma_px = float(np.hypot(beside.sigma_px, self.scatter_px * np.sqrt(2.0 * max(1.0, distance))))
        return Placement(number, beside.part, chain, final, sigma_px)

    def _mean_deviation(self, cell: NDArray[np.float64], without: int = -1) -> Points:
        distance, near = self.tree.query(cell, k=min(NEIGHBOURS + (without >= 0), len(self.cells)))
        other = np.atleast_1d(near) != without
        weights = 1.0 / np.maximum(np.atleast_1d(distance)[other], 1.0) ** 2
        return np.asarray(weights @ self.deviations[np.atleast_1d(near)[other]] / weights.sum())


@dataclass(frozen=True, slots=True)
class PlacedTiles:
    """Where all tiles lie, and what places those that no match of two tiles places."""

    placements: list[Placement]
    by_spots: list[int]  # a few spots that several tiles around show too
    by_neighbours: list[int]  # the grid of the others alone


def place_tiles(
    tiles: Tiles,
    frames: Sequence[FrameEntry],
    placements: Sequence[Placement],
    questions: Questions,
    keypoints_of: Callable[[int], int],
    stars_of: Callable[[int], Stars],
    lens: Lens,
) -> PlacedTiles:
    """Return where all tiles lie. `frames` are those that can be shown.

    Tiles that were set aside and have enough keypoints, by `keypoints_of`, are matched with their neighbours. Tiles and
    parts that are still left are placed by their spots, by `stars_of`, beginning with those that have the most placed
    tiles around; what then still lies nowhere is where the grid has it.
    """
    centre = lens.outline.centre
    largest = [placement for placement in placements if placement.part == 0]
    grid = _Grid.of(tiles, largest, centre) if largest else None
    if grid is None:
        return PlacedTiles(list(placements), [], [])
    cell_of = dict(zip([frame.number for frame in frames], tiles.cells([f.number for f in frames]), strict=True))
    expected = {number: grid.predict(number, cell, centre) for number, cell in cell_of.items()}
    found = {placement.number: placement for placement in largest}
    left: list[list[Placement]] = []
    for part in sorted({placement.part for placement in placements} - {0}):
        left.append(_join([one for one in placements if one.part == part], expected, lens.outline.corners))
    in_parts = {placement.number for group in left for placement in group}
    matched = dict(found)
    for frame in frames:
        if frame.number not in found and frame.number not in in_parts:
            placed = None
            if frame.reason and keypoints_of(frame.number) >= FEWEST_KEYPOINTS:
                placed = _match(tiles, expected[frame.number], matched, questions, grid.scatter_px, lens)
            if placed is None:
                left.append([expected[frame.number]])
            else:
                found[frame.number] = placed
    by_spots = _Meeting(tiles, stars_of, grid.scatter_px, lens, found).place(left)
    by_grid = [placement for group in left for placement in group if placement.number not in found]
    found |= {placement.number: placement for placement in by_grid}
    return PlacedTiles(
        [found[number] for number in sorted(found)], by_spots, sorted(placement.number for placement in by_grid)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Meeting:
    """Places tiles by the spots that they share with all placed tiles around."""

    tiles: Tiles
    stars_of: Callable[[int], Stars]
    scatter_px: float
    lens: Lens
    found: dict[int, Placement]

    def place(self, groups: Sequence[Sequence[Placement]]) -> list[int]:
        """Add the groups of tiles that can be placed to those found, and return their numbers."""
        left = [group for group in groups if any(len(self.stars_of(one.number)) >= FEWEST_MET for one in group)]
        number_at = {self.tiles.places[one.number]: one.number for group in left for one in group}
        number_at |= {self.tiles.places[number]: number for number in self.found}
        beside = {one.number: self._around(one.number, number_at) for group in left for one in group}
        tried: dict[int, int] = {}
        placed: list[int] = []
        while True:
            # A tile is tried again when more tiles around it have a place.
            known = [sum(other in self.found for one in group for other in beside[one.number]) for group in left]
            waiting = [
                n for n, group in enumerate(left) if group[0].number not in self.found and known[n] > tried.get(n, 0)
            ]
            if not waiting:
                return sorted(placed)
            n = max(waiting, key=lambda n: (len(left[n]), known[n], -n))
            tried[n] = known[n]
            moved = self._move(left[n], beside)
            self.found.update({one.number: one for one in moved})
            placed += [one.number for one in moved]

    def _around(self, number: int, number_at: dict[int, int]) -> list[int]:
        line, along = self.tiles.raster.cell(self.tiles.places[number])
        inside = [
            (line + down, along + right)
            for down, right in AROUND
            if line + down >= 0 and 0 <= along + right < self.tiles.raster.length
        ]
        places = [self.tiles.raster.place(*cell) for cell in inside]
        return [number_at[place] for place in places if place in number_at]

    def _move(self, group: Sequence[Placement], beside: dict[int, list[int]]) -> list[Placement]:
        """Return the tiles of a group, moved together to where the spots of one of them meet those around."""
        best: tuple[Placement, Shift] | None = None
        for one in group:
            around = [self.found[number] for number in beside[one.number] if number in self.found]
            shift = self._meet(one, around) if around else None
            if shift is not None and (best is None or shift.by_chance < best[1].by_chance):
                best = one, shift
        if best is None:
            return []
        one, shift = best
        centre = self.lens.outline.centre
        move: Homographies = np.eye(3)
        move[:2, 2] = apply_map(one.final, (centre + shift.offset)[None])[0] - apply_map(one.final, centre[None])[0]
        sigma_px = float(
            np.hypot(min(self.found[n].sigma_px for n in beside[one.number] if n in self.found), shift.sigma_px)
        )
        return [
            replace(each, chain=normalise(move @ each.chain), final=normalise(move @ each.final), sigma_px=sigma_px)
            for each in group
        ]

    def _meet(self, one: Placement, around: Sequence[Placement]) -> Shift | None:
        """Return by how much a tile lies off, in its own pixels, by the spots of the tiles around."""
        width, height = self.lens.outline.width, self.lens.outline.height
        side = (np.arange(SAMPLED) + 0.5) / SAMPLED
        sampled: Points = np.stack(np.meshgrid(side * width, side * height), axis=-1).reshape(-1, 2) - 0.5
        reach = FARTHEST_DEVIATION * np.sqrt(2.0) * self.scatter_px + 1.0
        own = self.stars_of(one.number)
        own_at = self.lens.undistort(own.points)
        covered, near = np.zeros(len(sampled), dtype=bool), np.zeros(len(own), dtype=bool)
        there: list[Stars] = []
        for other in around:
            one_from_other = invert_homographies(one.final) @ other.final
            other_from_one = invert_homographies(one_from_other)
            covered |= self.lens.outline.contains(apply_map(other_from_one, sampled))
            near |= _contains(apply_map(other_from_one, own_at), width, height, reach)
            stars = self.stars_of(other.number)
            at = apply_map(one_from_other, self.lens.undistort(stars.points))
            inside = _contains(at, width, height, reach)
            there.append(Stars(at[inside], stars.strengths[inside], stars.sigmas[inside]))
        # What two of them show counts once.
        theirs = Stars.of(
            np.concatenate([stars.points for stars in there]),
            np.concatenate([stars.strengths for stars in there]),
            np.concatenate([stars.sigmas for stars in there]),
            2 * MEET_PX,
        )
        ours = Stars(own_at[near], own.strengths[near], own.sigmas[near])
        share = max(float(np.mean(covered)), 1.0 / len(sampled))
        shift = find_shift(theirs, ours, width, height, (np.zeros(2), reach), share)
        return shift if shift is not None and len(shift) >= FEWEST_MET else None


def _contains(points: Points, width: float, height: float, margin: float) -> NDArray[np.bool_]:
    """Tell which points (n, 2) lie in a frame or at most `margin` beside it."""
    return np.asarray(((points > -margin - 0.5) & (points < [width + margin - 0.5, height + margin - 0.5])).all(axis=1))


def _rows(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.ones(len(cells)), cells, cells[:, 0] % 2])


def _join(part: Sequence[Placement], expected: dict[int, Placement], corners: Points) -> list[Placement]:
    """Return the tiles of a part, moved as a whole to where the grid has them."""
    own = project_points(np.array([placement.final for placement in part]), corners).reshape(-1, 2) @ [1, 1j]
    there = np.array([expected[placement.number].final for placement in part])
    wanted = project_points(there, corners).reshape(-1, 2) @ [1, 1j]
    turn = np.vdot(own - own.mean(), wanted - wanted.mean()) / np.vdot(own - own.mean(), own - own.mean())
    shift = wanted.mean() - turn * own.mean()
    move = np.array([[turn.real, -turn.imag, shift.real], [turn.imag, turn.real, shift.imag], [0.0, 0.0, 1.0]])
    return [
        Placement(
            placement.number,
            expected[placement.number].part,
            normalise(move @ placement.chain),
            normalise(move @ placement.final),
            expected[placement.number].sigma_px,
        )
        for placement in part
    ]


def _match(
    tiles: Tiles,
    expected: Placement,
    found: dict[int, Placement],
    questions: Questions,
    scatter_px: float,
    lens: Lens,
) -> Placement | None:
    """Return where a tile lies by its matches with the tiles beside it, None if there are none.

    They move the tile only. Its turn and scale are those of its neighbours: a narrow strip tells little about them.
    """
    number_at = {tiles.places[number]: number for number in found}
    line, along = tiles.raster.cell(tiles.places[expected.number])
    reach = FARTHEST_DEVIATION * np.sqrt(2.0) * scatter_px + 1.0
    off: list[Points] = []
    sigma_px = np.inf
    for down, right in BESIDE:
        inside = line + down >= 0 and 0 <= along + right < tiles.raster.length
        beside = found.get(number_at.get(tiles.raster.place(line + down, along + right), -1)) if inside else None
        if beside is None:
            continue
        pair = Pair(*sorted((expected.number, beside.number)))
        first, second = (beside, expected) if beside.number < expected.number else (expected, beside)
        i_from_j = normalise(np.linalg.inv(first.final) @ second.final)
        answer = questions.ask_of_source(pair, Role.ASIDE, Expectation(i_from_j, np.sqrt(2.0) * scatter_px + 1.0))
        if answer.landmarks is None:
            continue
        on_mosaic = [
            apply_map(placement.final, lens.undistort(points))
            for placement, points in ((first, answer.landmarks.points_i), (second, answer.landmarks.points_j))
        ]
        moved = on_mosaic[0] - on_mosaic[1] if second is expected else on_mosaic[1] - on_mosaic[0]
        if np.linalg.norm(np.median(moved, axis=0)) <= reach:
            off.append(moved)
            sigma_px = min(sigma_px, beside.sigma_px)
    if not off:
        return None
    moved = np.concatenate(off)
    move: Homographies = np.eye(3)
    move[:2, 2] = np.median(moved, axis=0)
    sigma_px = float(np.hypot(sigma_px, np.std(moved) / np.sqrt(len(moved))))
    return replace(expected, chain=move @ expected.chain, final=move @ expected.final, sigma_px=sigma_px)
