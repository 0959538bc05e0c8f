"""From links between frames to the place of every frame on the mosaic, and how sure we are of it."""
