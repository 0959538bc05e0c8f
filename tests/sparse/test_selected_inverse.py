from __future__ import annotations

import numpy as np
import pytest

from smalti.sparse.cholesky import BlockCholesky
from smalti.sparse.pattern import Pattern
from smalti.sparse.selected_inverse import inverse_in_pattern

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


@pytest.mark.parametrize(("graph", "k"), list(zip(GRAPHS, [1, 3, 1, 6, 8, 3, 6, 8], strict=True)))
def test_the_inverse_in_the_pattern_is_that_of_the_dense_matrix(graph, k):
    nodes, edges = GRAPHS[graph]
    factor, dense = random_factor(np.random.default_rng([5, k]), nodes, edges, k)
    expected = np.linalg.inv(dense).reshape(nodes, k, nodes, k)
    own, crossed = inverse_in_pattern(factor)
    place = factor.pattern.place  # the dense matrix is in the order of elimination
    for node in range(nodes):
        np.testing.assert_allclose(own[node], expected[place[node], :, place[node]], rtol=1e-8, atol=1e-10)
    for (first, second), block in zip(factor.pattern.edges, crossed, strict=True):
        np.testing.assert_allclose(block, expected[place[first], :, place[second]], rtol=1e-7, atol=1e-9)
