"""Estimate the probability that two frames overlap: from their positions on the mosaic and from external models."""
