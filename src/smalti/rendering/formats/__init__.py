"""Image files, written band by band, so that memory does not grow with the image."""
