"""Sparse linear algebra of small blocks: pattern, Cholesky and QR factors, solves, selected inverse."""
