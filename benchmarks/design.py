"""How few answers could do: designs that know the truth, by exact linear theory, without noise in any choice.

    python benchmarks/design.py [--frames 300] [--level 1.41] [--wander SEED]

On the raster: the error (the paper's, expected) after so many evenly spaced rungs, and after so many greedy ones, each
of which lowers the expected error most, all overlapping pairs and their landmarks being known. No strategy that asks
one question after the other can be expected to do much better than the second. With --wander, the greedy one on that
path of 600 frames (or `--frames`).
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from smalti.adjustment.relations import Relations
from smalti.experiments.wander import wander
from smalti.experiments.worlds import OUTLINE, World, raster

HELD = 100.0
"""Information that holds the first frame."""


class Design:
    """What is known of a world after some links, exactly."""

    def __init__(self, world: World) -> None:
        pairs, moments = world.moments
        unit_from_pixels = np.vstack([OUTLINE.unit_from_pixels, [0.0, 0.0, 1.0]])
        roots = np.linalg.cholesky(unit_from_pixels @ moments @ unit_from_pixels.T)
        shifts = np.tile(np.eye(2, 3), (len(pairs), 1, 1))
        shifts[:, :, 2] = (world.positions[pairs[:, 1]] - world.positions[pairs[:, 0]]) / OUTLINE.unit
        links = Relations.of(pairs, shifts, roots)
        self.pairs, self.size = pairs, 6 * world.frames
        self.at = (6 * pairs[:, :, None] + np.arange(6)).reshape(-1, 12)
        self.rows = np.concatenate([links.by_i, links.by_j], axis=2)  # (n, 6, 12)
        consecutive = np.diff(pairs, axis=1)[:, 0] == 1
        everything, chain = self._information(np.arange(len(pairs))), self._information(np.flatnonzero(consecutive))
        self.matter = everything / float(np.sum(moments[:, 2, 2]))
        known = chain.toarray()
        known[:6, :6] += HELD * np.eye(6)
        self.start = np.linalg.inv(known)
        self.loops = np.flatnonzero(~consecutive)

    def error_px(self, covariance: NDArray[np.float64]) -> float:
        """Return the expected RMS error."""
        return float(np.sqrt((self.matter * covariance).sum()))

    def add(self, covariance: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """Return the covariance after a link."""
        at, rows = self.at[n], self.rows[n]
        crossed = covariance[:, at] @ rows.T
        lowered: NDArray[np.float64] = crossed @ np.linalg.solve(np.eye(6) + rows @ crossed[at], crossed.T)
        return covariance - lowered

    def best(self, covariance: NDArray[np.float64], left: NDArray[np.int64]) -> int:
        """Return which of the links left lowers the error most."""
        moved = np.asarray(covariance @ (self.matter @ covariance))
        at, rows = self.at[left], self.rows[left]
        own = rows @ covariance[at[:, :, None], at[:, None]] @ np.swapaxes(rows, 1, 2)
        drop = rows @ moved[at[:, :, None], at[:, None]] @ np.swapaxes(rows, 1, 2)
        return int(left[np.argmax(np.trace(np.linalg.solve(own + np.eye(6), drop), axis1=1, axis2=2))])

    def greedy(self, level: float) -> list[float]:
        """Return the errors after the best links one by one, until they reach a level."""
        covariance, left, errors = self.start, self.loops, [self.error_px(self.start)]
        while errors[-1] > level and len(left):
            n = self.best(covariance, left)
            covariance, left = self.add(covariance, n), left[left != n]
            errors.append(self.error_px(covariance))
        return errors

    def evenly(self, count: int) -> float:
        """Return the error of a raster with so many rungs, evenly spaced."""
        half = self.size // 12
        number = {(int(i), int(j)): n for n, (i, j) in enumerate(self.pairs)}
        covariance = self.start
        for rung in np.unique(((np.arange(count) + 0.25) * half / count).astype(int).clip(max=half - 2)):
            covariance = self.add(covariance, number[int(rung), 2 * half - 1 - int(rung)])
        return self.error_px(covariance)

    def _information(self, chosen: NDArray[np.int64]) -> csr_array:
        rows = np.repeat(np.arange(6 * len(chosen)), 12)
        columns = np.repeat(self.at[chosen], 6, axis=0).ravel()
        jacobian = csr_array((self.rows[chosen].ravel(), (rows, columns)), shape=(6 * len(chosen), self.size))
        return csr_array(jacobian.T @ jacobian)


def main() -> None:
    """Print how many answers reach the level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, metavar="N", help="of the raster (300) or the path (600)")
    parser.add_argument("--level", type=float, default=1.41, metavar="PX", help="the error to reach (1.41)")
    parser.add_argument("--wander", type=int, metavar="SEED", help="take this path instead of the raster")
    options = parser.parse_args()
    if options.wander is not None:
        design = Design(wander(options.frames or 600, options.wander))
    else:
        design = Design(raster(options.frames or 300))
        count = next(count for count in range(1, 10_000) if design.evenly(count) <= options.level)
        print(f"evenly spaced: {count} answers reach {design.evenly(count):.3f} px")
    errors = design.greedy(options.level)
    print(f"greedy: {len(errors) - 1} answers reach {errors[-1]:.3f} px")
    print("after 1, 2, 5, 10, 20, …: " + ", ".join(f"{errors[n]:.2f}" for n in (1, 2, 5, *range(10, len(errors), 10))))


if __name__ == "__main__":
    main()
