"""How bright and how sharp each frame is beside the others."""
