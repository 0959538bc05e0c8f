"""One frame for every pixel, and the seams between the frames."""
