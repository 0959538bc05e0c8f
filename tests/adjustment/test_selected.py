from __future__ import annotations

import numpy as np
import pytest

from smalti.adjustment.cholesky import BlockCholesky
from smalti.adjustment.pattern import Pattern
from smalti.adjustment.selected import inverse_diagonal, sandwiched_diagonal

GRAPHS = {
    "one_node": (1, []),
    "no_edges": (4, []),
    "chain": (9, [(n, n + 1) for n in range(8)]),
    "ring": (10, [(n, (n + 1) % 10) for n in range(10)]),
    "loops": (13, [(n, n + 1) for n in range(12)] + [(0, 7), (11, 2), (3, 12), (5, 9)]),
    "star": (8, [(3, n) for n in range(8) if n != 3]),
    "all_edges": (6, [(a, b) for a in range(6) for b in range(a)]),
    "parts": (9, [(0, 4), (4, 2), (2, 0), (1, 7), (3, 8)]),
}


def random_factor(rng, nodes, edges, k):
    """Return a factor and its matrix, dense and in elimination order."""
    diagonal = np.tile(0.5 * np.eye(k), (nodes, 1, 1))
    off_diagonal = np.zeros((len(edges), k, k))
    for at, (a, b) in enumerate(edges):
        root = rng.normal(size=(2 * k, k))
        term = root @ root.T
        diagonal[a] += term[:k, :k]
        diagonal[b] += term[k:, k:]
        off_diagonal[at] = term[:k, k:]
    pattern = Pattern.of(nodes, np.array(edges, dtype=np.int64).reshape(-1, 2))
    full = np.zeros((nodes, k, nodes, k))
    for node in range(nodes):
        full[pattern.place[node], :, pattern.place[node]] = diagonal[node]
    for (a, b), block in zip(edges, off_diagonal, strict=True):
        full[pattern.place[a], :, pattern.place[b]] = block
        full[pattern.place[b], :, pattern.place[a]] = block.T
    return BlockCholesky(pattern, diagonal, off_diagonal), full.reshape(nodes * k, nodes * k)


def random_middle(rng, pattern, k, *, symmetric):
    """Return M as its diagonal, lower and upper blocks, with a block in every slot, and dense."""
    slots = len(pattern.slot_row)
    diagonal = rng.normal(size=(pattern.nodes, k, k))
    lower, upper = rng.normal(size=(2, slots, k, k))
    if symmetric:
        diagonal = diagonal + np.swapaxes(diagonal, 1, 2)
        upper = np.ascontiguousarray(np.swapaxes(lower, 1, 2))
    full = np.zeros((pattern.nodes, k, pattern.nodes, k))
    for column in range(pattern.nodes):
        full[column, :, column] = diagonal[column]
        for slot in range(pattern.column_start[column], pattern.column_start[column + 1]):
            row = pattern.slot_row[slot]
            full[row, :, column] = lower[slot]
            full[column, :, row] = upper[slot]
    return (diagonal, lower, upper), full.reshape(pattern.nodes * k, pattern.nodes * k)


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "not_symmetric"])
@pytest.mark.parametrize("k", [1, 3, 4, 6])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_sandwich_agrees_with_dense_inverses(graph, k, symmetric):
    rng = np.random.default_rng(1)
    nodes, edges = GRAPHS[graph]
    factor, S = random_factor(rng, nodes, edges, k)
    blocks, M = random_middle(rng, factor.pattern, k, symmetric=symmetric)
    inverse = np.linalg.inv(S)
    expected = (inverse @ M @ inverse).reshape(nodes, k, nodes, k)[np.arange(nodes), :, np.arange(nodes)]
    got = sandwiched_diagonal(factor, *blocks)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_the_matrix_itself_in_the_middle_gives_the_diagonal_of_its_inverse():
    rng = np.random.default_rng(2)
    nodes, edges = GRAPHS["loops"]
    factor, S = random_factor(rng, nodes, edges, 3)
    pattern, blocks = factor.pattern, S.reshape(nodes, 3, nodes, 3)
    column = np.repeat(np.arange(nodes), np.diff(pattern.column_start))
    got = sandwiched_diagonal(
        factor,
        blocks[np.arange(nodes), :, np.arange(nodes)],
        blocks[pattern.slot_row, :, column],
        blocks[column, :, pattern.slot_row],
    )
    expected = np.linalg.inv(S).reshape(nodes, 3, nodes, 3)[np.arange(nodes), :, np.arange(nodes)]
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_the_sandwich_leaves_its_arguments_alone():
    rng = np.random.default_rng(3)
    nodes, edges = GRAPHS["loops"]
    factor, _ = random_factor(rng, nodes, edges, 3)
    blocks, _ = random_middle(rng, factor.pattern, 3, symmetric=False)
    before = [array.copy() for array in blocks]
    sandwiched_diagonal(factor, *blocks)
    for array, copy in zip(blocks, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_inverse_alone_has_the_diagonal_of_the_dense_one(graph, k):
    nodes, edges = GRAPHS[graph]
    factor, dense = random_factor(np.random.default_rng([5, k]), nodes, edges, k)
    expected = np.linalg.inv(dense).reshape(nodes, k, nodes, k)
    found = inverse_diagonal(*factor.arrays)
    for node in range(nodes):
        np.testing.assert_allclose(found[node], expected[node, :, node], rtol=1e-8, atol=1e-10)
