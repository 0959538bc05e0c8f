"""Read and write files for other programs, one module a format."""
