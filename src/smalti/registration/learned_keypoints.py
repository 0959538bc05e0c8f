"""Detect and describe keypoints with a learned network, ALIKED n16rot, whose weights an installed package has.

ALIKED (Zhao et al., IEEE Transactions on Instrumentation and Measurement, 2023) is small: 0.7 million parameters. It
sees features at four scales, a score for every pixel, and describes a keypoint from samples whose places it chooses.
This is our own implementation for one gray frame. Differs from the paper: of keypoints within two pixels, the best is
kept and no second round looks for others.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from smalti.registration.keypoints import DESCRIPTOR_LEVELS, NO_KEYPOINTS, Keypoints, MatchSettings
from smalti.registration.learned_weights import read_weights
from smalti.registration.network_kernels import Map, convolve, convolve_shifted, describe, enlarge, selu
from smalti.registration.robust_fit import FitSettings

LEARNED_KEYPOINTS = 1000
MOST_PIXELS = 300_000
"""Larger frames are reduced: the time grows with the pixels."""

FROM_RIM_PX = 4
"""Pixels of the reduced frame between a keypoint and a border, or what the mask hides: rims are strong features."""

DIVISOR = 32
RADIUS = 2
TEMPERATURE = 0.1
BATCH_NORM_EPSILON = 1e-5

Layer: TypeAlias = tuple[Map, Map]
"""Weights (o, c, k, k) and bias (o,)."""

LEARNED_MATCHES = MatchSettings(largest_ratio=1.0, usual_next=0.6)
"""Nearest neighbours count without a margin: twice as many right ones are found, and the fit rejects the others."""

LEARNED_FIT = FitSettings(least_inliers=16, least_share=0.03, least_share_in_common=0.2)
"""Without a margin there are a few hundred matches of any two frames, of which a dozen agree by chance. Two roads with
equal markings have thirty that agree, but then most matches in the common field do not."""

NEIGHBOURHOOD_PX = 20.0
CONTRAST, FAINTEST = 40.0, 2.0
"""The standard deviation of gray that every neighbourhood gets, and the deviation of noise, which gets less."""

LEAST_DEVIATION = 0.5
"""Grey levels. With less, nothing is shown but rounding, and what the network finds is of its own making."""


def find_learned_keypoints(gray: NDArray[np.uint8], mask: NDArray[np.bool_] | None, weights: Path) -> Keypoints:
    """Find the strongest keypoints of an image (h, w) inside the mask."""
    network = _network(weights)
    scale = min(1.0, (MOST_PIXELS / gray.size) ** 0.5)
    height, width = (max(DIVISOR, round(scale * side)) for side in gray.shape)
    reduced = np.asarray(cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    shown = np.ones((height, width), dtype=np.uint8)
    if mask is not None:
        shown = np.asarray(cv2.resize(mask.astype(np.uint8), (width, height), interpolation=cv2.INTER_NEAREST))
    even, deviation = _even_contrast(reduced, shown)
    parts, scores, offset = network.look_at(even)
    inside = cv2.erode(
        shown, np.ones((2 * FROM_RIM_PX + 1,) * 2, np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=0
    )
    points, strengths = _strongest(scores, (inside > 0) & (deviation >= LEAST_DEVIATION))
    if not len(points):
        return NO_KEYPOINTS
    descriptors = network.describe(points + offset, parts)
    levels = np.clip(np.rint(descriptors * DESCRIPTOR_LEVELS), -127, 127).astype(np.int8)
    factor = np.array(gray.shape[::-1], dtype=np.float32) / np.array([width, height], dtype=np.float32)
    return Keypoints(((points + 0.5) * factor - 0.5).astype(np.float32), levels, strengths)


def _even_contrast(gray: NDArray[np.uint8], shown: NDArray[np.uint8]) -> tuple[Map, Map]:
    """Return a frame (h, w) with equal mean and contrast everywhere, gray where nothing is shown; and its deviations.

    The network was trained on photographs. On tissue with 9 grey levels of contrast it finds four times as many right
    matches after this, and fewer wrong ones: it no longer looks at glints and at the rim.
    """
    weight = shown.astype(np.float32)
    share = np.maximum(_smooth(weight), np.float32(1e-3))
    off = np.asarray(gray - _smooth(np.asarray(gray * weight, np.float32)) / share, dtype=np.float32)
    variance = np.maximum(_smooth(off * off * weight) / share, np.float32(0.0))
    even = np.clip(
        np.float32(128.0) + np.float32(CONTRAST) * off / np.sqrt(variance + np.float32(FAINTEST**2)), 0.0, 255.0
    )
    return np.asarray(np.where(shown > 0, even, 128.0), dtype=np.float32), np.asarray(np.sqrt(variance), np.float32)


def _smooth(image: Map) -> Map:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), NEIGHBOURHOOD_PX), dtype=np.float32)


def _strongest(scores: Map, shown: NDArray[np.bool_]) -> tuple[Map, Map]:
    """Return points (n, 2) where the score is largest within RADIUS, to a fraction of a pixel, and their scores."""
    size = 2 * RADIUS + 1
    is_peak = (scores == cv2.dilate(scores, np.ones((size, size), np.uint8))) & shown
    is_peak[:RADIUS], is_peak[-RADIUS:], is_peak[:, :RADIUS], is_peak[:, -RADIUS:] = False, False, False, False
    y, x = np.nonzero(is_peak)
    order = np.lexsort((x, y, -scores[y, x]))[:LEARNED_KEYPOINTS]
    y, x = y[order], x[order]
    steps = np.arange(-RADIUS, RADIUS + 1)
    around = scores[y[:, None, None] + steps[:, None], x[:, None, None] + steps]
    shares = np.exp((around - scores[y, x][:, None, None]) / np.float32(TEMPERATURE))
    total = shares.sum(axis=(1, 2))
    off_x, off_y = (shares.sum(axis=1) * steps).sum(axis=1) / total, (shares.sum(axis=2) * steps).sum(axis=1) / total
    return np.column_stack([x + off_x, y + off_y]).astype(np.float32), scores[y, x]


class _Network:
    """The layers of ALIKED; what follows each convolution linearly is part of its weights."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self._weights = weights
        gray = weights["block1.conv1.weight"].sum(axis=1, keepdims=True)  # red, green and blue are the same
        self._block1 = self._normalised("block1.bn1", gray), self._followed("block1", 2)
        self._block2 = self._followed("block2", 1), self._followed("block2", 2), self._plain("block2.downsample")
        self._deformed = [
            (
                self._plain(f"{block}.conv1.offset_conv"),
                self._followed(block, 1, ".regular_conv"),
                self._plain(f"{block}.conv2.offset_conv"),
                self._followed(block, 2, ".regular_conv"),
                self._plain(f"{block}.downsample"),
            )
            for block in ("block3", "block4")
        ]
        self._narrow = [self._plain(f"conv{n}") for n in (1, 2, 3, 4)]
        self._heads = [self._plain(f"score_head.{n}") for n in (0, 2, 4, 6)]
        first, second = (self._plain(f"desc_head.offset_conv.{n}") for n in (0, 2))
        self._collector = (
            np.ascontiguousarray(first[0].transpose(0, 2, 3, 1)),
            first[1],
            np.ascontiguousarray(second[0][:, :, 0, 0]),
            second[1],
            np.ascontiguousarray(weights["desc_head.sf_conv.weight"][:, :, 0, 0].T),
            weights["desc_head.agg_weights"],
        )

    def look_at(self, gray: Map) -> tuple[tuple[Map, Map, Map, Map], Map, Map]:
        """Return feature maps (h, w, 32) of the padded frame, scores (h, w) of the frame, and its place in it."""
        height, width = gray.shape
        top, left = _padding(height), _padding(width)
        framed = np.pad(gray, (top, left), mode="edge")[None] / np.float32(255.0)
        maps = [_block(framed, *self._block1)]
        maps.append(_residual_block(_reduced(maps[0], 2), *self._block2))
        for layers in self._deformed:
            maps.append(_deformed_block(_reduced(maps[-1], 4), *layers))
        narrow = [_activated(convolve(image, *layer)) for image, layer in zip(maps, self._narrow, strict=True)]
        scores = self._scores(narrow)[top[0] : top[0] + height, left[0] : left[0] + width]
        first, second, third, fourth = (np.ascontiguousarray(image.transpose(1, 2, 0)) for image in narrow)
        corner = np.array([left[0], top[0]], dtype=np.float32)
        return (first, second, third, fourth), np.ascontiguousarray(scores), corner

    def describe(self, points: Map, parts: tuple[Map, Map, Map, Map]) -> Map:
        """Return the descriptors (n, 128) of points (n, 2) of the padded frame."""
        scales = np.array(
            [
                [(part.shape[0] - 1) / (parts[0].shape[0] - 1), (part.shape[1] - 1) / (parts[0].shape[1] - 1)]
                for part in parts
            ],
            dtype=np.float32,
        )
        return describe(points, parts, scales, *self._collector)

    def _scores(self, narrow: list[Map]) -> Map:
        (weights, _), *others = self._heads
        # The first layer looks at one pixel: applied before the maps are enlarged, it takes less time.
        depth, total = narrow[0].shape[0], None
        for n, image in enumerate(narrow):
            share = np.ascontiguousarray(weights[:, n * depth : (n + 1) * depth])
            seen = convolve(image, share, np.zeros(len(share), np.float32))
            enlarged = enlarge(seen, narrow[0].shape[1] // image.shape[1])
            total = enlarged if total is None else total + enlarged
        for layer in others:
            assert total is not None
            total = convolve(_activated(total), *layer)
        assert total is not None
        return np.asarray(1.0 / (1.0 + np.exp(-total[0])), dtype=np.float32)

    def _plain(self, name: str) -> Layer:
        weights = self._weights[f"{name}.weight"]
        bias = self._weights.get(f"{name}.bias")
        return weights, np.zeros(len(weights), np.float32) if bias is None else bias

    def _followed(self, block: str, number: int, inner: str = "") -> Layer:
        return self._normalised(f"{block}.bn{number}", self._weights[f"{block}.conv{number}{inner}.weight"])

    def _normalised(self, name: str, weights: Map) -> Layer:
        """Return the weights of a layer and of the normalisation after it as those of one layer."""
        gain, bias, mean, variance = (
            self._weights[f"{name}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = gain / np.sqrt(variance + np.float32(BATCH_NORM_EPSILON))
        joined = np.asarray(weights * factor[:, None, None, None], dtype=np.float32)
        return joined, np.asarray(bias - mean * factor, dtype=np.float32)


@cache
def _network(path: Path) -> _Network:
    return _Network(read_weights(path))


def _padding(side: int) -> tuple[int, int]:
    """Return how many pixels are added before and behind, so that the side can be divided."""
    missing = -side % DIVISOR
    return missing // 2, missing - missing // 2


def _activated(image: Map) -> Map:
    selu(image)
    return image


def _reduced(image: Map, factor: int) -> Map:
    """Return the means of squares of pixels."""
    channels, height, width = image.shape
    squares = image.reshape(channels, height // factor, factor, width // factor, factor)
    total = np.zeros((channels, height // factor, width // factor), dtype=np.float32)
    for y in range(factor):
        for x in range(factor):
            total += squares[:, :, y, :, x]
    return np.asarray(total / (factor * factor), dtype=np.float32)


def _block(image: Map, first: Layer, second: Layer) -> Map:
    return _activated(convolve(_activated(convolve(image, *first)), *second))


def _residual_block(image: Map, first: Layer, second: Layer, beside: Layer) -> Map:
    seen = convolve(_activated(convolve(image, *first)), *second)
    return _activated(seen + convolve(image, *beside))


def _deformed_block(
    image: Map, first_offsets: Layer, first: Layer, second_offsets: Layer, second: Layer, beside: Layer
) -> Map:
    seen = _activated(_convolve_deformed(image, first_offsets, first))
    return _activated(_convolve_deformed(seen, second_offsets, second) + convolve(image, *beside))


def _convolve_deformed(image: Map, offsets: Layer, layer: Layer) -> Map:
    farthest = np.float32(max(image.shape[1:]) / 4.0)
    return convolve_shifted(image, np.clip(convolve(image, *offsets), -farthest, farthest), *layer)
