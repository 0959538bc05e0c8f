"""The order of elimination: what it leaves sparse and shallow, and that it is an order at all."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.sparse.pattern import Pattern

CHAIN_OF_40 = [(n, n + 1) for n in range(39)]


def chain(nodes):
    return [(n, n + 1) for n in range(nodes - 1)]


def ladder(nodes, every=1):
    """There and back, with rungs between the two ways."""
    return chain(nodes) + [(n, nodes - 1 - n) for n in range(0, nodes // 2 - 1, every)]


GRAPHS = {
    "single node": (1, []),
    "nodes without edges": (7, []),
    "chain": (40, CHAIN_OF_40),
    "chain the other way round": (40, [(b, a) for a, b in CHAIN_OF_40]),
    "ring": (40, [*CHAIN_OF_40, (0, 39)]),
    "few rungs": (41, ladder(41, 7)),
    "bridged node": (40, [edge for edge in CHAIN_OF_40 if edge != (20, 21)] + [(20, 22)]),
    "missing edge": (40, [edge for edge in CHAIN_OF_40 if edge != (20, 21)]),
    "knots that nothing joins": (12, [(0, 5), (5, 9), (9, 0), (1, 7), (7, 11), (11, 1)]),
    "every node a knot": (9, [(a, b) for a in range(9) for b in range(a)]),
    "star": (9, [(4, n) for n in range(9) if n != 4]),
    "no consecutive nodes joined": (20, [(n, n + 2) for n in range(18)]),
}
each_graph = pytest.mark.parametrize("name", GRAPHS)


def pattern_of(nodes, edges):
    return Pattern.of(nodes, np.array(edges, dtype=np.int64).reshape(-1, 2))


def filled(nodes, edges, place):
    """The blocks (row, column) of the factor, by eliminating node after node from a dense matrix."""
    there = np.zeros((nodes, nodes), dtype=bool)
    for a, b in edges:
        there[place[a], place[b]] = there[place[b], place[a]] = True
    for column in range(nodes):
        after = column + 1 + np.flatnonzero(there[column + 1 :, column])
        there[np.ix_(after, after)] = True
    return np.tril(there, -1)


def depths(parent):
    depth = np.zeros(len(parent), dtype=int)
    for column in range(len(parent) - 1, -1, -1):
        if parent[column] >= 0:
            depth[column] = depth[parent[column]] + 1
    return depth


@each_graph
def test_slots_and_parents_are_those_of_a_dense_elimination_in_that_order(name):
    nodes, edges = GRAPHS[name]
    pattern = pattern_of(nodes, edges)
    assert sorted(pattern.node_at) == list(range(nodes))
    np.testing.assert_array_equal(pattern.place[pattern.node_at], np.arange(nodes))
    found = np.zeros((nodes, nodes), dtype=bool)
    found[pattern.slot_row, np.repeat(np.arange(nodes), np.diff(pattern.column_start))] = True
    there = filled(nodes, edges, pattern.place)
    np.testing.assert_array_equal(found, there)
    # The parent is the first row below the diagonal.
    assert pattern.parent.tolist() == [int(np.argmax(column)) if column.any() else -1 for column in there.T]


@each_graph
def test_every_edge_has_its_own_slot(name):
    nodes, edges = GRAPHS[name]
    pattern = pattern_of(nodes, edges)
    column = np.repeat(np.arange(nodes), np.diff(pattern.column_start))
    for (a, b), slot, flipped in zip(edges, pattern.edge_slot, pattern.edge_flipped, strict=True):
        row_node, column_node = (a, b) if flipped else (b, a)
        assert (pattern.slot_row[slot], column[slot]) == (pattern.place[row_node], pattern.place[column_node])


@pytest.mark.parametrize("nodes", [2, 65, 5000])
def test_the_tree_of_a_chain_is_as_deep_as_the_logarithm_of_its_length(nodes):
    assert depths(pattern_of(nodes, chain(nodes)).parent).max() <= 2 * np.log2(nodes) + 2


@pytest.mark.parametrize("loops", [10, 30])
def test_the_tree_of_a_long_chain_with_some_loops_stays_shallow(loops):
    rng = np.random.default_rng(loops)
    pairs = {tuple(sorted(pair)) for pair in rng.choice(2000, size=(loops, 2), replace=False).tolist()}
    pattern = pattern_of(2000, chain(2000) + [pair for pair in pairs if pair[1] - pair[0] > 1])
    assert depths(pattern.parent).max() <= 2 * np.log2(2000) + 8


def test_a_long_chain_fills_in_less_than_one_block_a_node():
    assert len(pattern_of(5000, chain(5000)).slot_row) <= 2 * 5000


@pytest.mark.parametrize("every", [1, 10])
def test_a_ladder_stays_sparse(every):
    pattern = pattern_of(1000, ladder(1000, every))
    assert len(pattern.slot_row) <= 4 * 1000
