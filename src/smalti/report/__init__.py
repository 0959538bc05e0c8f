"""What a build found, as one page for people."""
