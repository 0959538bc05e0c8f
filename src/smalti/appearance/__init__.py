"""Describe the appearance of frames: the likeness of their keypoints, or signatures of visual words."""
