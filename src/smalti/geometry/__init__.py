"""Homographies, affine maps, the outline of a frame, and the lens."""
