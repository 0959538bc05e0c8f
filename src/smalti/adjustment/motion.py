"""How much a camera turns, tilts and zooms between two frames, learned from the chain.

An affine link has six parameters, whatever the camera does. Where it hardly does more than move, a microscope's stage
or a drone on its lane, four of them measure noise, and a chain adds it up: a frame that is turned by too much misplaces
all that follow. So the linear parts L of links between consecutive frames have a prior,

    L = I + normal variables of variance τ² each,

and τ² is learned: with noise of variance v in the entries of L, the sum over a stretch of n links has n (v + τ²).
Single links, of which there are many, tell it closely, but nothing of what builds up over many: a camera may turn by
little and always the same way. So τ² is the largest that stretches of any length say, if it is no chance. A camera that
turns has a τ² far above v, and its links stay as they were measured. As loops close, τ is learned like any other noise
(`components.py`).

Differs from the paper, where every map is as likely as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smalti.adjustment.link import Link, Sides, normalised, stacked
from smalti.geometry.affine import IDENTITY
from smalti.geometry.outline import Outline
from smalti.records import Pair, PairNumbers, Transforms

FEWEST_LINKS = 16
"""Of which something can be learned."""

CLEAR = 2.0
"""Standard deviations of chance, by which stretches must turn more than shorter ones let expect."""

LINEAR = np.diag([1.0, 1.0, 0.0])
"""The root of what a prior on L alone says: of directions, not of places."""


@dataclass(frozen=True, eq=False)
class Camera:
    """The links of consecutive frames, as they were measured, and τ as far as they tell it."""

    links: Mapping[Pair, Link]
    turn: float

    @classmethod
    def of(cls, links: Iterable[Link]) -> Camera | None:
        """Learn from a chain, None if it is too short."""
        steps = {
            link.pair: link for link in sorted(links, key=lambda link: link.pair) if link.pair.j - link.pair.i == 1
        }
        if len(steps) < FEWEST_LINKS:
            return None
        maps, roots = stacked(steps.values())
        return cls(steps, float(np.sqrt(learned_variance((maps - IDENTITY)[:, :, :2], _noise(roots)))))

    def calmed(self, noise: float = 1.0, turning: float = 1.0) -> dict[Pair, Link]:
        """Return the links as the camera makes them likely, if they are so much noisier than they say, and τ larger."""
        maps, roots = self._measured
        means, roots = calm(maps, roots / noise, turning * self.turn)
        return {pair: link.changed(*new) for (pair, link), *new in zip(self.links.items(), means, roots, strict=True)}

    def calmed_by(self, noise: float, turning: float) -> float:
        """Return how much of what is measured of L is put down to noise: 0 if the camera turns, 1 if it never does."""
        variance = noise**2 * _noise(self._measured[1])
        return float(np.mean(variance / (variance + (turning * self.turn) ** 2)))

    @cached_property
    def ends(self) -> PairNumbers:
        """(n, 2): the frames of every link."""
        return np.array([(pair.i, pair.j) for pair in self.links], dtype=np.int64)

    def sides(self, outline: Outline, noise: float, turning: float) -> tuple[Sides, Sides]:
        """Return of what calm links are made: what was measured, and what is known of the camera."""
        unit_from_pixels = outline.unit_from_pixels
        known = np.broadcast_to(LINEAR / (turning * self.turn), (len(self.links), 3, 3))
        maps, roots = self._measured
        return normalised(maps, roots / noise, unit_from_pixels), normalised(IDENTITY, known, unit_from_pixels)

    @cached_property
    def _measured(self) -> tuple[Transforms, NDArray[np.float64]]:
        return stacked(self.links.values())


def calm(maps: Transforms, roots: NDArray[np.float64], turn: float) -> tuple[Transforms, NDArray[np.float64]]:
    """Return maps (n, 2, 3) and roots (n, 3, 3) of links with the prior on L as one link more each.

    Moments add up, and the map is the weighted mean.
    """
    prior = np.broadcast_to(LINEAR[:2] / turn, (len(maps), 2, 3))
    # A QR factor keeps the digits that sums of moments would lose.
    upper = np.linalg.qr(np.concatenate([np.swapaxes(roots, 1, 2), prior], axis=1), mode="r")
    inverse = np.linalg.inv(upper)
    pull = (maps - IDENTITY) @ LINEAR / turn**2
    return maps - pull @ inverse @ np.swapaxes(inverse, 1, 2), np.swapaxes(upper, 1, 2)


def learned_variance(beyond: NDArray[np.float64], noise: NDArray[np.float64]) -> float:
    """Return τ² from what links (n, 2, 2) have beyond the identity, in their order, and the noise (n, 2) of columns."""
    found, length = 0.0, 1
    while length <= len(beyond):
        starts = np.arange(0, len(beyond) - length + 1, length)
        whole = starts[-1] + length
        sums = np.add.reduceat(beyond[:whole], starts)
        expected = np.add.reduceat(noise[:whole], starts) + length * found
        # Of a squared sum the variance is twice its square: what is noisy counts by as much less.
        weight = expected**-2
        more = float(np.sum(weight * (np.mean(sums**2, axis=1) - expected)) / weight.sum())
        chance = float(1.0 / np.sqrt(weight.sum()))
        if length == 1:
            found = max(more, 0.0) + chance
        elif more > CLEAR * chance:
            found += more / length
        length *= 2
    return found


def _noise(roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance of the entries of both columns of L (n, 2), as links of such roots (n, 3, 3) say."""
    variance: NDArray[np.float64] = np.sum(np.linalg.inv(roots)[:, :, :2] ** 2, axis=1)
    return variance
