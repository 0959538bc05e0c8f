"""The factor from the rows of a least-squares problem: that of their products, and right where those have no digits."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.sparse.cholesky import BlockCholesky, NotPositiveDefiniteError
from smalti.sparse.orthogonal_factor import Rows, factorise_rows
from smalti.sparse.pattern import Pattern

GRAPHS = {
    "one node": (1, []),
    "chain": (9, [(n, n + 1) for n in range(8)]),
    "ring": (10, [(n, (n + 1) % 10) for n in range(10)]),
    "loops": (13, [(n, n + 1) for n in range(12)] + [(0, 7), (11, 2), (3, 12), (5, 9)]),
    "all edges": (6, [(a, b) for a in range(6) for b in range(a)]),
}
each_graph = pytest.mark.parametrize(("graph", "k"), list(zip(GRAPHS, [1, 3, 6, 6, 3], strict=True)))


def random_rows(rng, nodes, edges, k, m=2):
    """A group of rows for every edge and, to hold it, one for the first node."""
    r = 2 * k + 1
    ends = np.array([*edges, (0, -1)], dtype=np.int64)
    first, second = rng.normal(size=(2, len(ends), r, k))
    return Rows(ends, first, second, rng.normal(size=(len(ends), r, m)))


def dense(nodes, rows):
    """Return A and b."""
    groups, r, k = rows.first.shape
    matrix = np.zeros((groups, r, nodes, k))
    for n, (a, b) in enumerate(rows.ends):
        matrix[n, :, a] += rows.first[n]
        if b >= 0:
            matrix[n, :, b] += rows.second[n]
    return matrix.reshape(groups * r, nodes * k), rows.right.reshape(groups * r, -1)


def pattern_of(nodes, edges):
    return Pattern.of(nodes, np.array(edges, dtype=np.int64).reshape(-1, 2))


@each_graph
def test_the_solution_is_the_dense_least_squares(graph, k):
    nodes, edges = GRAPHS[graph]
    rows = random_rows(np.random.default_rng([1, k]), nodes, edges, k)
    matrix, right = dense(nodes, rows)
    expected = np.linalg.lstsq(matrix, right, rcond=None)[0]
    _, found = factorise_rows(pattern_of(nodes, edges), rows)
    np.testing.assert_allclose(found.reshape(nodes * k, -1), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@each_graph
def test_the_factor_is_that_of_the_products(graph, k):
    nodes, edges = GRAPHS[graph]
    rows = random_rows(np.random.default_rng([2, k]), nodes, edges, k)
    matrix, _ = dense(nodes, rows)
    normal = (matrix.T @ matrix).reshape(nodes, k, nodes, k)
    diagonal = normal[np.arange(nodes), :, np.arange(nodes)]
    off_diagonal = np.array([normal[a, :, b] for a, b in edges]).reshape(-1, k, k)
    expected = BlockCholesky(pattern_of(nodes, edges), diagonal, off_diagonal)
    found, _ = factorise_rows(pattern_of(nodes, edges), rows)
    right = np.random.default_rng(3).normal(size=(nodes, k, 3))
    solved, by_products = found.solve(right), expected.solve(right)
    np.testing.assert_allclose(solved, by_products, rtol=0, atol=1e-6 * np.abs(by_products).max())
    for mine, theirs in zip(found.arrays[2:], expected.arrays[2:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6 * np.abs(theirs).max(initial=1.0))


def test_links_that_differ_by_nine_orders_keep_their_digits():
    # Their products would differ by eighteen: no digit of the weak ones is left beside the strong ones.
    weights = np.array([1.0, 1e-9, 1.0, 1e-9, 1.0])
    ends = np.array([(0, -1), (0, 1), (1, 2), (2, 3), (3, 4)])
    ones = weights[:, None, None] * np.ones((5, 1, 1))
    steps = np.array([3.0, 1.0, 4.0, 1.0, 5.0])[:, None, None]
    rows = Rows(ends, np.where(ends[:, 1:, None] < 0, ones, -ones), ones, ones * steps)
    _, found = factorise_rows(pattern_of(5, ends[1:]), rows)
    np.testing.assert_allclose(found.ravel(), [3.0, 4.0, 8.0, 9.0, 14.0], rtol=1e-6)


def test_a_node_that_no_row_determines_is_refused():
    rows = Rows(np.array([[0, -1]]), np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1, 1)))
    with pytest.raises(NotPositiveDefiniteError) as refusal:
        factorise_rows(pattern_of(2, []), rows)
    assert refusal.value.node == 1
