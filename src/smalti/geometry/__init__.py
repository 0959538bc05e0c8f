"""Affine maps, their linear families, and the outline of a frame."""
