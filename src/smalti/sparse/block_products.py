"""Products of single blocks: the innermost loops of all factorisations.

Each row of a product is a sum of rows. Its eight numbers are eight local variables, which the compiler turns into
vectors. It does not do so for inner products of two rows, or for loops over the eight. Terms are added in a fixed
order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.compiled import compiled, compiled_inline

Blocks = NDArray[np.float64]

FAST_SIZE = 8
"""The size of blocks that has a fast path: that of a homography."""


@compiled
def add_product(
    target: Blocks, t: int, left: Blocks, m: int, right: Blocks, n: int, rows: tuple[int, int], inner: tuple[int, int]
) -> None:
    """Add block m of `left` times block n of `right` to block t of `target`.

    `rows` is the range of rows of the result, and `inner` that of columns of the left block, that are not zero.
    """
    _add_product(target, t, left, m, right, n, rows, inner, False)


@compiled
def add_transposed_product(
    target: Blocks, t: int, left: Blocks, m: int, right: Blocks, n: int, rows: tuple[int, int], inner: tuple[int, int]
) -> None:
    """Add the transpose of block m of `left` times block n of `right` to block t of `target`."""
    _add_product(target, t, left, m, right, n, rows, inner, True)


@compiled
def transpose(target: Blocks, t: int, block: Blocks, n: int, sign: float) -> None:
    """Write the transpose of block n times `sign` to block t of `target`."""
    for a in range(block.shape[1]):
        for b in range(block.shape[2]):
            target[t, b, a] = sign * block[n, a, b]


@compiled_inline
def _add_product(
    target: Blocks,
    t: int,
    left: Blocks,
    m: int,
    right: Blocks,
    n: int,
    rows: tuple[int, int],
    inner: tuple[int, int],
    transposed: bool,
) -> None:
    """Add the product of two blocks, the left one transposed or not: one code for both kernels above."""
    for a in range(rows[0], rows[1]):
        if target.shape[2] == FAST_SIZE:
            s0, s1, s2, s3 = target[t, a, 0], target[t, a, 1], target[t, a, 2], target[t, a, 3]
            s4, s5, s6, s7 = target[t, a, 4], target[t, a, 5], target[t, a, 6], target[t, a, 7]
            for c in range(inner[0], inner[1]):
                x = left[m, c, a] if transposed else left[m, a, c]
                s0 += x * right[n, c, 0]
                s1 += x * right[n, c, 1]
                s2 += x * right[n, c, 2]
                s3 += x * right[n, c, 3]
                s4 += x * right[n, c, 4]
                s5 += x * right[n, c, 5]
                s6 += x * right[n, c, 6]
                s7 += x * right[n, c, 7]
            target[t, a, 0], target[t, a, 1], target[t, a, 2], target[t, a, 3] = s0, s1, s2, s3
            target[t, a, 4], target[t, a, 5], target[t, a, 6], target[t, a, 7] = s4, s5, s6, s7
        else:
            for c in range(inner[0], inner[1]):
                x = left[m, c, a] if transposed else left[m, a, c]
                for b in range(target.shape[2]):
                    target[t, a, b] += x * right[n, c, b]
