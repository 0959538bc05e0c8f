"""Describe the appearance of frames: visual words and signatures."""
