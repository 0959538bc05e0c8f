"""Frames as the canvas needs them: decoded once, at its resolution, read between pixels."""
