"""Synthetic image sequences with exact truth: scenes, camera paths, degradations, video files."""
