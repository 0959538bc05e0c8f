"""The parts of benchmarks/rendering.py, a file each."""
