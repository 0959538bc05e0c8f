"""The whole job, from a video to a mosaic. `build.py` shows it on one page."""
