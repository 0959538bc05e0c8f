"""Frames and a map for each become an image of any size, tile by tile."""
