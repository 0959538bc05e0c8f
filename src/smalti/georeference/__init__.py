"""Georeference the mosaic: read the positions of frames, and find where the mosaic lies in the world."""
