"""An endoscope held by hand over soft tissue: pictures that are hard to register, and where every point truly is."""
