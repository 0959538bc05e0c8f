"""Sparse linear algebra of small blocks: where a factor has blocks, the factor, its solves, parts of its inverse."""
