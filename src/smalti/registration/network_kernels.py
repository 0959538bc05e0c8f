"""Layers of convolutional networks as compiled kernels: maps are (channels, h, w), one thread computes one row.

Every sum has the order in which it is written, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_inline, compiled_parallel, prange

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

Map = NDArray[np.float32]


@compiled_parallel
def convolve(image: Map, weights: Map, bias: Map) -> Map:
    """Convolve a map (c, h, w) with weights (o, c, k, k), k odd; zeros lie outside. `bias` is (o,)."""
    channels, height, width = image.shape
    outputs, reach = weights.shape[0], weights.shape[2] // 2
    result = np.empty((outputs, height, width), dtype=np.float32)
    for y in prange(height):
        line = np.zeros(width + 2 * reach, dtype=np.float32)
        for o in range(outputs):
            result[o, y] = bias[o]
        for c in range(channels):
            for k in range(2 * reach + 1):
                if not 0 <= y + k - reach < height:
                    continue
                line[reach : width + reach] = image[c, y + k - reach]
                for o in range(outputs):
                    _add_products(result[o, y], line, weights[o, c, k])
    return result


@compiled_parallel
def convolve_shifted(image: Map, offsets: Map, weights: Map, bias: Map) -> Map:
    """Convolve with samples taken beside their places: a deformable convolution.

    `offsets` (2 k², h, w) are those of each sample, y before x. Between pixels the map is interpolated linearly.
    """
    channels, height, width = image.shape
    outputs, size = weights.shape[0], weights.shape[2]
    result = np.empty((outputs, height, width), dtype=np.float32)
    for y in prange(height):
        samples = np.empty((channels, size, size, width), dtype=np.float32)
        for k in range(size):
            for m in range(size):
                at = 2 * (k * size + m)
                for x in range(width):
                    down = y + k - size // 2 + offsets[at, y, x]
                    right = x + m - size // 2 + offsets[at + 1, y, x]
                    for c in range(channels):
                        samples[c, k, m, x] = _between(image[c], down, right)
        for o in range(outputs):
            row = result[o, y]
            row[:] = bias[o]
            for c in range(channels):
                for k in range(size):
                    for m in range(size):
                        weight = weights[o, c, k, m]
                        for x in range(width):
                            row[x] += weight * samples[c, k, m, x]
    return result


@compiled_parallel
def enlarge(image: Map, factor: int) -> Map:
    """Enlarge a map (c, h, w) linearly; its corner pixels stay in the corners."""
    channels, height, width = image.shape
    result = np.empty((channels, factor * height, factor * width), dtype=np.float32)
    for y in prange(factor * height):
        down = np.float32(y * (height - 1) / max(factor * height - 1, 1))
        for c in range(channels):
            for x in range(factor * width):
                right = np.float32(x * (width - 1) / max(factor * width - 1, 1))
                result[c, y, x] = _between(image[c], down, right)
    return result


@compiled
def selu(image: Map) -> None:
    """Apply the scaled exponential linear unit, in place."""
    flat = image.reshape(-1)
    for n in range(len(flat)):
        value = flat[n]
        if value > 0.0:
            flat[n] = np.float32(SELU_SCALE) * value
        else:
            flat[n] = np.float32(SELU_SCALE * SELU_ALPHA) * (np.exp(value) - np.float32(1.0))


@compiled_parallel
def describe(
    points: Map,
    parts: tuple[Map, Map, Map, Map],
    scales: NDArray[np.float32],
    first: Map,
    first_bias: Map,
    second: Map,
    second_bias: Map,
    mixing: Map,
    collecting: Map,
) -> Map:
    """Return descriptors (n, d) of points (n, 2), x before y, of length 1.

    The features of a pixel are those of four maps `parts` (h, w, d / 4) of 1, 1/2, 1/8 and 1/32 of the frame's size,
    interpolated and scaled to length 1. Two layers (`first` (m, 3, 3, d), `second` (m, m)) say from the features around
    a point where m / 2 samples are taken. `mixing` (d, d) and `collecting` (m / 2, d, d) turn those into a descriptor.
    """
    height, width = parts[0].shape[:2]
    moves, depth = second.shape[0], mixing.shape[0]
    farthest = np.float32(max(height, width) / 4.0)
    result = np.empty((len(points), depth), dtype=np.float32)
    for n in prange(len(points)):
        around = np.empty((9, depth), dtype=np.float32)
        left, top = min(max(int(points[n, 0]) - 1, 0), width - 4), min(max(int(points[n, 1]) - 1, 0), height - 4)
        for k in range(9):
            _features(parts, scales, top + k // 3, left + k % 3, around[k])
        hidden = first_bias.copy()
        for m in range(moves):
            for k in range(9):
                hidden[m] += _product(first[m, k // 3, k % 3], around[k])
        selu(hidden)
        offset = second_bias.copy()
        for m in range(moves):
            offset[m] += _product(second[m], hidden)
            offset[m] = min(max(offset[m], -farthest), farthest)
        found = np.zeros(depth, dtype=np.float32)
        corner, sample = np.empty(depth, dtype=np.float32), np.empty(depth, dtype=np.float32)
        mixed = np.empty(depth, dtype=np.float32)
        for m in range(moves // 2):
            x, y = points[n, 0] + offset[m], points[n, 1] + offset[moves // 2 + m]
            sample[:] = 0.0
            at_x, at_y = int(np.floor(x)), int(np.floor(y))
            for k in range(4):
                u, v = at_x + k % 2, at_y + k // 2
                if 0 <= u < width and 0 <= v < height:
                    _features(parts, scales, v, u, corner)
                    share = (np.float32(1.0) - abs(x - u)) * (np.float32(1.0) - abs(y - v))
                    for d in range(depth):
                        sample[d] += np.float32(share) * corner[d]
            mixed[:] = 0.0
            for c in range(depth):
                _add(mixed, mixing[c], sample[c])
            selu(mixed)
            for c in range(depth):
                _add(found, collecting[m, c], mixed[c])
        length = max(np.sqrt(_product(found, found)), np.float32(1e-12))
        for d in range(depth):
            result[n, d] = found[d] / length
    return result


@compiled
def _features(parts: tuple[Map, Map, Map, Map], scales: NDArray[np.float32], y: int, x: int, features: Map) -> None:
    """Write the features (d,) of a pixel, of length 1."""
    depth = parts[0].shape[2]
    for p in range(4):
        part = parts[p]
        height, width = part.shape[:2]
        down, right = scales[p, 0] * np.float32(y), scales[p, 1] * np.float32(x)
        v, u = min(int(down), height - 1), min(int(right), width - 1)
        below, beside = min(v + 1, height - 1), min(u + 1, width - 1)
        share_v, share_u = down - np.float32(v), right - np.float32(u)
        for d in range(depth):
            upper = part[v, u, d] + share_u * (part[v, beside, d] - part[v, u, d])
            lower = part[below, u, d] + share_u * (part[below, beside, d] - part[below, u, d])
            features[p * depth + d] = upper + share_v * (lower - upper)
    length = max(np.sqrt(_product(features, features)), np.float32(1e-12))
    for d in range(4 * depth):
        features[d] /= length


@compiled
def _add_products(row: Map, line: Map, weights: Map) -> None:
    """Add a line, shifted by each of its 1 or 3 places and weighted, to a row."""
    if len(weights) == 3:
        before, here, after = weights[0], weights[1], weights[2]
        for x in range(len(row)):
            row[x] += before * line[x] + here * line[x + 1] + after * line[x + 2]
    else:
        here = weights[0]
        for x in range(len(row)):
            row[x] += here * line[x]


@compiled
def _add(total: Map, values: Map, weight: np.float32) -> None:
    for d in range(len(total)):
        total[d] += weight * values[d]


@compiled
def _product(one: Map, other: Map) -> np.float32:
    """Return the scalar product; eight sums make one vector."""
    sums = np.zeros(8, dtype=np.float32)
    for n in range(0, len(one), 8):
        for k in range(8):
            sums[k] += one[n + k] * other[n + k]
    return np.float32(((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])))


@compiled_inline
def _between(image: Map, down: np.float32, right: np.float32) -> np.float32:
    """Return the value at a place between pixels; zeros lie outside."""
    height, width = image.shape
    top, left = int(np.floor(down)), int(np.floor(right))
    value = np.float32(0.0)
    for k in range(4):
        v, u = top + k // 2, left + k % 2
        if 0 <= v < height and 0 <= u < width:
            share = (np.float32(1.0) - abs(np.float32(down - v))) * (np.float32(1.0) - abs(np.float32(right - u)))
            value += share * image[v, u]
    return value
