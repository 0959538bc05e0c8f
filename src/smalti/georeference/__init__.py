"""Positions of frames in the world, and where the mosaic lies there."""
