from __future__ import annotations

import numpy as np
import pytest

from smalti.sparse.cholesky import BlockCholesky, NotPositiveDefiniteError
from smalti.sparse.pattern import Pattern


class Graph:
    """Edges with a positive semidefinite term each; their sum plus a little on the diagonal is the matrix."""

    def __init__(self, rng, nodes, k, edges):
        self.rng, self.nodes, self.k = rng, nodes, k
        self.terms = {edge: self.random_term() for edge in edges}

    def random_term(self):
        root = self.rng.normal(size=(2 * self.k, self.k))
        return root @ root.T

    def matrix(self):
        """Return edges (e, 2), diagonal (n, k, k), off-diagonal (e, k, k)."""
        k = self.k
        diagonal = np.tile(0.1 * np.eye(k), (self.nodes, 1, 1))
        off_diagonal = np.zeros((len(self.terms), k, k))
        edges = sorted(self.terms)
        for at, (a, b) in enumerate(edges):
            term = self.terms[a, b]
            diagonal[a] += term[:k, :k]
            diagonal[b] += term[k:, k:]
            off_diagonal[at] = term[:k, k:]
        return np.array(edges, dtype=np.int64).reshape(-1, 2), diagonal, off_diagonal

    def factor(self):
        edges, diagonal, off_diagonal = self.matrix()
        return BlockCholesky(Pattern.of(self.nodes, edges), diagonal, off_diagonal)


def dense(nodes, k, edges, diagonal, off_diagonal):
    full = np.zeros((nodes, k, nodes, k))
    for node in range(nodes):
        full[node, :, node] = diagonal[node]
    for (a, b), block in zip(edges, off_diagonal, strict=True):
        full[a, :, b] = block
        full[b, :, a] = block.T
    return full.reshape(nodes * k, nodes * k)


def chain(nodes):
    return [(n, n + 1) for n in range(nodes - 1)]


def random_edges(rng, nodes, extra):
    """Return a chain and some more edges, each in either direction."""
    missing = [(a, b) for a in range(nodes) for b in range(a + 2, nodes)]
    chosen = rng.choice(len(missing), size=min(extra, len(missing)), replace=False)
    edges = chain(nodes) + [missing[at] for at in chosen]
    return [edge if rng.random() < 0.5 else edge[::-1] for edge in edges]


@pytest.mark.parametrize(("k", "nodes"), [(1, 1), (1, 21), (3, 2), (4, 8), (6, 3), (6, 21)])
def test_solve_agrees_with_a_dense_solver(k, nodes):
    rng = np.random.default_rng(0)
    graph = Graph(rng, nodes, k, random_edges(rng, nodes, nodes // 2))
    right = rng.normal(size=(nodes, k, 5))
    expected = np.linalg.solve(dense(nodes, k, *graph.matrix()), right.reshape(nodes * k, 5))
    got = graph.factor().solve(right).reshape(nodes * k, 5)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_solve_agrees_with_a_dense_solver_where_every_block_is_there():
    rng = np.random.default_rng(1)
    graph = Graph(rng, 9, 3, [(a, b) for a in range(9) for b in range(a)])
    right = rng.normal(size=(9, 3, 2))
    expected = np.linalg.solve(dense(9, 3, *graph.matrix()), right.reshape(27, 2))
    np.testing.assert_allclose(graph.factor().solve(right).reshape(27, 2), expected, rtol=1e-9, atol=1e-11)


def test_solve_agrees_with_a_dense_solver_in_separate_parts():
    rng = np.random.default_rng(2)
    graph = Graph(rng, 9, 3, [(0, 4), (4, 2), (1, 7), (3, 8)])
    right = rng.normal(size=(9, 3, 2))
    expected = np.linalg.solve(dense(9, 3, *graph.matrix()), right.reshape(27, 2))
    np.testing.assert_allclose(graph.factor().solve(right).reshape(27, 2), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("count", [1, 64, 65, 200])
def test_right_hand_sides_solved_together_are_those_solved_alone(count):
    rng = np.random.default_rng(3)
    factor = Graph(rng, 10, 3, random_edges(rng, 10, 4)).factor()
    right = rng.normal(size=(10, 3, count))
    together = factor.solve(right)
    for at in {0, count // 2, count - 1}:
        alone = factor.solve(right[..., [at]])
        np.testing.assert_allclose(together[..., [at]], alone, rtol=1e-11, atol=1e-13)


def test_solve_leaves_the_right_hand_sides_alone():
    rng = np.random.default_rng(4)
    right = rng.normal(size=(10, 3, 2))
    before = right.copy()
    Graph(rng, 10, 3, chain(10)).factor().solve(right)
    np.testing.assert_array_equal(right, before)


@pytest.mark.parametrize(("k", "node"), [(1, 0), (3, 5), (6, 10)])
def test_an_indefinite_matrix_is_refused_with_its_node(k, node):
    graph = Graph(np.random.default_rng(6), 11, k, [])
    edges, diagonal, off_diagonal = graph.matrix()
    diagonal[node, k - 1, k - 1] = -1.0
    with pytest.raises(NotPositiveDefiniteError) as refusal:
        BlockCholesky(Pattern.of(11, edges), diagonal, off_diagonal)
    assert refusal.value.node == node


def test_a_matrix_indefinite_between_its_nodes_is_refused():
    edges, diagonal = np.array([[0, 1]]), np.tile(np.eye(3), (2, 1, 1))
    with pytest.raises(NotPositiveDefiniteError):
        BlockCholesky(Pattern.of(2, edges), diagonal, 1.1 * np.eye(3)[None])


def test_a_singular_matrix_is_refused():
    edges, diagonal = np.array([[0, 1]]), np.tile(np.eye(3), (2, 1, 1))
    with pytest.raises(NotPositiveDefiniteError):
        BlockCholesky(Pattern.of(2, edges), diagonal, np.eye(3)[None])


def test_with_many_edges_the_factor_fills_in_less_and_solves_as_well():
    rng = np.random.default_rng(5)
    nodes = 60
    at = rng.uniform(0, 10, size=(nodes, 2))
    near = np.linalg.norm(at[:, None] - at[None], axis=2)
    edges = np.argwhere(np.triu(near < 2.2, 1)).astype(np.int64)
    assert len(edges) > 1.3 * nodes
    pattern = Pattern.of(nodes, edges)
    assert sorted(pattern.node_at) == list(range(nodes))
    off = rng.normal(size=(len(edges), 2, 2))
    diagonal = np.tile(60.0 * np.eye(2), (nodes, 1, 1))
    dense = np.kron(np.eye(nodes), 60.0 * np.eye(2))
    for (a, b), block in zip(edges, off, strict=True):
        dense[2 * a : 2 * a + 2, 2 * b : 2 * b + 2] = block
        dense[2 * b : 2 * b + 2, 2 * a : 2 * a + 2] = block.T
    right = rng.normal(size=(nodes, 2, 3))
    solved = BlockCholesky(pattern, diagonal, off).solve(right)
    np.testing.assert_allclose(solved.reshape(-1, 3), np.linalg.solve(dense, right.reshape(-1, 3)), atol=1e-12)
    # Fewer blocks than a dense lower triangle of the larger of its parts would have.
    assert len(pattern.slot_row) < 0.5 * nodes * (nodes - 1) / 2
