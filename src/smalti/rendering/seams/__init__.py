"""One frame for every pixel, and where they meet."""
