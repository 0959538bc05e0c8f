"""The parts of benchmarks/rendering.py, one file each."""
