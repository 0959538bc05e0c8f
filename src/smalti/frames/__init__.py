"""Read frames from a video or from images, find their field of view, and set unusable ones aside."""
