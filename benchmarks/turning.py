"""What a prior on the camera's turning does to the drift of a chain, for cameras that turn in several ways.

    python benchmarks/turning.py [--frames 300] [--worlds 200]

Every link measures the linear part of its map with noise of one unit. A camera turns by `rate` units from frame to
frame: always the same way, to and fro twice over the sequence, or each time anew. Printed is how far frames are turned
too much, RMS, as a ratio of calmed chains to those that were taken as measured; below it, what the prior says it is.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from claims import print_table
from smalti.adjustment.motion import learned_variance

RATES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=300, metavar="N", help="length of the chain (300)")
    parser.add_argument("--worlds", type=int, default=200, metavar="N", help="noise drawn so many times (200)")
    options = parser.parse_args()
    lines = []
    for name in ("always the same way", "to and fro", "each time anew"):
        ratios, stated = [], []
        for rate in RATES:
            rng = np.random.default_rng(0)
            squares = np.mean([drifts(turns(name, rate, options.frames, rng), rng) for _ in range(options.worlds)], 0)
            ratios.append(f"{np.sqrt(squares[1] / squares[0]):.2f}")
            stated.append(f"{np.sqrt(squares[2]):.2f}")
        lines += [[name, *ratios], ["… as stated", *stated]]
    print_table([f"turning, {options.frames} frames", *(f"{rate:g}" for rate in RATES)], lines)


def turns(name: str, rate: float, frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return what L has beyond I (n, 2, 2) at every step."""
    steps = frames - 1
    if name == "each time anew":
        return rng.normal(0.0, rate, size=(steps, 2, 2))
    course = np.ones(steps) if name == "always the same way" else np.sin(np.arange(steps) / steps * 4.0 * np.pi)
    turned: NDArray[np.float64] = rate * course[:, None, None] * TURN
    return turned


def drifts(beyond: NDArray[np.float64], rng: np.random.Generator) -> tuple[float, float, float]:
    """Return the mean squared drift as measured and as calmed, and what share of its variance a link keeps, it says."""
    measured = beyond + rng.normal(size=beyond.shape)
    variance = learned_variance(measured, np.ones((len(beyond), 2)))
    kept = variance / (1.0 + variance)
    raw, calm = (float(np.mean(np.cumsum(some - beyond, axis=0) ** 2)) for some in (measured, kept * measured))
    return raw, calm, kept


if __name__ == "__main__":
    main()
