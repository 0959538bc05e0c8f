"""How likely two frames are to overlap: from their place on the mosaic, and from anything else known."""
