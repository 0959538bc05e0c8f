"""The whole job, from a video to a mosaic; `build.py` is it on one page."""
