"""Frames from a video or from images: reading them, their field of view, and which of them are of use."""
