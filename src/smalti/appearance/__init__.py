"""What frames look like as a whole."""
