"""Colours of the maps: ordered in lightness, so that they can be told apart by everybody and in print."""

from __future__ import annotations

import colorsys

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

Colours = NDArray[np.uint8]
"""(n, 3)."""

UNCERTAINTY, COVERAGE = "viridis", "cividis"

NUMBER_BITS = 5
"""The lowest ones of red, green and blue of a frame's colour hold its number, for the script; nobody sees them."""

MOST_NUMBERS = 2 ** (3 * NUMBER_BITS) - 1

TURN = 0.38196601
"""Of the circle of hues, from a frame to the next: the golden angle, by which no hue soon comes near an earlier one."""

SATURATION = 0.5
LIGHTNESS = (0.95, 0.55)


def shade(name: str, shares: NDArray[np.float64]) -> Colours:
    """Return the colours of a scale at shares (n,) of its length, 0 to 1."""
    colours: Colours = (255 * np.asarray(mpl.colormaps[name](shares))[:, :3]).round().astype(np.uint8)
    return colours


def colour_numbers(count: int) -> Colours:
    """Return muted colours of the numbers 0 to `count` - 1, of which each differs from the next; 0 is black.

    The number can be read from the colour.
    """
    assert count - 1 <= MOST_NUMBERS, f"a colour cannot hold {count - 1}"
    colours = np.zeros((count, 3), dtype=np.uint8)
    lowest = 2**NUMBER_BITS - 1
    for number in range(1, count):
        hue, lightness = number * TURN % 1.0, LIGHTNESS[number % len(LIGHTNESS)]
        bits = number >> 2 * NUMBER_BITS, number >> NUMBER_BITS & lowest, number & lowest
        for channel, value in enumerate(colorsys.hsv_to_rgb(hue, SATURATION, lightness)):
            colours[number, channel] = int(255 * value) & ~lowest | bits[channel]
    return colours
