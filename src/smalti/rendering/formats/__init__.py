"""Image files, a module a format, written band by band, so that memory does not grow with the image."""
