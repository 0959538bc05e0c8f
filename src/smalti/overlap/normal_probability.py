"""Compute probabilities of normal variables: of a bivariate one in a rectangle, and the mean of a truncated one.

Differs from the paper: it takes this integral for intractable and samples it. Here one variable is integrated
numerically. The conditional distribution of the other is normal and known in closed form.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from smalti.compiled import compiled, compiled_parallel, prange
from smalti.geometry.outline import Outline

NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)

LONGEST_PANEL = 2.0
"""Standard deviations: the nodes integrate a normal density over this length to all digits."""

FAR = 9.5
"""Standard deviations beyond which a normal density adds nothing to a double."""

SHARPEST_EDGE = 1e-12
"""Below this conditional deviation the two variables count as one."""

SMALLEST = 1e-12
"""Below this probability a truncated variable is taken to be at its bound."""


def rectangle_probability(mean: NDArray[np.float64], cov: NDArray[np.float64], outline: Outline) -> NDArray[np.float64]:
    """Return P(x ∈ Ω) for x ~ N(mean (..., 2), cov (..., 3) as xx, xy, yy)."""
    shape = mean.shape[:-1]
    flat = _probabilities(
        np.ascontiguousarray(mean.reshape(-1, 2)),
        np.ascontiguousarray(cov.reshape(-1, 3)),
        outline.left,
        outline.top,
        outline.right,
        outline.bottom,
    )
    return flat.reshape(shape)


@compiled_parallel
def _probabilities(
    mean: NDArray[np.float64],
    cov: NDArray[np.float64],
    left: float,
    top: float,
    right: float,
    bottom: float,
) -> NDArray[np.float64]:
    result = np.empty(len(mean))
    for n in prange(len(mean)):
        result[n] = probability_in_rectangle(
            left - mean[n, 0],
            right - mean[n, 0],
            top - mean[n, 1],
            bottom - mean[n, 1],
            cov[n, 0],
            cov[n, 1],
            cov[n, 2],
        )
    return result


@compiled
def probability_in_rectangle(
    left: float, right: float, top: float, bottom: float, xx: float, xy: float, yy: float
) -> float:
    """Return the probability for a centred variable; the rectangle is given relative to its mean."""
    if xx <= 0.0 and yy <= 0.0:
        return 1.0 if left <= 0.0 <= right and top <= 0.0 <= bottom else 0.0
    if xx <= 0.0:
        return normal_between(top / math.sqrt(yy), bottom / math.sqrt(yy)) if left <= 0.0 <= right else 0.0
    if yy <= 0.0:
        return normal_between(left / math.sqrt(xx), right / math.sqrt(xx)) if top <= 0.0 <= bottom else 0.0
    sx, sy = math.sqrt(xx), math.sqrt(yy)
    a, b, c, d = left / sx, right / sx, top / sy, bottom / sy
    if d - c < b - a:
        # Integrate over the variable with the shorter interval in its own deviations.
        a, b, c, d = c, d, a, b
    correlation = min(max(xy / (sx * sy), -1.0), 1.0)
    conditional = math.sqrt(max((xx * yy - xy * xy) / (xx * yy), 0.0))
    if conditional < SHARPEST_EDGE:
        sign = 1.0 if correlation > 0.0 else -1.0
        low, high = max(a, min(sign * c, sign * d)), min(b, max(sign * c, sign * d))
        return normal_between(low, high) if high > low else 0.0
    return _integrate(a, b, c, d, correlation, conditional)


@compiled
def normal_between(low: float, high: float) -> float:
    """Return Φ(high) - Φ(low) to full relative precision in the tails."""
    root = math.sqrt(0.5)
    if low > 0.0:
        return 0.5 * (math.erfc(low * root) - math.erfc(high * root))
    if high < 0.0:
        return 0.5 * (math.erfc(-high * root) - math.erfc(-low * root))
    return 0.5 * (math.erf(high * root) - math.erf(low * root))


@compiled
def _integrate(a: float, b: float, c: float, d: float, correlation: float, conditional: float) -> float:
    """Integrate φ(u) P(c ≤ v ≤ d | u) over a ≤ u ≤ b, v | u ~ N(correlation·u, conditional²)."""
    likeliest = _likeliest(a, b, c, d, correlation)
    low, high = max(a, likeliest - FAR), min(b, likeliest + FAR)
    breaks = np.empty(12)
    breaks[0], breaks[1] = low, high
    count = 2
    steepness = abs(correlation)
    if steepness > conditional:
        # P(c ≤ v ≤ d | u) rises and falls within a few of these widths about the two edges.
        width = conditional / steepness
        for edge in (c / correlation, d / correlation):
            for offset in (-8.5, -3.0, 0.0, 3.0, 8.5):
                at = edge + offset * width
                if low < at < high:
                    breaks[count] = at
                    count += 1
    for n in range(1, count):  # numba's own sort takes seconds to compile
        value, at = breaks[n], n
        while at > 0 and breaks[at - 1] > value:
            breaks[at] = breaks[at - 1]
            at -= 1
        breaks[at] = value
    total = 0.0
    for n in range(count - 1):
        length = breaks[n + 1] - breaks[n]
        panels = max(1, math.ceil(length / LONGEST_PANEL))
        half = 0.5 * length / panels
        for panel in range(panels):
            middle = breaks[n] + (2 * panel + 1) * half
            part = 0.0
            for node in range(len(NODES)):
                u = middle + half * NODES[node]
                v = correlation * u
                part += (
                    WEIGHTS[node]
                    * math.exp(-0.5 * u * u)
                    * normal_between((c - v) / conditional, (d - v) / conditional)
                )
            total += half * part
    return min(max(total / math.sqrt(2.0 * math.pi), 0.0), 1.0)


@compiled
def _likeliest(a: float, b: float, c: float, d: float, correlation: float) -> float:
    """Return u at the likeliest point of the rectangle; the mass falls at least as fast as φ away from it."""
    if a <= 0.0 <= b and c <= 0.0 <= d:
        return 0.0
    best_u, least = a, math.inf
    for edge in (a, b):
        v = min(max(correlation * edge, c), d)
        exponent = edge * edge - 2.0 * correlation * edge * v + v * v
        if exponent < least:
            best_u, least = edge, exponent
    for edge in (c, d):
        u = min(max(correlation * edge, a), b)
        exponent = u * u - 2.0 * correlation * u * edge + edge * edge
        if exponent < least:
            best_u, least = u, exponent
    return best_u


def mean_between(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], bound: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean of N(mean, deviation²) within ± bound."""
    deviation = np.maximum(deviation, SMALLEST * bound)
    below, above = (-bound - mean) / deviation, (bound - mean) / deviation
    inside = ndtr(above) - ndtr(below)
    pull = (np.exp(-0.5 * below**2) - np.exp(-0.5 * above**2)) / math.sqrt(2.0 * math.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        shifted = mean + deviation * pull / inside
    result: NDArray[np.float64] = np.clip(np.where(inside > SMALLEST, shifted, mean), -bound, bound)
    return result
