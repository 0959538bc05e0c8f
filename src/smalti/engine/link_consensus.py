"""Find links that agree with each other by closing cycles, however wrong the others are.

Least squares and annealing start from a mosaic that wrong links have bent, and may end with a wrong link that displaced
two right ones. Cycles need no mosaic: three links between three frames close, or one of them is wrong. Two wrong links
hardly ever close by chance.

Frames are joined to *groups* by cycles that close. At first every frame is a group. Two links between the same two
groups, or three between three groups, close a cycle through the groups. The links of such cycles are accepted, the
groups that they join become one, and the next round looks at cycles between the larger groups. A link within a group is
accepted if it agrees with the group's mosaic. What is left joins groups that no cycle confirms: one link each, the most
plausible one.

`find_agreeing` is the entry, `_Cycles` holds what closes, the algebra of increments comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from smalti.engine.estimate import Estimate
from smalti.engine.link_prediction import TINY, PredictedLinks
from smalti.engine.links import Link, stacked
from smalti.engine.variance_components import MATCHER
from smalti.geometry.homographies import ENTRIES, invert
from smalti.records import Homographies, Pair

ROUNDS = 12
"""The most rounds of closing cycles."""

LARGEST_DEVIATION = 0.06
"""In units of a frame: a cycle whose predicted closing error deviates by more closes with wrong links too."""

MOST_BETWEEN = 8
"""Of the links between two groups, at most so many are tried in cycles of three groups."""

LOOSE_DEVIATION = 0.3
"""The deviation of what a link's landmarks leave undetermined, in units."""

CLOSING_CHI2, LARGEST_FACTOR = 100.0, 10.0
"""The largest χ² of a cycle that closes, where the lower quartile is as expected; and the largest factor by which it
grows with that quartile. Relief and blur leave right links with several times the stated noise."""

QUARTILE_CHI2 = 5.071
"""The lower quartile of χ² with 8 degrees of freedom."""

Covariances = NDArray[np.float64]


def find_agreeing(
    links: Sequence[Link],
    noise: NDArray[np.float64],
    trusted: Set[Pair],
    solve: Callable[[Set[Pair]], Estimate],
) -> frozenset[Pair]:
    """Return the pairs of links that agree. `noise` (L,) is that of every link, in units of what its landmarks state.

    Links of `trusted` pairs are always among them. `solve` returns the mosaic of some links.
    """
    cycles = _Cycles(links, noise)
    accepted: set[Pair] = {link.pair for link in links if link.pair in trusted}
    for _ in range(ROUNDS):
        before = len(accepted)
        cycles.group(accepted, solve(accepted) if accepted else None)
        accepted |= cycles.closing()
        if accepted:
            state = solve(accepted)
            accepted |= {
                link.pair
                for link in links
                if link.pair not in accepted
                and state.part[link.pair.i] == state.part[link.pair.j]
                and state.surprise(link, MATCHER) <= cycles.limit
            }
        if len(accepted) == before:
            break
    return frozenset(accepted | _join(links, accepted))


class _Cycles:
    """Links as directed maps with covariances, and the groups of frames that they lead between."""

    def __init__(self, links: Sequence[Link], noise: NDArray[np.float64]) -> None:
        self._links = links
        maps, roots = stacked(links)
        values, vectors = np.linalg.eigh(np.swapaxes(roots, 1, 2) @ roots / noise[:, None, None] ** 2)
        variances = 1.0 / (np.maximum(values, 0.0) + 1.0 / LOOSE_DEVIATION**2)
        covariances = (vectors * variances[:, None]) @ np.swapaxes(vectors, 1, 2)
        back = invert(maps)
        turned = _moved_through(back)
        # Link n leads from j to i; link n + L is the same, from i to j.
        self._maps = np.concatenate([maps, back])
        self._covariances = np.concatenate([covariances, turned @ covariances @ np.swapaxes(turned, 1, 2)])
        ends = np.array([(link.pair.i, link.pair.j) for link in links])
        self._ends = np.concatenate([ends, ends[:, ::-1]])
        self._frames = int(ends.max()) + 1
        self._group = np.arange(self._frames)
        self._state: Estimate | None = None
        self._known_limit: float | None = None  # set by the first cycles: later ones are mostly of wrong links

    @property
    def limit(self) -> float:
        """The largest χ² of what agrees."""
        return CLOSING_CHI2 if self._known_limit is None else self._known_limit

    def group(self, accepted: Set[Pair], state: Estimate | None) -> None:
        """Join frames to groups by accepted links; `state` is the mosaic of these links."""
        ends = np.array([(pair.i, pair.j) for pair in accepted], dtype=np.int64).reshape(-1, 2)
        graph = coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(self._frames, self._frames))
        self._group, self._state = connected_components(graph, directed=False)[1].astype(np.int64), state

    def closing(self) -> set[Pair]:
        """Return the pairs of links that close a cycle of two or three groups."""
        between: dict[tuple[int, int], list[int]] = {}
        count = len(self._links)
        for n, (first, second) in enumerate(self._group[self._ends[:count]].tolist()):
            if first != second:
                # As a link from the higher to the lower number of a group.
                between.setdefault((min(first, second), max(first, second)), []).append(
                    n if first < second else n + count
                )
        found: set[Pair] = set()
        twos = [(a, self._opposite(b)) for some in between.values() for a, b in combinations(some, 2)]
        threes = []
        neighbours: dict[int, set[int]] = {}
        for low, high in between:
            neighbours.setdefault(low, set()).add(high)
        for low, above in neighbours.items():
            for middle, high in combinations(sorted(above), 2):
                if (middle, high) in between:
                    some = (between[low, middle], between[middle, high], between[low, high])
                    threes += [
                        (a, b, self._opposite(c)) for a, b, c in product(*(links[:MOST_BETWEEN] for links in some))
                    ]
        for cycles in (twos, threes):
            if cycles:
                chosen = np.array(cycles)
                chi2, informative = self._close(chosen)
                if self._known_limit is None and informative.any():
                    usual = float(np.quantile(chi2[informative], 0.25)) / QUARTILE_CHI2
                    self._known_limit = CLOSING_CHI2 * min(max(usual, 1.0), LARGEST_FACTOR)
                closed = chosen[informative & (chi2 <= self.limit)]
                found |= {self._links[n % count].pair for n in np.unique(closed)}
        return found

    def _opposite(self, n: int) -> int:
        count = len(self._links)
        return n - count if n >= count else n + count

    def _close(self, cycles: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return χ² (n,) of the closing errors of cycles (n, length), and which of them can tell a wrong link."""
        total, covariance = np.tile(np.eye(3), (len(cycles), 1, 1)), np.zeros((len(cycles), ENTRIES, ENTRIES))
        for step in range(cycles.shape[1]):
            link, following = cycles[:, step], cycles[:, (step + 1) % cycles.shape[1]]
            within = self._within(self._ends[link, 1], self._ends[following, 0])
            for maps, covariances in ((self._maps[link], self._covariances[link]), within):
                turned = _moved_through(maps)
                with np.errstate(over="ignore", invalid="ignore"):
                    covariance = turned @ covariance @ np.swapaxes(turned, 1, 2) + covariances
                    total = total @ maps
        # Maps of absurd landmarks overflow; their cycles do not close.
        sound = (total[:, 2, 2] > 0.0) & np.isfinite(total).all(axis=(1, 2)) & np.isfinite(covariance).all(axis=(1, 2))
        total[~sound], covariance[~sound] = np.eye(3), np.eye(ENTRIES)
        error = (total / total[:, 2:, 2:] - np.eye(3)).reshape(-1, 9)[:, :ENTRIES]
        values, vectors = np.linalg.eigh(covariance)
        along = np.einsum("nba,nb->na", vectors, error)
        chi2 = np.sum(along**2 / np.maximum(values, 1e-12 * values[:, -1:] + TINY), axis=1)
        informative = np.sqrt(covariance[:, 2, 2] + covariance[:, 5, 5]) <= LARGEST_DEVIATION
        return chi2, sound & informative & np.isfinite(chi2)

    def _within(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[Homographies, Covariances]:
        """Return the maps from frames `second` to frames `first` of the same group, and their covariances."""
        maps, covariances = np.tile(np.eye(3), (len(first), 1, 1)), np.zeros((len(first), ENTRIES, ENTRIES))
        apart = first != second
        if self._state is not None and apart.any():
            pairs = np.column_stack([first[apart], second[apart]])
            maps[apart], covariances[apart] = self._state.covariance.relate(pairs)
        return maps, covariances


def _join(links: Sequence[Link], accepted: Set[Pair]) -> set[Pair]:
    """Return links that join what agreeing links leave apart: consecutive frames first, then many landmarks."""
    group: dict[int, int] = {}

    def root(frame: int) -> int:
        while group.get(frame, frame) != frame:
            frame = group[frame]
        return frame

    for pair in accepted:
        group[root(pair.j)] = root(pair.i)
    joining = set()
    for link in sorted(links, key=lambda link: (link.pair.j - link.pair.i > 1, -link.landmarks, link.pair)):
        first, second = root(link.pair.i), root(link.pair.j)
        if first != second:
            group[second] = first
            joining.add(link.pair)
    return joining


def _moved_through(maps: Homographies) -> NDArray[np.float64]:
    """Return the matrices (n, 8, 8) that take an increment before maps to the one after them: E -> P⁻¹ E P."""
    nobody = np.zeros((len(maps), 2), dtype=np.int64)
    return -PredictedLinks.of_increments(nobody, maps, invert(maps)).by_i
