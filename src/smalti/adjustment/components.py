"""How large the noise of each kind of link really is: variance components, from how well loops close.

A link says how noisy it is, and a whole kind of links may say it wrongly: a chain drifts by more than neighbouring
frames show where perspective bends all of it the same way, a matcher is better than it claims. If the noise of group g
is s_g times what its links say, their squared residuals on the refined mosaic sum up to s_g² times the *redundancy* of
the group, the part of its measurements that others check: for a link of f degrees of freedom

    r_l = f - tr(J_l H J_lᵀ),

J_l being the derivatives of its residual by the maps, in units of its noise, and H the covariance of all maps. H
depends on s: one step an answer, from the factors before it, follows (Helmert's and Förstner's iteration, whose fixed
point is the restricted maximum likelihood). A chain that nothing closes has no redundancy, and nothing is learned of
it. A single answer that closes a long one has hardly any itself: what it contradicts is put down to the chain.

Where the camera hardly turns, links of consecutive frames are calmed by what is known of it (`motion.py`). Such a link
is two observations, what was measured and the prior on its linear part, whose variance is one component more: all that
is said of links holds for either.

A refusal tells too. Of pairs that the mosaic can hardly place, those that are confirmed are the ones where it happens
to be right; without the others it would think too well of itself. So every refused pair counts with the probability
that its frames do not overlap, which grows with s where they were thought to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.link import Link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.motion import Camera
from smalti.geometry.affine import compose, square
from smalti.records import Pair, PairNumbers, pair_key

Groups = NDArray[np.int64]
"""(L,) the group of every link, from 0 on, in the order of the adjustment's links."""

UNESTIMATED = -1
"""The group of links whose noise is what they say: guesses, which measure nothing."""

PRIOR_DEVIATION = 0.7
"""Of log s before any loop closes: two thirds of the noise or half as much again would surprise nobody."""

CAMERA_DEVIATION = 2.0
"""The same of the camera, of which a chain alone says how much it turns at most."""

LARGEST_SHARE, MEAN_SHARE = 8.0, 1.0
"""Times what is expected of it, the squared residual of a link, or of a stretch of links, counts for at most: one lie
does not count for everything. What honest ones then count for on average."""

LARGEST_GROWTH = 4.0
"""Of s at once: a single answer may be wrong, even a person's."""

EXTREMES = (1.0 / 30.0, 30.0)
"""Of s: links that agree to rounding must leave numbers to compute with."""

LINEAR_FREEDOM = 4
"""Of what is known of a camera: the linear part of a map."""

LEAST_REDUNDANCY = 1e-6
"""Less is rounding."""

TRUSTED = 0.8
"""Of refusals: agents miss pairs that overlap, most of all where there is little to see."""

SMALLEST_CHANGE = 1.05
"""A factor by which s must change for the links to be weighted anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """By how much the noise of each group of links differs from what its links say, and how sure that is."""

    factors: NDArray[np.float64]  # (G,): s
    redundancy: NDArray[np.float64]  # (G,): how many residuals tell
    degrees: NDArray[np.float64]  # (G,): with what was known before; the standard deviation of log s is √(1/2 degrees)
    misfit_px: float = 0.0  # RMS: by how much links and mosaic disagree beyond what the landmarks' own scatter explains

    def differ_from(self, assumed: NDArray[np.float64]) -> bool:
        """Tell whether links should be weighted anew that are weighted by these factors (G,)."""
        return bool((np.abs(np.log(self.factors / assumed)) > np.log(SMALLEST_CHANGE)).any())


def estimate_components(
    covariance: LocalCovariance,
    groups: Groups,
    assumed: NDArray[np.float64],
    refused: PairNumbers | None = None,
    camera: Camera | None = None,
    alike: tuple[int, int] | None = None,
) -> Components:
    """Return the noise of every group after one step from `assumed` (G,), by which the links are weighted now.

    The covariance must be about the refined mosaic of its links. What was `refused` (r, 2) tells of the first group,
    the chain. The last is the `camera`, of whose links what was measured and what is known beforehand are told apart;
    refusals tell of either as far as the errors of links are theirs.

    Of two groups that are `alike`, the links of the second are not taken to be noisier than those of the first, and
    than they say: what they contradict is put down to both.
    """
    observed, shares = Observations.of(covariance.adjustment, groups), {0: 1.0}
    deviations = np.full(len(assumed), PRIOR_DEVIATION)
    if camera is not None:
        observed = observed.taken_apart(covariance.adjustment, camera, assumed)
        calmed = camera.calmed_by(assumed[0], assumed[-1])
        shares = {0: 1.0 - calmed, len(assumed) - 1: calmed}
        deviations[-1] = CAMERA_DEVIATION
    squares, redundancy = observed.check(covariance)
    in_units = assumed[observed.group] ** 2 * squares

    def most_likely(group: int, own: NDArray[np.bool_]) -> float:
        share, before = shares.get(group), assumed[group]
        doubts = None if share is None or refused is None else _Doubts.of(covariance, refused, before, share)
        deviation = deviations[group]
        found = _most_likely(in_units[own], redundancy[own], observed.stretch[own], doubts, deviation)
        return min(found, LARGEST_GROWTH * float(before))

    factors = np.array([most_likely(group, observed.group == group) for group in range(len(assumed))])
    told = np.array([np.sum(redundancy[observed.group == group]) for group in range(len(assumed))])
    if alike is not None and factors[alike[1]] > max(factors[alike[0]], 1.0):
        common = most_likely(alike[0], np.isin(observed.group, alike))
        factors[alike[1]] = max(common, 1.0)
        factors[alike[0]] = common if common >= 1.0 else factors[alike[0]]
    links = slice(len(groups))
    misfit = _misfit(covariance.adjustment, squares[links], redundancy[links], groups)
    return Components(factors, told, told + 0.5 / deviations**2, misfit)


def reweigh(
    adjustment: Adjustment,
    groups: Groups,
    assumed: NDArray[np.float64],
    factors: NDArray[np.float64],
    calm: Mapping[Pair, Link] = MappingProxyType({}),
) -> Adjustment:
    """Return links that were weighted by the factors `assumed` (G,) weighted by others; in their place, if `calm`."""
    weights = np.ones(len(groups))
    estimated = groups != UNESTIMATED
    weights[estimated] = (assumed / factors)[groups[estimated]] ** 2
    return adjustment.weighted(dict(zip(adjustment.links, weights.tolist(), strict=True)), calm)


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What the mosaic was fitted to: links first, in the adjustment's order, then what was known of the camera."""

    ends: PairNumbers  # (n, 2)
    side_i: NDArray[np.float64]  # (n, 3, 3), in the adjustment's units
    side_j: NDArray[np.float64]
    freedom: NDArray[np.int64]  # (n,): how many numbers each observes
    group: Groups  # (n,)
    stretch: Groups

    @classmethod
    def of(cls, adjustment: Adjustment, groups: Groups) -> Observations:
        """Take the links as they are."""
        terms = adjustment.terms
        freedom = np.full(len(groups), adjustment.family.freedom)
        return cls(terms.ends, terms.side_i, terms.side_j, freedom, groups, _stretches(adjustment))

    def taken_apart(self, adjustment: Adjustment, camera: Camera, assumed: NDArray[np.float64]) -> Observations:
        """Return calm links as they were measured, of the first group, and apart from them the camera, the last."""
        keys = pair_key(*self.ends.T)
        used = np.flatnonzero(np.isin(pair_key(*camera.ends.T), keys))  # others are held
        at = np.searchsorted(keys, pair_key(*camera.ends[used].T))
        measured, known = camera.sides(adjustment.outline, assumed[0], assumed[-1])
        side_i, side_j = self.side_i.copy(), self.side_j.copy()
        side_i[at], side_j[at] = (side[used] for side in measured)
        return Observations(
            np.concatenate([self.ends, self.ends[at]]),
            np.concatenate([side_i, known[0][used]]),
            np.concatenate([side_j, known[1][used]]),
            np.append(self.freedom, np.full(len(at), LINEAR_FREEDOM)),
            np.append(self.group, np.full(len(at), len(assumed) - 1)),
            np.append(self.stretch, self.stretch[at]),
        )

    def check(self, covariance: LocalCovariance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the squared residual and the redundancy (n,) of each, in units of its noise."""
        maps, inverses = covariance.maps_in_units
        relative = square(compose(inverses[self.ends[:, 0]], maps[self.ends[:, 1]]))
        # The adjustment's lengths are in units of the frame, the noise of a link in pixels.
        unit = covariance.adjustment.outline.unit
        squares = np.sum((relative @ self.side_j - self.side_i) ** 2, axis=(1, 2)) * unit**2
        known = np.trace(covariance.of_relations(covariance.relations(self.ends, self.side_j)), axis1=1, axis2=2)
        return squares, np.maximum(self.freedom - known, 0.0)


def _misfit(
    adjustment: Adjustment, squares: NDArray[np.float64], redundancy: NDArray[np.float64], groups: Groups
) -> float:
    """Return the RMS distance, px, by which the maps fail to follow what links have measured.

    Where the camera tilts, affine maps do not fit however many answers there are. The residual of a link is its noise,
    which the scatter of landmarks about the fits of their own links tells, and what the mosaic gets wrong there.
    """
    links, freedom = list(adjustment.links.values()), adjustment.family.freedom
    landmarks = np.array([link.landmarks for link in links], dtype=np.float64)
    scatter = landmarks * np.array([link.residual_px for link in links]) ** 2
    spare = np.maximum(2.0 * landmarks - freedom, 0.0)
    distance = squares / np.sum(adjustment.terms.side_j[:, 2] ** 2, axis=1)
    wrong, chance, checked = 0.0, 0.0, 0.0
    for group in np.unique(groups[groups != UNESTIMATED]):
        own = groups == group
        if not spare[own].any():
            continue  # three landmarks each: nothing tells their noise from the mosaic's error
        variance = float(scatter[own].sum() / spare[own].sum())  # of a landmark, along x or y
        noise = variance / landmarks[own]
        wrong += float(np.sum(distance[own] - redundancy[own] * noise))
        chance += float(np.sum(2.0 * redundancy[own] * noise**2))
        checked += float(redundancy[own].sum()) / freedom
    # What chance alone may make of it, one standard deviation, is no misfit.
    return float(np.sqrt(max(wrong - np.sqrt(chance), 0.0) / checked)) if checked > LEAST_REDUNDANCY else 0.0


def _stretches(adjustment: Adjustment) -> Groups:
    """Return the number of the stretch of every link (L,): consecutive links between two knots, or one link alone.

    A stretch bends as one: what a loop contradicts is shared out among its links, unevenly but all at once.
    """
    ends = adjustment.ends
    knots = np.bincount(ends.ravel(), minlength=adjustment.frames) != 2
    alone = adjustment.frames + np.arange(len(ends))
    return np.where(ends[:, 1] - ends[:, 0] == 1, np.cumsum(knots)[ends[:, 0]], alone)


@dataclass(frozen=True, slots=True, eq=False)
class _Doubts:
    """Where refused pairs were thought to be, in units of a frame's half size, and how surely at a factor of one."""

    place: NDArray[np.float64]  # (r, 2)
    deviation: NDArray[np.float64]  # which grows with a power of the factor
    power: float = 1.0

    @classmethod
    def of(cls, covariance: LocalCovariance, refused: PairNumbers, assumed: float, power: float = 1.0) -> _Doubts:
        outline = covariance.adjustment.outline
        half = np.array([outline.width, outline.height]) / 2.0
        seen = covariance.of_pairs(refused)
        deviation = np.sqrt(seen.cov[:, 0, ::2]) / half / assumed**power
        return cls((seen.mean[:, 0] - outline.centre) / half, deviation, power)

    def slope(self, log_factor: float) -> float:
        """Return the derivative by log s of -Σ log of the probability that they do not overlap."""
        deviation = self.deviation * np.exp(self.power * log_factor)
        above, below = (1.0 - self.place) / deviation, (1.0 + self.place) / deviation
        inside = ndtr(above) + ndtr(below) - 1.0
        change = -(above * np.exp(-0.5 * above**2) + below * np.exp(-0.5 * below**2)) / np.sqrt(2.0 * np.pi)
        both = inside.prod(axis=1)
        grown = change[:, 0] * inside[:, 1] + inside[:, 0] * change[:, 1]
        return self.power * float(np.sum(TRUSTED * grown / (1.0 - TRUSTED * both)))


def _most_likely(
    squares: NDArray[np.float64],
    redundancy: NDArray[np.float64],
    stretches: Groups,
    doubts: _Doubts | None,
    deviation: float = PRIOR_DEVIATION,
) -> float:
    """Return s of a group of links from their squared residuals (n,), in units of what they say, and redundancies.

    Beforehand log s is normal about 0: less noise is as likely as more. An inverse gamma prior, which would count as a
    few residuals more, keeps s from becoming small.
    """
    bent, checked = (np.asarray(np.bincount(stretches, values), np.float64) for values in (squares, redundancy))
    bent, checked = bent[checked > LEAST_REDUNDANCY], checked[checked > LEAST_REDUNDANCY]
    expected = MEAN_SHARE * float(np.sum(checked))

    def slope(log_factor: float) -> float:
        """Return the derivative of -log p, which grows with `log_factor` but for what refusals tell."""
        shares = np.minimum(bent * np.exp(-2.0 * log_factor), LARGEST_SHARE * checked)
        told = expected - float(np.sum(shares)) + log_factor / deviation**2
        return told if doubts is None else told + doubts.slope(log_factor)

    lowest, highest = np.log(EXTREMES)
    if slope(lowest) >= 0.0:
        return EXTREMES[0]
    return EXTREMES[1] if slope(highest) <= 0.0 else float(np.exp(brentq(slope, lowest, highest)))
