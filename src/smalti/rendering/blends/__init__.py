"""Ways to blend frames into one picture."""
